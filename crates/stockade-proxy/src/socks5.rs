//! SOCKS5 (RFC 1928): `CONNECT` to a name or an address, without a password.
//!
//! No BIND and no UDP: the first would open a port on the host, the second would carry what no
//! rule can tell apart. The name goes through the same strict type as everywhere (a NUL byte in it
//! once led past such a filter).

use std::io;
use std::sync::Arc;

use stockade_policy::host::Host;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use self::wire::{Greeting, Reply, Request};
use crate::attribution::ClientAddress;
use crate::gate::{Gate, Refusal, Target};
use crate::ledger::{Ask, Protocol};
use crate::server::Permit;
use crate::tunnel::{self, Client};

/// The messages as bytes; no socket is touched here.
pub mod wire {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    /// The version of every message.
    pub const VERSION: u8 = 5;

    const NO_AUTHENTICATION: u8 = 0;
    const CONNECT: u8 = 1;
    const IPV4: u8 = 1;
    const NAME: u8 = 3;
    const IPV6: u8 = 4;

    /// What a client offers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Greeting {
        /// To go on without a password.
        Open,
        /// Only ways that nobody here knows.
        Other,
    }

    /// What a client asks for.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Request {
        /// A connection to an address.
        Address(IpAddr, u16),
        /// A connection to a name, as it was written.
        Name(Vec<u8>, u16),
        /// Something else than a connection.
        OtherCommand,
        /// A kind of address that nobody knows.
        OtherAddress,
    }

    /// What a client is told.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    #[non_exhaustive]
    pub enum Reply {
        /// The connection is made.
        Done = 0,
        /// The rules do not allow it.
        NotAllowed = 2,
        /// The host can't be reached.
        Unreachable = 4,
        /// The command is not known.
        CommandUnknown = 7,
        /// The kind of address is not known.
        AddressUnknown = 8,
    }

    /// A parsed message and the number of its bytes; none if it is not all there; an error if it
    /// is not of this protocol.
    pub type Parsed<T> = Result<Option<(T, usize)>, &'static str>;

    /// Reads the first message.
    ///
    /// # Errors
    /// If it is of another protocol.
    pub fn greeting(bytes: &[u8]) -> Parsed<Greeting> {
        let [version, rest @ ..] = bytes else {
            return Ok(None);
        };
        if *version != VERSION {
            return Err("the version is not 5");
        }
        let [count, methods @ ..] = rest else {
            return Ok(None);
        };
        let count = usize::from(*count);
        let Some(methods) = methods.get(..count) else {
            return Ok(None);
        };
        let greeting = if methods.contains(&NO_AUTHENTICATION) {
            Greeting::Open
        } else {
            Greeting::Other
        };
        Ok(Some((greeting, 2 + count)))
    }

    /// Reads the second message.
    ///
    /// # Errors
    /// If it is of another protocol.
    pub fn request(bytes: &[u8]) -> Parsed<Request> {
        let Some((head, rest)) = bytes.split_first_chunk::<4>() else {
            return match bytes.first() {
                Some(version) if *version != VERSION => Err("the version is not 5"),
                _ => Ok(None),
            };
        };
        let [version, command, reserved, kind] = *head;
        if version != VERSION || reserved != 0 {
            return Err("the request is not of version 5");
        }
        let length = match kind {
            IPV4 => 4,
            IPV6 => 16,
            NAME => match rest.first() {
                Some(length) => 1 + usize::from(*length),
                None => return Ok(None),
            },
            _ => return Ok(Some((Request::OtherAddress, head.len()))),
        };
        let Some((address, rest)) = rest.split_at_checked(length) else {
            return Ok(None);
        };
        let Some(port) = rest.first_chunk::<2>() else {
            return Ok(None);
        };
        let port = u16::from_be_bytes(*port);
        let used = head.len() + length + 2;
        if command != CONNECT {
            return Ok(Some((Request::OtherCommand, used)));
        }
        let request = match (kind, address) {
            (IPV4, &[a, b, c, d]) => Request::Address(Ipv4Addr::new(a, b, c, d).into(), port),
            (IPV6, address) => {
                let octets: [u8; 16] = address.try_into().map_err(|_| "no address")?;
                Request::Address(IpAddr::V6(Ipv6Addr::from(octets)), port)
            }
            (_, name) => Request::Name(name[1..].to_vec(), port),
        };
        Ok(Some((request, used)))
    }

    /// The answer to the first message.
    pub fn method(greeting: Greeting) -> [u8; 2] {
        match greeting {
            Greeting::Open => [VERSION, NO_AUTHENTICATION],
            Greeting::Other => [VERSION, 0xff],
        }
    }

    /// The answer to the second message. The address in it is of no use to anybody.
    pub fn reply(reply: Reply) -> [u8; 10] {
        [VERSION, reply as u8, 0, IPV4, 0, 0, 0, 0, 0, 0]
    }
}

