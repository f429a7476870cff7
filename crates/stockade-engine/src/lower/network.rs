//! From the network part of a profile to sockets and who answers on them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use stockade_linux::plan::{self, Socket, SocketKind};
use stockade_policy::host::{HostSet, NetworkRules};
use stockade_policy::profile::{Backend, NetworkMode, Profile};

use crate::host::Host;
use crate::network::{Addresses, NetworkOrder, SocketRole};
use crate::plan::PlanError;
use crate::probe::Tier;

/// What of the network there is.
pub(super) struct Network {
    /// Whether the host's network is out of reach.
    pub(super) own: bool,
    /// Where the proxy is through which names can be reached.
    pub(super) proxy: Option<SocketAddr>,
    pub(super) sockets: Option<plan::Network>,
    /// What the mediator refuses at once.
    pub(super) inet: Option<plan::Inet>,
    pub(super) order: Option<NetworkOrder>,
}

impl Network {
    /// Where programs look for a resolver and no proxy answers, so that the supervisor has to.
    pub(super) fn unanswered_resolvers(&self, host: &Host, backend: Backend) -> Vec<IpAddr> {
        let is_cut_off = self.own && self.proxy.is_none() && backend == Backend::Native;
        if is_cut_off {
            host.resolvers.clone()
        } else {
            Vec::new()
        }
    }

    /// Whether the proxy opens TLS.
    pub(super) fn opens_tls(&self) -> bool {
        self.proxy.is_some() && self.order.as_ref().is_some_and(NetworkOrder::opens_tls)
    }
}

const DNS: u16 = 53;

/// `addresses` stand for names; with [`Addresses::ROUTED`] every other address is made to lead back
/// into the sandbox.
pub(super) fn lower(
    profile: &Profile,
    host: &Host,
    tier: Tier,
    addresses: Addresses,
) -> Result<Network, PlanError> {
    let network = &profile.network;
    let rules = network.rules();
    let proxied = is_proxied(profile);
    let proxy = proxied.then(|| addresses.proxy());
    let routed = addresses == Addresses::ROUTED;
    if network.mode.value == NetworkMode::Open {
        // The host's ports are in reach as they are, and those inside are the host's.
        return Ok(Network {
            own: false,
            proxy: None,
            sockets: None,
            inet: None,
            order: None,
        });
    }
    let mut making = Making::default();
    if proxied {
        making.add(SocketRole::Proxy, SocketKind::Stream, addresses.proxy());
        for address in resolvers(host, routed) {
            let place = SocketAddr::new(address, DNS);
            making.add(SocketRole::Resolver, SocketKind::Datagram, place);
        }
        making.add(SocketRole::ResolverStream, SocketKind::Stream, every(DNS));
        for port in rules.ports() {
            // A port of the host has been asked for by itself, on loopback alone.
            let taken = network.host_port.iter().any(|own| own.value == port) || port == DNS;
            if !taken {
                making.add(SocketRole::Port(port), SocketKind::Stream, every(port));
            }
        }
    }
    for port in &network.host_port {
        for loopback in [IpAddr::V4(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let place = SocketAddr::new(loopback, port.value);
            making.add(SocketRole::HostPort(port.value), SocketKind::Stream, place);
        }
    }
    let expose: Vec<u16> = network.expose.iter().map(|port| port.value).collect();
    if !expose.is_empty() {
        making.roles.push(SocketRole::Connector);
    }
    if making.roles.is_empty() {
        return Ok(Network {
            own: true,
            proxy,
            sockets: None,
            inet: None,
            order: None,
        });
    }
    if tier != Tier::Native {
        return Err(
            match network.expose.iter().chain(&network.host_port).next() {
                Some(port) if !proxied => PlanError::Port(port.value),
                _ => PlanError::Allowlist,
            },
        );
    }
    Ok(Network {
        own: true,
        proxy,
        sockets: Some(plan::Network {
            answer_everywhere: proxied && routed,
            addresses: addresses.own(),
            sockets: making.sockets,
            connector: !expose.is_empty(),
        }),
        inet: proxied.then(|| plan::Inet {
            ports: making.ports.clone(),
            networks: networks(&rules, host, addresses),
        }),
        order: Some(NetworkOrder {
            rules,
            addresses,
            roles: making.roles,
            expose,
            masks: host.masks.clone(),
        }),
    })
}

/// Whether names are reached through the proxy: an empty list allows nothing and needs none.
pub(crate) fn is_proxied(profile: &Profile) -> bool {
    let network = &profile.network;
    network.mode.value == NetworkMode::Allowlist && !network.allow.is_empty()
}

/// Whether somebody answers questions about names inside: the proxy, or a supervisor who says that
/// none exists.
pub(crate) fn needs_resolvers(profile: &Profile) -> bool {
    profile.network.mode.value != NetworkMode::Open
}

/// The addresses for which there is an answer: those that stand for names, those that are allowed
/// by themselves, the resolvers.
fn networks(rules: &NetworkRules, host: &Host, addresses: Addresses) -> Vec<(IpAddr, u8)> {
    let allowed = rules.allow.iter().filter_map(|rule| match rule.hosts() {
        HostSet::Net(net) => Some(vec![(net.addr(), net.prefix_len())]),
        // Every address: the proxy decides.
        HostSet::Any => Some(vec![
            (Ipv4Addr::UNSPECIFIED.into(), 0),
            (Ipv6Addr::UNSPECIFIED.into(), 0),
        ]),
        _ => None,
    });
    let resolvers = host.resolvers.iter().map(|ip| match ip {
        IpAddr::V4(_) => (*ip, 32),
        IpAddr::V6(_) => (*ip, 128),
    });
    let names = addresses.networks();
    allowed.flatten().chain(resolvers).chain(names).collect()
}

#[derive(Default)]
struct Making {
    /// Ports on which every address answers.
    ports: Vec<u16>,
    roles: Vec<SocketRole>,
    sockets: Vec<Socket>,
}

impl Making {
    fn add(&mut self, role: SocketRole, kind: SocketKind, address: SocketAddr) {
        self.roles.push(role);
        if address.ip().is_unspecified() {
            self.ports.push(address.port());
        }
        self.sockets.push(Socket { kind, address });
    }
}

/// Every address of both families.
fn every(port: u16) -> SocketAddr {
    SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)
}

/// Where programs inside look for a resolver: what the host's file says, and the loopback, which
/// they try when there is no file to be read. Without routes only the loopback's can be had.
fn resolvers(host: &Host, routed: bool) -> Vec<IpAddr> {
    let mut addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    for address in &host.resolvers {
        if !addresses.contains(address) && (routed || address.is_loopback()) {
            addresses.push(*address);
        }
    }
    addresses
}
