//! The mediator: decides about names that mounts can't protect, and acts in the caller's stead.
//!
//! It answers the calls that the seccomp filter hands over: it finds where a call would *land*
//! (links followed, `..` resolved), asks the one decision function, and performs the operation
//! itself on the very object it judged. A call is never let through after a decision about what
//! lies behind a pointer, because another thread could change that in between
//! (`seccomp_unotify(2)`).
//!
//! It is nobody's deputy: it has the same user id, the same mounts, the same network and the same
//! Landlock domain as the callers, so what it does the caller could have done. Its one capability
//! counts in the sandbox's own user namespace and lets it read callers that are not dumpable. It
//! is outside the callers' pid namespace: nothing inside can name it.
//!
//! A call that can block (a FIFO, a connection, a file with a lease) waits in a thread of its own
//! ([`blocking`]); one that hangs unexpectedly is passed over by another worker ([`pool`]).
//!
//! Needs Linux 5.9 (`SECCOMP_IOCTL_NOTIF_ADDFD`), 5.19 for calls that a signal can't tear
//! (`WAIT_KILLABLE_RECV`).

mod attributes;
mod blocking;
mod caller;
mod files;
mod inet;
mod names;
mod ordinary;
mod place;
mod pool;
mod protect;
mod record;
mod sockets;
mod times;
mod umasks;
mod unfinished;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Scope;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use stockade_rules::{AbsPath, Index, Kind, PathRule};

use self::attributes::Named;
use self::blocking::Blocked;
use self::caller::{Acquaintance, CWD, Caller};
use self::place::Name;
use self::pool::Pool;
use self::protect::{History, Memory, Publications};
use self::record::Records;
use self::sockets::Bound;
#[cfg(target_arch = "x86_64")]
use self::times::Unit;
use self::umasks::Umasks;
use crate::commands::Commands;
use crate::plan::Mediation;
use crate::seccomp::{Inherit, Listener};

pub(crate) use self::pool::{Waiting, start};
pub(crate) use self::record::Reported;
pub use self::record::{Denial, Operation};
pub(crate) use self::unfinished::await_unfinished;

/// What the mediator sees of processes.
pub(crate) struct View {
    /// The `/proc` of the mediator's own pid namespace.
    pub(crate) proc: OwnedFd,
    /// Whether the callers have a pid namespace of their own.
    pub(crate) own_pids: bool,
    /// The commands of a session, each of which hears about its own denials.
    pub(crate) commands: Option<Arc<Commands>>,
}

/// What all workers share.
struct Mediator<'a> {
    listener: Listener,
    plan: &'a Mediation,
    /// The plan's rules, made ready for many decisions.
    rules: Index<'a>,
    /// The commands of a session, with what the launcher granted meanwhile.
    commands: Option<Arc<Commands>>,
    records: Mutex<Records>,
    /// The `/proc` in which callers are looked at, and the mediator's own `self/fd` there.
    proc: OwnedFd,
    own_descriptors: OwnedFd,
    own_pids: bool,
    /// The mounts of directories that may be written, where nobody outside has the same.
    own_mounts: OnceLock<Vec<u64>>,
    /// Whether each thread has a directory and a umask of its own. The filter of a container may
    /// forbid that: then there is one worker only.
    own_directories: bool,
    /// Sockets that were bound inside: these may be connected to.
    bound: Mutex<Bound>,
    umasks: Umasks,
    blocked: Blocked,
    /// Held while a name is judged that can be part of a protected one, and while a directory
    /// moves.
    names: Mutex<()>,
    memory: Memory,
    history: History,
    publications: Publications,
    /// When the run began: seconds and nanoseconds, by the clock that file systems use.
    started: (i64, u32),
}

/// A thread that answers calls. It has a directory and a umask of its own.
struct Worker<'scope, 'env> {
    shared: &'env Mediator<'env>,
    pool: &'env Pool,
    /// For threads that wait.
    scope: &'scope Scope<'scope, 'env>,
    /// The worker's own umask, as far as it is known.
    umask: Option<Mode>,
    /// Whether the worker is in `/proc`, from where it finds the directories of callers.
    is_home: bool,
    /// Threads that called before, by their numbers.
    known: [Option<Acquaintance>; KNOWN],
}

