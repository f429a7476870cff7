//! One strict form for the name of a host.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// A DNS name in the one form in which names are compared.
///
/// Lower case, no trailing dot, ASCII (letters beyond it are mapped by IDNA, UTS 46), labels of
/// 1 to 63 bytes, at most 253 bytes. Letters, digits, `-` (not at the end of a label) and `_`:
/// the underscore is not legal in host names by RFC 952, but resolvers and TLS stacks take it and
/// such hosts exist, so refusing it would break work without protecting anything.
///
/// It is never an address: what some resolver might read as IPv4 (`127.1`, `0x7f.1`,
/// `0177.0.0.1`, `2130706433`) is refused, see `inet_aton(3)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

/// A name or an address, as a client may ask for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "a peer is named in these two ways")]
pub enum Host {
    /// An address literal. IPv4-mapped IPv6 (`::ffff:1.2.3.4`) is held as IPv4.
    Ip(IpAddr),
    /// A name.
    Name(HostName),
}

/// Why a text is not the name of a host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HostError {
    /// An address where a name is needed.
    #[error("`{0}` is an address, not a name")]
    Address(String),
    /// The text is empty.
    #[error("the host name is empty")]
    Empty,
    /// A character that no host name has.
    #[error("host name `{name}` contains {character:?}")]
    Forbidden {
        /// The text, with control characters escaped.
        name: String,
        /// The first offender.
        character: char,
    },
    /// IDNA refuses the name.
    #[error("host name `{0}` is not a valid internationalised name")]
    Idna(String),
    /// A label is empty, too long, or begins or ends with a hyphen.
    #[error("host name `{name}` has a bad label `{label}`")]
    Label {
        /// The text.
        name: String,
        /// The label.
        label: String,
    },
    /// Some programs would read it as an IPv4 address, others would not.
    #[error(
        "`{0}` looks like an IPv4 address in an unusual form; write it as four decimal numbers"
    )]
    Numeric(String),
    /// Longer than the DNS allows.
    #[error("host name of {0} bytes is longer than 253")]
    TooLong(usize),
}

/// What may be quoted from a hostile text in a message.
const QUOTED: usize = 80;

impl HostName {
    /// Reads a name.
    ///
    /// # Errors
    /// If the text is not a host name, or is an address.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        match Host::parse(text)? {
            Host::Name(name) => Ok(name),
            Host::Ip(_) => Err(HostError::Address(quote(text))),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How many labels it has: `example.org` has two.
    pub fn label_count(&self) -> usize {
        self.0.split('.').count()
    }

    /// Whether this name is `other` or a name below it: `a.b` lies within `b`.
    pub fn is_within(&self, other: &HostName) -> bool {
        self.0
            .strip_suffix(other.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    /// Checks a text that holds only ASCII; the numeric forms are already excluded.
    fn from_ascii(text: &str) -> Result<Self, HostError> {
        let name = text.to_ascii_lowercase();
        if name.len() > 253 {
            return Err(HostError::TooLong(name.len()));
        }
        for label in name.split('.') {
            if label.is_empty()
                || label.len() > 63
                || label.starts_with('-')
                || label.ends_with('-')
            {
                return Err(HostError::Label {
                    name: quote(&name),
                    label: quote(label),
                });
            }
        }
        Ok(Self(name))
    }
}

impl Host {
    /// Reads a name or an address; IPv6 with or without brackets, never with a zone.
    ///
    /// # Errors
    /// If the text is neither.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        // Far beyond any name, also before IDNA shortens it: keep the work bounded.
        if text.len() > 1024 {
            return Err(HostError::TooLong(text.len()));
        }
        if let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            return Ipv6Addr::from_str(inner)
                .map(|ip| Self::Ip(canonical(ip.into())))
                .map_err(|_| forbidden(text, '['));
        }
        if let Ok(ip) = Ipv6Addr::from_str(text) {
            return Ok(Self::Ip(canonical(ip.into())));
        }
        if text.is_ascii() {
            return Self::from_ascii(text);
        }
        let mapped = idna::uts46::Uts46::new()
            .to_ascii(
                text.as_bytes(),
                idna::AsciiDenyList::URL,
                idna::uts46::Hyphens::Check,
                idna::uts46::DnsLength::Ignore,
            )
            .map_err(|_| HostError::Idna(quote(text)))?;
        Self::from_ascii(&mapped)
    }

    fn from_ascii(text: &str) -> Result<Self, HostError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if let Some(character) = text.chars().find(|c| !allowed(*c)) {
            return Err(forbidden(text, character));
        }
        // One trailing dot says "fully qualified" and names the same host.
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if let Ok(ip) = Ipv4Addr::from_str(text) {
            return Ok(Self::Ip(ip.into()));
        }
        if ends_in_number(text) {
            return Err(HostError::Numeric(quote(text)));
        }
        HostName::from_ascii(text).map(Self::Name)
    }
}

impl AsRef<str> for HostName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// IPv6 in brackets, so that a port can follow.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V4(ip)) => ip.fmt(f),
            Self::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl FromStr for HostName {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        Self::parse(text)
    }
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        Self::parse(text)
    }
}

impl From<IpAddr> for Host {
    fn from(ip: IpAddr) -> Self {
        Self::Ip(canonical(ip))
    }
}

