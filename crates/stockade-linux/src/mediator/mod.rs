//! The mediator: decides about names that mounts can't protect, and acts in the caller's stead.
//!
//! It runs in pid 1 of the sandbox and answers the calls that the seccomp filter hands over: it
//! finds where a call would *land* (links followed, `..` resolved), asks the one decision
//! function, and performs the operation itself on the very object it judged. A call is never let
//! through after a decision, because another thread could change its arguments in between
//! (`seccomp_unotify(2)`).
//!
//! It is nobody's deputy: it has the same user id, no capability, the same mounts and the same
//! Landlock domain as the callers, so what it does the caller could have done. It can't be traced
//! and its own entries in `/proc` are closed to callers. When it dies, the calls fail.
//!
//! All changes of names in the sandbox go through it, one after the other. So no path can change
//! between judging and acting by anything that the sandboxed program does.
//!
//! Needs Linux 5.14 (`SECCOMP_ADDFD_FLAG_SEND`), 5.19 for calls that a signal can't tear
//! (`WAIT_KILLABLE_RECV`).

mod attributes;
mod caller;
mod callers;
mod config;
mod directories;
mod files;
mod inet;
mod names;
mod place;
mod record;
mod redirects;
mod sockets;
mod times;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use stockade_rules::{Access, Decision, Index, Kind, Rank};

use self::attributes::Named;
use self::caller::{CWD, Caller};
use self::callers::Callers;
use self::directories::Directories;
use self::record::Records;
use self::redirects::Made;
use self::sockets::Connecting;
#[cfg(target_arch = "x86_64")]
use self::times::Unit;
use crate::plan::Mediation;
use crate::seccomp::{Inherit, Listener};

pub use self::record::{Denial, Operation};

/// Answers mediated calls until nobody can make any more.
pub(crate) struct Mediator<'a> {
    listener: Listener,
    plan: &'a Mediation,
    /// The plan's rules, made ready for many decisions.
    rules: Index<'a>,
    records: Records<'a>,
    /// `/proc` and `/proc/self/fd`, opened once.
    proc: OwnedFd,
    own_descriptors: OwnedFd,
    /// Sockets that were bound inside, by device and inode: these may be connected to.
    bound: Vec<(u64, u64)>,
    callers: Callers,
    directories: Directories,
    /// The mediator's own umask, as far as it is known.
    umask: Option<Mode>,
    connecting: Vec<Connecting>,
    /// Files made inside that tell git where its directory is; judged when all is over.
    made: Vec<Made>,
}

/// What a call gets.
enum Answer {
    /// A descriptor, in one step: the mediator closes its own a moment later.
    Descriptor(OwnedFd, Inherit),
    /// A descriptor that the mediator has closed before the caller goes on. Takes two steps, and
    /// so twice as many switches between the two.
    SoleDescriptor(OwnedFd, Inherit),
    /// Somebody else answers, or the mediator later.
    Later,
    /// The kernel does it after all. Only for a call about which nothing is decided.
    Pass,
    Value(i64),
}

impl<'a> Mediator<'a> {
    pub(crate) fn new(
        listener: OwnedFd,
        plan: &'a Mediation,
        control: BorrowedFd<'a>,
    ) -> io::Result<Self> {
        let listener = Listener::new(listener)?;
        // Linux 6.6; without it a call costs tens of microseconds instead of a few.
        let _ = listener.wake_synchronously();
        // Most descriptors are for what a call needs.
        let room = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 8;
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        Ok(Self {
            listener,
            plan,
            rules: Index::new(&plan.rules),
            records: Records::new(control, &plan.rules),
            proc: caller::open_directory("/proc")?,
            own_descriptors: caller::open_directory("/proc/self/fd")?,
            bound: Vec::new(),
            callers: Callers::new(room),
            directories: Directories::new(room),
            umask: None,
            connecting: Vec::new(),
            made: Vec::new(),
        })
    }

