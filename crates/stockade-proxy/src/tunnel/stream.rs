//! Streams that are no bare sockets, such as TLS that was opened: through a buffer.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

use tokio::time::timeout;

use super::{Terms, both_ways};
use crate::http::Scrubber;
use crate::idle_timeout::idle_timeout;
use crate::ledger::Session;

const AT_ONCE: usize = 16 * 1024;

/// How long bytes that could begin a masked value wait for those behind them. A protocol in which
/// the other side answers now would hang if they waited for ever.
const HOLD_TIMEOUT: Duration = Duration::from_millis(50);

/// Moves bytes until both sides have ended, or nothing moves any more. What the server says goes
/// through `scrubber`, if there is one.
pub(crate) async fn carry(
    terms: &Terms,
    session: &Session,
    client: impl AsyncRead + AsyncWrite,
    server: impl AsyncRead + AsyncWrite,
    scrubber: Option<Scrubber>,
) {
    let (from_client, to_client) = split(client);
    let (from_server, to_server) = split(server);
    let up = one_way(from_client, to_server, None, |bytes| session.sent(bytes));
    let received = |bytes| session.received(bytes);
    let down = one_way(from_server, to_client, scrubber, received);
    let moved = both_ways(up, down, &terms.ending);
    // However it ends, both sides are closed now, and the session says how much there was.
    let _ = idle_timeout(moved, terms.limits.idle, || session.progress()).await;
}

async fn one_way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut scrubber: Option<Scrubber>,
    count: impl Fn(u64),
) -> io::Result<()> {
    let mut buffer = vec![0; AT_ONCE];
    loop {
        let holds = scrubber
            .as_ref()
            .is_some_and(|scrubber| scrubber.held() > 0);
        let read = from.read(&mut buffer);
        let taken = if holds {
            // Nothing more for a while; a read that is given up has taken nothing.
            timeout(HOLD_TIMEOUT, read).await.ok().transpose()?
        } else {
            Some(read.await?)
        };
        match (&mut scrubber, taken) {
            (None, Some(taken)) => to.write_all(&buffer[..taken]).await?,
            (Some(scrubber), Some(taken @ 1..)) => {
                to.write_all(&scrubber.pass(&buffer[..taken])).await?;
            }
            (Some(scrubber), Some(0) | None) => to.write_all(&scrubber.rest()).await?,
            (None, None) => {}
        }
        if taken == Some(0) {
            // The other side may be gone already; then there is nobody to tell.
            let _ = to.shutdown().await;
            return Ok(());
        }
        to.flush().await?;
        count(taken.unwrap_or_default() as u64);
    }
}
