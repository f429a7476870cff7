//! The last words of a sandbox: a command that sends something and exits has sent it.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::Work;

/// A host that takes a little now and then must not hold up the end of the run.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that stays open and moves nothing for that long has nothing to pass on: its client
/// asked for something and was ended before the answer came, or its host takes nothing more.
const QUIET: Duration = Duration::from_secs(1);

/// Waits until what was sent from inside is with the hosts that it was for.
pub(super) async fn passed_on(work: &Work, accepting: Vec<JoinHandle<()>>) {
    for task in accepting {
        // Accept connections that are already queued; a task that panicked accepts none.
        let _ = task.await;
    }
    let until = Instant::now() + DRAIN_TIMEOUT;
    let all = u32::try_from(work.gate.limits.connections).unwrap_or(u32::MAX);
    let mut moved = work.gate.ledger.bytes();
    while Instant::now() < until {
        if timeout(QUIET, work.places.acquire_many(all)).await.is_ok() {
            return;
        }
        let now = work.gate.ledger.bytes();
        if now == moved {
            return;
        }
        moved = now;
    }
}
