//! The decision about one connection: a block beats an allow, and an empty list allows nothing.
//!
//! The proxy, the resolver inside the sandbox, `SandboxPolicy::is_network_allowed` and `stockade
//! explain` all ask here. It is asked twice for a name: [`NetworkRules::decide`] before any lookup,
//! so that a name that is not listed never reaches a resolver, and
//! [`NetworkRules::decide_address`] for the address that came back, which must be the one dialled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

use super::address::{AddressClass, address_class};
use super::methods::Methods;
use super::name::{Host, HostError, HostName, canonical};
use super::pattern::{HostPattern, HostSet};

/// Who may be reached. The order of rules never matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NetworkRules {
    /// Hosts that may be reached; without a port, on 80 and 443.
    pub allow: Vec<HostPattern>,
    /// Hosts that may not be reached, whatever `allow` says; without a port, on every port.
    pub block: Vec<HostPattern>,
    /// Names that are not looked up but have these addresses. A pin is the user's grant of the
    /// address, private or not; the name must still be allowed.
    pub resolve: BTreeMap<HostName, Vec<IpAddr>>,
    /// Which HTTP methods pass to them.
    #[serde(skip_serializing_if = "is_any")]
    pub methods: Methods,
    /// Whether connections pass that do not show which name they are for: TLS without a server name
    /// or with an encrypted one, HTTP/2 without TLS.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub danger_hidden_names: bool,
}

/// What was decided about a connection, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetDecision {
    /// Whether the connection may be made.
    pub verdict: NetVerdict,
    /// The rule that decided, as a person would write it; none if no rule speaks about the host.
    pub rule: Option<String>,
    /// Why.
    pub reason: NetReason,
    /// The smallest change that would allow it; none if it is allowed, or if nothing would.
    pub grant: Option<String>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "there are two")]
pub enum NetVerdict {
    /// The connection may be made.
    Allow,
    /// It may not.
    Deny,
}

/// Why a connection is allowed or denied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetReason {
    /// The text is neither a name nor an address.
    BadHost(HostError),
    /// A rule blocks the host.
    Blocked,
    /// A rule allows the host on this port.
    Listed,
    /// The host is allowed, but not this method.
    Method(String),
    /// No rule blocks the host, and nothing else is asked of it.
    NotBlocked,
    /// No rule allows the host.
    NotListed,
    /// The policy has no network.
    Off,
    /// The policy does not restrict the network.
    Open,
    /// A rule allows the host, but not on this port.
    PortNotListed,
    /// The address is of a class that must be granted by itself.
    SpecialAddress(AddressClass),
    /// The host is allowed, but this is no HTTP whose method could be read.
    Unreadable(&'static str),
}

/// The ports of an allow rule that states none.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// Reads `host` and decides; a text that is no host is denied.
pub fn decide_network(rules: &NetworkRules, host: &str, port: u16) -> NetDecision {
    match Host::parse(host) {
        Ok(host) => rules.decide(&host, port),
        Err(error) => NetDecision::bad_host(error),
    }
}

impl NetworkRules {
    /// Decides about a connection, by the host that was asked for.
    pub fn decide(&self, host: &Host, port: u16) -> NetDecision {
        if let Some(rule) = self.block.iter().find(|rule| blocks(rule, host, port)) {
            return NetDecision::blocked(rule);
        }
        let mut on_other_port = None;
        for rule in self.allow.iter().filter(|rule| rule.hosts().contains(host)) {
            if allows_port(rule, port) {
                return NetDecision::listed(rule);
            }
            on_other_port = Some(rule);
        }
        NetDecision {
            verdict: NetVerdict::Deny,
            rule: on_other_port.map(|rule| format!("allow {rule}")),
            reason: match on_other_port {
                Some(_) => NetReason::PortNotListed,
                None => NetReason::NotListed,
            },
            grant: Some(grant(host, port)),
        }
    }

