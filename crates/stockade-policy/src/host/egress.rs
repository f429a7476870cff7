//! The decision of a proxy: lists and the mode in which they are read.
//!
//! A sandbox is always in the mode `allowlist`; the other modes are for a proxy that stands alone.
//! In every mode a block wins, and in every mode but `open` an address that is not an ordinary one
//! needs a grant that names it, whatever name led there.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::address::address_class;
use super::name::{Host, HostName};
use super::rules::{NetDecision, NetReason, NetVerdict, NetworkRules};
use crate::profile::words::words;

words! {
    /// How a proxy reads its lists.
    pub enum EgressMode("proxy mode") {
        /// Only what is allowed and not blocked.
        Allowlist = "allowlist",
        /// Everything that is not blocked.
        Blocklist = "blocklist",
        /// Nothing.
        Closed = "closed",
        /// Everything that is not blocked, machines of the private network among it.
        Open = "open",
    }
}

/// Lists and the mode in which they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "two facts, filled in by callers")]
pub struct Egress {
    /// How the lists are read.
    pub mode: EgressMode,
    /// The lists.
    pub rules: NetworkRules,
}

impl Egress {
    /// Decides about a connection by the host that was asked for; before any lookup.
    pub fn decide(&self, host: &Host, port: u16) -> NetDecision {
        let listed = self.rules.decide(host, port);
        if listed.reason == NetReason::Blocked {
            return listed;
        }
        match self.mode {
            EgressMode::Allowlist => listed,
            EgressMode::Closed => NetDecision::off(host, port),
            EgressMode::Open => NetDecision::open(),
            EgressMode::Blocklist if listed.is_allowed() => listed,
            EgressMode::Blocklist => match host {
                Host::Ip(ip) if !address_class(*ip).is_global() => NetDecision {
                    reason: NetReason::SpecialAddress(address_class(*ip)),
                    ..listed
                },
                Host::Ip(_) | Host::Name(_) => NetDecision::not_blocked(),
            },
        }
    }

    /// Decides whether a name may be looked up: it may if it can be reached on any port.
    pub fn decide_name(&self, name: &HostName) -> NetDecision {
        let host = Host::Name(name.clone());
        // A block of one port leaves the others.
        let ports = self.ports();
        let mut ports = ports.iter().copied().chain([443]);
        let first = ports.next().unwrap_or(443);
        let decision = self.decide(&host, first);
        if decision.is_allowed() {
            return decision;
        }
        ports
            .map(|port| self.decide(&host, port))
            .find(NetDecision::is_allowed)
            .unwrap_or(decision)
    }

    /// Decides about an address that an allowed name resolved to.
    ///
    /// Says nothing about the name itself: ask [`Egress::decide`] first.
    pub fn decide_address(&self, name: &HostName, ip: IpAddr, port: u16) -> NetDecision {
        let decision = self.rules.decide_address(name, ip, port);
        match self.mode {
            EgressMode::Open if decision.reason != NetReason::Blocked => NetDecision::open(),
            EgressMode::Closed => NetDecision::off(&Host::Ip(ip), port),
            _ => decision,
        }
    }

    /// The ports that some rule allows.
    pub fn ports(&self) -> BTreeSet<u16> {
        self.rules.ports()
    }
}

impl NetDecision {
    /// The answer of a list of blocks that does not name the host.
    fn not_blocked() -> Self {
        Self {
            verdict: NetVerdict::Allow,
            rule: None,
            reason: NetReason::NotBlocked,
            grant: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AddressClass, HostPattern};
    use super::*;

    fn egress(mode: EgressMode, allow: &[&str], block: &[&str]) -> Egress {
        let read = |list: &[&str]| {
            let patterns = list.iter().map(|text| HostPattern::danger_parse(text));
            patterns.collect::<Result<_, _>>().unwrap()
        };
        Egress {
            mode,
            rules: NetworkRules {
                allow: read(allow),
                block: read(block),
                ..NetworkRules::default()
            },
        }
    }

    fn reason(egress: &Egress, host: &str, port: u16) -> NetReason {
        egress.decide(&Host::parse(host).unwrap(), port).reason
    }

    #[test]
    fn each_mode_reads_the_lists_in_its_way() {
        use EgressMode as M;
        use NetReason as R;
        let of = |mode| egress(mode, &["a.test"], &["b.test"]);
        for (mode, host, expected) in [
            (M::Allowlist, "a.test", R::Listed),
            (M::Allowlist, "b.test", R::Blocked),
            (M::Allowlist, "c.test", R::NotListed),
            (M::Blocklist, "a.test", R::Listed),
            (M::Blocklist, "b.test", R::Blocked),
            (M::Blocklist, "c.test", R::NotBlocked),
            (M::Blocklist, "8.8.8.8", R::NotBlocked),
            (
                M::Blocklist,
                "10.0.0.1",
                R::SpecialAddress(AddressClass::Private),
            ),
            (M::Closed, "a.test", R::Off),
            (M::Closed, "b.test", R::Blocked),
            (M::Open, "c.test", R::Open),
            (M::Open, "10.0.0.1", R::Open),
            (M::Open, "b.test", R::Blocked),
        ] {
            assert_eq!(reason(&of(mode), host, 443), expected, "{mode} {host}");
        }
    }

    #[test]
    fn special_addresses_need_a_grant_unless_all_is_open() {
        let name = HostName::parse("c.test").unwrap();
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let allowed = |mode, block: &[&str]| {
            egress(mode, &[], block)
                .decide_address(&name, loopback, 80)
                .is_allowed()
        };
        assert!(!allowed(EgressMode::Allowlist, &[]));
        assert!(!allowed(EgressMode::Blocklist, &[]));
        assert!(!allowed(EgressMode::Closed, &[]));
        assert!(allowed(EgressMode::Open, &[]));
        assert!(!allowed(EgressMode::Open, &["127.0.0.0/8"]));
    }

    #[test]
    fn a_name_may_be_looked_up_if_any_port_is_open() {
        let lists = egress(
            EgressMode::Allowlist,
            &["git.test:22", "*.a.test"],
            &["x.a.test", "y.a.test:443"],
        );
        let allowed = |name: &str| {
            let name = HostName::parse(name).unwrap();
            lists.decide_name(&name).is_allowed()
        };
        assert!(allowed("git.test"));
        assert!(allowed("a.test"));
        assert!(allowed("y.a.test"));
        assert!(!allowed("x.a.test"));
        assert!(!allowed("b.test"));
        assert_eq!(lists.ports().into_iter().collect::<Vec<_>>(), [22, 80, 443]);
    }
}
