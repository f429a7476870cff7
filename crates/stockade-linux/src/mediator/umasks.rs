//! The callers' umasks, which what is made in their stead must obey.
//!
//! The kernel tells a process's umask only among the lines of `/proc/PID/status`, and composing
//! those costs more than all else that the mediator does to make a file (13 of 30 µs). So it is
//! read once for each process and kept until it may have changed. For that umask(2) is handed
//! over as well; it takes a number and nothing is decided about it, so the kernel does it after
//! all, after everything that was known has been forgotten.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::caller::{self, Caller};

/// More processes than this rarely make files side by side.
const MOST: usize = 16;

#[derive(Default)]
pub(super) struct Umasks {
    known: Vec<Known>,
    /// Threads whose umask(2) may not have taken effect yet. They may share their umask with
    /// others (`CLONE_FS`), so nothing is kept as long as there are any.
    changing: Vec<Pid>,
}

struct Known {
    process: Pid,
    /// The number may be another process's by now; this is not.
    pidfd: OwnedFd,
    umask: Mode,
}

impl Umasks {
    /// The umask of whoever makes this call.
    pub(super) fn of(&mut self, caller: &Caller, proc: BorrowedFd<'_>) -> Result<Mode, Errno> {
        let process = caller.thread;
        self.changing
            .retain(|thread| *thread != process && is_changing(*thread, proc));
        if !self.changing.is_empty() {
            return caller.umask(proc);
        }
        if let Some(at) = self.known.iter().position(|known| known.process == process) {
            if is_alive(&self.known[at].pidfd) {
                return Ok(self.known[at].umask);
            }
            self.known.remove(at);
        }
        let umask = caller.umask(proc)?;
        // Fails for threads that are not their process's first.
        if let Ok(pidfd) = pidfd_open(process, PidfdFlags::empty()) {
            if self.known.len() == MOST {
                self.known.remove(0);
            }
            self.known.push(Known {
                process,
                pidfd,
                umask,
            });
        }
        Ok(umask)
    }

    /// A thread is about to change its umask.
    pub(super) fn forget(&mut self, changing: Pid) {
        self.known.clear();
        self.changing.push(changing);
    }
}

/// A process that has ended is readable (`pidfd_open(2)`), also before anybody reaps it.
fn is_alive(process: &OwnedFd) -> bool {
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&at_once)) == Ok(0)
}

/// Whether a thread that was let through to umask(2) may still be there.
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