/// How many threads a worker remembers: those of a large pool, whose numbers follow each other. It
/// holds a descriptor for each.
const KNOWN: usize = 96;

/// What a call gets.
enum Answer {
    /// A descriptor. The mediator's own copy is closed before the caller goes on: `flock(2)`,
    /// `ETXTBSY` and the last close depend on that.
    Descriptor(OwnedFd, Inherit),
    /// The same, of a file that was made for this call: it goes again if the caller has no room
    /// for a descriptor.
    Made(OwnedFd, Inherit, Name),
    /// The same, made by a path without links from where the worker is.
    MadeHere(OwnedFd, Inherit, CString),
    /// Another thread answers.
    Later,
    /// The kernel does it after all. Only for a call about which nothing is decided.
    Pass,
    Value(i64),
}

impl<'a> Mediator<'a> {
    fn new(
        listener: OwnedFd,
        plan: &'a Mediation,
        control: BorrowedFd<'a>,
        view: View,
    ) -> io::Result<Self> {
        let listener = Listener::new(listener)?;
        // Linux 6.6; without it a call costs tens of microseconds instead of a few.
        let _ = listener.wake_synchronously();
        let own_descriptors = caller::open_directory(view.proc.as_fd(), c"self/fd")?;
        let own_directories = set_apart().is_ok();
        Ok(Self {
            listener,
            plan,
            rules: Index::new(&plan.rules),
            commands: view.commands.clone(),
            records: Mutex::new(Records::new(control.try_clone_to_owned()?, view.commands)),
            proc: view.proc,
            own_descriptors,
            own_pids: view.own_pids,
            own_mounts: OnceLock::new(),
            own_directories,
            bound: Mutex::default(),
            umasks: Umasks::default(),
            blocked: Blocked::default(),
            names: Mutex::default(),
            memory: Memory::new(plan.protection.as_ref()),
            history: History::new(plan.protection.as_ref()),
            publications: Publications::default(),
            started: now(),
        })
    }

    fn send(&self, id: u64, answer: Result<Answer, Errno>) -> io::Result<()> {
        let sent = match answer {
            Ok(Answer::Later) => return Ok(()),
            Ok(Answer::Pass) => self.listener.danger_continue(id),
            Ok(Answer::Value(value)) => self.listener.answer(id, value),
            Ok(Answer::Descriptor(fd, inherit) | Answer::MadeHere(fd, inherit, _)) => {
                self.hand_over(id, fd, inherit, None)
            }
            Ok(Answer::Made(fd, inherit, name)) => self.hand_over(id, fd, inherit, Some(&name)),
            Err(errno) => self.listener.refuse(id, errno.raw_os_error()),
        };
        unless_gone(sent)
    }

    /// Answers with a descriptor that the caller has, or with why it could not get it.
    fn answer_added(&self, id: u64, added: io::Result<RawFd>) -> io::Result<()> {
        unless_gone(match added {
            Ok(number) => self.listener.answer(id, number.into()),
            Err(error) => self.refuse_as_full(id, error),
        })
    }

