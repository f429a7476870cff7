//! One act of sending, and how bad it is.

use super::sensitive::Data;
use crate::finding::ThreatLevel;
use crate::hosts::{HostList, Standing, is_or_below, standing};

/// Something that goes out, or could.
#[derive(Clone, Debug)]
pub(super) struct Outflow {
    pub(super) rule: &'static str,
    /// What happens, for a person: "curl sends".
    pub(super) act: &'static str,
    pub(super) hosts: Vec<String>,
    pub(super) data: Data,
    pub(super) manner: Manner,
    /// A short host name is no excuse: what is sent was taken from the machine.
    pub(super) wary: bool,
}

/// How it goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// A request or connection that carries nothing of its own.
    Contact,
    /// A log-in or session: expected to carry what the user types.
    Session,
    /// Data is sent as the purpose of the command.
    Send,
    /// Publishing to a place that the tool's own configuration names.
    Publish,
    /// Data hidden in something else: a name to resolve, a header.
    Covert,
    /// A shell is handed to the other side.
    Shell,
    /// A way in is opened: a tunnel to this machine.
    Tunnel,
}

/// The level of an outflow, its confidence, and whether the host is the reason. `None` if it is
/// nothing to speak of.
#[expect(
    clippy::match_same_arms,
    reason = "a table with one line for each manner reads better than merged patterns"
)]
pub(super) fn judge(outflow: &Outflow, allowed: &HostList) -> Option<(ThreatLevel, f32)> {
    use ThreatLevel::{Critical, High, Low, Medium};
    let unlisted: Vec<&String> = outflow
        .hosts
        .iter()
        .filter(|host| allowed.is_empty() || !allowed.allows(host))
        .collect();
    if !outflow.hosts.is_empty() && unlisted.is_empty() && outflow.manner != Manner::Shell {
        return None;
    }
    let standing = unlisted
        .iter()
        .map(|host| rank(standing(host)))
        .max()
        .unwrap_or(Rank::Unnamed);
    let rented = standing == Rank::Ordinary
        && outflow.manner == Manner::Send
        && outflow.data >= Data::Local
        && unlisted.iter().any(|host| is_rented(host));
    let standing = if outflow.wary && standing == Rank::Unnamed || rented {
        Rank::Unknown
    } else {
        standing
    };
    let level = match (outflow.manner, standing) {
        (Manner::Shell, _) => Critical,
        (Manner::Covert, Rank::Local) => Low,
        (Manner::Covert, _) => High,
        (Manner::Tunnel, _) => Medium,
        (Manner::Contact | Manner::Session, Rank::Metadata) => High,
        (Manner::Contact, Rank::Drop | Rank::Unknown) => Medium,
        (Manner::Session, Rank::Drop) => Medium,
        (Manner::Contact | Manner::Session, _) => return listed(allowed, &unlisted, standing),
        (Manner::Publish, _) => Low,
        (Manner::Send, Rank::Local) => {
            let abroad = outflow.wary && unlisted.iter().any(|host| is_neighbour(host));
            if outflow.data == Data::Sensitive || (abroad && outflow.data >= Data::Local) {
                Medium
            } else {
                return listed(allowed, &unlisted, standing);
            }
        }
        (Manner::Send, Rank::Ordinary) if unlisted.iter().any(|host| is_documentation(host)) => {
            Medium
        }
        (Manner::Send, Rank::Ordinary | Rank::Unnamed) => Low,
        (Manner::Send, Rank::Unknown) => Medium,
        (Manner::Send, Rank::Drop | Rank::Metadata) => High,
    };
    let level = if matches!(
        outflow.manner,
        Manner::Send | Manner::Publish | Manner::Covert | Manner::Session
    ) {
        match outflow.data {
            Data::None | Data::Literal => level,
            Data::Local if level >= Medium => level.raised(),
            Data::Local => level,
            Data::Environment => level.max(Medium).raised(),
            Data::Sensitive => level.max(High).max(if standing >= Rank::Unknown {
                Critical
            } else {
                High
            }),
        }
    } else {
        level
    };
    let level = if allowed.is_empty() {
        level
    } else {
        level.max(Medium)
    };
    let confidence = match level {
        ThreatLevel::None | Low => 0.4,
        Medium => 0.6,
        High => 0.8,
        Critical => 0.95,
    };
    Some((level, confidence))
}

/// With a list, a host that is not on it is worth a finding even for a mere contact.
fn listed(allowed: &HostList, unlisted: &[&String], standing: Rank) -> Option<(ThreatLevel, f32)> {
    (!allowed.is_empty() && !unlisted.is_empty() && standing != Rank::Local)
        .then_some((ThreatLevel::Medium, 0.6))
}

/// Standings in order of suspicion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Local,
    Unnamed,
    Ordinary,
    Unknown,
    Drop,
    Metadata,
}

const fn rank(standing: Standing) -> Rank {
    match standing {
        Standing::Local => Rank::Local,
        Standing::Unqualified => Rank::Unnamed,
        Standing::Ordinary => Rank::Ordinary,
        Standing::Unknown => Rank::Unknown,
        Standing::Drop => Rank::Drop,
        Standing::Metadata => Rank::Metadata,
    }
}

/// Names that stand for any host (RFC 2606): a fetch is an example, data sent there is not.
fn is_documentation(host: &str) -> bool {
    ["example.com", "example.net", "example.org"]
        .iter()
        .any(|name| is_or_below(host, name))
}

/// An address of the network around, not of this machine.
fn is_neighbour(host: &str) -> bool {
    host.parse::<std::net::IpAddr>()
        .is_ok_and(|address| !address.is_loopback() && !address.is_unspecified())
}

/// Names under which anyone can have a place of their own: ordinary to fetch from, not to send to.
fn is_rented(host: &str) -> bool {
    ["storage.googleapis.com", "githubusercontent.com"]
        .iter()
        .any(|name| is_or_below(host, name))
        || (is_or_below(host, "amazonaws.com") && host.contains("s3"))
}
