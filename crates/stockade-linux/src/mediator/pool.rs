//! Who answers which call.
//!
//! One worker waits for calls: with several of them in `SECCOMP_IOCTL_NOTIF_RECV` the kernel wakes
//! all for each call (measured for one caller: 5.5 µs with one, 7.8 with two, 11.7 with four). It
//! answers what it received itself. While more calls wait than it can answer, others help: they
//! receive and answer until none is waiting, and sleep then. A worker that hangs is relieved by the
//! watcher.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Condvar, Mutex};
use std::thread::{Builder, Scope, Thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::caller::Caller;
use super::{Mediator, View, Worker, locked};
use crate::capabilities;
use crate::control::Report;
use crate::plan::Mediation;
use crate::stage::{Failure, Stage};
use crate::sys;

/// What a worker needs, a few calls deep, with paths on the stack.
const STACK_BYTES: usize = 256 << 10;

/// How often the watcher looks, while there is anything to look at.
const WATCH_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};

/// After so many looks at the same unfinished call its worker counts as hanging.
const LOOKS_UNTIL_RELIEF: u32 = 4;

/// Workers that hang are not counted against this by the watcher, which may add more.
const MAX_WORKERS: usize = 4;

/// More than there may be processors: callers that are many get more of those than one worker does.
const MAX_HELPERS: usize = MAX_WORKERS - 1;

/// The mediator's thread, which waits for its listener.
pub(crate) struct Waiting(SyncSender<OwnedFd>);

impl Waiting {
    /// Lets it answer the calls that arrive at `listener`.
    pub(crate) fn serve(self, listener: OwnedFd) -> io::Result<()> {
        let gone = |_| io::Error::from_raw_os_error(libc::ESRCH);
        self.0.send(listener).map_err(gone)
    }
}

/// Starts the mediator in a thread of its own; it inherits the caller's Landlock domain.
pub(crate) fn start<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    plan: &'env Mediation,
    control: BorrowedFd<'env>,
    view: View,
) -> io::Result<Waiting> {
    let (sender, receiver) = sync_channel(1);
    thread().spawn_scoped(scope, move || {
        let Ok(listener) = receiver.recv() else {
            return;
        };
        let outcome = capabilities::keep_tracing()
            .and_then(|()| sys::signal::make_interrupting())
            .and_then(|()| Mediator::new(listener, plan, control, view))
            .and_then(|mediator| serve(&mediator));
        // Without a mediator nobody answers: the run can only end.
        if let Err(error) = outcome {
            let _ = Report::Failed(Failure {
                stage: Stage::Mediator,
                errno: error.raw_os_error().unwrap_or(libc::EIO),
                subject: Vec::new(),
            })
            .send(control);
            sys::process::exit_now(super::super::helper::FAILED);
        }
    })?;
    Ok(Waiting(sender))
}

fn thread() -> Builder {
    Builder::new()
        .name("mediator".to_owned())
        .stack_size(STACK_BYTES)
}

fn serve(mediator: &Mediator<'_>) -> io::Result<()> {
    let pool = Pool::default();
    std::thread::scope(|scope| pool.work(scope, mediator))
}

/// Whose turn it is to receive.
#[derive(Default)]
pub(super) struct Pool {
    turn: Mutex<Turn>,
    freed: Condvar,
    /// How many were called to help and have not finished.
    helpers: AtomicUsize,
    /// Odd while a receiving worker answers a call itself, and different for each call.
    serving: AtomicU64,
    watcher: Mutex<Option<Thread>>,
    /// Whether the watcher sleeps until it is woken.
    watcher_sleeps: AtomicBool,
}

#[derive(Default)]
struct Turn {
    taken: bool,
    /// Changes when a hanging worker loses its turn.
    generation: u64,
    workers: usize,
    /// Workers that sleep.
    waiting: usize,
    /// How many of them are called to help.
    called: usize,
    ended: bool,
}

