//! What is kept about the callers from one call to the next: their directories, and their umasks,
//! which what is made in their stead must obey.
//!
//! The kernel tells a process's umask only among the lines of `/proc/PID/status`, and composing
//! those costs 13 µs; to follow the link to its directory costs 3; all else that the mediator does
//! to make a file some 20. So both are read once for each caller and kept until they may have
//! changed. For that umask(2), chdir(2) and fchdir(2) are handed over as well. Nothing is decided
//! about them, so the kernel does them after all, after everything that was known has been
//! forgotten. Nothing else changes them: chroot(2) and its like are refused wherever there is a
//! mediator.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

use super::caller::{self, Caller, link_to, low_word};
use super::directories::Identity;

/// More threads than this rarely change names side by side.
const MOST: usize = 64;

/// The calls that change what is kept.
const CHANGES: [i64; 3] = [libc::SYS_umask, libc::SYS_chdir, libc::SYS_fchdir];

pub(super) struct Callers {
    known: Vec<Known>,
    most: usize,
    /// Threads that may not have changed yet what they are about to. The other threads of their
    /// processes share it, so nothing is kept as long as there are any.
    changing: Vec<Pid>,
}

struct Known {
    thread: Pid,
    /// `/proc/THREAD`, in which nothing is found once the thread has ended.
    entry: OwnedFd,
    /// The number may be another thread's by now; this is not.
    pidfd: Option<OwnedFd>,
    /// The last call in which the thread was seen alive.
    seen: u64,
    directory: Option<Identity>,
    umask: Option<Mode>,
}

impl Callers {
    /// With room for as many descriptors.
    pub(super) fn new(room: usize) -> Self {
        Self {
            known: Vec::new(),
            most: (room / 2).clamp(1, MOST),
            changing: Vec::new(),
        }
    }

    /// Which directory a relative path of the caller starts from.
    pub(super) fn directory(
        &mut self,
        caller: &Caller,
        proc: BorrowedFd<'_>,
        fd: u64,
    ) -> Result<Identity, Errno> {
        let link = link_to(fd)?;
        let keep = low_word(fd) == libc::AT_FDCWD && self.is_settled(caller, proc);
        let known = self.meet(caller, proc)?;
        if let Some(identity) = known.directory.filter(|_| keep) {
            return Ok(identity);
        }
        let identity = Identity::of(&known.entry, &link)?;
        known.directory = known.directory.or(keep.then_some(identity));
        Ok(identity)
    }

    /// The umask of whoever makes this call.
    pub(super) fn umask(&mut self, caller: &Caller, proc: BorrowedFd<'_>) -> Result<Mode, Errno> {
        let keep = self.is_settled(caller, proc);
        let known = self.meet(caller, proc)?;
        if let Some(umask) = known.umask.filter(|_| keep) {
            return Ok(umask);
        }
        let umask = caller.umask(proc)?;
        known.umask = keep.then_some(umask);
        Ok(umask)
    }

    /// A thread is about to change its directory or its umask.
    pub(super) fn forget(&mut self, caller: &Caller, proc: BorrowedFd<'_>) {
        for known in &mut self.known {
            (known.directory, known.umask) = (None, None);
        }
        let is_new = !self.changing.contains(&caller.thread);
        if is_new && !caller.is_alone(proc) {
            self.changing.push(caller.thread);
        }
    }

    /// Whether nobody is about to change anything.
    fn is_settled(&mut self, caller: &Caller, proc: BorrowedFd<'_>) -> bool {
        self.changing
            .retain(|thread| *thread != caller.thread && is_changing(*thread, proc));
        self.changing.is_empty()
    }

    /// What is known about a caller. Whoever is met first is forgotten first.
    fn meet(&mut self, caller: &Caller, proc: BorrowedFd<'_>) -> Result<&mut Known, Errno> {
        let is_it = |known: &Known| known.thread == caller.thread;
        let mut at = self.known.iter().position(is_it);
        if let Some(stale) = at.filter(|at| !self.known[*at].is_seen_in(caller.id)) {
            self.known.remove(stale);
            at = None;
        }
        if at.is_none() {
            let known = Known::new(caller, proc)?;
            if self.known.len() == self.most {
                self.known.remove(0);
            }
            self.known.push(known);
        }
        let at = at.unwrap_or(self.known.len() - 1);
        Ok(&mut self.known[at])
    }
}

impl Known {
    fn new(caller: &Caller, proc: BorrowedFd<'_>) -> Result<Self, Errno> {
        let number = caller.thread.as_raw_nonzero().to_string();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            thread: caller.thread,
            entry: rustix::fs::openat(proc, number, flags, Mode::empty())?,
            pidfd: caller.pidfd().ok(),
            seen: caller.id,
            directory: None,
            umask: None,
        })
    }

    /// Whether it is this thread that makes a call.
    fn is_seen_in(&mut self, call: u64) -> bool {
        if self.seen == call {
            return true;
        }
        let is_alive = match &self.pidfd {
            Some(pidfd) => !has_ended(pidfd),
            None => Identity::of(&self.entry, c"cwd").is_ok(),
        };
        if is_alive {
            self.seen = call;
        }
        is_alive
    }
}

/// A thread that has ended is readable (`pidfd_open(2)`), also before anybody reaps it.
fn has_ended(pidfd: &OwnedFd) -> bool {
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&at_once)) != Ok(0)
}

/// Whether a thread that was let through may still be in its call.
fn is_changing(thread: Pid, proc: BorrowedFd<'_>) -> bool {
    match caller::read(thread, proc, "syscall") {
        // The number of the call it is in; or "running", wherever that is.
        Ok(text) => {
            let call = text.split_ascii_whitespace().next();
            let number: Option<i64> = call.and_then(|word| word.parse().ok());
            number.is_none_or(|number| CHANGES.contains(&number))
        }
        Err(Errno::NOENT | Errno::SRCH) => false,
        Err(_) => true,
    }
}
