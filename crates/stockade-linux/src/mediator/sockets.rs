//! Unix sockets: sockets of the host have names inside the sandbox, and a mount can't stop
//! `connect(2)` (it asks for write permission on the socket, not on the mount).
//!
//! Allowed are sockets that were bound inside, and those that the user granted. Sockets of other
//! families come here too, because the filter sees a descriptor's number and not its kind; for
//! these the call is done as it is, on a copy of the descriptor, so that nobody can put another
//! socket in its place.

use std::ffi::CString;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::AddressFamily;
use stockade_rules::Kind;

use super::caller::{CWD, Caller, errno};
use super::place::{Landing, Last, Object};
use super::record::Operation;
use super::{Answer, Mediator};
use crate::sys;

/// `sockaddr_storage` is this large.
const MAX_ADDRESS: usize = 128;

/// A blocking connection that is under way; the mediator waits for it with everything else.
pub(super) struct Connecting {
    id: u64,
    socket: OwnedFd,
    flags: OFlags,
}

impl Mediator<'_> {
    pub(super) fn connect(
        &mut self,
        caller: &Caller,
        socket: u64,
        address: u64,
        length: u64,
    ) -> Result<Answer, Errno> {
        let socket = caller.descriptor(socket)?;
        let address = read_address(caller, address, length)?;
        let Some(path) = unix_path(socket.as_fd(), &address)? else {
            self.refuse_abstract(socket.as_fd())?;
            let place = self.judge_inet(caller, socket.as_fd(), &address)?;
            return self.begin_connection(caller, socket, &address, place);
        };
        let object = match self.land(caller, CWD, &path, Last::Follow)? {
            Landing::Object(object) => object,
            Landing::Free(_) => return Err(Errno::NOENT),
        };
        self.judge_socket(caller, &object)?;
        let mut judged = address[..2].to_vec();
        judged.extend(format!("/proc/self/fd/{}\0", object.number()).into_bytes());
        self.begin_connection(caller, socket, &judged, None)
    }

    /// An abstract name, where nothing keeps those of the host apart.
    fn refuse_abstract(&self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let is_unix = rustix::net::sockopt::socket_domain(socket)? == AddressFamily::UNIX;
        if is_unix && !self.plan.abstract_sockets {
            return Err(Errno::PERM);
        }
        Ok(())
    }

    fn judge_socket(&mut self, caller: &Caller, object: &Object) -> Result<(), Errno> {
        let Some(path) = object.path.clone() else {
            return Err(Errno::CONNREFUSED);
        };
        let granted = self
            .plan
            .unix_sockets
            .iter()
            .any(|granted| granted.as_path() == path);
        let private = self
            .plan
            .private
            .iter()
            .any(|private| path.starts_with(private));
        let bound = self
            .bound
            .contains(&(object.stat.st_dev, object.stat.st_ino));
        if granted || private || bound {
            return Ok(());
        }
        Err(self.records.deny(caller, Operation::Connect, &path, None))
    }

    /// Connects without holding up every other call: a connection may take as long as it likes.
    fn begin_connection(
        &mut self,
        caller: &Caller,
        socket: OwnedFd,
        address: &[u8],
        place: Option<SocketAddr>,
    ) -> Result<Answer, Errno> {
        let flags = fcntl_getfl(&socket)?;
        let blocking = !flags.contains(OFlags::NONBLOCK);
        if blocking {
            fcntl_setfl(&socket, flags | OFlags::NONBLOCK)?;
        }
        let result = sys::socket::connect(socket.as_fd(), address).map_err(|error| errno(&error));
        if let Some(place) = place
            && is_refused(&socket, result)
        {
            // Nobody inside listens there, and the policy has nothing there either.
            self.records.deny_reach(caller, place, Errno::CONNREFUSED);
        }
        if result == Err(Errno::NETUNREACH) {
            self.note_unreachable(caller, address);
        }
        if blocking && result == Err(Errno::INPROGRESS) {
            self.connecting.push(Connecting {
                id: caller.id,
                socket,
                flags,
            });
            return Ok(Answer::Later);
        }
        if blocking {
            fcntl_setfl(&socket, flags)?;
        }
        result.map(|()| Answer::Value(0))
    }

    /// What to wait for beside the listener.
    pub(crate) fn pending(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.connecting
            .iter()
            .map(|one| PollFd::new(&one.socket, PollFlags::OUT))
    }

    /// Answers the calls whose connections are made or have failed.
    pub(crate) fn finish_connections(&mut self) -> io::Result<()> {
        let mut still = Vec::new();
        for one in std::mem::take(&mut self.connecting) {
            let mut watched = [PollFd::new(&one.socket, PollFlags::OUT)];
            let at_once = rustix::event::Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            rustix::event::poll(&mut watched, Some(&at_once))?;
            if watched[0].revents().is_empty() {
                if self.listener.is_valid(one.id)? {
                    still.push(one);
                }
                continue;
            }
            let result = match rustix::net::sockopt::socket_error(&one.socket)? {
                Ok(()) => Ok(Answer::Value(0)),
                Err(error) => Err(error),
            };
            fcntl_setfl(&one.socket, one.flags)?;
            self.send(one.id, result)?;
        }
        self.connecting = still;
        Ok(())
    }

    pub(super) fn bind(
        &mut self,
        caller: &Caller,
        socket: u64,
        address: u64,
        length: u64,
    ) -> Result<Answer, Errno> {
        let socket = caller.descriptor(socket)?;
        let address = read_address(caller, address, length)?;
        let Some(path) = unix_path(socket.as_fd(), &address)? else {
            sys::socket::bind(socket.as_fd(), &address).map_err(|error| errno(&error))?;
            return Ok(Answer::Value(0));
        };
        let name = self.name(caller, CWD, &path)?;
        self.judge(caller, Operation::Bind, Kind::Write, &name.path)?;
        if name.path.starts_with("/proc") {
            return Err(Errno::ACCESS);
        }
        // The socket keeps the address as its name, so it must be the caller's own words, looked
        // up again from the caller's directory; no name can have changed since.
        let cwd = caller.directory(self.proc.as_fd(), CWD)?;
        self.with_umask_of(caller, |_| {
            rustix::process::fchdir(&cwd)?;
            sys::socket::bind(socket.as_fd(), &address).map_err(|error| errno(&error))
        })?;
        let stat = rustix::fs::statat(&name.directory, &name.last, AtFlags::SYMLINK_NOFOLLOW)?;
        self.bound.push((stat.st_dev, stat.st_ino));
        Ok(Answer::Value(0))
    }
}

