//! Sockets inside the sandbox's network that the launcher answers on.
//!
//! They are made while there is a capability in the new namespace, so that ports below 1024 can be
//! bound, and handed out before anything untrusted runs: a socket stays in the namespace it was
//! made in, whoever holds it. So the proxy needs no process inside, and nobody outside the sandbox
//! can reach it.
//!
//! With [`Network::answer_everywhere`] every address there is leads back to the sandbox itself
//! (`local default`, see `ip-route(8)`): a client that knows of no proxy connects to a socket of
//! the launcher, and its own address tells what the client meant. The rtnetlink(7) messages are
//! written by hand, since there are two kinds of them.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, sockopt,
};

use crate::control::Report;
use crate::plan::{Network, Socket, SocketKind};
use crate::stage::{At, Failure, Stage};

/// The supervisor's end of the line on which the launcher asks for sockets to connect with.
#[derive(Debug)]
pub(crate) struct Connector(OwnedFd);

/// Makes what the plan lists; the launcher gets it in the same order.
pub(crate) fn prepare(
    network: Option<&Network>,
    control: BorrowedFd<'_>,
) -> Result<Option<Connector>, Failure> {
    let Some(network) = network else {
        return Ok(None);
    };
    if network.answer_everywhere {
        routes(&network.addresses).at(Stage::Route)?;
    }
    let mut made = Vec::with_capacity(network.sockets.len() + 1);
    for socket in &network.sockets {
        let text = socket.address.to_string();
        let fd = make(socket).at_path(Stage::Listen, std::path::Path::new(&text))?;
        made.push(fd);
    }
    let connector = if network.connector {
        let flags = SocketFlags::CLOEXEC;
        let (outer, inner) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)
                .at(Stage::Listen)?;
        made.push(outer);
        Some(Connector(inner))
    } else {
        None
    };
    Report::Sockets(made).send(control).at(Stage::Listen)?;
    Ok(connector)
}

impl Connector {
    /// Makes one socket for the launcher, if it asks for one; false when it never will again.
    pub(crate) fn serve(&self) -> io::Result<bool> {
        let mut family = [0; 1];
        let (length, _) = rustix::net::recv(&self.0, &mut family, RecvFlags::DONTWAIT)?;
        if length == 0 {
            return Ok(false);
        }
        let family = if family[0] == b'6' {
            AddressFamily::INET6
        } else {
            AddressFamily::INET
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let made = rustix::net::socket_with(family, SocketType::STREAM, flags, None);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds;
        if let Ok(made) = &made {
            fds = [made.as_fd()];
            ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        }
        let byte = io::IoSlice::new(b"s");
        rustix::net::sendmsg(&self.0, &[byte], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(true)
    }
}

impl AsFd for Connector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(crate) fn make(socket: &Socket) -> rustix::io::Result<OwnedFd> {
    match make_at(socket.kind, socket.address) {
        // A kernel without IPv6: what was to take both takes the one there is.
        Err(Errno::AFNOSUPPORT) if socket.address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
            let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), socket.address.port());
            make_at(socket.kind, any)
        }
        other => other,
    }
}

fn make_at(kind: SocketKind, address: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let kind_of_socket = match kind {
        SocketKind::Datagram => SocketType::DGRAM,
        SocketKind::Stream => SocketType::STREAM,
    };
    let socket = rustix::net::socket_with(family, kind_of_socket, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    match address.ip() {
        // Any IPv4 address as well.
        IpAddr::V6(ip) if ip.is_unspecified() => sockopt::set_ipv6_v6only(&socket, false)?,
        // No interface has the address; the route alone makes it ours.
        IpAddr::V6(_) => {
            sockopt::set_ipv6_v6only(&socket, true)?;
            sockopt::set_ipv6_freebind(&socket, true)?;
        }
        IpAddr::V4(_) => sockopt::set_ip_freebind(&socket, true)?,
    }
    rustix::net::bind(&socket, &address)?;
    if kind == SocketKind::Stream {
        rustix::net::listen(&socket, BACKLOG)?;
    }
    Ok(socket)
}

/// The kernel's own limit (`net.core.somaxconn`) is lower or equal.
const BACKLOG: i32 = 4096;

/// Gives the loopback these addresses, and makes every other one local too: `ip address add … dev
/// lo` and `ip route add local default dev lo`, for both families.
///
/// Without an address of its own beside 127.0.0.1 the C library believes that there is no network
/// and refuses to look up addresses of the family (`AI_ADDRCONFIG` in getaddrinfo(3)).
fn routes(addresses: &[IpAddr]) -> io::Result<()> {
    let socket = add_addresses(addresses)?;
    request(socket.as_fd(), &route_message(AddressFamily::INET), false)?;
    request(socket.as_fd(), &route_message(AddressFamily::INET6), true)?;
    Ok(())
}

/// Gives the loopback these addresses. Returns the socket on which the kernel was asked.
pub(crate) fn add_addresses(addresses: &[IpAddr]) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    // Protocol 0 is NETLINK_ROUTE.
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    for address in addresses {
        request(
            socket.as_fd(),
            &address_message(*address),
            address.is_ipv6(),
        )?;
    }
    Ok(socket)
}