    fn hand_over(
        &self,
        id: u64,
        fd: OwnedFd,
        inherit: Inherit,
        made: Option<&Name>,
    ) -> io::Result<()> {
        let added = self.listener.add_fd(id, fd.as_fd(), inherit);
        drop(fd);
        match (added, made) {
            (Ok(number), _) => self.listener.answer(id, number.into()),
            (Err(error), Some(name)) if error.kind() != io::ErrorKind::NotFound => {
                let _ = rustix::fs::unlinkat(&name.directory, &name.last, AtFlags::empty());
                self.refuse_as_full(id, error)
            }
            (Err(error), _) => self.refuse_as_full(id, error),
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

    /// Whether a mount is one of those that may be written, and nobody outside has it.
    fn is_own_mount(&self, id: u64) -> bool {
        let mount = |root: &AbsPath| {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            let root = rustix::fs::open(root.as_path(), flags, Mode::empty()).ok()?;
            names::mount_of(root).ok()
        };
        let roots = self.plan.protection.iter().flat_map(|one| &one.roots);
        let find = || roots.filter_map(mount).collect();
        self.own_pids && self.own_mounts.get_or_init(find).contains(&id)
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        locked(&self.records)
    }

    /// Records a refusal and gives the error for it.
    fn deny(
        &self,
        caller: &Caller,
        operation: Operation,
        path: &Path,
        rule: Option<&PathRule>,
    ) -> Errno {
        let is_it = |rule: &PathRule| {
            let mut rules = self.plan.rules.iter();
            rules.position(|candidate| std::ptr::eq(candidate, rule))
        };
        let rule = rule.and_then(is_it);
        self.records()
            .deny(caller, self.proc.as_fd(), operation, path, rule)
    }
}

/// A caller that is gone waits for no answer.
fn unless_gone(sent: io::Result<()>) -> io::Result<()> {
    match sent {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The time that a file made now would have. File systems read the coarse clock.
fn now() -> (i64, u32) {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    (now.tv_sec, u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Gives the calling thread a directory and a umask of its own.
fn set_apart() -> io::Result<()> {
    crate::sys::process::unshare(rustix::thread::UnshareFlags::FS)
}

/// What a thread that panicked left behind is complete: nothing is changed in two steps.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'scope, 'env: 'scope> Worker<'scope, 'env> {
    fn new(
        shared: &'env Mediator<'env>,
        pool: &'env Pool,
        scope: &'scope Scope<'scope, 'env>,
    ) -> io::Result<Self> {
        if shared.own_directories {
            set_apart()?;
        }
        Ok(Self {
            shared,
            pool,
            scope,
            umask: None,
            is_home: false,
            known: [const { None }; KNOWN],
        })
    }

    /// Answers a call.
    fn answer(&mut self, mut caller: Caller) -> io::Result<()> {
        if !self.shared.publications.is_empty() {
            self.flush();
            self.is_home = false;
        }
        let place = caller.thread.as_raw_nonzero().get().unsigned_abs() as usize % KNOWN;
        if let Some(known) = self.known[place].take() {
            caller.recall(known);
        }
        let answer = self.dispatch(&caller);
        let sent = self.send(caller.id, answer);
        self.known[place] = caller.into_acquaintance();
        sent
    }

    fn send(&mut self, id: u64, answer: Result<Answer, Errno>) -> io::Result<()> {
        let Ok(Answer::MadeHere(fd, inherit, text)) = answer else {
            self.go_home();
            return self.shared.send(id, answer);
        };
        let added = self.shared.listener.add_fd(id, fd.as_fd(), inherit);
        let is_full = |error: &io::Error| error.kind() != io::ErrorKind::NotFound;
        if added.as_ref().is_err_and(is_full) {
            ordinary::unmake(&text, &fd);
        }
        drop(fd);
        self.go_home();
        self.shared.answer_added(id, added)
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
            libc::SYS_setxattr => self.set_attribute(caller, Named::Path(arg[0], 0), &arg),
            libc::SYS_lsetxattr => self.set_attribute(caller, Named::Path(arg[0], NOFOLLOW), &arg),
            libc::SYS_fsetxattr => self.set_attribute(caller, Named::Descriptor(arg[0]), &arg),
            libc::SYS_removexattr => self.remove_attribute(caller, Named::Path(arg[0], 0), arg[1]),
            libc::SYS_lremovexattr => {
                self.remove_attribute(caller, Named::Path(arg[0], NOFOLLOW), arg[1])
            }
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
            libc::SYS_umask => {
                self.shared.umasks.forget(caller);
                Ok(Answer::Pass)
            }
            libc::SYS_clone | libc::SYS_unshare => {
                self.shared.umasks.set_apart();
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
        &self,
        caller: &Caller,
        operation: Operation,
        kind: Kind,
        path: &Path,
    ) -> Result<(), Errno> {
        let decision = self.shared.rules.decide(kind, path);
        if decision.allowed {
            return Ok(());
        }
        Err(self.shared.deny(caller, operation, path, decision.rule))
    }

    /// Does something that makes a file, with the caller's umask.
    fn with_umask_of<T>(
        &mut self,
        caller: &Caller,
        make: impl FnOnce(&mut Self) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let umask = self.shared.umasks.of(caller, self.shared.proc.as_fd())?;
        self.set_umask(umask);
        make(self)
    }

    fn set_umask(&mut self, umask: Mode) {
        if self.umask != Some(umask) {
            rustix::process::umask(umask);
            self.umask = Some(umask);
        }
    }
}
