//! Changes that take more than one step. The supervisor waits for them before it exits: otherwise a
//! file that a program has just closed would not be put in place, or a private name would stay.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Changes in progress. A supervisor process has one mediator.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A file system that hangs must not keep the run from ending.
const TIMEOUT: Duration = Duration::from_secs(2);
const INTERVAL: Duration = Duration::from_millis(1);

/// A change that has begun, until it is dropped.
#[derive(Debug)]
pub(super) struct Unfinished(());

impl Unfinished {
    pub(super) fn begin() -> Self {
        COUNT.fetch_add(1, Ordering::AcqRel);
        Self(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Waits until the mediator has finished what it began. Every caller has ended by now.
pub(crate) fn await_unfinished() {
    let start = Instant::now();
    while COUNT.load(Ordering::Acquire) > 0 && start.elapsed() < TIMEOUT {
        std::thread::sleep(INTERVAL);
    }
}
