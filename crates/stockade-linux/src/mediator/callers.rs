//! What is kept about the callers from one call to the next: their entries in `/proc`, and their
//! umasks, which what is made in their stead must obey.
//!
//! The kernel tells a process's umask only among the lines of `/proc/PID/status`, and composing
//! those costs more than all else that the mediator does to make a file (13 of 30 µs). So it is
//! read once for each caller and kept until it may have changed. For that umask(2) is handed over
//! as well; it takes a number and nothing is decided about it, so the kernel does it after all,
//! after everything that was known has been forgotten.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

use super::caller::{self, Caller, link_to};
use super::directories::Identity;

/// More threads than this rarely change names side by side.
const MOST: usize = 16;

pub(super) struct Callers {
    known: Vec<Known>,
    most: usize,
    /// Threads whose umask(2) may not have taken effect yet. They may share their umask with
    /// others (`CLONE_FS`), so nothing is kept as long as there are any.
    changing: Vec<Pid>,
}

struct Known {
    thread: Pid,
    /// `/proc/THREAD`. The number may be another thread's by now; this is not: where its thread
    /// has ended nothing is found in it.
    entry: OwnedFd,
    /// The last call in which the thread was seen alive.
    seen: u64,
    umask: Option<Mode>,
}

impl Callers {
    /// With room for as many descriptors.
    pub(super) fn new(room: usize) -> Self {
        Self {
            known: Vec::new(),
            most: room.clamp(1, MOST),
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
        if let Some(at) = self.position(caller.thread) {
            let known = &mut self.known[at];
            if let Ok(identity) = Identity::of(&known.entry, &link) {
                known.seen = caller.id;
                return Ok(identity);
            }
            self.known.remove(at);
        }
        let known = self.meet(caller, proc)?;
        Identity::of(&known.entry, &link)
    }

    /// The umask of whoever makes this call.
    pub(super) fn umask(&mut self, caller: &Caller, proc: BorrowedFd<'_>) -> Result<Mode, Errno> {
        self.changing
            .retain(|thread| *thread != caller.thread && is_changing(*thread, proc));
        if !self.changing.is_empty() {
            return caller.umask(proc);
        }
        if let Some(at) = self.position(caller.thread) {
            let known = &mut self.known[at];
            let is_alive = known.seen == caller.id || Identity::of(&known.entry, c"cwd").is_ok();
            match known.umask {
                Some(umask) if is_alive => return Ok(umask),
                None if is_alive => {
                    let umask = caller.umask(proc)?;
                    known.umask = Some(umask);
                    return Ok(umask);
                }
                _ => drop(self.known.remove(at)),
            }
        }
        let umask = caller.umask(proc)?;
        self.meet(caller, proc)?.umask = Some(umask);
        Ok(umask)
    }

    /// A thread is about to change its umask.
    pub(super) fn forget_umasks(&mut self, changing: Pid) {
        self.known.iter_mut().for_each(|known| known.umask = None);
        self.changing.push(changing);
    }

    fn position(&self, thread: Pid) -> Option<usize> {
        self.known.iter().position(|known| known.thread == thread)
    }

    /// Whoever is met first is forgotten first.
    fn meet(&mut self, caller: &Caller, proc: BorrowedFd<'_>) -> Result<&mut Known, Errno> {
        let number = caller.thread.as_raw_nonzero().to_string();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entry = rustix::fs::openat(proc, number, flags, Mode::empty())?;
        if self.known.len() == self.most {
            self.known.remove(0);
        }
        self.known.push(Known {
            thread: caller.thread,
            entry,
            seen: caller.id,
            umask: None,
        });
        self.known.last_mut().ok_or(Errno::NOMEM)
    }
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
