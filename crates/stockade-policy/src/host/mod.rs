//! Names and addresses on the network, and the one decision about them.
//!
//! Protects against a name that means one thing to the check and another to the resolver: upper
//! case, a trailing dot, full-width letters, `127.1`, `a@b`, an IPv4 address inside an IPv6 one.
//! Text becomes a [`HostName`] or an address once, at the door, and is compared only in that form.
//!
//! Nothing here looks a name up or opens a socket: the proxy does, and asks [`NetworkRules`]
//! before the lookup and again for the address that it is about to dial.

mod address;
mod egress;
mod methods;
mod name;
mod pattern;
mod preset;
mod rules;

pub use address::{AddressClass, address_class, embedded_ipv4};
pub use egress::{Egress, EgressMode};
pub use methods::Methods;
pub use name::{Host, HostError, HostName};
pub use pattern::{HostPattern, HostPatternError, HostSet};
pub use preset::{Allowed, AllowedError, Preset};
pub use rules::{NetDecision, NetReason, NetVerdict, NetworkRules, decide_network};
pub use stockade_rules::dns;
