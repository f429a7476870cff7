//! The name in a TLS client's first message (RFC 8446 section 4.1.2, RFC 6066 section 3).
//!
//! Only the frame is read: records, the handshake's head, the list of extensions, one name. A
//! message that is cut short asks for more; one that contradicts itself is refused, because a
//! server might read it otherwise than this does.

/// What the first bytes of a connection are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientHello {
    /// A whole message.
    Complete {
        /// The server name; none if it has none.
        name: Option<String>,
        /// Whether it may hold a second, encrypted message whose name is the real one.
        encrypted: bool,
    },
    /// The beginning of one.
    Incomplete,
    /// Something that no TLS client sends.
    Malformed(&'static str),
}

/// A message is at most this long: real ones have a few hundred bytes, with post-quantum keys
/// some two thousand.
pub(crate) const MAX_HELLO: usize = 16 * 1024;

const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
/// `encrypted_client_hello` (RFC 9849) and the draft before it, `encrypted_server_name`. What
/// browsers send in their place to keep others used to them looks the same, on purpose.
const ENCRYPTED: [u16; 2] = [0xfe0d, 0xffce];
const HOST_NAME: u8 = 0;

/// Reads the first bytes that a TLS client sent.
pub fn read(bytes: &[u8]) -> ClientHello {
    match message(bytes) {
        Ok(Some(body)) => match server_name(&body) {
            Ok((name, encrypted)) => ClientHello::Complete { name, encrypted },
            Err(reason) => ClientHello::Malformed(reason),
        },
        Ok(None) => ClientHello::Incomplete,
        Err(reason) => ClientHello::Malformed(reason),
    }
}

/// The handshake message, put together from its records; none if it is not all there.
fn message(mut bytes: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    let mut message = Vec::new();
    loop {
        if let Some(head) = message.first_chunk::<4>() {
            if head[0] != CLIENT_HELLO {
                return Err("the first message is no ClientHello");
            }
            let length = u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize;
            if length > MAX_HELLO {
                return Err("the ClientHello is too long");
            }
            if message.len() >= 4 + length {
                message.truncate(4 + length);
                message.drain(..4);
                return Ok(Some(message));
            }
        }
        let Some((head, rest)) = bytes.split_first_chunk::<5>() else {
            return match bytes.first() {
                Some(&kind) if kind != HANDSHAKE_RECORD => Err("a record is no handshake"),
                _ => Ok(None),
            };
        };
        if head[0] != HANDSHAKE_RECORD || head[1] != 3 {
            return Err("a record is no handshake");
        }
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        if length == 0 || length > MAX_HELLO {
            return Err("a record has a length that none has");
        }
        message.extend_from_slice(&rest[..length.min(rest.len())]);
        bytes = rest.get(length..).unwrap_or_default();
    }
}

/// The name, and whether there is an encrypted message as well.
fn server_name(body: &[u8]) -> Result<(Option<String>, bool), &'static str> {
    let mut rest = Reader(body);
    rest.take(2 + 32)?;
    let session = rest.vector8()?;
    if session.len() > 32 {
        return Err("the session id is too long");
    }
    rest.vector16()?;
    rest.vector8()?;
    if rest.0.is_empty() {
        return Ok((None, false));
    }
    let mut extensions = Reader(rest.vector16()?);
    if !rest.0.is_empty() {
        return Err("the ClientHello goes on after its end");
    }
    let (mut name, mut encrypted) = (None, false);
    while !extensions.0.is_empty() {
        let kind = extensions.number16()?;
        let content = extensions.vector16()?;
        if kind == SERVER_NAME {
            if name.is_some() {
                return Err("the server is named twice");
            }
            name = Some(host_name(content)?);
        }
        encrypted |= ENCRYPTED.contains(&kind);
    }
    Ok((name, encrypted))
}

