//! The first line of a stream, looked at while it passes.

/// Words of a request line, in any case to kind servers: HTTP's since 1.0, and those that Node.js
/// takes for it.
const VERSIONS: [&[u8]; 3] = [b"http/", b" rtsp/", b" ice/"];
/// How a line begins that is a request without such a word (HTTP/0.9), or that a server which takes
/// the PROXY protocol reads before one.
const STARTS: [&[u8]; 4] = [b"get /", b"get http://", b"get https://", b"proxy "];
/// The line in the signature of the second version of the PROXY protocol, behind a zero.
const SIGNATURE: &[u8] = b"quit";

/// As long as the longest of [`STARTS`].
const MAX_START: usize = 12;
/// As long as the longest of [`VERSIONS`].
const MAX_VERSION: usize = 6;

/// What is known of the first line so far: bytes in lower case, white space as one blank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FirstLine {
    start: [u8; MAX_START],
    length: usize,
    last: [u8; MAX_VERSION],
    has_zero: bool,
    is_request: Option<bool>,
}

impl FirstLine {
    /// Looks at the next bytes.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.is_request.is_some() {
                return;
            }
            self.read_one(byte.to_ascii_lowercase());
        }
    }

    /// Whether the line is one of a request; none if it has not ended.
    pub(crate) fn is_request(&self) -> Option<bool> {
        self.is_request
    }

    fn read_one(&mut self, byte: u8) {
        let is_blank = byte.is_ascii_whitespace() || byte == 0x0b;
        if self.length == 0 && (is_blank || byte == 0) {
            // Servers skip empty lines, and some skip white space or zeros before a request.
            self.has_zero |= byte == 0;
            return;
        }
        if byte == b'\n' {
            let start = &self.start[..self.length];
            let is_signature = self.has_zero && start == SIGNATURE;
            let is_started = STARTS.iter().any(|word| start.starts_with(word));
            self.is_request = Some(is_signature || is_started);
            return;
        }
        let byte = if is_blank { b' ' } else { byte };
        if byte == b' ' && self.last[MAX_VERSION - 1] == b' ' {
            return;
        }
        self.last.rotate_left(1);
        self.last[MAX_VERSION - 1] = byte;
        if self.length < MAX_START {
            self.start[self.length] = byte;
            self.length += 1;
        }
        if VERSIONS.iter().any(|word| self.last.ends_with(word)) {
            self.is_request = Some(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> Option<bool> {
        let mut line = FirstLine::default();
        for piece in pieces {
            line.read(piece);
        }
        line.is_request()
    }

    #[test]
    fn a_line_is_a_request_however_it_comes() {
        assert_eq!(read(&[b"x", b" / hT", b"tP/1", b"\n"]), Some(true));
        assert_eq!(read(&[b"\r\n \n\0", b"hhttp/"]), Some(true));
        assert_eq!(
            read(&[b"USER http:", b"//x\n", b"GET / HTTP/1.1\n"]),
            Some(false)
        );
        assert_eq!(read(&[b"\r\n\r\n"]), None);
        assert_eq!(read(&[b"PING"]), None);
    }

    #[test]
    fn lines_of_other_versions_and_before_a_request_are_requests() {
        for line in [
            &b"GET /x\r\n"[..],
            b"get  http://x/\n",
            b"OPTIONS * RTSP/1.0\r\n",
            b"SOURCE /x\tICE/1.0\r\n",
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n",
            b"\r\n\r\n\0\r\nQUIT\n!\x11",
        ] {
            for cut in 0..line.len() {
                let (one, two) = line.split_at(cut);
                assert_eq!(read(&[one, two]), Some(true), "{line:?} {cut}");
            }
        }
        for line in [
            &b"get key\r\n"[..],
            b"QUIT\r\n",
            b"EHLO service/1\n",
            b"GETS /x\n",
            b"USER rtsp://x\n",
        ] {
            assert_eq!(read(&[line]), Some(false), "{line:?}");
        }
    }

    proptest! {
        /// The oracle searches the whole text.
        #[test]
        fn it_is_what_a_search_finds(text in "[ht/pHTP \n\r]{0,40}", cut in 0usize..40) {
            let bytes = text.as_bytes();
            let cut = cut.min(bytes.len());
            let skipped = text.trim_start_matches(['\r', '\n', ' ']);
            let line = skipped.split('\n').next().unwrap_or_default().to_lowercase();
            let ended = skipped.contains('\n');
            let expected = if line.contains("http/") { Some(true) } else { ended.then_some(false) };
            prop_assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]), expected);
        }
    }
}
