//! Which command of a session a socket of the sandbox's network belongs to.
//!
//! The mediator performs `connect(2)` and `bind(2)` for the commands and notes who asked. Whoever
//! answers in that network knows a client by the addresses of its connection and asks here for the
//! command. A socket that sends without either call has no known owner.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::net::SocketType;

/// A client's socket, as whoever answers it sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "nothing else is answered")]
pub enum ClientSocket {
    /// The source of datagrams.
    Datagram {
        /// The client's address.
        local: SocketAddr,
    },
    /// A connection.
    Stream {
        /// The client's address.
        local: SocketAddr,
        /// The address that the client connected to.
        remote: SocketAddr,
    },
}

/// The number of a command in its session; the first one is 1.
pub type CommandId = u64;

/// The sockets that commands connected or bound, newest last.
#[derive(Debug, Default)]
pub(crate) struct SocketOwners(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Whoever answers may see a connection before the mediator knows its address.
    connecting: Vec<Connecting>,
    known: VecDeque<(ClientSocket, CommandId)>,
}

#[derive(Debug)]
struct Connecting {
    socket: Arc<OwnedFd>,
    remote: SocketAddr,
    owner: CommandId,
}

/// After so many newer sockets, nothing is known about a socket any more.
const MAX_KNOWN: usize = 4096;

impl SocketOwners {
    /// Connects a socket, and notes that it is this command's.
    pub(crate) fn connect(
        &self,
        owner: CommandId,
        socket: &Arc<OwnedFd>,
        remote: SocketAddr,
        connect: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        self.state().connecting.push(Connecting {
            socket: Arc::clone(socket),
            remote,
            owner,
        });
        let result = connect();
        let mut state = self.state();
        if matches!(result, Ok(()) | Err(Errno::INPROGRESS)) {
            state.note(owner, client_socket(socket, remote));
        }
        state
            .connecting
            .retain(|one| !Arc::ptr_eq(&one.socket, socket));
        result
    }

    /// Notes that a socket, which was bound, is this command's.
    pub(crate) fn note_bound(&self, owner: CommandId, socket: &OwnedFd) {
        let local = local_address(socket);
        let datagram = local.map(|local| ClientSocket::Datagram { local });
        self.state().note(owner, datagram);
    }

