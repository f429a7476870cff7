//! Unix sockets: sockets of the host have names inside the sandbox, and a mount can't stop
//! `connect(2)` (it asks for write permission on the socket, not on the mount).
//!
//! Allowed are sockets that were bound inside, and those that the user granted. Sockets of other
//! families come here too, because the filter sees a descriptor's number and not its kind; for
//! these the call is done as it is, on a copy of the descriptor, so that nobody can put another
//! socket in its place.

use std::ffi::CString;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, OFlags, Statx, StatxFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::net::AddressFamily;
use rustix::process::fchdir;
use stockade_rules::Kind;

use super::caller::{CWD, Caller, errno};
use super::place::{Landing, Last, Name, Object, is_plain_way};
use super::record::Operation;
use super::{Answer, Worker, locked, now};
use crate::sys;

/// `sockaddr_storage` is this large.
const MAX_ADDRESS: usize = 128;

/// The sockets that were bound inside.
#[derive(Default)]
pub(super) struct Bound(Vec<SocketId>);

/// What tells a socket's file from all others, also from one that gets its inode later.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketId {
    device: (u32, u32),
    inode: u64,
    /// Seconds and nanoseconds; zero on file systems without birth times, where no socket counts
    /// as bound inside.
    born: (i64, u32),
}

impl Bound {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn forget(&mut self, socket: SocketId) {
        self.0.retain(|known| *known != socket);
    }
}

impl SocketId {
    fn of(directory: impl AsFd, name: &CString) -> Result<Self, Errno> {
        let wanted = StatxFlags::INO | StatxFlags::BTIME;
        let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC;
        let Statx {
            stx_dev_major,
            stx_dev_minor,
            stx_ino,
            stx_btime,
            ..
        } = rustix::fs::statx(directory, name, flags, wanted)?;
        Ok(Self {
            device: (stx_dev_major, stx_dev_minor),
            inode: stx_ino,
            born: (stx_btime.tv_sec, stx_btime.tv_nsec),
        })
    }
}

impl Worker<'_, '_> {
    pub(super) fn connect(
        &mut self,
        caller: &Caller,
        socket: u64,
        address: u64,
        length: u64,
    ) -> Result<Answer, Errno> {
        let socket = caller.descriptor(self.shared.proc.as_fd(), socket)?;
        let address = read_address(caller, address, length)?;
        let Some(path) = unix_path(socket.as_fd(), &address)? else {
            self.refuse_abstract(socket.as_fd())?;
            let place = self.judge_inet(caller, socket.as_fd(), &address)?;
            return self.connect_inet(caller, socket, address, place);
        };
        let object = match self.land(caller, CWD, &path, Last::Follow)? {
            Landing::Object(object) => object,
            Landing::Free(_) => return Err(Errno::NOENT),
        };
        self.judge_socket(caller, &object)?;
        // By its number in the mediator's own `/proc/self/fd`.
        let own_directories = self.shared.own_directories;
        let mut judged = address[..2].to_vec();
        if !own_directories {
            judged.extend(b"/proc/self/fd/");
        }
        judged.extend(object.number().into_bytes());
        judged.push(0);
        if fcntl_getfl(&socket)?.contains(OFlags::NONBLOCK) {
            fchdir(&self.shared.own_descriptors)?;
            return connect(&socket, &judged).map(|()| Answer::Value(0));
        }
        self.block(caller, move |mediator| {
            // The object is held open until then.
            let _object = &object;
            if own_directories {
                fchdir(&mediator.own_descriptors)?;
            }
            connect(&socket, &judged).map(|()| Answer::Value(0))
        })
    }

    /// An abstract name, where nothing keeps those of the host apart.
    fn refuse_abstract(&self, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let is_unix = rustix::net::sockopt::socket_domain(socket)? == AddressFamily::UNIX;
        if is_unix && !self.shared.plan.abstract_sockets {
            return Err(Errno::PERM);
        }
        Ok(())
    }

    fn judge_socket(&mut self, caller: &Caller, object: &Object) -> Result<(), Errno> {
        let Some(path) = object.path.as_ref().filter(|_| object.kind().is_socket()) else {
            return Err(Errno::CONNREFUSED);
        };
        let plan = self.shared.plan;
        let commands = self.shared.commands.as_ref();
        let granted = plan.unix_sockets.iter().any(|one| one.as_path() == path)
            || commands.is_some_and(|commands| commands.is_socket_granted(path));
        let id = SocketId::of(&object.fd, &CString::default())?;
        // A directory of the host may be mounted below a private one, and lies on another device.
        let private = plan.private.iter().any(|one| {
            path.starts_with(one) && device_of(one.as_path()).is_ok_and(|own| own == id.device)
        });
        if granted || private || locked(&self.shared.bound).0.contains(&id) {
            return Ok(());
        }
        Err(self.shared.deny(caller, Operation::Connect, path, None))
    }