/// Serves one client.
pub(crate) async fn serve(gate: Arc<Gate>, mut stream: TcpStream, permit: Permit) {
    let limit = gate.limits.head;
    let client = gate.attribution.address_of(&stream);
    let asked = match timeout(limit, negotiate(&mut stream)).await {
        Ok(Ok(asked)) => asked,
        Ok(Err(error)) => {
            refuse(&gate, client, &error.to_string());
            return;
        }
        Err(_) => {
            refuse(
                &gate,
                client,
                "the client did not finish its request in time",
            );
            return;
        }
    };
    let ask = Ask::new(Protocol::Socks5, "CONNECT").by(client);
    let (target, early) = match asked {
        (Request::Address(ip, port), early) => {
            let host = Host::parse(&ip.to_string());
            (host.map(|host| Target { host, port }), early)
        }
        (Request::Name(name, port), early) => {
            let text = String::from_utf8_lossy(&name).into_owned();
            match Target::parse(&text, port) {
                Ok(target) => (Ok(target), early),
                Err(error) => {
                    gate.refuse_text(ask, &text, port, error.to_string());
                    answer(&mut stream, Reply::NotAllowed).await;
                    return;
                }
            }
        }
        (Request::OtherCommand, _) => {
            refuse(&gate, client, "only CONNECT is served");
            answer(&mut stream, Reply::CommandUnknown).await;
            return;
        }
        (Request::OtherAddress, _) => {
            refuse(&gate, client, "the kind of address is not known");
            answer(&mut stream, Reply::AddressUnknown).await;
            return;
        }
    };
    let Ok(target) = target else { return };
    let Ok(opening) = gate.check(target, ask) else {
        answer(&mut stream, Reply::NotAllowed).await;
        return;
    };
    match gate.connect(&opening).await {
        Ok(server) => {
            if stream.write_all(&wire::reply(Reply::Done)).await.is_ok() {
                let client = Client::new(stream, early.into());
                tunnel::run(&gate, opening, client, server, permit).await;
            }
        }
        Err(Refusal::Denied(_)) => answer(&mut stream, Reply::NotAllowed).await,
        Err(Refusal::Unreachable(_)) => answer(&mut stream, Reply::Unreachable).await,
    }
}

/// Reads both messages; what came after them belongs to the host.
async fn negotiate(stream: &mut TcpStream) -> io::Result<(Request, Vec<u8>)> {
    let mut buffer = Vec::with_capacity(64);
    let greeting = read(stream, &mut buffer, wire::greeting).await?;
    stream.write_all(&wire::method(greeting)).await?;
    if greeting == Greeting::Other {
        return Err(io::Error::other(
            "the client offers no way without a password",
        ));
    }
    let request = read(stream, &mut buffer, wire::request).await?;
    Ok((request, buffer))
}

async fn read<T>(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    parse: fn(&[u8]) -> wire::Parsed<T>,
) -> io::Result<T> {
    loop {
        match parse(buffer) {
            Ok(Some((message, used))) => {
                buffer.drain(..used);
                return Ok(message);
            }
            Ok(None) => {}
            Err(reason) => return Err(io::Error::other(reason)),
        }
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

async fn answer(stream: &mut TcpStream, reply: Reply) {
    // A client that is gone needs no answer.
    let _ = stream.write_all(&wire::reply(reply)).await;
    let _ = stream.shutdown().await;
}

fn refuse(gate: &Gate, client: Option<ClientAddress>, reason: &str) {
    let ask = Ask::new(Protocol::Socks5, "-").by(client);
    gate.refuse_text(ask, "-", 0, format!("malformed request: {reason}"));
}

#[cfg(test)]
mod tests {
    use super::wire::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_addresses_are_read_as_they_are() {
        assert_eq!(greeting(&[5, 2, 0, 2, 9]), Ok(Some((Greeting::Open, 4))));
        assert_eq!(greeting(&[5, 1, 2]), Ok(Some((Greeting::Other, 3))));
        assert_eq!(greeting(&[5]), Ok(None));
        assert!(greeting(b"GET").is_err());
        let mut named = vec![5, 1, 0, 3, 8];
        named.extend(b"a.test\0x\x01\xbbrest");
        let expected = Request::Name(b"a.test\0x".to_vec(), 443);
        assert_eq!(request(&named), Ok(Some((expected, 15))));
        let v4 = [5, 1, 0, 1, 127, 0, 0, 1, 0, 80];
        let expected = Request::Address([127, 0, 0, 1].into(), 80);
        assert_eq!(request(&v4), Ok(Some((expected, 10))));
        assert_eq!(
            request(&[5, 3, 0, 1, 0, 0, 0, 0, 0, 0]),
            Ok(Some((Request::OtherCommand, 10)))
        );
        assert_eq!(request(&[5, 1, 0, 9]), Ok(Some((Request::OtherAddress, 4))));
        assert!(request(&[4, 1, 0, 1]).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_no_more_is_used_than_there_is(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            if let Ok(Some((_, used))) = greeting(&bytes) {
                prop_assert!(used <= bytes.len());
            }
            if let Ok(Some((_, used))) = request(&bytes) {
                prop_assert!(used <= bytes.len());
            }
        }
    }
}
