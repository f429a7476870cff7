//! Which hosts and ports a network rule speaks about.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use super::name::{Host, HostError, HostName, canonical, quote};

/// Hosts and, if stated, one port: `example.org`, `*.example.org:443`, `192.0.2.0/24`, `[::1]:80`.
///
/// What a missing port means depends on the rule: 80 and 443 where something is allowed, every
/// port where something is blocked. Both fail closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPattern {
    hosts: HostSet,
    port: Option<u16>,
}

/// The hosts of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "a matcher must handle every kind")]
pub enum HostSet {
    /// Every name and every global address. Only from [`HostPattern::danger_parse`].
    Any,
    /// The name and every name below it, at any depth: `*.example.org`.
    Below(HostName),
    /// One name.
    Exact(HostName),
    /// A range of addresses; a single one has the full prefix length.
    Net(IpNet),
}

/// Why a text is not a [`HostPattern`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HostPatternError {
    /// The host part is bad.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The range of addresses is malformed, or its address has bits outside the prefix.
    #[error("`{0}` is not a range of addresses; write it as `192.0.2.0/24` or `[2001:db8::/32]`")]
    Net(String),
    /// A range of addresses with `*` for the free part.
    #[error("`{text}` has a `*` in an address; write the range as `{range}`")]
    AddressWildcard {
        /// The pattern.
        text: String,
        /// The same range with the length of its prefix.
        range: String,
    },
    /// The port is not a number from 1 to 65535.
    #[error("`{0}` is not a port from 1 to 65535")]
    Port(String),
    /// A port in the host where the port is stated apart.
    #[error("`{0}` has a port of its own; state the port in one place")]
    SecondPort(String),
    /// A URL where a host is wanted.
    #[error("`{0}` is a URL; write the host alone, with `:PORT` if it is not 80 or 443")]
    Url(String),
    /// `*` somewhere else than as the first label.
    #[error("`{0}` has a `*` that is not a whole first label; write `*.example.org`")]
    Wildcard(String),
    /// The pattern takes in whole top-level domains or every address.
    #[error("`{0}` is too wide; a wildcard needs at least two labels after it")]
    Wide(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Any,
    Narrow,
}

impl HostPattern {
    /// Reads a pattern; refuses `*`, `*.org` and `0.0.0.0/0`.
    ///
    /// # Errors
    /// If the text is malformed or too wide.
    pub fn parse(text: &str) -> Result<Self, HostPatternError> {
        Self::read(text, Width::Narrow)
    }

    /// Reads a pattern of any width, for a rule that blocks.
    ///
    /// # Errors
    /// If the text is malformed.
    pub fn parse_block(text: &str) -> Result<Self, HostPatternError> {
        Self::read(text, Width::Any)
    }

    /// Reads a pattern of any width, for a rule that allows.
    ///
    /// # Security
    /// `*` allows every host on the internet, and `*.org` everyone who can register a name there.
    ///
    /// # Errors
    /// If the text is malformed.
    pub fn danger_parse(text: &str) -> Result<Self, HostPatternError> {
        Self::read(text, Width::Any)
    }

    /// A pattern for exactly this host, on any port that the kind of rule implies.
    pub fn exact(host: Host) -> Self {
        let hosts = match host {
            Host::Ip(ip) => HostSet::Net(canonical(ip).into()),
            Host::Name(name) => HostSet::Exact(name),
        };
        Self { hosts, port: None }
    }

    /// The same hosts on one port.
    #[must_use]
    pub fn with_port(self, port: u16) -> Self {
        Self {
            port: Some(port),
            ..self
        }
    }

    /// The hosts.
    pub fn hosts(&self) -> &HostSet {
        &self.hosts
    }

    /// The port, if one is stated.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    fn read(text: &str, width: Width) -> Result<Self, HostPatternError> {
        if text.contains("://") {
            return Err(HostPatternError::Url(quote(text)));
        }
        let (host, port) = split_port(text);
        let port = port.map(parse_port).transpose()?;
        let hosts = HostSet::parse(host)?;
        if width == Width::Narrow && hosts.is_wide() {
            return Err(HostPatternError::Wide(quote(text)));
        }
        Ok(Self { hosts, port })
    }
}

