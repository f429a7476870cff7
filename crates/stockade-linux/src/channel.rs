//! Messages of any size with descriptors, between processes of one user: each message is one packet
//! of a Unix socket, and one that is too large for a packet travels in a file in memory.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, MemfdFlags, Mode, OFlags};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::control::{receive_packet, transmit};

/// A packet is limited by the socket's buffer (`net.core.wmem_default`, `socket(7)`).
const MAX_PACKET_BYTES: usize = 32 << 10;

/// What `execve(2)` takes is limited to 6 MiB; JSON may double that.
const MAX_MESSAGE_BYTES: u64 = 16 << 20;

/// The first byte of a packet says where the message is.
const INLINE: u8 = 0;
const IN_FILE: u8 = 1;

/// One end of a connection between processes of one user.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// A name in a directory under which connections are accepted.
#[derive(Debug)]
pub struct ChannelListener(OwnedFd);

/// Sends a message.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    message: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    if message.len() < MAX_PACKET_BYTES {
        return transmit(socket, &[&[INLINE], message].concat(), fds);
    }
    let file = rustix::fs::memfd_create("stockade-message", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(message)?;
    file.rewind()?;
    transmit(socket, &[IN_FILE], &[fds, &[file.as_fd()]].concat())
}

/// Waits for a message. `None`: the other side is gone. A malformed message is the error `EBADMSG`,
/// after which the connection can still be used.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut packet = vec![0; MAX_PACKET_BYTES];
    let (length, mut fds) = receive_packet(socket, &mut packet)?;
    packet.truncate(length);
    let message = match packet.first() {
        None => return Ok(None),
        Some(&INLINE) => packet.split_off(1),
        Some(&IN_FILE) => read_file(fds.pop().ok_or_else(malformed)?)?,
        Some(_) => return Err(malformed()),
    };
    Ok(Some((message, fds)))
}

pub(crate) fn malformed() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADMSG)
}

fn read_file(file: OwnedFd) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    let file = File::from(file);
    file.take(MAX_MESSAGE_BYTES).read_to_end(&mut message)?;
    Ok(message)
}

impl Channel {
    /// Connects to a name in a directory.
    ///
    /// # Errors
    /// If nothing listens there.
    pub fn connect(directory: &Path, name: &str) -> io::Result<Self> {
        let socket = new_socket()?;
        with_address(directory, name, |address| {
            rustix::net::connect(&socket, address)
        })?;
        Ok(Self(socket))
    }

    /// Sends a message with descriptors.
    ///
    /// # Errors
    /// If the other side is gone.
    pub fn send(&self, message: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        send(self.0.as_fd(), message, fds)
    }

    /// Waits for a message with its descriptors. `None`: the other side is gone.
    ///
    /// # Errors
    /// If the message is malformed or the socket fails.
    pub fn receive(&self) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
        receive(self.0.as_fd())
    }

    /// The user at the other side (`SO_PEERCRED`, `unix(7)`).
    ///
    /// # Errors
    /// If the kernel does not know.
    pub fn peer_uid(&self) -> io::Result<u32> {
        Ok(socket_peercred(&self.0)?.uid.as_raw())
    }
}

impl ChannelListener {
    /// Takes a name in a directory.
    ///
    /// # Errors
    /// `AddrInUse` if the name is taken, be it by a socket that nobody listens at any more.
    pub fn bind(directory: &Path, name: &str) -> io::Result<Self> {
        let socket = new_socket()?;
        with_address(directory, name, |address| {
            rustix::net::bind(&socket, address)
        })?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(Self(socket))
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// If the process has no descriptor left, for example.
    pub fn accept(&self) -> io::Result<Channel> {
        Ok(Channel(rustix::net::accept_with(
            &self.0,
            SocketFlags::CLOEXEC,
        )?))
    }
}

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for ChannelListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn new_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// The name of a socket is at most 107 bytes long (`unix(7)`), that of a directory is not.
fn with_address(
    directory: &Path,
    name: &str,
    act: impl FnOnce(&SocketAddrUnix) -> rustix::io::Result<()>,
) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(CWD, directory, flags, Mode::empty())?;
    let short = format!("/proc/self/fd/{}/{name}", directory.as_raw_fd());
    Ok(act(&SocketAddrUnix::new(short)?)?)
}
