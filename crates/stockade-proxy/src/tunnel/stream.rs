//! Streams that are no bare sockets, such as TLS that was opened: through a buffer.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

use super::{Terms, both_ways};
use crate::ledger::Session;
use crate::patience::while_moving;

const AT_ONCE: usize = 16 * 1024;

/// Moves bytes until both sides have ended, or nothing moves any more.
pub(crate) async fn carry(
    terms: &Terms,
    session: &Session,
    client: impl AsyncRead + AsyncWrite,
    server: impl AsyncRead + AsyncWrite,
) {
    let (from_client, to_client) = split(client);
    let (from_server, to_server) = split(server);
    let up = one_way(from_client, to_server, |bytes| session.sent(bytes));
    let down = one_way(from_server, to_client, |bytes| session.received(bytes));
    let moved = both_ways(up, down, &terms.ending);
    // However it ends, both sides are closed now, and the session says how much there was.
    let _ = while_moving(moved, terms.limits.idle, || session.progress()).await;
}

async fn one_way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: impl Fn(u64),
) -> io::Result<()> {
    let mut buffer = vec![0; AT_ONCE];
    loop {
        let taken = from.read(&mut buffer).await?;
        if taken == 0 {
            // The other side may be gone already; then there is nobody to tell.
            let _ = to.shutdown().await;
            return Ok(());
        }
        to.write_all(&buffer[..taken]).await?;
        to.flush().await?;
        count(taken as u64);
    }
}
