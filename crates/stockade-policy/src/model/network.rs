//! The network of a policy, in one value that can't contradict itself.

use super::network_entry::{NetworkAllowlistEntry, Protocol};
use crate::host::{Host, NetDecision, NetworkRules};

/// Who may be reached.
///
/// Documents have a boolean `network_access` and a list instead; they become this at the door:
///
/// | `network_access` | list | meaning |
/// |---|---|---|
/// | `false` | any | [`Network::Off`]: an explicit no wins over the list |
/// | missing | empty | [`Network::Off`] |
/// | missing | not empty | [`Network::Allowlist`] |
/// | `true` | empty | [`Network::Open`] |
/// | `true` | not empty | [`Network::Allowlist`] |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "every enforcement point must handle each"
)]
pub enum Network {
    /// Only these. An empty list is the same as off.
    Allowlist(Vec<NetworkAllowlistEntry>),
    /// Nobody.
    #[default]
    Off,
    /// Everybody.
    Open,
}

impl Network {
    /// The value that a document's two fields stand for.
    pub fn from_fields(access: Option<bool>, list: Vec<NetworkAllowlistEntry>) -> Self {
        match (access, list.is_empty()) {
            (Some(false), _) | (None, true) => Self::Off,
            (Some(true), true) => Self::Open,
            (Some(true) | None, false) => Self::Allowlist(list),
        }
    }

    /// An allowlist, or off if it is empty.
    pub fn only(list: Vec<NetworkAllowlistEntry>) -> Self {
        Self::from_fields(None, list)
    }

    /// Whether nobody can be reached.
    pub fn is_off(&self) -> bool {
        match self {
            Self::Allowlist(list) => list.is_empty(),
            Self::Off => true,
            Self::Open => false,
        }
    }

    /// The allowlist; empty if there is none.
    pub fn allowlist(&self) -> &[NetworkAllowlistEntry] {
        match self {
            Self::Allowlist(list) => list,
            Self::Off | Self::Open => &[],
        }
    }

    /// Decides about a TCP connection.
    pub fn decide(&self, host: &Host, port: u16) -> NetDecision {
        match self {
            Self::Off => NetDecision::off(host, port),
            Self::Open => NetDecision::open(),
            Self::Allowlist(list) if list.is_empty() => NetDecision::off(host, port),
            Self::Allowlist(_) => self.rules().decide(host, port),
        }
    }

    /// The allowlist as rules; malformed entries allow nothing.
    pub fn rules(&self) -> NetworkRules {
        NetworkRules {
            allow: self
                .allowlist()
                .iter()
                .filter(|entry| entry.protocol == Protocol::Tcp)
                .filter_map(|entry| entry.pattern().ok())
                .collect(),
            ..NetworkRules::default()
        }
    }

    /// What can be reached here and not by `other`.
    pub(super) fn wider_than(&self, other: &Self) -> Option<String> {
        match (self, other) {
            (Self::Off, _) | (_, Self::Open) => None,
            (Self::Open, _) => Some("every host".to_owned()),
            (Self::Allowlist(new), _) => new
                .iter()
                .filter(|entry| entry.pattern().is_ok())
                .find(|entry| !other.allowlist().iter().any(|old| old.covers(entry)))
                .map(|entry| format!("{}:{}", entry.domain, entry.port)),
        }
    }
}