    /// Decides about an address that an allowed name resolved to.
    ///
    /// Says nothing about the name itself: ask [`NetworkRules::decide`] first.
    pub fn decide_address(&self, name: &HostName, ip: IpAddr, port: u16) -> NetDecision {
        let host = Host::Ip(canonical(ip));
        if let Some(rule) = self.block.iter().find(|rule| blocks(rule, &host, port)) {
            return NetDecision::blocked(rule);
        }
        let pins = self.pins(name);
        if pins.iter().any(|pin| canonical(*pin) == canonical(ip)) {
            return NetDecision {
                verdict: NetVerdict::Allow,
                rule: Some(format!("resolve {name}={ip}")),
                reason: NetReason::Listed,
                grant: None,
            };
        }
        // The address as it came: a mapped one is refused, so that what is dialled is what was
        // checked.
        let class = address_class(ip);
        let named = |rule: &&HostPattern| {
            matches!(rule.hosts(), HostSet::Net(_))
                && rule.hosts().contains(&host)
                && allows_port(rule, port)
        };
        if let Some(rule) = self.allow.iter().find(named) {
            return NetDecision::listed(rule);
        }
        if class.is_global() {
            return NetDecision {
                verdict: NetVerdict::Allow,
                rule: None,
                reason: NetReason::Listed,
                grant: None,
            };
        }
        NetDecision {
            verdict: NetVerdict::Deny,
            rule: None,
            reason: NetReason::SpecialAddress(class),
            grant: Some(format!("--resolve {name}={ip}")),
        }
    }

    /// The ports that some rule allows.
    pub fn ports(&self) -> BTreeSet<u16> {
        let stated = |rule: &HostPattern| match rule.port() {
            Some(port) => vec![port],
            None => DEFAULT_PORTS.to_vec(),
        };
        self.allow.iter().flat_map(stated).collect()
    }

    /// The addresses that a name is pinned to.
    pub fn pins(&self, name: &HostName) -> &[IpAddr] {
        self.resolve.get(name).map_or(&[], Vec::as_slice)
    }
}

impl NetDecision {
    /// Whether the connection may be made.
    pub fn is_allowed(&self) -> bool {
        self.verdict == NetVerdict::Allow
    }

    /// The answer of a policy without network.
    pub fn off(host: &Host, port: u16) -> Self {
        Self {
            verdict: NetVerdict::Deny,
            rule: None,
            reason: NetReason::Off,
            grant: Some(grant(host, port)),
        }
    }

    /// The answer of a policy that does not restrict the network.
    pub fn open() -> Self {
        Self {
            verdict: NetVerdict::Allow,
            rule: None,
            reason: NetReason::Open,
            grant: None,
        }
    }

    /// The answer to a text that is no host.
    pub fn bad_host(error: HostError) -> Self {
        Self {
            verdict: NetVerdict::Deny,
            rule: None,
            reason: NetReason::BadHost(error),
            grant: None,
        }
    }

    fn blocked(rule: &HostPattern) -> Self {
        Self {
            verdict: NetVerdict::Deny,
            rule: Some(format!("block {rule}")),
            reason: NetReason::Blocked,
            grant: Some(format!("remove `--block {rule}`")),
        }
    }

    fn listed(rule: &HostPattern) -> Self {
        Self {
            verdict: NetVerdict::Allow,
            rule: Some(format!("allow {rule}")),
            reason: NetReason::Listed,
            grant: None,
        }
    }
}

impl fmt::Display for NetReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadHost(error) => error.fmt(f),
            Self::Blocked => f.write_str("a rule blocks the host"),
            Self::Listed => f.write_str("the host is allowed"),
            Self::Method(method) => write!(
                f,
                "the method `{method}` is none of {}",
                Methods::READ_ONLY.join(", ")
            ),
            Self::NotBlocked => f.write_str("no rule blocks the host"),
            Self::NotListed => f.write_str("no rule allows the host"),
            Self::Off => f.write_str("the policy has no network"),
            Self::Open => f.write_str("the policy does not restrict the network"),
            Self::PortNotListed => f.write_str("the host is allowed, but not on this port"),
            Self::SpecialAddress(class) => {
                write!(f, "it resolves to {class}, which needs a grant of its own")
            }
            Self::Unreadable(what) => write!(
                f,
                "only {} pass, and {what} shows no method",
                Methods::READ_ONLY.join(", ")
            ),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde hands over")]
fn is_any(methods: &Methods) -> bool {
    *methods == Methods::Any
}

fn allows_port(rule: &HostPattern, port: u16) -> bool {
    match rule.port() {
        Some(own) => own == port,
        None => DEFAULT_PORTS.contains(&port),
    }
}

fn blocks(rule: &HostPattern, host: &Host, port: u16) -> bool {
    let hosts = match (rule.hosts(), host) {
        // `*` in a block means every host, not only global addresses.
        (HostSet::Any, _) => true,
        (hosts, host) => hosts.contains(host),
    };
    hosts && rule.port().is_none_or(|own| own == port)
}