fn host_name(content: &[u8]) -> Result<String, &'static str> {
    let mut outer = Reader(content);
    let mut list = Reader(outer.vector16()?);
    if !outer.0.is_empty() {
        return Err("the list of names goes on after its end");
    }
    let mut name = None;
    while !list.0.is_empty() {
        let kind = list.take(1)?[0];
        let text = list.vector16()?;
        if kind != HOST_NAME || name.is_some() {
            return Err("the server is named twice, or in a way nobody knows");
        }
        let text = std::str::from_utf8(text).map_err(|_| "the server's name is no text")?;
        name = Some(text.to_owned());
    }
    name.ok_or("the list of names is empty")
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or("the ClientHello ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn number16(&mut self) -> Result<u16, &'static str> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn vector8(&mut self) -> Result<&'a [u8], &'static str> {
        let length = usize::from(self.take(1)?[0]);
        self.take(length)
    }

    fn vector16(&mut self) -> Result<&'a [u8], &'static str> {
        let length = usize::from(self.number16()?);
        self.take(length)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vector16(content: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(content.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend_from_slice(content);
        bytes
    }

    /// A `ClientHello` as handshake bytes, without records.
    fn hello(names: &[&str]) -> Vec<u8> {
        let mut extensions = vec![0, 43, 0, 3, 2, 3, 4];
        for name in names {
            let mut entry = vec![HOST_NAME];
            entry.extend(vector16(name.as_bytes()));
            extensions.extend([0, 0]);
            extensions.extend(vector16(&vector16(&entry)));
        }
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.push(0);
        body.extend(vector16(&[0x13, 1]));
        body.extend([1, 0]);
        body.extend(vector16(&extensions));
        let mut message = vec![CLIENT_HELLO, 0];
        message.extend(vector16(&body));
        message
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in message.chunks(size) {
            bytes.extend([HANDSHAKE_RECORD, 3, 1]);
            bytes.extend(vector16(piece));
        }
        bytes
    }

    #[test]
    fn the_name_is_found_in_one_record_and_in_many() {
        let found = ClientHello::Complete {
            name: Some("a.test".into()),
            encrypted: false,
        };
        for size in [1, 3, 4, 5, 50, 10_000] {
            assert_eq!(read(&records(&hello(&["a.test"]), size)), found, "{size}");
        }
        let unnamed = ClientHello::Complete {
            name: None,
            encrypted: false,
        };
        assert_eq!(read(&records(&hello(&[]), 999)), unnamed);
    }

    #[test]
    fn every_beginning_asks_for_more() {
        let whole = records(&hello(&["a.test"]), 60);
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length]), ClientHello::Incomplete, "{length}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let twice = records(&hello(&["a.test", "b.test"]), 999);
        assert!(matches!(read(&twice), ClientHello::Malformed(_)));
        for bytes in [
            &b"\x16\x03\x01\x00\x00"[..],
            b"\x17\x03\x01\x00\x05hello",
            b"\x16\x02\x01\x00\x05hello",
            b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
            b"\x16\x03\x01\x00\x04\x01\xff\xff\xff",
            b"GET / HTTP/1.1",
        ] {
            assert!(
                matches!(read(bytes), ClientHello::Malformed(_)),
                "{bytes:?}"
            );
        }
        let mut longer = hello(&["a.test"]);
        let length = longer.len();
        // One byte after the extensions.
        longer.push(0);
        longer[2..4].copy_from_slice(&u16::try_from(length - 3).unwrap().to_be_bytes());
        assert!(matches!(
            read(&records(&longer, 999)),
            ClientHello::Malformed(_)
        ));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = read(&bytes);
        }

        #[test]
        fn more_bytes_never_change_an_answer(cut in 0usize..200, size in 1usize..100) {
            let whole = records(&hello(&["a.test"]), size);
            let part = read(&whole[..cut.min(whole.len())]);
            prop_assert!(part == ClientHello::Incomplete || part == read(&whole));
        }
    }
}
