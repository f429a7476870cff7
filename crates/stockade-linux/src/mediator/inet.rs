//! Connections to the internet, where a proxy of the launcher answers on every address.
//!
//! Without this, a client that dials an address nobody allowed would be connected to the proxy and
//! cut off at once; with it, its `connect(2)` fails, as it would with a firewall, and there is a
//! record of what it wanted. Nothing depends on it for safety: there is no way out but the proxy.
//! Where there is no network at all the kernel refuses, and here is only the record.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::SocketType;

use super::caller::Caller;
use super::sockets::connect;
use super::{Mediator, Worker};
use crate::commands::Commands;
use crate::plan::Inet;
use crate::socket_owners::CommandId;

impl Mediator<'_> {
    /// Records who tried to leave a network that leads nowhere. Its error is the kernel's own.
    pub(super) fn note_unreachable(&self, caller: &Caller, address: &[u8]) {
        if self.plan.cut_off
            && let Some(place) = inet_address(address)
        {
            self.deny_reach(caller, place, Errno::NETUNREACH);
        }
    }

    /// Records that a host was not reached and gives the error for it.
    pub(super) fn deny_reach(&self, caller: &Caller, place: SocketAddr, errno: Errno) -> Errno {
        let proc = self.proc.as_fd();
        self.records().deny_reach(caller, proc, place, errno)
    }

    /// Connects a socket for a caller. In a session it notes for which command.
    pub(super) fn connect_noted(
        &self,
        caller: &Caller,
        socket: &Arc<OwnedFd>,
        address: &[u8],
    ) -> Result<(), Errno> {
        let owner = self.owner_to_note(caller, socket.as_fd(), address);
        let Some((commands, id, place)) = owner else {
            return connect(socket, address);
        };
        let act = || connect(socket, address);
        commands.owners.connect(id, socket, place, act)
    }

    /// Notes for which command of a session a source of datagrams was bound.
    pub(super) fn note_bound(&self, caller: &Caller, socket: &OwnedFd, address: &[u8]) {
        let is_stream = |kind| kind == SocketType::STREAM;
        if rustix::net::sockopt::socket_type(socket).is_ok_and(is_stream) {
            return;
        }
        if let Some((commands, id, _)) = self.owner_to_note(caller, socket.as_fd(), address) {
            commands.owners.note_bound(id, socket);
        }
    }

    /// The command of a session that a caller belongs to, and the address, if somebody outside the
    /// sandbox may answer the socket.
    fn owner_to_note(
        &self,
        caller: &Caller,
        socket: BorrowedFd<'_>,
        address: &[u8],
    ) -> Option<(&Commands, CommandId, SocketAddr)> {
        let commands = self.commands.as_deref()?;
        let place = inet_address(address)?;
        // Resolvers are looked for on the loopback, too; nothing else there is the launcher's.
        let is_inside = place.ip().is_loopback()
            && rustix::net::sockopt::socket_type(socket).ok()? == SocketType::STREAM;
        if is_inside {
            return None;
        }
        let command = commands.of_process(caller.thread, self.proc.as_fd())?;
        Some((commands, command.id, place))
    }
}

impl Worker<'_, '_> {
    /// The address that a refusal would be about; an error if it is refused now.
    pub(super) fn judge_inet(
        &self,
        caller: &Caller,
        socket: BorrowedFd<'_>,
        address: &[u8],
    ) -> Result<Option<SocketAddr>, Errno> {
        let Some(inet) = &self.shared.plan.inet else {
            return Ok(None);
        };
        // Datagrams lead nowhere; resolvers connect such sockets to see which address they get.
        if rustix::net::sockopt::socket_type(socket)? != SocketType::STREAM {
            return Ok(None);
        }
        let Some(place) = inet_address(address) else {
            return Ok(None);
        };
        if place.ip().is_loopback() || place.ip().is_unspecified() {
            return Ok(None);
        }
        if inet.ports.contains(&place.port()) && !contains(inet, place.ip()) {
            return Err(self.shared.deny_reach(caller, place, Errno::CONNREFUSED));
        }
        Ok(Some(place))
    }
}

/// Whether an address is one on which the proxy has something to offer.
fn contains(inet: &Inet, ip: IpAddr) -> bool {
    inet.networks
        .iter()
        .any(|(network, length)| match (network, ip) {
            (IpAddr::V4(network), IpAddr::V4(ip)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(*length)).unwrap_or(0);
                network.to_bits() & mask == ip.to_bits() & mask
            }
            (IpAddr::V6(network), IpAddr::V6(ip)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(*length)).unwrap_or(0);
                network.to_bits() & mask == ip.to_bits() & mask
            }
            _ => false,
        })
}

/// The address in a `sockaddr_in` or `sockaddr_in6`; IPv4 inside IPv6 as IPv4.
fn inet_address(bytes: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let port = u16::from_be_bytes(*port);
    match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => {
            let ip = Ipv4Addr::from(*rest.first_chunk::<4>()?);
            Some(SocketAddr::new(ip.into(), port))
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = rest.get(4..20)?.try_into().ok()?;
            let ip = Ipv6Addr::from(octets);
            let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4);
            Some(SocketAddr::new(ip, port))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_kernel_reads_them() {
        let family = |number| u16::try_from(number).unwrap().to_ne_bytes().to_vec();
        let mut v4 = family(libc::AF_INET);
        v4.extend([0, 80, 203, 0, 113, 9, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(inet_address(&v4), "203.0.113.9:80".parse().ok());
        let mut v6 = family(libc::AF_INET6);
        v6.extend([1, 187, 0, 0, 0, 0]);
        v6.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        v6.extend([0; 4]);
        assert_eq!(inet_address(&v6), "[2001:db8::1]:443".parse().ok());
        assert_eq!(inet_address(&v6[..20]), None);
        assert_eq!(inet_address(&[0; 16]), None);
    }

    #[test]
    fn networks_contain_their_addresses() {
        let inet = Inet {
            ports: vec![80],
            networks: vec![
                ("198.18.0.0".parse().unwrap(), 15),
                ("fd00::".parse().unwrap(), 64),
                ("10.0.0.0".parse().unwrap(), 32),
            ],
        };
        for (ip, expected) in [
            ("198.19.255.255", true),
            ("198.20.0.0", false),
            ("10.0.0.0", true),
            ("10.0.0.1", false),
            ("fd00::1:2", true),
            ("fd00:0:0:1::", false),
        ] {
            assert_eq!(contains(&inet, ip.parse().unwrap()), expected, "{ip}");
        }
        let all = Inet {
            ports: vec![],
            networks: vec![("0.0.0.0".parse().unwrap(), 0)],
        };
        assert!(contains(&all, "8.8.8.8".parse().unwrap()));
    }
}
