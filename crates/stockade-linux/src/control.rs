//! What the helper and the launcher tell each other: one message, one `SOCK_SEQPACKET` packet.

use std::ffi::OsStr;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::mediator::{Denial, Operation};
use crate::stage::{Failure, take};

/// From the helper to the launcher.
#[derive(Debug)]
pub(crate) enum Report {
    /// The mediator refused something.
    Denied(Denial),
    /// The command has ended with this wait status, and whether its CPU time was over.
    Exited { status: i32, cpu_limit: bool },
    /// A step failed; nothing of the command has run.
    Failed(Failure),
    /// What the mediator of a session listens on. While the launcher holds a copy, calls of commands
    /// wait when the mediator is killed, until the commands are; they don't fail with `ENOSYS`.
    Listener(OwnedFd),
    /// Sockets that the launcher answers on; it may take several messages to send all.
    Sockets(Vec<OwnedFd>),
    /// The command was executed. In a session its process comes along, to wait for.
    Started(Option<OwnedFd>),
    /// The command was stopped, as by Ctrl-Z.
    Stopped,
    /// The launcher's end of the command's terminal.
    Terminal(OwnedFd),
    /// What the sandbox used in all; the last message.
    Used {
        user_micros: u64,
        system_micros: u64,
        peak_kib: u64,
        /// Whether the kernel killed a process for want of memory in the sandbox's group.
        memory_limit: bool,
    },
}

const EXITED: u8 = 1;
const FAILED: u8 = 2;
const STARTED: u8 = 3;
const TERMINAL: u8 = 4;
const USED: u8 = 5;
const DENIED: u8 = 6;
const STOPPED: u8 = 7;
const SOCKETS: u8 = 8;
const LISTENER: u8 = 9;

/// The kernel takes at most 253 descriptors in one message (`SCM_MAX_FD`).
const DESCRIPTORS: usize = 64;

/// From the launcher to the supervisor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    /// The sockets are being answered on: the command may run.
    Proceed,
    /// Pass this signal on to the command.
    Signal(i32),
    /// Kill this command of a session and everything that belongs to it.
    Kill,
}

/// No signals have these numbers.
const PROCEED: i32 = 0;
const KILL: i32 = -1;

impl Request {
    pub(crate) fn send(self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let number = match self {
            Self::Proceed => PROCEED,
            Self::Signal(number) => number,
            Self::Kill => KILL,
        };
        rustix::net::send(socket, &number.to_ne_bytes(), SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits for the next request; none when the launcher is gone.
    pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let mut number = [0; 4];
        let (length, _) = rustix::net::recv(socket, &mut number, RecvFlags::empty())?;
        Ok(
            (length == number.len()).then(|| match i32::from_ne_bytes(number) {
                PROCEED => Self::Proceed,
                KILL => Self::Kill,
                signal => Self::Signal(signal),
            }),
        )
    }
}

/// Larger than any message: a path is at most 4096 bytes.
const MAX_MESSAGE: usize = 8192;

impl Report {
    pub(crate) fn send(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let mut message = Vec::with_capacity(32);
        let mut fds: Vec<BorrowedFd<'_>> = Vec::new();
        match self {
            Self::Denied(denial) => {
                message.push(DENIED);
                encode_denial(denial, &mut message);
            }
            Self::Exited { status, cpu_limit } => {
                message.push(EXITED);
                message.extend(status.to_ne_bytes());
                message.push(u8::from(*cpu_limit));
            }
            Self::Failed(failure) => {
                message.push(FAILED);
                failure.encode(&mut message);
            }
            Self::Listener(listener) => {
                message.push(LISTENER);
                fds.push(listener.as_fd());
            }
            Self::Sockets(sockets) => {
                for part in sockets.chunks(DESCRIPTORS) {
                    let part: Vec<_> = part.iter().map(AsFd::as_fd).collect();
                    transmit(socket, &[SOCKETS], &part)?;
                }
                return Ok(());
            }
            Self::Started(pidfd) => {
                message.push(STARTED);
                fds.extend(pidfd.as_ref().map(AsFd::as_fd));
            }
            Self::Stopped => message.push(STOPPED),
            Self::Terminal(terminal) => {
                message.push(TERMINAL);
                fds.push(terminal.as_fd());
            }
            Self::Used {
                user_micros,
                system_micros,
                peak_kib,
                memory_limit,
            } => {
                message.push(USED);
                for number in [user_micros, system_micros, peak_kib] {
                    message.extend(number.to_ne_bytes());
                }
                message.push(u8::from(*memory_limit));
            }
        }
        transmit(socket, &message, &fds)
    }