fn request(socket: BorrowedFd<'_>, message: &[u8], is_ipv6: bool) -> rustix::io::Result<()> {
    rustix::net::send(socket, message, SendFlags::empty())?;
    let mut answer = [0; 128];
    let (length, _) = rustix::net::recv(socket, &mut answer, RecvFlags::empty())?;
    // An acknowledgement is an error message with the number 0, behind a header of 16 bytes.
    let number = answer[..length.min(answer.len())]
        .get(16..20)
        .and_then(|bytes| bytes.try_into().ok())
        .map(i32::from_ne_bytes);
    let error = match number {
        Some(0) => return Ok(()),
        Some(negative @ -4095..0) => Errno::from_raw_os_error(-negative),
        _ => Errno::PROTO,
    };
    match error {
        // A kernel without IPv6 has nothing to be routed.
        Errno::OPNOTSUPP | Errno::AFNOSUPPORT | Errno::ACCESS if is_ipv6 => Ok(()),
        error => Err(error),
    }
}

/// The loopback is the first interface of every namespace.
const LOOPBACK: u32 = 1;
const REQUEST_ACK_CREATE: u16 = 0x1 | 0x4 | 0x400;

/// `RTM_NEWROUTE`: header, `rtmsg`, one attribute.
fn route_message(family: AddressFamily) -> Vec<u8> {
    const NEW_ROUTE: u16 = 24;
    const TABLE_LOCAL: u8 = 255;
    const BY_BOOT: u8 = 3;
    const SCOPE_HOST: u8 = 254;
    const TYPE_LOCAL: u8 = 2;
    const OUTPUT_INTERFACE: u16 = 4;
    let family = u8::try_from(family.as_raw()).unwrap_or(0);
    // Family, length of destination and source (0: every address), type of service.
    let mut body = vec![family, 0, 0, 0];
    body.extend([TABLE_LOCAL, BY_BOOT, SCOPE_HOST, TYPE_LOCAL]);
    body.extend([0; 4]);
    attribute(&mut body, OUTPUT_INTERFACE, &LOOPBACK.to_ne_bytes());
    message(NEW_ROUTE, &body)
}

/// `RTM_NEWADDR`: header, `ifaddrmsg`, the address.
fn address_message(address: IpAddr) -> Vec<u8> {
    const NEW_ADDRESS: u16 = 20;
    const ADDRESS: u16 = 1;
    const LOCAL: u16 = 2;
    let (family, length, octets) = match address {
        IpAddr::V4(ip) => (AddressFamily::INET, 32, ip.octets().to_vec()),
        IpAddr::V6(ip) => (AddressFamily::INET6, 128, ip.octets().to_vec()),
    };
    let family = u8::try_from(family.as_raw()).unwrap_or(0);
    // Family, length of the prefix, flags, scope (0: everywhere).
    let mut body = vec![family, length, 0, 0];
    body.extend(LOOPBACK.to_ne_bytes());
    attribute(&mut body, LOCAL, &octets);
    attribute(&mut body, ADDRESS, &octets);
    message(NEW_ADDRESS, &body)
}

/// Lengths of attributes here are multiples of four, so nothing needs padding.
fn attribute(body: &mut Vec<u8>, kind: u16, content: &[u8]) {
    let length = u16::try_from(4 + content.len()).unwrap_or(0);
    body.extend(length.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(content);
}

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + body.len()).unwrap_or(0);
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(REQUEST_ACK_CREATE.to_ne_bytes());
    // Sequence number and port.
    message.extend([0; 8]);
    message.extend(body);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_lengths_they_state() {
        let route = route_message(AddressFamily::INET6);
        let four = address_message(Ipv4Addr::LOCALHOST.into());
        let six = address_message(Ipv6Addr::LOCALHOST.into());
        for (message, length, family) in [(route, 36u32, 10), (four, 40, 2), (six, 64, 10)] {
            assert_eq!(message.len(), usize::try_from(length).unwrap());
            assert_eq!(message[..4], length.to_ne_bytes());
            assert_eq!(message[16], family);
        }
    }
}