/// Whether a connection in this very machine was refused: that is known at once. The error itself
/// is left for the caller.
fn is_refused(socket: &OwnedFd, result: Result<(), Errno>) -> bool {
    let at_once = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    match result {
        Err(Errno::CONNREFUSED) => true,
        Err(Errno::INPROGRESS) => {
            let mut watched = [PollFd::new(socket, PollFlags::OUT)];
            let ready = rustix::event::poll(&mut watched, Some(&at_once));
            ready == Ok(1) && watched[0].revents().contains(PollFlags::ERR)
        }
        _ => false,
    }
}

fn read_address(caller: &Caller, address: u64, length: u64) -> Result<Vec<u8>, Errno> {
    let length = usize::try_from(super::caller::low_word(length)).map_err(|_| Errno::INVAL)?;
    if length > MAX_ADDRESS {
        return Err(Errno::INVAL);
    }
    let mut bytes = vec![0; length];
    caller.bytes(address, &mut bytes)?;
    Ok(bytes)
}

/// The path in a Unix socket's address; none for other sockets and for abstract names, which
/// belong to the network namespace (or to Landlock's scope).
fn unix_path(socket: BorrowedFd<'_>, address: &[u8]) -> Result<Option<CString>, Errno> {
    if rustix::net::sockopt::socket_domain(socket)? != AddressFamily::UNIX {
        return Ok(None);
    }
    let Some((family, path)) = address.split_first_chunk() else {
        return Ok(None);
    };
    if i32::from(u16::from_ne_bytes(*family)) != libc::AF_UNIX
        || path.first().is_none_or(|byte| *byte == 0)
    {
        return Ok(None);
    }
    let end = path
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(path.len());
    CString::new(&path[..end])
        .map(Some)
        .map_err(|_| Errno::INVAL)
}