    /// Becomes readable when a call waits.
    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers one waiting call.
    pub(crate) fn answer_one(&mut self) -> io::Result<()> {
        let notification = match self.listener.receive() {
            Ok(notification) => notification,
            // The caller was killed before its call could be handed over.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        };
        let id = notification.id;
        let answer = match Caller::new(&notification) {
            Some(caller) => self.dispatch(&caller),
            None => Err(Errno::PERM),
        };
        self.send(id, answer)
    }

    fn send(&self, id: u64, answer: Result<Answer, Errno>) -> io::Result<()> {
        let sent = match answer {
            Ok(Answer::Later) => return Ok(()),
            Ok(Answer::Pass) => self.listener.danger_continue(id),
            Ok(Answer::Value(value)) => self.listener.answer(id, value),
            Ok(Answer::Descriptor(fd, inherit)) => self
                .listener
                .answer_fd(id, fd.as_fd(), inherit)
                .map(drop)
                .or_else(|error| self.refuse_as_full(id, error)),
            Ok(Answer::SoleDescriptor(fd, inherit)) => {
                let added = self.listener.add_fd(id, fd.as_fd(), inherit);
                drop(fd);
                match added {
                    Ok(number) => self.listener.answer(id, number.into()),
                    Err(error) => self.refuse_as_full(id, error),
                }
            }
            Err(errno) => self.listener.refuse(id, errno.raw_os_error()),
        };
        match sent {
            // The caller is gone; nobody waits for this answer.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// A descriptor could not be given, the caller's table being full for example: the call fails
    /// as it would have.
    fn refuse_as_full(&self, id: u64, error: io::Error) -> io::Result<()> {
        if error.kind() == io::ErrorKind::NotFound {
            return Err(error);
        }
        let errno = error.raw_os_error().unwrap_or(libc::EPERM);
        self.listener.refuse(id, errno)
    }

    fn dispatch(&mut self, caller: &Caller) -> Result<Answer, Errno> {
        const CREATE: u64 = (libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC) as u64;
        const NOFOLLOW: u64 = libc::AT_SYMLINK_NOFOLLOW as u64;
        const REMOVE_DIRECTORY: u64 = libc::AT_REMOVEDIR as u64;
        let arg = caller.arguments();
        match caller.number() {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_open => self.open(caller, CWD, arg[0], arg[1], arg[2]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_creat => self.open(caller, CWD, arg[0], CREATE, arg[1]),
            libc::SYS_openat => self.open(caller, arg[0], arg[1], arg[2], arg[3]),
            libc::SYS_openat2 => self.open_with(caller, arg[0], arg[1], arg[2], arg[3]),
            libc::SYS_truncate => self.truncate(caller, arg[0], arg[1]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mkdir => self.make_directory(caller, CWD, arg[0], arg[1]),
            libc::SYS_mkdirat => self.make_directory(caller, arg[0], arg[1], arg[2]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_mknod => self.make_node(caller, CWD, arg[0], arg[1], arg[2]),
            libc::SYS_mknodat => self.make_node(caller, arg[0], arg[1], arg[2], arg[3]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_unlink => self.remove(caller, CWD, arg[0], 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rmdir => self.remove(caller, CWD, arg[0], REMOVE_DIRECTORY),
            libc::SYS_unlinkat => self.remove(caller, arg[0], arg[1], arg[2]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink => self.make_symlink(caller, arg[0], CWD, arg[1]),
            libc::SYS_symlinkat => self.make_symlink(caller, arg[0], arg[1], arg[2]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_link => self.make_link(caller, [CWD, arg[0]], [CWD, arg[1]], 0),
            libc::SYS_linkat => self.make_link(caller, [arg[0], arg[1]], [arg[2], arg[3]], arg[4]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => self.rename(caller, [CWD, arg[0]], [CWD, arg[1]], 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_renameat => self.rename(caller, [arg[0], arg[1]], [arg[2], arg[3]], 0),
            libc::SYS_renameat2 => self.rename(caller, [arg[0], arg[1]], [arg[2], arg[3]], arg[4]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chmod => self.change_mode(caller, CWD, arg[0], arg[1], 0),
            libc::SYS_fchmodat => self.change_mode(caller, arg[0], arg[1], arg[2], 0),
            libc::SYS_fchmodat2 => self.change_mode(caller, arg[0], arg[1], arg[2], arg[3]),
            libc::SYS_fchmod => self.change_mode_of(caller, arg[0], arg[1]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chown => self.change_owner(caller, CWD, arg[0], [arg[1], arg[2]], 0),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_lchown => self.change_owner(caller, CWD, arg[0], [arg[1], arg[2]], NOFOLLOW),
            libc::SYS_fchownat => {
                self.change_owner(caller, arg[0], arg[1], [arg[2], arg[3]], arg[4])
            }
            libc::SYS_fchown => self.change_owner_of(caller, arg[0], [arg[1], arg[2]]),
            libc::SYS_setxattr => self.set_attribute(caller, Named::Path(arg[0]), &arg),
            libc::SYS_fsetxattr => self.set_attribute(caller, Named::Descriptor(arg[0]), &arg),
            libc::SYS_removexattr => self.remove_attribute(caller, Named::Path(arg[0]), arg[1]),
            libc::SYS_fremovexattr => {
                self.remove_attribute(caller, Named::Descriptor(arg[0]), arg[1])
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_utime => self.set_old_times(caller, CWD, arg[0], arg[1], Unit::Second),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_utimes => self.set_old_times(caller, CWD, arg[0], arg[1], Unit::Microsecond),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_futimesat => {
                self.set_old_times(caller, arg[0], arg[1], arg[2], Unit::Microsecond)
            }
            libc::SYS_utimensat => self.set_times(caller, arg[0], arg[1], arg[2], arg[3]),
            libc::SYS_umask | libc::SYS_chdir | libc::SYS_fchdir => {
                self.callers.forget(caller, self.proc.as_fd());
                Ok(Answer::Pass)
            }
            libc::SYS_bind => self.bind(caller, arg[0], arg[1], arg[2]),
            libc::SYS_connect => self.connect(caller, arg[0], arg[1], arg[2]),
            // The filter hands over nothing else; if it ever does, the call fails.
            _ => Err(Errno::NOSYS),
        }
    }

    /// Asks the decision function, and records a denial.
    fn judge(
        &mut self,
        caller: &Caller,
        operation: Operation,
        kind: Kind,
        path: &Path,
    ) -> Result<(), Errno> {
        let decision = self.rules.decide(kind, path);
        if decision.allowed || self.is_git_sample(&decision, path) {
            return Ok(());
        }
        Err(self.records.deny(caller, operation, path, decision.rule))
    }

    /// `git init` and `clone` fill `hooks` with samples, which git never runs: only the name
    /// without its ending is a hook's, and nothing can be given that name.
    fn is_git_sample(&self, decision: &Decision<'_>, path: &Path) -> bool {
        let Some(hooks) = path.parent().filter(|parent| parent.ends_with("hooks")) else {
            return false;
        };
        let shipped = decision
            .rule
            .is_some_and(|rule| rule.rank == Rank::Default && rule.access == Access::DenyWrite);
        path.extension().is_some_and(|ending| ending == "sample")
            && shipped
            && decision.names(hooks)
            && hooks
                .parent()
                .is_some_and(|git| self.rules.decide(Kind::Write, git).allowed)
    }
}
