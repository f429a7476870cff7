//! A sandbox's network as seen from outside: the sockets in it and who answers on them.
//!
//! The engine makes the sockets inside and hands them to a [`NetworkService`]; nothing of the
//! command runs before the service has taken them, and without a service a policy that needs one
//! is refused. `stockade-proxy` has the service that filters by name.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use serde::Serialize;
pub use stockade_linux::{ClientSocket, CommandId, OwnerLookup};
use stockade_policy::host::NetworkRules;
use stockade_policy::profile::Masked;

/// The addresses that stand for names inside a sandbox, numbered; the first two are the network's
/// own and the proxy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Addresses {
    v4: Ipv4Addr,
    /// The length of the prefix.
    bits: u8,
    v6: Option<Ipv6Addr>,
}

impl Addresses {
    /// For a network in which every address leads back into the sandbox. Nobody on the internet
    /// has these: RFC 2544 sets the first aside for measurements, the prefix of 64 bits is one
    /// of those that everybody may pick (RFC 4193).
    pub const ROUTED: Self = Self {
        v4: Ipv4Addr::new(198, 18, 0, 0),
        bits: 15,
        v6: Some(Ipv6Addr::new(0xfd53, 0x746f, 0x636b, 0x6164, 0, 0, 0, 0)),
    };
    /// For a network that has nothing but a loopback, and where nobody may make routes: all of
    /// 127.0.0.0/8 is there by itself (RFC 1122, 3.2.1.3). IPv6 has a single such address.
    pub const LOOPBACK: Self = Self {
        v4: Ipv4Addr::new(127, 64, 0, 0),
        bits: 10,
        v6: None,
    };

    /// Where the proxy listens, for clients that know of it.
    pub fn proxy(&self) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::from_bits(self.v4.to_bits() + 1).into(), 3128)
    }

    /// Those that the sandbox has for itself.
    pub fn own(&self) -> Vec<IpAddr> {
        let v6 = self.v6.map(|v6| Ipv6Addr::from_bits(v6.to_bits() + 1));
        let own = [Some(self.proxy().ip()), v6.map(IpAddr::V6)];
        own.into_iter().flatten().collect()
    }

    /// The addresses with this number; none if there are not so many.
    pub fn numbered(&self, number: u32) -> Option<(Ipv4Addr, Option<Ipv6Addr>)> {
        (number < self.count()).then(|| {
            let v6 = self.v6.map(|v6| v6.to_bits() + u128::from(number));
            let v4 = self.v4.to_bits() + number;
            (Ipv4Addr::from_bits(v4), v6.map(Ipv6Addr::from_bits))
        })
    }

    /// The number of an address; none if it is not one of these.
    pub fn number_of(&self, address: IpAddr) -> Option<u32> {
        let number = match address {
            IpAddr::V4(ip) => ip.to_bits().checked_sub(self.v4.to_bits())?,
            IpAddr::V6(ip) => u32::try_from(ip.to_bits().checked_sub(self.v6?.to_bits())?).ok()?,
        };
        (number < self.count()).then_some(number)
    }

    /// As networks with the lengths of their prefixes.
    pub fn networks(&self) -> impl Iterator<Item = (IpAddr, u8)> {
        let v6 = self.v6.map(|v6| (v6.into(), 64));
        [Some((self.v4.into(), self.bits)), v6]
            .into_iter()
            .flatten()
    }

    fn count(&self) -> u32 {
        1 << (32 - self.bits)
    }
}

/// Where programs inside find the certificates that they are to trust, where TLS is opened.
pub const TRUST_FILE: &str = "/dev/stockade/ca-certificates.crt";

/// What is to be answered in one sandbox's network, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NetworkOrder {
    /// Who may be reached.
    pub rules: NetworkRules,
    /// Which addresses stand for names.
    pub addresses: Addresses,
    /// What each socket is for, in the order in which they are handed over.
    pub roles: Vec<SocketRole>,
    /// Ports inside that the host's loopback leads to.
    pub expose: Vec<u16>,
    /// Variables that hold a placeholder inside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub masks: Vec<Masked>,
}

impl NetworkOrder {
    /// Whether TLS to any host has to be opened: methods and headers can't be read otherwise.
    pub fn opens_tls(&self) -> bool {
        self.rules.methods.is_limited() || !self.masks.is_empty()
    }
}