fn grant(host: &Host, port: u16) -> String {
    if DEFAULT_PORTS.contains(&port) {
        format!("--allow {host}")
    } else {
        format!("--allow {host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], block: &[&str]) -> NetworkRules {
        NetworkRules {
            allow: allow
                .iter()
                .map(|t| HostPattern::parse(t).unwrap())
                .collect(),
            block: block
                .iter()
                .map(|t| HostPattern::parse_block(t).unwrap())
                .collect(),
            ..NetworkRules::default()
        }
    }

    fn reason(rules: &NetworkRules, host: &str, port: u16) -> NetReason {
        decide_network(rules, host, port).reason
    }

    #[test]
    fn an_empty_list_allows_nothing() {
        let decision = decide_network(&NetworkRules::default(), "example.org", 443);
        assert_eq!(
            decision,
            NetDecision {
                verdict: NetVerdict::Deny,
                rule: None,
                reason: NetReason::NotListed,
                grant: Some("--allow example.org".into()),
            }
        );
    }

    #[test]
    fn ports_80_and_443_when_none_is_stated() {
        let rules = rules(&["a.test", "b.test:8443"], &[]);
        assert_eq!(reason(&rules, "a.test", 80), NetReason::Listed);
        assert_eq!(reason(&rules, "A.test.", 443), NetReason::Listed);
        assert_eq!(reason(&rules, "a.test", 8443), NetReason::PortNotListed);
        assert_eq!(reason(&rules, "b.test", 8443), NetReason::Listed);
        let denied = decide_network(&rules, "b.test", 443);
        assert_eq!(denied.reason, NetReason::PortNotListed);
        assert_eq!(denied.grant.as_deref(), Some("--allow b.test"));
        assert_eq!(denied.rule.as_deref(), Some("allow b.test:8443"));
    }

    #[test]
    fn block_beats_allow_on_every_port() {
        let rules = rules(&["*.a.test", "x.a.test", "x.a.test:22"], &["x.a.test"]);
        assert_eq!(reason(&rules, "x.a.test", 443), NetReason::Blocked);
        assert_eq!(reason(&rules, "x.a.test", 22), NetReason::Blocked);
        assert_eq!(reason(&rules, "y.a.test", 443), NetReason::Listed);
        assert_eq!(
            decide_network(&rules, "x.a.test", 443).grant.as_deref(),
            Some("remove `--block x.a.test`")
        );
    }

    #[test]
    fn a_block_of_everything_blocks_special_addresses_too() {
        let rules = rules(&["127.0.0.1"], &["*"]);
        assert_eq!(reason(&rules, "127.0.0.1", 80), NetReason::Blocked);
    }

    #[test]
    fn bad_names_are_denied_not_looked_up() {
        let rules = rules(&["*.a.test"], &[]);
        for host in ["", "a.test\0.evil", "u@a.test", "127.1", "x..a.test"] {
            assert!(
                matches!(reason(&rules, host, 443), NetReason::BadHost(_)),
                "{host:?}"
            );
        }
    }

    #[test]
    fn an_allowed_name_may_not_resolve_to_a_special_address() {
        let mut rules = rules(&["a.test", "10.0.0.0/8"], &["203.0.114.0/24"]);
        let name = HostName::parse("a.test").unwrap();
        let at = |rules: &NetworkRules, ip: &str| {
            rules.decide_address(&name, ip.parse().unwrap(), 443).reason
        };
        assert_eq!(at(&rules, "8.8.8.8"), NetReason::Listed);
        assert_eq!(at(&rules, "10.1.2.3"), NetReason::Listed);
        assert_eq!(at(&rules, "203.0.114.5"), NetReason::Blocked);
        for (ip, class) in [
            ("127.0.0.1", AddressClass::Loopback),
            ("169.254.169.254", AddressClass::Metadata),
            ("192.168.0.1", AddressClass::Private),
            ("::ffff:8.8.8.8", AddressClass::V4Mapped),
            ("64:ff9b::a00:1", AddressClass::Nat64),
        ] {
            assert_eq!(at(&rules, ip), NetReason::SpecialAddress(class), "{ip}");
        }
        rules
            .resolve
            .insert(name.clone(), vec!["127.0.0.1".parse().unwrap()]);
        assert_eq!(at(&rules, "127.0.0.1"), NetReason::Listed);
        assert_eq!(
            at(&rules, "127.0.0.2"),
            NetReason::SpecialAddress(AddressClass::Loopback)
        );
    }

    #[test]
    fn following_the_grant_allows() {
        for (host, port) in [
            ("a.test", 443),
            ("a.test", 22),
            ("[::1]", 8080),
            ("10.0.0.1", 80),
        ] {
            let mut rules = NetworkRules::default();
            let grant = decide_network(&rules, host, port).grant.unwrap();
            let pattern = grant.strip_prefix("--allow ").unwrap();
            rules.allow.push(HostPattern::parse(pattern).unwrap());
            assert!(decide_network(&rules, host, port).is_allowed(), "{grant}");
        }
    }
}