/// What a worker does.
enum Part {
    /// Waits for calls, in this generation.
    Receive(u64),
    /// Answers the calls that wait.
    Help,
}

impl Pool {
    /// Answers calls until nobody can make any more.
    fn work<'scope, 'env: 'scope>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        mediator: &'env Mediator<'env>,
    ) -> io::Result<()> {
        locked(&self.turn).workers += 1;
        let mut worker = Worker::new(mediator, self, scope)?;
        while let Some(part) = self.take_part() {
            let done = match part {
                Part::Receive(generation) => {
                    self.receive_until(generation, &mut worker, scope, mediator)?
                }
                Part::Help => self.help(&mut worker, mediator)?,
            };
            if done {
                self.end();
                return Ok(());
            }
        }
        Ok(())
    }

    /// Receives and answers until the turn is somebody else's; whether nobody can call any more.
    fn receive_until<'scope, 'env: 'scope>(
        &'env self,
        generation: u64,
        worker: &mut Worker<'scope, 'env>,
        scope: &'scope Scope<'scope, 'env>,
        mediator: &'env Mediator<'env>,
    ) -> io::Result<bool> {
        let mut last = None;
        loop {
            let Some(caller) = receive(mediator)? else {
                return Ok(true);
            };
            let Ok(caller) = caller else { continue };
            self.wake_watcher(scope, mediator);
            // One that calls again and again is alone, as a rule.
            if last.replace(caller.thread) != Some(caller.thread) {
                self.call_help(scope, mediator);
            }
            self.serving.fetch_add(1, Ordering::AcqRel);
            worker.answer(caller)?;
            let turn = locked(&self.turn);
            if turn.generation != generation {
                return Ok(false);
            }
            self.serving.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Answers the calls that wait; whether nobody can call any more.
    fn help<'scope, 'env: 'scope>(
        &self,
        worker: &mut Worker<'scope, 'env>,
        mediator: &'env Mediator<'env>,
    ) -> io::Result<bool> {
        while is_waiting(mediator) {
            match receive(mediator)? {
                None => return Ok(true),
                Some(Ok(caller)) => worker.answer(caller)?,
                Some(Err(())) => {}
            }
        }
        self.helpers.fetch_sub(1, Ordering::AcqRel);
        Ok(false)
    }

    /// Waits for something to do; none when there is nothing any more.
    fn take_part(&self) -> Option<Part> {
        let mut turn = locked(&self.turn);
        turn.waiting += 1;
        let part = loop {
            if turn.ended {
                break None;
            }
            if !turn.taken {
                turn.taken = true;
                break Some(Part::Receive(turn.generation));
            }
            if turn.called > 0 {
                turn.called -= 1;
                break Some(Part::Help);
            }
            turn = self
                .freed
                .wait(turn)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        };
        turn.waiting -= 1;
        part
    }

    /// Lets another worker answer the next call, if that waits already.
    fn call_help<'scope, 'env: 'scope>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        mediator: &'env Mediator<'env>,
    ) {
        let helpers = self.helpers.load(Ordering::Acquire);
        if helpers >= MAX_HELPERS || !mediator.own_directories || !is_waiting(mediator) {
            return;
        }
        let mut turn = locked(&self.turn);
        let may_add = turn.workers < MAX_WORKERS;
        if turn.waiting == 0 && !(may_add && self.add_worker(scope, mediator)) {
            return;
        }
        turn.called += 1;
        self.helpers.fetch_add(1, Ordering::AcqRel);
        drop(turn);
        self.freed.notify_one();
    }

    fn add_worker<'scope, 'env: 'scope>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        mediator: &'env Mediator<'env>,
    ) -> bool {
        let work = move || {
            if self.work(scope, mediator).is_err() {
                sys::process::exit_now(super::super::helper::FAILED);
            }
        };
        thread().spawn_scoped(scope, work).is_ok()
    }

    fn end(&self) {
        locked(&self.turn).ended = true;
        self.freed.notify_all();
        if let Some(watcher) = &*locked(&self.watcher) {
            watcher.unpark();
        }
    }

    /// Makes sure that somebody notices if the next call hangs, or a blocked one is interrupted.
    pub(super) fn wake_watcher<'scope, 'env: 'scope>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        mediator: &'env Mediator<'env>,
    ) {
        if self.watcher_sleeps.load(Ordering::Acquire)
            && self.watcher_sleeps.swap(false, Ordering::AcqRel)
        {
            if let Some(watcher) = &*locked(&self.watcher) {
                watcher.unpark();
            }
            return;
        }
        if self.serving.load(Ordering::Acquire) != 0 {
            return;
        }
        let mut watcher = locked(&self.watcher);
        if watcher.is_none()
            && let Ok(thread) = thread().spawn_scoped(scope, move || self.watch(scope, mediator))
        {
            *watcher = Some(thread.thread().clone());
        }
    }

    fn watch<'scope, 'env: 'scope>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        mediator: &'env Mediator<'env>,
    ) {
        let (mut last, mut looks) = (0, 0);
        while !locked(&self.turn).ended {
            let blocked = mediator.blocked.interrupt(mediator);
            let now = self.serving.load(Ordering::Acquire);
            let is_same = now == last;
            looks = if is_same { looks + 1 } else { 0 };
            last = now;
            let is_busy = now % 2 == 1;
            if is_busy && looks == LOOKS_UNTIL_RELIEF {
                self.relieve(now, scope, mediator);
            }
            if is_same && !is_busy && !blocked {
                self.watcher_sleeps.store(true, Ordering::Release);
                // Whoever looked before that was stored is seen here.
                if self.serving.load(Ordering::Acquire) == last && mediator.blocked.is_empty() {
                    std::thread::park();
                }
                self.watcher_sleeps.store(false, Ordering::Release);
            } else {
                mediator.blocked.pause(WATCH_INTERVAL);
            }
        }
    }

    /// Takes the turn from a worker that hangs, in the call that `serving` was seen to be.
    fn relieve<'scope, 'env: 'scope>(
        &'env self,
        serving: u64,
        scope: &'scope Scope<'scope, 'env>,
        mediator: &'env Mediator<'env>,
    ) {
        let mut turn = locked(&self.turn);
        let may_add = mediator.own_directories;
        if self.serving.load(Ordering::Acquire) != serving {
            return;
        }
        // Without anybody to take it, the turn stays where it is.
        if turn.waiting > 0 || may_add && self.add_worker(scope, mediator) {
            turn.generation += 1;
            turn.taken = false;
            // Nobody is in a call any more; the worker that hangs does not count this up again.
            self.serving.fetch_add(1, Ordering::AcqRel);
            drop(turn);
            self.freed.notify_one();
        }
    }
}

/// The next call; none when nobody can make any more. An error is about one caller that is gone.
fn receive(mediator: &Mediator<'_>) -> io::Result<Option<Result<Caller, ()>>> {
    let notification = match mediator.listener.receive() {
        Ok(notification) => notification,
        // The caller was killed before its call could be handed over, or there are none left.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((!is_deserted(mediator)).then_some(Err(())));
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Some(Err(()))),
        Err(error) => return Err(error),
    };
    if let Some(caller) = Caller::new(&notification) {
        return Ok(Some(Ok(caller)));
    }
    let _ = mediator.listener.refuse(notification.id, libc::EPERM);
    Ok(Some(Err(())))
}

fn is_waiting(mediator: &Mediator<'_>) -> bool {
    state(mediator).contains(PollFlags::IN)
}

/// Whether the last process with the filter has ended.
fn is_deserted(mediator: &Mediator<'_>) -> bool {
    state(mediator).contains(PollFlags::HUP)
}

fn state(mediator: &Mediator<'_>) -> PollFlags {
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let listener = mediator.listener.as_fd();
    let mut watched = [PollFd::from_borrowed_fd(listener, PollFlags::IN)];
    match poll(&mut watched, Some(&at_once)) {
        Ok(_) => watched[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}
