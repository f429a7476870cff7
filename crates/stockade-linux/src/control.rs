//! What the helper and the launcher tell each other: one message, one `SOCK_SEQPACKET` packet.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::stage::{Failure, take};

/// From the helper to the launcher.
#[derive(Debug)]
pub(crate) enum Report {
    /// The command has ended with this wait status.
    Exited(i32),
    /// A step failed; nothing of the command has run.
    Failed(Failure),
    /// The command was executed.
    Started,
    /// The launcher's end of the command's terminal.
    Terminal(OwnedFd),
    /// What the sandbox used in all; the last message.
    Used {
        user_micros: u64,
        system_micros: u64,
        peak_kib: u64,
    },
}

const EXITED: u8 = 1;
const FAILED: u8 = 2;
const STARTED: u8 = 3;
const TERMINAL: u8 = 4;
const USED: u8 = 5;

/// From the launcher to pid 1.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    /// Pass this signal on to the command.
    Signal(i32),
}

impl Request {
    pub(crate) fn send(self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let Self::Signal(number) = self;
        rustix::net::send(socket, &number.to_ne_bytes(), SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits for the next request; none when the launcher is gone.
    pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let mut number = [0; 4];
        let (length, _) = rustix::net::recv(socket, &mut number, RecvFlags::empty())?;
        Ok((length == number.len()).then(|| Self::Signal(i32::from_ne_bytes(number))))
    }
}

/// Larger than any message: a path is at most 4096 bytes.
const MAX_MESSAGE: usize = 8192;

impl Report {
    pub(crate) fn send(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let mut message = Vec::with_capacity(32);
        let mut fd = None;
        match self {
            Self::Exited(status) => {
                message.push(EXITED);
                message.extend(status.to_ne_bytes());
            }
            Self::Failed(failure) => {
                message.push(FAILED);
                failure.encode(&mut message);
            }
            Self::Started => message.push(STARTED),
            Self::Terminal(terminal) => {
                message.push(TERMINAL);
                fd = Some([terminal.as_fd()]);
            }
            Self::Used {
                user_micros,
                system_micros,
                peak_kib,
            } => {
                message.push(USED);
                for number in [user_micros, system_micros, peak_kib] {
                    message.extend(number.to_ne_bytes());
                }
            }
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if let Some(fd) = &fd {
            ancillary.push(SendAncillaryMessage::ScmRights(fd));
        }
        sendmsg(
            socket,
            &[IoSlice::new(&message)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )?;
        Ok(())
    }

    /// Waits for the next message; none when the helper is gone.
    pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let mut buffer = [0; MAX_MESSAGE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut buffer)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        );
        let length = match received {
            Ok(message) => message.bytes,
            Err(rustix::io::Errno::CONNRESET) => 0,
            Err(error) => return Err(error.into()),
        };
        if length == 0 {
            return Ok(None);
        }
        let mut fds = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        Self::decode(&buffer[..length], fds.next())
            .map(Some)
            .ok_or_else(|| io::Error::other("the helper sent a message nobody knows"))
    }

    fn decode(message: &[u8], fd: Option<OwnedFd>) -> Option<Self> {
        let (tag, mut rest) = message.split_first()?;
        Some(match *tag {
            EXITED => Self::Exited(i32::from_ne_bytes(take(&mut rest)?)),
            FAILED => Self::Failed(Failure::decode(rest)?),
            STARTED => Self::Started,
            TERMINAL => Self::Terminal(fd?),
            USED => Self::Used {
                user_micros: u64::from_ne_bytes(take(&mut rest)?),
                system_micros: u64::from_ne_bytes(take(&mut rest)?),
                peak_kib: u64::from_ne_bytes(take(&mut rest)?),
            },
            _ => return None,
        })
    }
}
