//! Dialling addresses that were checked.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::error::Unreachable;

/// A connection to the host that was asked for.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) stream: TcpStream,
    /// What it said before anybody listened.
    pub(crate) early: Bytes,
}

impl Server {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            early: Bytes::new(),
        }
    }
}

/// Connects to the first address that answers; all of them together get `limit`.
pub(crate) async fn first(
    addresses: &[SocketAddr],
    limit: Duration,
) -> Result<TcpStream, Unreachable> {
    let mut last = None;
    let share = limit / u32::try_from(addresses.len().clamp(1, 4)).unwrap_or(1);
    for address in addresses {
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Small pieces, such as keystrokes, must not wait for more.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(source)) => {
                last = Some(Unreachable::Connect {
                    to: address.to_string(),
                    source,
                });
            }
            Err(_) => {
                last.get_or_insert(Unreachable::ConnectTimeout {
                    to: address.to_string(),
                    after: share,
                });
            }
        }
    }
    Err(last.unwrap_or_else(|| Unreachable::NoAddress("the host".to_owned())))
}
