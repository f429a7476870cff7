//! Which command of a session a client belongs to. The proxy sees addresses; whoever keeps the
//! session knows which command connected from them.

use std::fmt;
use std::net::SocketAddr;
use std::sync::OnceLock;

use tokio::net::TcpStream;

/// A client, by its addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClientAddress {
    /// The source of a datagram.
    Datagram(SocketAddr),
    /// A connection, from the client's side.
    Stream {
        local: SocketAddr,
        remote: SocketAddr,
    },
}

/// What is asked for the command of a client.
type Lookup = Box<dyn Fn(ClientAddress) -> Option<u64> + Send + Sync>;

/// Finds the commands of clients, once there is a session.
#[derive(Default)]
pub(crate) struct Attribution(OnceLock<Lookup>);

impl Attribution {
    #[cfg(target_os = "linux")]
    pub(crate) fn set(&self, lookup: Lookup) {
        // A session is opened once.
        let _ = self.0.set(lookup);
    }

    /// The addresses of a client, if anybody can tell its command by them.
    pub(crate) fn address_of(&self, stream: &TcpStream) -> Option<ClientAddress> {
        self.0.get()?;
        Some(ClientAddress::Stream {
            local: stream.peer_addr().ok()?,
            remote: stream.local_addr().ok()?,
        })
    }

    pub(crate) fn command_of(&self, client: Option<ClientAddress>) -> Option<u64> {
        self.0.get()?(client?)
    }
}

impl fmt::Debug for Attribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attribution").finish_non_exhaustive()
    }
}
