//! An egress proxy: the names that were allowed can be reached, and nothing else.
//!
//! HTTP/1.1 with `CONNECT` and absolute-form, SOCKS5 with names, and, for connections that a
//! sandbox hands over, plain TCP and TLS whose client knows of no proxy. All of them ask one
//! decision ([`stockade_policy::host::Egress`]) before anything is looked up, resolve a name once,
//! check every address and dial what was checked.
//!
//! Protects the host's network, its neighbours and the cloud's metadata from code that may talk to
//! some names. It looks into TLS only where it is asked to read methods or to put values into
//! requests: otherwise a server that is allowed and serves other names under one certificate can
//! be asked for those (domain fronting), and what is sent to an allowed host is not inspected.
//!
//! [`NetworkProxy`] is the proxy by itself, on a loopback port; `SandboxProxy` is the one of a
//! sandbox, which nothing inside can go around.

mod attribution;
mod base64;
mod client_hello;
mod config;
mod development;
mod dial;
mod error;
mod first_bytes;
mod gate;
mod headers;
mod hosts_file;
mod http;
mod idle_timeout;
mod ledger;
mod log_file;
mod memory;
mod proxy;
mod rewind;
#[cfg(target_os = "linux")]
mod sandbox;
mod server;
mod shutdown;
mod socks5;
mod text;
mod tls;
mod tunnel;
mod upstream;
mod wire;

pub use config::{ConfigError, ProxyConfig, ProxyLimits};
pub use development::{default_development_config, preset_hosts};
pub use ledger::{Protocol, ProxyLogEntry, ProxyStats, Traffic};
pub use proxy::{NetworkProxy, ProxyError, StartError};
#[cfg(target_os = "linux")]
pub use sandbox::SandboxProxy;
pub use stockade_policy::host::EgressMode as ProxyMode;
pub use upstream::{Upstream, UpstreamError};

/// For the fuzz targets alone: the parsers of what a hostile client sends.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::client_hello::{ClientHello, read as client_hello};
    pub use crate::socks5::wire as socks5;
    pub use stockade_policy::host::dns::{Answer as DnsAnswer, respond as dns};
}
