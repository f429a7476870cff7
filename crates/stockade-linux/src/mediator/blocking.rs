//! Calls that wait: for the other end of a FIFO, for a connection, for a lease to be broken.
//!
//! Each waits in a thread of its own, in the kernel, so that it ends exactly as the caller's own
//! call would. The watcher interrupts it when the caller is gone, or when a signal waits for the
//! caller: the call then fails with `ERESTARTSYS`, and the kernel does with it what it does with
//! any interrupted call (repeats it or returns `EINTR`, by the signal's handler).

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::thread::gettid;

use super::caller::Caller;
use super::{Answer, Mediator, Worker, locked, set_apart};
use crate::sys;

/// More blocked calls than this fail.
const MAX_BLOCKED: usize = 2048;

/// What a thread that waits needs: one call, with a path on the stack.
const STACK_BYTES: usize = 64 << 10;

/// As the kernel knows it (`include/linux/errno.h`); no program ever sees it.
const ERESTARTSYS: i32 = 512;

/// The calls that wait now.
#[derive(Default)]
pub(super) struct Blocked(Mutex<Vec<Waiting>>);

struct Waiting {
    caller: Caller,
    /// The thread that makes the call, to interrupt it.
    thread: rustix::process::Pid,
    /// Readable when the caller has ended.
    pidfd: Option<Arc<OwnedFd>>,
    /// Whether the last look saw a signal for the caller's process: another of its threads may
    /// have taken it since.
    had_signal: bool,
    /// The caller has a signal to handle, or is gone.
    interrupted: bool,
}

impl Blocked {
    pub(super) fn is_empty(&self) -> bool {
        locked(&self.0).is_empty()
    }

    /// Interrupts the calls whose callers can't wait any longer; whether any call waits.
    pub(super) fn interrupt(&self, mediator: &Mediator<'_>) -> bool {
        let mut waiting = locked(&self.0);
        for call in waiting.iter_mut() {
            let is_gone = !mediator.listener.is_valid(call.caller.id).unwrap_or(false);
            let has_signal = call.caller.has_signal(mediator.proc.as_fd());
            call.interrupted |= is_gone || has_signal && call.had_signal;
            call.had_signal = has_signal;
            if call.interrupted {
                // It may not have begun to wait: then the next look interrupts it.
                let _ = sys::signal::interrupt(call.thread);
            }
        }
        !waiting.is_empty()
    }

    /// Waits for a while, or until a caller has ended: whoever comes next must not meet a call of
    /// one that is gone.
    pub(super) fn pause(&self, interval: Timespec) {
        let waiting = locked(&self.0);
        let callers = waiting.iter().filter(|call| !call.interrupted);
        let callers: Vec<Arc<OwnedFd>> = callers.filter_map(|call| call.pidfd.clone()).collect();
        drop(waiting);
        let watch = |caller| PollFd::new(caller, PollFlags::IN);
        let mut watched: Vec<PollFd<'_>> = callers.iter().map(watch).collect();
        let _ = poll(&mut watched, Some(&interval));
    }

    fn is_interrupted(&self, id: u64) -> bool {
        locked(&self.0)
            .iter()
            .any(|call| call.caller.id == id && call.interrupted)
    }
}

impl<'scope, 'env: 'scope> Worker<'scope, 'env> {
    /// Makes a call that may wait, in a thread of its own, which answers the caller.
    pub(super) fn block(
        &self,
        caller: &Caller,
        call: impl Fn(&Mediator<'_>) -> Result<Answer, Errno> + Send + 'scope,
    ) -> Result<Answer, Errno> {
        let (mediator, pool, scope) = (self.shared, self.pool, self.scope);
        if locked(&mediator.blocked.0).len() >= MAX_BLOCKED {
            return Err(Errno::AGAIN);
        }
        let caller = caller.again();
        let wait = move || {
            let id = caller.id;
            let _ = sys::signal::allow_interrupt();
            // For calls that take a relative name; without, they take another one.
            if mediator.own_directories {
                let _ = set_apart();
            }
            locked(&mediator.blocked.0).push(Waiting {
                pidfd: caller.new_pidfd(mediator.proc.as_fd()).ok().map(Arc::new),
                caller,
                thread: gettid(),
                had_signal: false,
                interrupted: false,
            });
            pool.wake_watcher(scope, mediator);
            let answer = loop {
                match call(mediator) {
                    Err(Errno::INTR) if mediator.blocked.is_interrupted(id) => {
                        break Err(Errno::from_raw_os_error(ERESTARTSYS));
                    }
                    Err(Errno::INTR) => {}
                    other => break other,
                }
            };
            locked(&mediator.blocked.0).retain(|call| call.caller.id != id);
            let _ = mediator.send(id, answer);
        };
        std::thread::Builder::new()
            .name("mediator".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, wait)
            .map_err(|_| Errno::AGAIN)?;
        Ok(Answer::Later)
    }
}
