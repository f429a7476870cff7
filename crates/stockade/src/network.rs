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
use stockade_policy::host::NetworkRules;
use stockade_policy::profile::Masked;

/// Addresses that stand for names inside a sandbox. Nobody on the internet has them: RFC 2544
/// sets them aside for measurements.
pub const SYNTHETIC_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
/// How many there are.
pub const SYNTHETIC_COUNT: u32 = 1 << 17;
/// The same for IPv6: the prefix of 64 bits, from those that everybody may pick (RFC 4193).
pub const SYNTHETIC_V6: Ipv6Addr = Ipv6Addr::new(0xfd53, 0x746f, 0x636b, 0x6164, 0, 0, 0, 0);
/// Where the proxy listens inside, for clients that know of it.
pub const PROXY_ADDRESS: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1)), 3128);

/// Where programs inside find the certificates that they are to trust, where TLS is opened.
pub const TRUST_FILE: &str = "/dev/stockade/ca-certificates.crt";

/// What is to be answered in one sandbox's network, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NetworkOrder {
    /// Who may be reached.
    pub rules: NetworkRules,
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