    /// Waits for the next message; none when the helper is gone.
    pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let mut buffer = [0; MAX_MESSAGE];
        let (length, fds) = receive_packet(socket, &mut buffer)?;
        if length == 0 {
            return Ok(None);
        }
        Self::decode(&buffer[..length], fds)
            .map(Some)
            .ok_or_else(|| io::Error::other("the helper sent a message nobody knows"))
    }

    fn decode(message: &[u8], mut fds: Vec<OwnedFd>) -> Option<Self> {
        let (tag, mut rest) = message.split_first()?;
        Some(match *tag {
            DENIED => Self::Denied(decode_denial(rest)?),
            EXITED => Self::Exited {
                status: i32::from_ne_bytes(take(&mut rest)?),
                cpu_limit: u8::from_ne_bytes(take(&mut rest)?) != 0,
            },
            FAILED => Self::Failed(Failure::decode(rest)?),
            LISTENER => Self::Listener(fds.pop()?),
            SOCKETS => Self::Sockets(fds),
            STARTED => Self::Started(fds.pop()),
            STOPPED => Self::Stopped,
            TERMINAL => Self::Terminal(fds.pop()?),
            USED => Self::Used {
                user_micros: u64::from_ne_bytes(take(&mut rest)?),
                system_micros: u64::from_ne_bytes(take(&mut rest)?),
                peak_kib: u64::from_ne_bytes(take(&mut rest)?),
                memory_limit: u8::from_ne_bytes(take(&mut rest)?) != 0,
            },
            _ => return None,
        })
    }
}

/// Waits for the next packet; its length is 0 when the other side is gone.
pub(crate) fn receive_packet(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        socket,
        &mut [IoSliceMut::new(buffer)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    );
    let length = match received {
        Ok(message) => message.bytes,
        Err(rustix::io::Errno::CONNRESET) => 0,
        Err(error) => return Err(error.into()),
    };
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            fds.extend(some);
        }
    }
    Ok((length, fds))
}

pub(crate) fn transmit(
    socket: BorrowedFd<'_>,
    message: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
    }
    let message = [IoSlice::new(message)];
    sendmsg(socket, &message, &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

const NO_RULE: u32 = u32::MAX;

fn encode_denial(denial: &Denial, message: &mut Vec<u8>) {
    let rule = denial
        .rule
        .and_then(|rule| u32::try_from(rule).ok())
        .unwrap_or(NO_RULE);
    let program = denial.program.as_os_str().as_bytes();
    let program = &program[..program.len().min(MAX_MESSAGE / 4)];
    message.push(denial.operation as u8);
    message.extend(denial.errno.to_ne_bytes());
    message.extend(denial.pid.to_ne_bytes());
    message.extend(rule.to_ne_bytes());
    let reason = denial.protected.as_deref().unwrap_or_default().as_bytes();
    for text in [program, reason] {
        message.extend(u32::try_from(text.len()).unwrap_or(0).to_ne_bytes());
        message.extend(text);
    }
    message.extend(denial.path.as_os_str().as_bytes());
}

fn decode_denial(mut rest: &[u8]) -> Option<Denial> {
    let [operation] = take(&mut rest)?;
    let errno = i32::from_ne_bytes(take(&mut rest)?);
    let pid = i32::from_ne_bytes(take(&mut rest)?);
    let rule = u32::from_ne_bytes(take(&mut rest)?);
    let mut text = || {
        let length = usize::try_from(u32::from_ne_bytes(take(&mut rest)?)).ok()?;
        let (text, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(text)
    };
    let (program, reason) = (text()?, text()?);
    let path = rest;
    Some(Denial {
        operation: Operation::from_code(operation)?,
        path: PathBuf::from(OsStr::from_bytes(path)),
        rule: (rule != NO_RULE)
            .then(|| usize::try_from(rule).ok())
            .flatten(),
        protected: (!reason.is_empty()).then(|| String::from_utf8_lossy(reason).into_owned()),
        errno,
        pid,
        program: PathBuf::from(OsStr::from_bytes(program)),
    })
}