    fn connect_inet(
        &mut self,
        caller: &Caller,
        socket: OwnedFd,
        address: Vec<u8>,
        place: Option<SocketAddr>,
    ) -> Result<Answer, Errno> {
        let flags = fcntl_getfl(&socket)?;
        let socket = Arc::new(socket);
        if flags.contains(OFlags::NONBLOCK) {
            let result = self.shared.connect_noted(caller, &socket, &address);
            let is_refused = place.is_some() && is_refused(&socket, result);
            if let Some(place) = place.filter(|_| is_refused) {
                // Nobody inside listens there, and the policy has nothing there either.
                self.shared.deny_reach(caller, place, Errno::CONNREFUSED);
            }
            if result == Err(Errno::NETUNREACH) {
                self.shared.note_unreachable(caller, &address);
            }
            return result.map(|()| Answer::Value(0));
        }
        let who = caller.again();
        self.block(caller, move |mediator| {
            let result = mediator.connect_noted(&who, &socket, &address);
            match (result, place) {
                (Err(Errno::CONNREFUSED), Some(place)) => {
                    mediator.deny_reach(&who, place, Errno::CONNREFUSED);
                }
                (Err(Errno::NETUNREACH), _) => mediator.note_unreachable(&who, &address),
                _ => {}
            }
            result.map(|()| Answer::Value(0))
        })
    }

    pub(super) fn bind(
        &mut self,
        caller: &Caller,
        socket: u64,
        address: u64,
        length: u64,
    ) -> Result<Answer, Errno> {
        let socket = caller.descriptor(self.shared.proc.as_fd(), socket)?;
        let address = read_address(caller, address, length)?;
        let Some(path) = unix_path(socket.as_fd(), &address)? else {
            sys::socket::bind(socket.as_fd(), &address).map_err(|error| errno(&error))?;
            self.shared.note_bound(caller, &socket, &address);
            return Ok(Answer::Value(0));
        };
        let name = self.name(caller, CWD, &path)?;
        if name.is_dots() || super::names::exists(&name) {
            return Err(Errno::ADDRINUSE);
        }
        self.judge(caller, Operation::Bind, Kind::Write, &name.path)?;
        self.guard_new(caller, Operation::Bind, &name)?;
        if name.path.starts_with("/proc") {
            return Err(Errno::ACCESS);
        }
        // The socket keeps its address as its name, which programs ask for: the caller's own
        // words where no link is on their way. Should somebody change that way in this moment,
        // a socket lies elsewhere in what may be written, and nobody can connect to it.
        let before = now();
        let start = self.start(caller, CWD, path.to_bytes())?;
        let plain = is_plain_way(&start, &path, &name);
        let mut judged = address[..2].to_vec();
        judged.extend(name.last.to_bytes_with_nul());
        let (directory, address) = if plain {
            (start.as_fd(), &address)
        } else {
            (name.directory.as_fd(), &judged)
        };
        self.with_umask_of(caller, |_| {
            fchdir(directory)?;
            sys::socket::bind(socket.as_fd(), address).map_err(|error| errno(&error))
        })?;
        let id = SocketId::of(&name.directory, &name.last)?;
        // Another thread may have put a socket of the host under the name meanwhile; only a file
        // that is as new as this call was made by it.
        if id.born >= before {
            locked(&self.shared.bound).0.push(id);
        }
        Ok(Answer::Value(0))
    }

    /// The socket that has a name, if it was bound inside.
    pub(super) fn bound_at(&self, name: &Name) -> Option<SocketId> {
        let bound = locked(&self.shared.bound);
        if bound.0.is_empty() {
            return None;
        }
        let id = SocketId::of(&name.directory, &name.last).ok()?;
        bound.0.contains(&id).then_some(id)
    }
}

/// The device that a directory lies on.
fn device_of(directory: &Path) -> Result<(u32, u32), Errno> {
    let found = rustix::fs::statx(
        rustix::fs::CWD,
        directory,
        AtFlags::empty(),
        StatxFlags::TYPE,
    )?;
    Ok((found.stx_dev_major, found.stx_dev_minor))
}

pub(super) fn connect(socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    sys::socket::connect(socket.as_fd(), address).map_err(|error| errno(&error))
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