    pub(crate) fn owner(&self, client: ClientSocket) -> Option<CommandId> {
        let state = self.state();
        let mut connecting = state.connecting.iter();
        let connecting = connecting.find(|one| {
            client_socket(&one.socket, one.remote).is_some_and(|found| found == client)
        });
        let mut known = state.known.iter().rev();
        connecting.map(|one| one.owner).or_else(|| {
            let (_, owner) = known.find(|(one, _)| sends_as(*one, client))?;
            Some(*owner)
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note(&mut self, owner: CommandId, client: Option<ClientSocket>) {
        let Some(client) = client else { return };
        if self.known.len() == MAX_KNOWN {
            self.known.pop_front();
        }
        self.known.push_back((client, owner));
    }
}

/// Whether a noted socket can be the one that is seen: what was bound to no address in particular
/// sends from any.
fn sends_as(noted: ClientSocket, seen: ClientSocket) -> bool {
    match (noted, seen) {
        (ClientSocket::Datagram { local: noted }, ClientSocket::Datagram { local: seen }) => {
            noted.port() == seen.port() && (noted.ip() == seen.ip() || noted.ip().is_unspecified())
        }
        (noted, seen) => noted == seen,
    }
}

fn client_socket(socket: &OwnedFd, remote: SocketAddr) -> Option<ClientSocket> {
    let local = local_address(socket)?;
    match rustix::net::sockopt::socket_type(socket).ok()? {
        SocketType::STREAM => Some(ClientSocket::Stream { local, remote }),
        _ => Some(ClientSocket::Datagram { local }),
    }
}

fn local_address(socket: &OwnedFd) -> Option<SocketAddr> {
    let address = rustix::net::getsockname(socket).ok()?;
    SocketAddr::try_from(address).ok().map(canonical)
}

/// IPv4 inside IPv6 as IPv4, and nothing but address and port.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

impl ClientSocket {
    /// The same with addresses as they are noted.
    fn canonical(self) -> Self {
        match self {
            Self::Datagram { local } => Self::Datagram {
                local: canonical(local),
            },
            Self::Stream { local, remote } => Self::Stream {
                local: canonical(local),
                remote: canonical(remote),
            },
        }
    }

    /// One address, or two for a connection: 16 bytes and the port each.
    pub(crate) fn encode(self) -> Vec<u8> {
        let addresses = match self.canonical() {
            Self::Datagram { local } => vec![local],
            Self::Stream { local, remote } => vec![local, remote],
        };
        let encoded = addresses.iter().flat_map(|address| {
            let ip = match address.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            [&ip.octets()[..], &address.port().to_ne_bytes()].concat()
        });
        encoded.collect()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let address = |bytes: &[u8]| {
            let (ip, port) = bytes.split_first_chunk::<16>()?;
            let port = u16::from_ne_bytes(port.try_into().ok()?);
            let ip = IpAddr::V6(Ipv6Addr::from(*ip)).to_canonical();
            Some(SocketAddr::new(ip, port))
        };
        let (local, remote) = bytes.split_at_checked(ADDRESS_BYTES)?;
        let local = address(local)?;
        if remote.is_empty() {
            return Some(Self::Datagram { local });
        }
        Some(Self::Stream {
            local,
            remote: address(remote)?,
        })
    }
}

const ADDRESS_BYTES: usize = 18;

/// Larger than any encoded socket.
pub(crate) const MAX_ENCODED_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(local: &str, remote: &str) -> ClientSocket {
        ClientSocket::Stream {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
        }
    }

    fn datagram(local: &str) -> ClientSocket {
        ClientSocket::Datagram {
            local: local.parse().unwrap(),
        }
    }

    #[test]
    fn a_socket_survives_the_journey() {
        for socket in [
            stream("198.18.0.1:4000", "198.18.0.1:3128"),
            stream("[fd00::1]:4000", "[fd00::2]:443"),
            datagram("127.0.0.1:53"),
        ] {
            let bytes = socket.encode();
            assert_eq!(ClientSocket::decode(&bytes), Some(socket));
            assert_eq!(ClientSocket::decode(&bytes[1..]), None);
        }
        let mapped = datagram("[::ffff:127.0.0.1]:53").encode();
        assert_eq!(
            ClientSocket::decode(&mapped),
            Some(datagram("127.0.0.1:53"))
        );
    }

    #[test]
    fn the_newest_socket_with_an_address_counts() {
        let owners = SocketOwners::default();
        let note = |owner, socket| owners.state().note(owner, Some(socket));
        note(1, stream("198.18.0.1:4000", "198.18.0.1:3128"));
        note(2, stream("198.18.0.1:4000", "198.18.0.9:443"));
        note(3, datagram("0.0.0.0:5000"));
        let of = |socket| owners.owner(socket);
        assert_eq!(of(stream("198.18.0.1:4000", "198.18.0.1:3128")), Some(1));
        assert_eq!(of(stream("198.18.0.1:4000", "198.18.0.9:443")), Some(2));
        assert_eq!(of(stream("198.18.0.1:4001", "198.18.0.9:443")), None);
        assert_eq!(of(datagram("198.18.0.1:5000")), Some(3));
        note(4, datagram("198.18.0.1:5000"));
        assert_eq!(of(datagram("198.18.0.1:5000")), Some(4));
        assert_eq!(of(datagram("198.18.0.1:4000")), None);
        for _ in 0..MAX_KNOWN {
            note(5, datagram("198.18.0.1:1"));
        }
        assert_eq!(of(datagram("198.18.0.1:5000")), None);
    }

    #[test]
    fn a_connection_has_its_owner_before_the_call_returns() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let remote = listener.local_addr().unwrap();
        let socket =
            rustix::net::socket(rustix::net::AddressFamily::INET, SocketType::STREAM, None);
        let socket = Arc::new(socket.unwrap());
        let owners = SocketOwners::default();
        let seen = |listener: &std::net::TcpListener| {
            let (_, local) = listener.accept().unwrap();
            ClientSocket::Stream { local, remote }
        };
        let mut client = None;
        let connected = owners.connect(7, &socket, remote, || {
            rustix::net::connect(&socket, &remote)?;
            let found = seen(&listener);
            assert_eq!(owners.owner(found), Some(7));
            client = Some(found);
            Ok(())
        });
        assert_eq!(connected, Ok(()));
        assert_eq!(owners.owner(client.unwrap()), Some(7));
        assert!(owners.state().connecting.is_empty());
    }
}
