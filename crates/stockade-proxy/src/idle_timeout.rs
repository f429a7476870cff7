//! Waiting for a future that makes progress.

use std::future::Future;
use std::time::Duration;

/// Nothing moved for that long.
#[derive(Debug)]
pub(crate) struct Idle;

/// Waits for `future`, and gives up when `progress` has not changed for `limit`.
pub(crate) async fn idle_timeout<T>(
    future: impl Future<Output = T>,
    limit: Duration,
    progress: impl Fn() -> u64,
) -> Result<T, Idle> {
    tokio::pin!(future);
    let mut seen = progress();
    loop {
        match tokio::time::timeout(limit, &mut future).await {
            Ok(done) => return Ok(done),
            Err(_) if progress() == seen => return Err(Idle),
            Err(_) => seen = progress(),
        }
    }
}
