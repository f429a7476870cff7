//! The network part of a profile.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::Serialize;
use stockade_rules::AbsPath;

use crate::host::{
    Host, HostError, HostName, HostPattern, Methods, NetDecision, NetReason, NetworkRules,
};

use super::choice::NetworkMode;
use super::mask::Mask;
use super::sourced::Sourced;

/// What of the network is reachable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NetworkProfile {
    /// How much there is at all.
    pub mode: Sourced<NetworkMode>,
    /// Names and addresses that may be reached, in the mode `allowlist`.
    pub allow: Vec<Sourced<HostPattern>>,
    /// Names and addresses that may not be reached, in any mode; they win over `allow`.
    pub block: Vec<Sourced<HostPattern>>,
    /// Names that mean a given address, private or not.
    pub resolve: Vec<Sourced<Pin>>,
    /// Which HTTP methods pass to them.
    pub methods: Sourced<Methods>,
    /// Whether connections pass that do not show which name they are for.
    pub danger_hidden_names: Sourced<bool>,
    /// Variables whose value is put in by the proxy, for single hosts.
    pub mask: Vec<Sourced<Mask>>,
    /// Unix sockets of the host that may be connected to.
    pub unix: Vec<Sourced<AbsPath>>,
    /// Ports on which the host can reach a server inside.
    pub expose: Vec<Sourced<u16>>,
    /// Ports of the host's loopback that can be reached from inside.
    pub host_port: Vec<Sourced<u16>>,
}

/// A name pinned to an address: `--resolve NAME=IP`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Pin {
    /// The name.
    pub name: HostName,
    /// What it means inside.
    pub address: IpAddr,
}

/// Why a text is no [`Pin`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PinError {
    /// There is no `=`.
    #[error("`{0}` is not of the form NAME=ADDRESS")]
    Form(String),
    /// The name is none.
    #[error(transparent)]
    Name(#[from] HostError),
    /// The address is none.
    #[error("`{0}` is not an IP address")]
    Address(String),
}

impl NetworkProfile {
    /// Decides about a connection, before any lookup.
    pub fn decide(&self, host: &Host, port: u16) -> NetDecision {
        let decision = self.rules().decide(host, port);
        match self.mode.value {
            NetworkMode::Allowlist => decision,
            _ if decision.reason == NetReason::Blocked => decision,
            NetworkMode::Off => NetDecision::off(host, port),
            NetworkMode::Open => NetDecision::open(),
        }
    }

    /// The masked variables, each with all the hosts that any layer names for it.
    pub fn masks(&self) -> Vec<Mask> {
        let mut masks: Vec<Mask> = Vec::new();
        for Sourced { value: mask, .. } in &self.mask {
            match masks.iter_mut().find(|own| own.name == mask.name) {
                Some(own) => own.hosts.extend(mask.hosts.iter().cloned()),
                None => masks.push(mask.clone()),
            }
        }
        masks
    }

    /// The lists alone, as the proxy takes them. They mean something in the mode `allowlist`.
    pub fn rules(&self) -> NetworkRules {
        let values = |list: &[Sourced<HostPattern>]| list.iter().map(|p| p.value.clone()).collect();
        let mut resolve = BTreeMap::<_, Vec<_>>::new();
        for Sourced { value: pin, .. } in &self.resolve {
            resolve
                .entry(pin.name.clone())
                .or_default()
                .push(pin.address);
        }
        NetworkRules {
            allow: values(&self.allow),
            block: values(&self.block),
            resolve,
            methods: self.methods.value,
            danger_hidden_names: self.danger_hidden_names.value,
        }
    }
}

impl FromStr for Pin {
    type Err = PinError;

    fn from_str(text: &str) -> Result<Self, PinError> {
        let (name, address) = text
            .split_once('=')
            .ok_or_else(|| PinError::Form(text.escape_debug().to_string()))?;
        Ok(Self {
            name: HostName::parse(name)?,
            address: address
                .parse()
                .map_err(|_| PinError::Address(address.escape_debug().to_string()))?,
        })
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_read_and_printed() {
        let pin: Pin = "A.test.=127.0.0.1".parse().unwrap();
        assert_eq!(pin.to_string(), "a.test=127.0.0.1");
        assert!("a.test=::1".parse::<Pin>().is_ok());
        for text in ["a.test", "a.test=b", "=1.2.3.4", "a b=1.2.3.4", ""] {
            assert!(text.parse::<Pin>().is_err(), "{text}");
        }
    }
}