impl HostSet {
    /// Whether the host is one of these.
    pub fn contains(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, Host::Name(_)) => true,
            (Self::Any, Host::Ip(ip)) => super::address_class(*ip).is_global(),
            (Self::Below(apex), Host::Name(name)) => name.is_within(apex),
            (Self::Exact(own), Host::Name(name)) => own == name,
            (Self::Net(net), Host::Ip(ip)) => net.contains(&canonical(*ip)),
            (Self::Below(_) | Self::Exact(_), Host::Ip(_)) | (Self::Net(_), Host::Name(_)) => false,
        }
    }

    /// Whether every host of `other` is one of these.
    pub fn covers(&self, other: &HostSet) -> bool {
        match (self, other) {
            (Self::Any, Self::Net(net)) => is_one_global_address(net),
            (Self::Any, _) => true,
            (Self::Below(apex), Self::Below(name) | Self::Exact(name)) => name.is_within(apex),
            (Self::Exact(own), Self::Exact(name)) => own == name,
            (Self::Net(own), Self::Net(net)) => own.contains(net),
            _ => false,
        }
    }

    fn parse(text: &str) -> Result<Self, HostPatternError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        if let Some(rest) = text.strip_prefix("*.") {
            if rest.contains('*') {
                return Err(HostPatternError::Wildcard(quote(text)));
            }
            return Ok(Self::Below(HostName::parse(rest)?));
        }
        if text.contains('*') {
            let text = quote(text);
            return Err(match range_with_wildcards(&text) {
                Some(range) => HostPatternError::AddressWildcard { text, range },
                None => HostPatternError::Wildcard(text),
            });
        }
        let bare = text
            .strip_prefix('[')
            .and_then(|t| t.strip_suffix(']'))
            .unwrap_or(text);
        if bare.contains('/') {
            return parse_net(bare).map(Self::Net);
        }
        Ok(HostPattern::exact(Host::parse(text)?).hosts)
    }

    fn is_wide(&self) -> bool {
        match self {
            Self::Any => true,
            Self::Below(apex) => apex.label_count() < 2,
            Self::Exact(_) => false,
            Self::Net(net) => net.prefix_len() == 0,
        }
    }
}

impl fmt::Display for HostSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Below(apex) => write!(f, "*.{apex}"),
            Self::Exact(name) => name.fmt(f),
            Self::Net(net) if net.prefix_len() == net.max_prefix_len() => {
                Host::Ip(net.addr()).fmt(f)
            }
            Self::Net(IpNet::V4(net)) => net.fmt(f),
            Self::Net(IpNet::V6(net)) => write!(f, "[{net}]"),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hosts.fmt(f)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        Self::parse(text)
    }
}

impl Serialize for HostPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

/// Whether a range is a single global address. For wider ranges the answer is no, which makes the
/// order of policies say "wider" when in doubt.
fn is_one_global_address(net: &IpNet) -> bool {
    net.prefix_len() == net.max_prefix_len() && super::address_class(net.addr()).is_global()
}

/// Cuts a `:PORT` off, unless the colons are those of a bare IPv6 address.
fn split_port(text: &str) -> (&str, Option<&str>) {
    if let Some((inside, after)) = text.rsplit_once(']') {
        return match after.strip_prefix(':') {
            Some(port) => (&text[..=inside.len()], Some(port)),
            None => (text, None),
        };
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        _ => (text, None),
    }
}

fn parse_port(text: &str) -> Result<u16, HostPatternError> {
    // `u16::from_str` takes `+80`.
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(port) if digits && port != 0 => Ok(port),
        _ => Err(HostPatternError::Port(quote(text))),
    }
}

/// The range that `10.*` or `192.168.*.*` means.
fn range_with_wildcards(text: &str) -> Option<String> {
    let labels: Vec<&str> = text.split('.').collect();
    let fixed: Vec<u8> = labels
        .iter()
        .map_while(|label| label.parse().ok())
        .collect();
    let (_, free) = labels.split_at(fixed.len());
    let is_range = (1..4).contains(&fixed.len())
        && labels.len() <= 4
        && free.iter().all(|label| *label == "*");
    let mut address = [0; 4];
    address
        .iter_mut()
        .zip(&fixed)
        .for_each(|(part, own)| *part = *own);
    is_range.then(|| format!("{}/{}", Ipv4Addr::from(address), fixed.len() * 8))
}

