//! The umasks of callers, which what is made on their behalf must obey.
//!
//! The kernel shows a process's umask only among the lines of `/proc/PID/status`, and composing
//! those takes 13 µs; everything else that the mediator does to make a file takes some 20. So each
//! worker reads a umask once for each thread and keeps it until any may have changed: `umask(2)` is
//! handed over as well, and the kernel does it after everything that was kept has become void.
//!
//! A thread whose directory and umask are not its process's own (`unshare(CLONE_FS)`, an odd
//! `clone(2)`) takes them along when it becomes another process by `execve(2)`. The filter hands
//! these calls over too, and from the first of them on nothing is kept any more.

use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::Pid;

use super::caller::{self, Caller, KnownUmask};
use super::locked;

#[derive(Default)]
pub(super) struct Umasks {
    /// Grows with every change. While it is odd some umask may be changing, and none is kept.
    epoch: AtomicU64,
    changes: Mutex<Changes>,
}

#[derive(Default)]
struct Changes {
    /// Threads that may not have changed their umask yet, though the kernel was told to do so.
    changing: Vec<Pid>,
    /// Whether some thread may have a umask that is not its process's.
    apart: bool,
}

impl Umasks {
    /// The umask of the calling thread.
    pub(super) fn of(&self, caller: &Caller, proc: BorrowedFd<'_>) -> Result<Mode, Errno> {
        let mut epoch = self.epoch.load(Ordering::Acquire);
        if epoch % 2 == 1 {
            epoch = self.settle(caller, proc);
        }
        if epoch % 2 == 1 {
            return caller.umask(proc);
        }
        if let Some(umask) = caller.known_umask(epoch) {
            return Ok(umask);
        }
        let umask = caller.umask(proc)?;
        // Should it be changed just now, the epoch is another one by then.
        caller.keep_umask(proc, KnownUmask { umask, epoch });
        Ok(umask)
    }

    /// The caller is about to change its umask, which it may share.
    pub(super) fn forget(&self, caller: &Caller) {
        let mut changes = locked(&self.changes);
        if !changes.changing.contains(&caller.thread) {
            changes.changing.push(caller.thread);
        }
        self.unsettle();
    }

    /// The caller is about to make a thread, or become one, with a umask of its own.
    pub(super) fn set_apart(&self) {
        locked(&self.changes).apart = true;
        self.unsettle();
    }

    fn unsettle(&self) {
        let odd = |epoch: u64| Some((epoch + 1) | 1);
        let _ = self
            .epoch
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, odd);
    }

    /// Looks whether somebody is still about to change anything; the epoch after that. Whoever
    /// makes another call has changed it.
    fn settle(&self, caller: &Caller, proc: BorrowedFd<'_>) -> u64 {
        let mut changes = locked(&self.changes);
        changes
            .changing
            .retain(|thread| *thread != caller.thread && is_changing(*thread, proc));
        let epoch = self.epoch.load(Ordering::Acquire);
        if changes.apart || !changes.changing.is_empty() || epoch.is_multiple_of(2) {
            return epoch;
        }
        self.epoch.store(epoch + 1, Ordering::Release);
        epoch + 1
    }
}

/// Whether a thread that was let through may still be in its call.
fn is_changing(thread: Pid, proc: BorrowedFd<'_>) -> bool {
    match caller::read(thread, proc, "syscall") {
        // The number of the call it is in; or "running", wherever that is.
        Ok(text) => {
            let call = text.split_ascii_whitespace().next();
            let number: Option<i64> = call.and_then(|word| word.parse().ok());
            number.is_none_or(|number| number == libc::SYS_umask)
        }
        Err(Errno::NOENT | Errno::SRCH) => false,
        Err(_) => true,
    }
}
