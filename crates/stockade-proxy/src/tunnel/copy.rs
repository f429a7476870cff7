//! Elsewhere than on Linux: through a buffer.

use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

const AT_ONCE: usize = 64 * 1024;

/// Until `from` has ended; then `to` is told so.
pub(crate) async fn one_way(
    from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    count: impl Fn(u64),
) -> io::Result<()> {
    let mut buffer = vec![0; AT_ONCE];
    loop {
        from.readable().await?;
        match from.try_read(&mut buffer) {
            Ok(0) => {
                // The other side may be gone already; then there is nobody to tell.
                let _ = to.shutdown().await;
                return Ok(());
            }
            Ok(taken) => {
                to.write_all(&buffer[..taken]).await?;
                count(taken as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Only Linux is known to gain by it.
pub(crate) fn keep_short(_: &TcpStream) {}