impl From<HostName> for Host {
    fn from(name: HostName) -> Self {
        Self::Name(name)
    }
}

impl Serialize for HostName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for HostName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

/// IPv4-mapped addresses reach the IPv4 host, so they are that host.
pub(super) fn canonical(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

/// A bounded, printable form of a text that someone else chose.
pub(super) fn quote(text: &str) -> String {
    let mut quoted: String = text
        .chars()
        .take(QUOTED)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(QUOTED).is_some() {
        quoted.push('…');
    }
    quoted
}

fn forbidden(text: &str, character: char) -> HostError {
    HostError::Forbidden {
        name: quote(text),
        character,
    }
}

/// Whether the last label is one that `inet_aton(3)` would take for a number, in decimal, octal
/// or hexadecimal. No top-level domain is.
fn ends_in_number(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or(text);
    let hex = last
        .strip_prefix("0x")
        .or_else(|| last.strip_prefix("0X"))
        .is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    hex || (!last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> String {
        HostName::parse(text).unwrap().as_str().to_owned()
    }

    #[test]
    fn case_trailing_dot_and_idna_fold_to_one_name() {
        assert_eq!(name("API.GitHub.com."), "api.github.com");
        assert_eq!(name("bücher.example"), "xn--bcher-kva.example");
        assert_eq!(name("BÜCHER.example"), "xn--bcher-kva.example");
        assert_eq!(name("XN--BCHER-KVA.example"), "xn--bcher-kva.example");
        assert_eq!(name("ｅｘａｍｐｌｅ。org"), "example.org");
        assert_eq!(name("a_b.example"), "a_b.example");
        assert_eq!(name("localhost"), "localhost");
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        for text in [
            "127.1",
            "0x7f.1",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "127.0.0.01",
            "2130706433",
            "1.2.3",
            "1.2.3.4.5",
            "256.1.1.1",
            "a.1",
            "a.0x",
            "１２７.１",
        ] {
            assert!(
                matches!(Host::parse(text), Err(HostError::Numeric(_))),
                "{text}: {:?}",
                Host::parse(text)
            );
        }
        for text in [
            "",
            ".",
            "..",
            "a..b",
            ".a",
            "a..",
            "-a.b",
            "a-.b",
            "a b",
            "a\0b",
            "a\nb",
            "a\rb",
            "a@b",
            "u:p@b",
            "a%00b",
            "a/b",
            "a\\b",
            "a:443",
            "*.a",
            "[a]",
            "[::1",
            "::1%eth0",
            "[fe80::1%25eth0]",
            "a\u{ad}\u{200b}%b",
            "a#b",
            "a?b",
            "\u{2025}",
        ] {
            assert!(
                Host::parse(text).is_err(),
                "{text:?}: {:?}",
                Host::parse(text)
            );
        }
        assert!(HostName::parse(&"a".repeat(64)).is_err());
        assert!(HostName::parse(&["a"; 127].join(".")).is_ok());
        assert!(HostName::parse(&["a"; 128].join(".")).is_err());
        assert!(Host::parse(&"a.".repeat(4000)).is_err());
    }

    #[test]
    fn addresses_are_addresses() {
        let ip = |text: &str| Host::parse(text).unwrap();
        assert_eq!(ip("192.0.2.1"), Host::Ip([192, 0, 2, 1].into()));
        assert_eq!(ip("192.0.2.1."), Host::Ip([192, 0, 2, 1].into()));
        assert_eq!(ip("[::FFFF:192.0.2.1]"), Host::Ip([192, 0, 2, 1].into()));
        assert_eq!(ip("::ffff:c000:201"), Host::Ip([192, 0, 2, 1].into()));
        assert_eq!(ip("[::1]"), Host::Ip(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(ip("１９２.0.2.1"), Host::Ip([192, 0, 2, 1].into()));
        assert!(matches!(
            HostName::parse("192.0.2.1"),
            Err(HostError::Address(_))
        ));
    }

    #[test]
    fn within_goes_by_labels() {
        let host = |text| HostName::parse(text).unwrap();
        assert!(host("a.b").is_within(&host("b")));
        assert!(host("b").is_within(&host("b")));
        assert!(!host("ab").is_within(&host("b")));
        assert!(!host("b").is_within(&host("a.b")));
    }

    proptest! {
        #[test]
        fn normalisation_is_idempotent(text in r"[a-zA-Z0-9äßσςＡ。._\-]{1,40}") {
            if let Ok(host) = Host::parse(&text) {
                prop_assert_eq!(Host::parse(&host.to_string()), Ok(host));
            }
        }

        #[test]
        fn case_and_trailing_dot_never_matter(text in r"[a-z0-9_]{1,9}(\.[a-z0-9-]{1,9}){0,3}") {
            let plain = Host::parse(&text);
            prop_assert_eq!(Host::parse(&text.to_uppercase()).ok(), plain.clone().ok());
            prop_assert_eq!(Host::parse(&format!("{text}.")).ok(), plain.ok());
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            if let Ok(host) = Host::parse(&text) {
                let safe = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.[]:".contains(c);
                prop_assert!(host.to_string().chars().all(safe));
            }
        }
    }
}
