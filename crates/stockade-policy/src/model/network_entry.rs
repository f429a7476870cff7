//! One destination of a network allowlist.

use serde::{Deserialize, Serialize};

use crate::host::{Host, HostPattern, HostPatternError};

/// A host, or a wildcard over hosts, with a port and a protocol.
///
/// Names are compared as names: case, a trailing dot and the spelling of international names do
/// not matter. `*.example.org` takes in every name below `example.org`, at any depth, and
/// `example.org` itself. An entry whose domain is malformed or too wide (`*`, `*.org`) matches
/// nothing; in JSON it is refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Wire")]
pub struct NetworkAllowlistEntry {
    /// The host: a name, `*.name`, an address or a range of addresses; without a port.
    pub domain: String,
    /// The port; 443 in JSON when missing.
    pub port: u16,
    /// The protocol; TCP in JSON when missing.
    pub protocol: Protocol,
}

/// A transport protocol.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP. No backend forwards it yet, so such an entry permits nothing.
    Udp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    domain: String,
    #[serde(default = "https_port")]
    port: u16,
    #[serde(default)]
    protocol: Protocol,
}

impl NetworkAllowlistEntry {
    /// The host on port 443.
    pub fn https(domain: impl Into<String>) -> Self {
        Self::with_port(domain, https_port())
    }

    /// The host on this port.
    pub fn with_port(domain: impl Into<String>, port: u16) -> Self {
        Self {
            domain: domain.into(),
            port,
            protocol: Protocol::Tcp,
        }
    }

    /// Whether a TCP connection to this host and port is one that the entry means.
    pub fn matches(&self, domain: &str, port: u16) -> bool {
        self.protocol == Protocol::Tcp
            && self.port == port
            && Host::parse(domain).is_ok_and(|host| {
                self.pattern()
                    .is_ok_and(|pattern| pattern.hosts().contains(&host))
            })
    }

    /// The entry as a rule knows it.
    ///
    /// # Errors
    /// If the domain is malformed, too wide or has a port of its own.
    pub fn pattern(&self) -> Result<HostPattern, HostPatternError> {
        let pattern = HostPattern::parse(&self.domain)?;
        match (pattern.port(), self.port) {
            (Some(_), _) => Err(HostPatternError::SecondPort(self.domain.clone())),
            (None, 0) => Err(HostPatternError::Port("0".to_owned())),
            (None, port) => Ok(pattern.with_port(port)),
        }
    }

    /// Whether every connection that `other` means is one that this entry means.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.protocol == other.protocol
            && self.port == other.port
            && match (self.pattern(), other.pattern()) {
                (Ok(own), Ok(other)) => own.hosts().covers(other.hosts()),
                // An entry that matches nothing is covered by any, and covers nothing else.
                (_, Err(_)) => true,
                (Err(_), Ok(_)) => false,
            }
    }
}

impl TryFrom<Wire> for NetworkAllowlistEntry {
    type Error = HostPatternError;

    fn try_from(wire: Wire) -> Result<Self, HostPatternError> {
        let entry = Self {
            domain: wire.domain,
            port: wire.port,
            protocol: wire.protocol,
        };
        let domain = entry.pattern()?.hosts().to_string();
        Ok(Self { domain, ..entry })
    }
}

const fn https_port() -> u16 {
    443
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conformance_vectors() {
        let entry = NetworkAllowlistEntry::https("*.example.org");
        for host in ["registry.example.org", "example.org", "a.b.example.org"] {
            assert!(entry.matches(host, 443), "{host}");
            assert!(!entry.matches(host, 80), "{host}");
        }
        for host in ["evilexample.org", "example.org.evil.com", ""] {
            assert!(!entry.matches(host, 443), "{host}");
        }
    }

    #[test]
    fn item_24_names_are_compared_as_names() {
        let entry = NetworkAllowlistEntry::https("api.GitHub.com");
        for host in ["API.github.com", "api.github.com.", "api.github.com"] {
            assert!(entry.matches(host, 443), "{host}");
        }
        let entry = NetworkAllowlistEntry::https("bücher.example");
        assert!(entry.matches("xn--bcher-kva.example", 443));
    }

    #[test]
    fn item_24_the_protocol_counts() {
        let entry = NetworkAllowlistEntry {
            protocol: Protocol::Udp,
            ..NetworkAllowlistEntry::https("a.test")
        };
        assert!(!entry.matches("a.test", 443));
    }

    #[test]
    fn item_24_wide_wildcards_match_nothing() {
        for domain in ["*.com", "*", "*.", "a.*.com", ""] {
            let entry = NetworkAllowlistEntry::https(domain);
            assert!(!entry.matches("a.com", 443), "{domain}");
            assert!(!entry.matches("", 443), "{domain}");
        }
    }

    #[test]
    fn json_has_defaults_and_is_strict() {
        let parse = |text| serde_json::from_str::<NetworkAllowlistEntry>(text);
        assert_eq!(
            parse(r#"{"domain":"A.Test."}"#).unwrap(),
            NetworkAllowlistEntry::https("a.test")
        );
        for text in [
            "{}",
            r#"{"domain":"*.com"}"#,
            r#"{"domain":"a.test:443"}"#,
            r#"{"domain":"a.test","port":0}"#,
            r#"{"domain":"a.test","port":70000}"#,
            r#"{"domain":"a.test","protocol":"icmp"}"#,
            r#"{"domain":"a.test","ports":443}"#,
            r#"{"domain":"https://a.test"}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
