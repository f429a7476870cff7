//! Threads that hold a run's limits, whatever the caller does meanwhile.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::timespec;
use crate::backend::RunningSandbox;
use crate::disk::{DiskWatch, INTERVAL};
use crate::report::Ending;

/// One of a command's outputs, on its way through the launcher, which counts the bytes.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct CountedOutput {
    /// The reading end of a pipe whose writing end the command has.
    pub from: OwnedFd,
    /// Where the bytes go.
    pub to: OwnedFd,
    /// Whether the end of a run waits until everything has arrived there. Not where the caller
    /// itself reads it, perhaps after the end.
    pub drain: bool,
}

/// How long the end of a run waits for output that nobody takes.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The threads and what they found.
#[derive(Debug)]
pub(super) struct LimitKeeper {
    passed: Arc<OnceLock<Ending>>,
    /// Hangs up when every output that is to be drained has been.
    drained: Receiver<()>,
}

impl LimitKeeper {
    /// Starts a thread for time and disk space, if either is limited, and one for each output.
    pub(super) fn start(
        running: &dyn RunningSandbox,
        time: Option<Duration>,
        disk: Option<DiskWatch>,
        output: Option<u64>,
        counted: Vec<CountedOutput>,
    ) -> io::Result<Self> {
        let passed = Arc::new(OnceLock::new());
        let (draining, drained) = channel();
        let budget = Arc::new(AtomicU64::new(output.unwrap_or(u64::MAX)));
        if time.is_some() || disk.is_some() {
            let gone = running.pidfd().try_clone_to_owned()?;
            let (passed, kill) = (Arc::clone(&passed), running.killer());
            thread("stockade-limits", move || {
                if let Some(limit) = watch(&gone, time, disk.as_ref()) {
                    let _ = passed.set(limit);
                    kill();
                }
            })?;
        }
        for counted in counted {
            let (passed, kill) = (Arc::clone(&passed), running.killer());
            let budget = Arc::clone(&budget);
            let draining = counted.drain.then(|| Sender::clone(&draining));
            thread("stockade-output", move || {
                // An output that nobody takes any more ends for the command too.
                if let Ok(Exceeded(true)) = pass_on(counted, &budget, || {
                    let _ = passed.set(Ending::OutputLimit);
                }) {
                    kill();
                }
                drop(draining);
            })?;
        }
        Ok(Self { passed, drained })
    }

    /// Which limit was passed before the command ended.
    pub(super) fn passed(&self) -> Option<Ending> {
        self.passed.get().copied()
    }

    /// Waits until what the command wrote has arrived; to be called when the sandbox is gone.
    pub(super) fn drain(&self) {
        let _ = self.drained.recv_timeout(DRAIN_TIMEOUT);
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = std::thread::Builder::new().name(name.to_owned());
    builder.spawn(work).map(drop)
}

/// Whether more was written than the limit.
struct Exceeded(bool);

/// Passes bytes on until their end, or until the limit; `exceeded` is called before the other side
/// sees the end.
fn pass_on(
    counted: CountedOutput,
    budget: &AtomicU64,
    exceeded: impl FnOnce(),
) -> io::Result<Exceeded> {
    let (mut from, mut to) = (File::from(counted.from), File::from(counted.to));
    let mut chunk = [0; 16 * 1024];
    loop {
        let length = from.read(&mut chunk)?;
        if length == 0 {
            return Ok(Exceeded(false));
        }
        let allowed = take(budget, length);
        to.write_all(&chunk[..allowed])?;
        if allowed < length {
            exceeded();
            return Ok(Exceeded(true));
        }
    }
}

/// How much of this many bytes is within the budget, which all outputs share.
fn take(budget: &AtomicU64, length: usize) -> usize {
    let length = length as u64;
    let taken = |left: u64| Some(left - left.min(length));
    let before = budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
    let allowed = before.unwrap_or_else(|left| left).min(length);
    usize::try_from(allowed).unwrap_or(usize::MAX)
}

/// Waits until the sandbox is gone, or a limit is passed.
fn watch(gone: &OwnedFd, limit: Option<Duration>, disk: Option<&DiskWatch>) -> Option<Ending> {
    let started = Instant::now();
    loop {
        let left = limit.map(|limit| limit.saturating_sub(started.elapsed()));
        let wait = left.into_iter().chain(disk.map(|_| INTERVAL)).min();
        let mut watched = [PollFd::new(gone, PollFlags::IN)];
        match poll(&mut watched, wait.and_then(timespec).as_ref()) {
            Ok(0) | Err(Errno::INTR) => {}
            // After an error nobody can tell when it is gone: the caller's waiting keeps the time.
            Ok(_) | Err(_) => return None,
        }
        if left.is_some_and(|left| left.is_zero()) {
            return Some(Ending::TimedOut);
        }
        if disk.is_some_and(DiskWatch::is_over) {
            return Some(Ending::DiskLimit);
        }
    }
}