fn parse_net(text: &str) -> Result<IpNet, HostPatternError> {
    let bad = || HostPatternError::Net(quote(text));
    let net = IpNet::from_str(text).map_err(|_| bad())?;
    // `10.1.2.3/8` is either a slip or a much wider grant than it looks.
    if net.trunc() != net {
        return Err(bad());
    }
    Ok(match (canonical(net.addr()), net) {
        (IpAddr::V4(v4), IpNet::V6(v6)) if v6.prefix_len() >= 96 => {
            Ipv4Net::new(v4, v6.prefix_len() - 96)
                .map_err(|_| bad())?
                .into()
        }
        _ => net,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> HostPattern {
        HostPattern::parse(text).unwrap()
    }

    #[test]
    fn a_wildcard_in_an_address_is_answered_with_the_range() {
        for (text, range) in [
            ("10.*", "10.0.0.0/8"),
            ("10.*.*.*", "10.0.0.0/8"),
            ("192.168.*", "192.168.0.0/16"),
            ("192.168.7.*", "192.168.7.0/24"),
        ] {
            let refused = HostPattern::parse_block(text).unwrap_err().to_string();
            assert!(refused.contains(range), "{refused}");
            assert!(HostPattern::parse_block(range).is_ok());
        }
        for text in ["10.*.1", "a.*", "1.2.3.4.*", "10.*.example.org", "256.*"] {
            let refused = HostPattern::parse_block(text).unwrap_err();
            assert!(matches!(refused, HostPatternError::Wildcard(_)), "{text}");
        }
    }

    fn holds(pattern_text: &str, host: &str) -> bool {
        pattern(pattern_text)
            .hosts()
            .contains(&Host::parse(host).unwrap())
    }

    #[test]
    fn wildcard_takes_any_depth_and_the_apex() {
        for (host, expected) in [
            ("registry.example.org", true),
            ("example.org", true),
            ("a.b.example.org", true),
            ("A.EXAMPLE.ORG.", true),
            ("evilexample.org", false),
            ("example.org.evil.com", false),
        ] {
            assert_eq!(holds("*.example.org", host), expected, "{host}");
        }
    }

    #[test]
    fn addresses_and_ranges() {
        assert!(holds("192.0.2.0/24", "192.0.2.7"));
        assert!(holds("192.0.2.0/24", "::ffff:192.0.2.7"));
        assert!(holds("::ffff:192.0.2.0/120", "192.0.2.7"));
        assert!(!holds("192.0.2.0/24", "192.0.3.7"));
        assert!(holds("[::1]:80", "::1"));
        assert!(holds("2001:db8::/32", "2001:db8:1::1"));
        assert!(!holds("192.0.2.1", "example.org"));
        assert!(!holds("*.example.org", "192.0.2.1"));
    }

    #[test]
    fn text_round_trips() {
        for text in [
            "example.org",
            "example.org:8080",
            "*.example.org:443",
            "192.0.2.1",
            "192.0.2.1:22",
            "192.0.2.0/24",
            "192.0.2.0/24:22",
            "[2001:db8::1]",
            "[2001:db8::1]:80",
            "[2001:db8::/32]",
            "[2001:db8::/32]:80",
        ] {
            assert_eq!(pattern(text).to_string(), text);
        }
        assert_eq!(pattern("2001:db8::1").to_string(), "[2001:db8::1]");
        assert_eq!(
            pattern("*.EXAMPLE.org.:443").to_string(),
            "*.example.org:443"
        );
    }

    #[test]
    fn wide_patterns_need_danger() {
        for text in [
            "*",
            "*:443",
            "*.com",
            "*.com:443",
            "0.0.0.0/0",
            "::/0",
            "[::/0]:1",
        ] {
            assert!(
                matches!(HostPattern::parse(text), Err(HostPatternError::Wide(_))),
                "{text}"
            );
            assert!(HostPattern::danger_parse(text).is_ok(), "{text}");
            assert!(HostPattern::parse_block(text).is_ok(), "{text}");
        }
        let any = HostPattern::danger_parse("*").unwrap();
        assert!(
            !any.hosts()
                .contains(&Host::parse("169.254.169.254").unwrap())
        );
    }

    #[test]
    fn malformed_patterns_are_refused() {
        for text in [
            "",
            "*.",
            ":443",
            "a.b:",
            "a.b:0",
            "a.b:65536",
            "a.b:+80",
            "a.b:80:90",
            "a.*.b",
            "a*.b",
            "**.a.b",
            "*.*.a",
            "https://a.b",
            "u:p@a.b",
            "a.b/24",
            "10.1.2.3/8",
            "10.0.0.0/33",
            "[::1",
            "[::1]80",
            "[::1]x:80",
            "[a.b]:80",
            "*.127.1",
            "*.192.0.2.1",
            "a.b:443/x",
            "a b",
        ] {
            assert!(HostPattern::danger_parse(text).is_err(), "{text}");
        }
    }

    fn arb_pattern() -> impl Strategy<Value = HostPattern> {
        let text = prop_oneof![
            r"(\*\.)?[ab]\.[ab](\.[ab])?(:443)?",
            (0u8..4, 22u8..=32).prop_map(|(d, len)| {
                IpNet::from(Ipv4Net::new([10, 0, 0, d].into(), len).unwrap().trunc()).to_string()
            }),
            Just("*".to_owned()),
        ];
        text.prop_map(|text| HostPattern::danger_parse(&text).unwrap())
    }

    fn arb_host() -> impl Strategy<Value = Host> {
        prop_oneof![
            r"[ab]\.[ab](\.[ab]){0,2}",
            r"10\.0\.0\.[0-4]",
            Just("8.8.8.8".to_owned())
        ]
        .prop_map(|text| Host::parse(&text).unwrap())
    }

    proptest! {
        #[test]
        fn covering_is_a_preorder_and_sound(
            a in arb_pattern(), b in arb_pattern(), c in arb_pattern(), host in arb_host(),
        ) {
            let (a, b, c) = (a.hosts(), b.hosts(), c.hosts());
            prop_assert!(a.covers(a));
            if a.covers(b) && b.covers(c) {
                prop_assert!(a.covers(c));
            }
            if a.covers(b) && b.contains(&host) {
                prop_assert!(a.contains(&host));
            }
        }

        #[test]
        fn display_round_trips(a in arb_pattern()) {
            prop_assert_eq!(HostPattern::danger_parse(&a.to_string()), Ok(a));
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            if let Ok(read) = HostPattern::danger_parse(&text) {
                prop_assert_eq!(HostPattern::danger_parse(&read.to_string()), Ok(read));
            }
        }
    }
}
