//! The commands of a session that run now, as the supervisor and the mediator see them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::mediator::Reported;
use crate::socket_owners::{ClientSocket, CommandId, SocketOwners};

/// One command.
#[derive(Debug)]
pub(crate) struct Command {
    /// The launcher's number for it.
    pub(crate) id: CommandId,
    /// Its process id outside the sandbox, which is also its session id; 0 until the kernel has
    /// made the process.
    pub(crate) pid: AtomicI32,
    /// Where it is reported about, and told what to do with it.
    pub(crate) line: OwnedFd,
    /// The denials that were reported already.
    pub(crate) denied: Mutex<Reported>,
    /// The list of processes of its control group.
    pub(crate) group: Option<OwnedFd>,
}

impl Command {
    pub(crate) fn new(id: CommandId, line: OwnedFd, group: Option<OwnedFd>) -> Self {
        Self {
            id,
            pid: AtomicI32::new(0),
            line,
            denied: Mutex::default(),
            group,
        }
    }

    fn has_pid(&self, pid: i32) -> bool {
        pid != 0 && self.pid.load(Ordering::Acquire) == pid
    }

    /// Whether a process is in the command's control group.
    fn has_in_group(&self, pid: i32) -> bool {
        let listed = self.group.as_ref().map(|group| read_all(group.as_fd()));
        let Some(Ok(listed)) = listed else {
            return false;
        };
        let mut lines = listed.split(|byte| *byte == b'\n');
        lines.any(|line| line == pid.to_string().as_bytes())
    }
}

/// All commands of a session, and what the launcher granted since the session was opened.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    list: Mutex<Vec<Arc<Command>>>,
    /// Sockets of the host that may be connected to, besides those of the plan.
    sockets: RwLock<Vec<PathBuf>>,
    /// Which command connected or bound a socket of the sandbox's network.
    pub(crate) owners: SocketOwners,
}

impl Commands {
    pub(crate) fn add(&self, command: &Arc<Command>) {
        self.list().push(Arc::clone(command));
    }

    pub(crate) fn remove(&self, command: &Arc<Command>) {
        self.list().retain(|other| !Arc::ptr_eq(other, command));
    }

    /// The command that a process belongs to; `None` for a process that left its command's session
    /// and lost its parents, as a daemon does, if the command has no control group.
    pub(crate) fn of_process(&self, process: Pid, proc: BorrowedFd<'_>) -> Option<Arc<Command>> {
        let known = |pid: i32| self.list().iter().find(|one| one.has_pid(pid)).cloned();
        let mut pid = process.as_raw_nonzero().get();
        for _ in 0..MAX_ANCESTORS {
            if let Some(command) = known(pid) {
                return Some(command);
            }
            let Some(relations) = Relations::of(pid, proc) else {
                break;
            };
            if let Some(command) = known(relations.session) {
                return Some(command);
            }
            pid = relations.parent;
        }
        let process = process.as_raw_nonzero().get();
        let commands = self.list().clone();
        commands.into_iter().find(|one| one.has_in_group(process))
    }

    /// The command that a socket of the sandbox's network belongs to, if the command still runs.
    pub(crate) fn of_socket(&self, socket: ClientSocket) -> Option<Arc<Command>> {
        let id = self.owners.owner(socket)?;
        self.list().iter().find(|one| one.id == id).cloned()
    }

    /// Kills every process that belongs to a command. Processes that they make meanwhile are found
    /// when the processes are listed again.
    pub(crate) fn kill(&self, command: &Arc<Command>, proc: BorrowedFd<'_>) -> Result<(), Errno> {
        for _ in 0..MAX_ROUNDS {
            let mut found = false;
            for pid in all_processes(proc)? {
                // A descriptor refers to one process for good: its number may be reused.
                let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
                    continue;
                };
                let owner = self.of_process(pid, proc);
                if owner.is_some_and(|owner| Arc::ptr_eq(&owner, command)) {
                    found |= !is_zombie(pid, proc);
                    // The process may have ended meanwhile.
                    let _ = pidfd_send_signal(&process, Signal::KILL);
                }
            }
            if !found {
                break;
            }
        }
        Ok(())
    }

    /// Has these be the sockets that were granted since the session was opened.
    pub(crate) fn set_sockets(&self, granted: Vec<PathBuf>) {
        *self.sockets.write().unwrap_or_else(PoisonError::into_inner) = granted;
    }

    pub(crate) fn is_socket_granted(&self, path: &Path) -> bool {
        let granted = self.sockets.read().unwrap_or_else(PoisonError::into_inner);
        granted.iter().any(|one| one == path)
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<Command>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A chain of parents this long belongs to no command that anybody would attribute a denial to.
const MAX_ANCESTORS: usize = 64;

/// A command that makes processes faster than this many rounds kill them is left to the end of the
/// session.
const MAX_ROUNDS: usize = 20;

/// What `/proc/PID/stat` tells about a process.
struct Relations {
    state: u8,
    parent: i32,
    session: i32,
}

impl Relations {
    fn of(pid: i32, proc: BorrowedFd<'_>) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(proc, format!("{pid}/stat"), flags, Mode::empty()).ok()?;
        let mut text = [0; 512];
        let length = rustix::io::read(&file, &mut text).ok()?;
        // The name in parentheses may contain anything; the fields follow the last one.
        let end = text[..length].iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(&text[end + 1..length]).ok()?;
        let mut fields = fields.split_ascii_whitespace();
        Some(Self {
            state: *fields.next()?.as_bytes().first()?,
            parent: fields.next()?.parse().ok()?,
            session: fields.nth(1)?.parse().ok()?,
        })
    }
}

/// A file from its beginning, which is not moved on by that.
fn read_all(file: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let offset = u64::try_from(bytes.len()).map_err(|_| Errno::OVERFLOW)?;
        match rustix::io::pread(file, &mut part, offset)? {
            0 => return Ok(bytes),
            length => bytes.extend_from_slice(&part[..length]),
        }
    }
}

fn is_zombie(pid: Pid, proc: BorrowedFd<'_>) -> bool {
    let relations = Relations::of(pid.as_raw_nonzero().get(), proc);
    relations.is_none_or(|relations| matches!(relations.state, b'Z' | b'X'))
}

fn all_processes(proc: BorrowedFd<'_>) -> Result<Vec<Pid>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(proc.as_fd(), ".", flags, Mode::empty())?;
    let mut found = Vec::new();
    for entry in Dir::new(directory)? {
        let name = entry?;
        let number = name
            .file_name()
            .to_str()
            .ok()
            .and_then(|name| name.parse().ok());
        found.extend(number.and_then(Pid::from_raw));
    }
    Ok(found)
}
