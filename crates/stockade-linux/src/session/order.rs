//! What the launcher sends to the supervisor of a session: a command to start comes with four
//! descriptors, the standard three and the command's line, and a fifth where the command has a control
//! group; a grant comes with one, on which the
//! supervisor answers, and so does the line on which it is asked for the owners of sockets.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::channel;
use crate::plan::Text;
use crate::socket_owners::CommandId;

/// A command to start in a session.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct Order {
    /// Program and arguments; a program without a slash is looked up on the `PATH` in `env`.
    pub argv: Vec<Text>,
    /// The whole environment, `NAME=value` each.
    pub env: Vec<Text>,
    /// Where the command starts, as seen inside.
    pub cwd: Text,
    /// Which of the standard three are a new terminal, the command's controlling one; none of them
    /// if the command gets no terminal.
    pub terminal: [bool; 3],
}

/// A message with its descriptors, as the supervisor gets it.
pub(crate) enum Received {
    /// Start a command.
    Command {
        id: CommandId,
        order: Order,
        standard: [OwnedFd; 3],
        line: OwnedFd,
        /// The list of processes of the command's control group.
        group: Option<OwnedFd>,
    },
    /// Let commands connect to these sockets of the host, besides those of the plan.
    Sockets { paths: Vec<PathBuf>, line: OwnedFd },
    /// Answer on this line which command a socket belongs to.
    Owners { line: OwnedFd },
}

/// The first byte of a message.
const COMMAND: u8 = 1;
const SOCKETS: u8 = 2;
const OWNERS: u8 = 3;

/// Sends the line on which the supervisor is asked for the owners of sockets.
pub(crate) fn send_owners(control: BorrowedFd<'_>, line: BorrowedFd<'_>) -> io::Result<()> {
    channel::send(control, &[OWNERS], &[line])
}

/// Sends the sockets that are granted besides those of the plan.
pub(crate) fn send_sockets(
    control: BorrowedFd<'_>,
    paths: &[Text],
    line: BorrowedFd<'_>,
) -> io::Result<()> {
    let texts = paths.iter().map(|path| path.as_c_str().to_bytes_with_nul());
    let parts: Vec<&[u8]> = [&[SOCKETS][..]].into_iter().chain(texts).collect();
    channel::send(control, &parts.concat(), &[line])
}

fn decode_sockets(bytes: &[u8]) -> Option<Vec<PathBuf>> {
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let texts = bytes.strip_suffix(b"\0")?.split(|byte| *byte == 0);
    let paths = texts.map(|text| {
        let path = PathBuf::from(OsStr::from_bytes(text));
        path.is_absolute().then_some(path)
    });
    paths.collect()
}

impl Order {
    pub(crate) fn send(
        &self,
        id: CommandId,
        control: BorrowedFd<'_>,
        standard: [BorrowedFd<'_>; 3],
        line: BorrowedFd<'_>,
        group: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let [stdin, stdout, stderr] = standard;
        let message = [&[COMMAND][..], &id.to_ne_bytes(), &self.encode()?].concat();
        let fds = [stdin, stdout, stderr, line].into_iter().chain(group);
        channel::send(control, &message, &fds.collect::<Vec<_>>())
    }

    /// Waits for the next message. `None`: the launcher is gone. A malformed one is the error
    /// `EBADMSG`, after which the next one can be received.
    pub(crate) fn receive(control: BorrowedFd<'_>) -> io::Result<Option<Received>> {
        let Some((message, fds)) = channel::receive(control)? else {
            return Ok(None);
        };
        let received = Received::decode(&message, fds).ok_or_else(channel::malformed)?;
        Ok(Some(received))
    }

    /// Three bytes for the terminal, the number of arguments, and then texts that each end with NUL:
    /// directory, arguments, environment.
    fn encode(&self) -> io::Result<Vec<u8>> {
        let count = u32::try_from(self.argv.len()).map_err(io::Error::other)?;
        let mut bytes: Vec<u8> = self.terminal.map(u8::from).to_vec();
        bytes.extend(count.to_ne_bytes());
        for text in [&self.cwd].into_iter().chain(&self.argv).chain(&self.env) {
            bytes.extend(text.as_c_str().as_bytes_with_nul());
        }
        Ok(bytes)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (terminal, rest) = bytes.split_first_chunk::<3>()?;
        let (count, rest) = rest.split_first_chunk()?;
        let count = usize::try_from(u32::from_ne_bytes(*count)).ok()?;
        let texts = rest.strip_suffix(b"\0")?.split(|byte| *byte == 0);
        let mut texts = texts.map(|text| Text::from_bytes(text.to_vec()));
        let cwd = texts.next()??;
        let argv: Vec<Text> = texts.by_ref().take(count).collect::<Option<_>>()?;
        Some(Self {
            cwd,
            env: texts.collect::<Option<_>>()?,
            terminal: terminal.map(|flag| flag != 0),
            argv: (argv.len() == count && count > 0).then_some(argv)?,
        })
    }
}

impl Received {
    fn decode(message: &[u8], fds: Vec<OwnedFd>) -> Option<Self> {
        let (kind, message) = message.split_first()?;
        if *kind == COMMAND {
            let mut fds = fds.into_iter();
            let [stdin, stdout, stderr, line] =
                [fds.next()?, fds.next()?, fds.next()?, fds.next()?];
            let (id, order) = message.split_first_chunk()?;
            return Some(Self::Command {
                id: CommandId::from_ne_bytes(*id),
                order: Order::decode(order)?,
                standard: [stdin, stdout, stderr],
                line,
                group: fds.next(),
            });
        }
        let [line] = fds.try_into().ok()?;
        match *kind {
            SOCKETS => Some(Self::Sockets {
                paths: decode_sockets(message)?,
                line,
            }),
            OWNERS => Some(Self::Owners { line }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(word: &str) -> Text {
        Text::new(word).unwrap()
    }

    #[test]
    fn an_order_survives_the_journey() {
        let order = Order {
            argv: vec![text("sh"), text(""), text("a b")],
            env: vec![text("A=1"), text("EMPTY=")],
            cwd: text("/tmp"),
            terminal: [true, false, true],
        };
        let back = Order::decode(&order.encode().unwrap()).unwrap();
        assert_eq!(format!("{back:?}"), format!("{order:?}"));
    }

    #[test]
    fn granted_sockets_are_absolute_paths() {
        let paths = |bytes| decode_sockets(bytes).map(|paths| paths.len());
        assert_eq!(paths(b""), Some(0));
        assert_eq!(paths(b"/a\0/b c\0"), Some(2));
        for bad in [&b"/a"[..], b"a\0", b"\0", b"/a\0\0", b"/a\0../b\0"] {
            assert_eq!(paths(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_truncated_order_is_refused() {
        let order = Order {
            argv: vec![text("true")],
            env: Vec::new(),
            cwd: text("/"),
            terminal: [false; 3],
        };
        let bytes = order.encode().unwrap();
        for length in 0..bytes.len() {
            assert!(Order::decode(&bytes[..length]).is_none(), "{length}");
        }
        let mut greedy = bytes;
        greedy[3..7].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert!(Order::decode(&greedy).is_none());
    }
}
