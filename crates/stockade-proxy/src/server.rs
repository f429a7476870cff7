//! Accepting clients: as many as the limit says, the next ones wait in the kernel's queue.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::gate::Gate;
use crate::http;
use crate::shutdown::ShutdownSignal;
use crate::socks5;
use crate::tunnel::Client;

/// One of the connections that may be open at one time; given back when the last copy is gone.
pub(crate) type Permit = Arc<OwnedSemaphorePermit>;

/// While there are no descriptors left, trying again at once would only burn time.
const PAUSE: Duration = Duration::from_millis(20);

/// Accepts until the end, and starts `serve` for each client.
pub(crate) async fn accept<F: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    places: Arc<Semaphore>,
    ending: ShutdownSignal,
    serve: impl Fn(TcpStream, Permit) -> F,
) {
    let accept_all = async {
        loop {
            let Ok(permit) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(serve(stream, Arc::new(permit)));
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    };
    tokio::select! {
        () = accept_all => return,
        () = ending.wait() => {}
    }
    // Who connected before the end may have said something. The event loop need not have heard of
    // them yet, so the kernel itself is asked.
    let Ok(listener) = listener.into_std() else {
        return;
    };
    while let Ok(permit) = Arc::clone(&places).try_acquire_owned()
        && let Ok((stream, _)) = listener.accept()
    {
        if stream.set_nonblocking(true).is_ok()
            && let Ok(stream) = TcpStream::from_std(stream)
        {
            tokio::spawn(serve(stream, Arc::new(permit)));
        }
    }
}

/// Serves a client that knows this is a proxy: HTTP, or SOCKS5 if it begins with a 5.
pub(crate) async fn serve(gate: Arc<Gate>, stream: TcpStream, permit: Permit) {
    let _ = stream.set_nodelay(true);
    let mut first = [0];
    let peeked = timeout(gate.limits.head, stream.peek(&mut first)).await;
    match peeked {
        Ok(Ok(1)) if first[0] == socks5::wire::VERSION => socks5::serve(gate, stream, permit).await,
        Ok(Ok(1)) => http::serve(gate, Client::new(stream, Bytes::new()), permit).await,
        // Gone, or never said anything.
        _ => {}
    }
}