/// What a socket in the sandbox's network is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SocketRole {
    /// A line on which sockets to connect with can be asked for: one byte, `4` or `6`, gets one.
    Connector,
    /// Leads to this port of the host's loopback.
    HostPort(u16),
    /// Connections of clients that know of no proxy, to any address on this port.
    Port(u16),
    /// Clients that know this is a proxy.
    Proxy,
    /// Questions about names, in datagrams.
    Resolver,
    /// The same, over connections.
    ResolverStream,
}

/// Answers in the networks of sandboxes.
pub trait NetworkService: Debug + Send + Sync {
    /// Gets ready for one sandbox, before it is built.
    ///
    /// # Errors
    /// If it can't; then the command does not run.
    fn prepare(&self, order: &NetworkOrder) -> io::Result<Box<dyn NetworkSession>>;
}

/// What is to answer in one sandbox's network.
pub trait NetworkSession: Debug + Send {
    /// The certificates that programs inside are to trust, in PEM; needed where
    /// [`NetworkOrder::opens_tls`] says so.
    fn trust(&self) -> Option<&str>;

    /// Begins to answer; the command runs after this has returned.
    ///
    /// # Errors
    /// If it can't; then the command does not run.
    fn serve(
        self: Box<Self>,
        order: &NetworkOrder,
        sockets: Vec<OwnedFd>,
    ) -> io::Result<Box<dyn NetworkGuard>>;
}

/// An order that is being carried out; dropping it ends that.
pub trait NetworkGuard: Debug + Send {
    /// Ends it and tells what there was.
    fn finish(self: Box<Self>) -> Vec<NetworkRecord>;

    /// The name that an address inside stands for.
    fn name_of(&self, address: IpAddr) -> Option<String>;

    /// Judges requests that come from now on by these rules; false if it can't do that.
    fn set_rules(&self, rules: &NetworkRules) -> bool {
        let _ = rules;
        false
    }

    /// Takes what tells which command of a session a client belongs to.
    fn set_owner_lookup(&self, owners: OwnerLookup) {
        drop(owners);
    }

    /// Takes the refused connections of one command of a session; the others are told by
    /// [`NetworkGuard::finish`].
    fn take_refused(&self, command: CommandId) -> Vec<NetworkRecord> {
        let _ = command;
        Vec::new()
    }
}

/// Connections of one kind to one host, with what was decided about them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "services fill it in")]
pub struct NetworkRecord {
    /// The name or address that was asked for.
    pub host: String,
    /// The port; 0 for questions about names.
    pub port: u16,
    /// How it was asked: `connect`, `http`, `socks5`, `tls`, `tcp`, `dns`, `forward`.
    pub protocol: String,
    /// Whether it was let pass.
    pub allowed: bool,
    /// The rule that decided; none if no rule speaks about the host.
    pub rule: Option<String>,
    /// Why.
    pub reason: String,
    /// The smallest change that would let it pass.
    pub grant: Option<String>,
    /// How often.
    pub count: u64,
    /// Bytes from the sandbox.
    pub sent: u64,
    /// Bytes to the sandbox.
    pub received: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_its_number_lead_to_each_other() {
        for (addresses, last, beyond) in [
            (Addresses::ROUTED, "198.19.255.255", "198.20.0.0"),
            (Addresses::LOOPBACK, "127.127.255.255", "127.128.0.0"),
        ] {
            let last: Ipv4Addr = last.parse().unwrap();
            let number = addresses.number_of(last.into()).unwrap();
            assert_eq!(addresses.numbered(number).unwrap().0, last);
            assert_eq!(addresses.numbered(number + 1), None);
            assert_eq!(addresses.number_of(beyond.parse().unwrap()), None);
            assert_eq!(addresses.number_of(Ipv4Addr::LOCALHOST.into()), None);
            assert_eq!(addresses.number_of(Ipv6Addr::LOCALHOST.into()), None);
            assert_eq!(addresses.number_of(addresses.proxy().ip()), Some(1));
            for own in addresses.own() {
                assert_eq!(addresses.number_of(own), Some(1));
            }
            let six = addresses.numbered(7).unwrap().1;
            assert!(six.is_none_or(|six| addresses.number_of(six.into()) == Some(7)));
        }
    }
}
