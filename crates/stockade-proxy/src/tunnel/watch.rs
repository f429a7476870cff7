//! The beginning of a stream that is neither TLS nor HTTP so far, watched while it passes.
//!
//! A client that sends a request in pieces, or waits until the server has spoken, must not get
//! around the comparison of names: what turns out to be a request or TLS is cut off before the
//! bytes that say so are passed on.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use crate::first_bytes::{FirstLine, is_tls};

const AT_ONCE: usize = 16 * 1024;
/// As many first bytes show TLS.
const TLS_BYTES: usize = 3;

/// What was seen of one direction.
#[derive(Debug, Default)]
pub(super) struct Watch(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    line: FirstLine,
    first: Vec<u8>,
    refused: Option<&'static str>,
}

impl Watch {
    /// Why the stream was cut off, if it was.
    pub(super) fn refused(&self) -> Option<&'static str> {
        self.seen().refused
    }

    /// Looks at the next bytes.
    ///
    /// # Errors
    /// If they must not be passed on.
    pub(super) fn read(&self, bytes: &[u8]) -> io::Result<()> {
        let mut seen = self.seen();
        let missing = TLS_BYTES.saturating_sub(seen.first.len());
        seen.first.extend(bytes.iter().take(missing));
        seen.line.read(bytes);
        if missing > 0 && is_tls(&seen.first) == Some(true) {
            seen.refused = Some("TLS begins where none was expected");
        } else if seen.line.is_request() == Some(true) {
            seen.refused = Some("an HTTP request came in pieces or after other bytes");
        }
        match seen.refused {
            Some(_) => Err(io::ErrorKind::PermissionDenied.into()),
            None => Ok(()),
        }
    }

    /// Passes bytes on until the first line has ended.
    pub(super) async fn pass(
        &self,
        from: &ReadHalf<'_>,
        to: &mut WriteHalf<'_>,
        count: impl Fn(u64),
    ) -> io::Result<()> {
        while self.is_open() {
            from.readable().await?;
            // Not before: a connection on which nothing moves needs no buffer.
            let mut buffer = vec![0; AT_ONCE];
            match from.try_read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(taken) => {
                    self.read(&buffer[..taken])?;
                    to.write_all(&buffer[..taken]).await?;
                    count(taken as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.seen().line.is_request().is_none()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
