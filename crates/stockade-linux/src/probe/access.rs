//! Tries single accesses from inside a sandbox: the half of a self-test that runs there.
//!
//! The outside starts the helper in the sandbox with [`arguments`] and reads the answers with
//! [`parse`]: one line for each, the error number, zero if it worked. What really happened is
//! for the outside to see; these lines only say what the inside was told.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::MARKER;

/// One access.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "both halves must know each")]
pub enum Access {
    /// Connect to an address and send these bytes.
    Connect(SocketAddr, Vec<u8>),
    /// Connect to a listener of one's own on the loopback.
    OwnListener,
    /// Open a file for writing, or make one of this name in a directory, which stays there for
    /// the outside to find. Nothing is written.
    Write(PathBuf, OsString),
}

/// Turns the probe into this.
pub(super) const WORD: &str = "access";

/// A connection that nobody answers must not hold the test up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The helper's arguments.
pub fn arguments(accesses: &[Access]) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![MARKER.into(), WORD.into()];
    for access in accesses {
        match access {
            Access::Connect(address, bytes) => words.extend([
                "connect".into(),
                address.to_string().into(),
                OsString::from_vec(bytes.clone()),
            ]),
            Access::OwnListener => words.push("own-listener".into()),
            Access::Write(path, name) => {
                words.extend(["write".into(), path.into(), name.clone()]);
            }
        }
    }
    words
}

/// The error numbers that the helper wrote, in order; none if there are not as many as asked for.
pub fn parse(output: &[u8], accesses: &[Access]) -> Option<Vec<i32>> {
    let text = std::str::from_utf8(output).ok()?;
    let numbers: Option<Vec<i32>> = text.lines().map(|line| line.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() == accesses.len())
}

/// Tries each and prints how it went; false if the words make no sense.
pub(super) fn run(mut words: impl Iterator<Item = OsString>) -> bool {
    let mut out = io::stdout().lock();
    while let Some(word) = words.next() {
        let Some(access) = read(&word, &mut words) else {
            return false;
        };
        let errno = match access.attempt() {
            Ok(()) => 0,
            Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
        };
        // A caller that went away needs no answer.
        let _ = writeln!(out, "{errno}");
    }
    true
}

fn read(word: &OsStr, words: &mut impl Iterator<Item = OsString>) -> Option<Access> {
    match word.to_str()? {
        "connect" => {
            let address = words.next()?.to_str()?.parse().ok()?;
            Some(Access::Connect(address, words.next()?.into_vec()))
        }
        "own-listener" => Some(Access::OwnListener),
        "write" => Some(Access::Write(words.next()?.into(), words.next()?)),
        _ => None,
    }
}

impl Access {
    /// Does it, in the calling process.
    ///
    /// # Errors
    /// If it is refused, or fails for another reason.
    pub fn attempt(&self) -> io::Result<()> {
        match self {
            Self::Connect(address, bytes) => {
                TcpStream::connect_timeout(address, CONNECT_TIMEOUT)?.write_all(bytes)
            }
            Self::OwnListener => {
                let listener = TcpListener::bind(("127.0.0.1", 0))?;
                TcpStream::connect_timeout(&listener.local_addr()?, CONNECT_TIMEOUT).map(drop)
            }
            Self::Write(path, name) => write(path, name),
        }
    }
}

fn write(path: &Path, name: &OsStr) -> io::Result<()> {
    if !fs::metadata(path)?.is_dir() {
        // A pipe without a reader must not make this wait.
        let mut options = File::options();
        options.write(true).custom_flags(libc::O_NONBLOCK);
        return options.open(path).map(drop);
    }
    if name.as_bytes().contains(&b'/') {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    File::create_new(path.join(name)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_survive_the_way() {
        let odd = OsString::from_vec(b"/a b\n\xff'\"".to_vec());
        let accesses = [
            Access::Write(odd.into(), "name".into()),
            Access::OwnListener,
            Access::Connect(SocketAddr::from(([127, 0, 0, 1], 9)), b"token".to_vec()),
        ];
        let mut words = arguments(&accesses).into_iter().skip(2);
        for access in &accesses {
            let word = words.next().unwrap();
            assert_eq!(read(&word, &mut words).as_ref(), Some(access));
        }
        assert_eq!(words.next(), None);
        assert_eq!(parse(b"0\n13\n111\n", &accesses), Some(vec![0, 13, 111]));
        for output in [&b"0\n13\n"[..], b"0\n13\nx\n", b"", b"\xff"] {
            assert_eq!(parse(output, &accesses), None);
        }
    }
}
