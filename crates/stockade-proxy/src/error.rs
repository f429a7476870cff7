//! Why a connection that the policy allows can't be made.

use std::io;
use std::time::Duration;

/// Why an allowed host can't be reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreachable {
    #[error("`{name}` can't be resolved: {source}")]
    Resolve { name: String, source: io::Error },
    #[error("`{0}` has no address")]
    NoAddress(String),
    #[error("`{name}` was not resolved within {after:?}")]
    ResolveTimeout { name: String, after: Duration },
    #[error("no connection to {to}: {source}")]
    Connect { to: String, source: io::Error },
    #[error("no connection to {to} within {after:?}")]
    ConnectTimeout { to: String, after: Duration },
    #[error("the upstream proxy answered {0} to CONNECT")]
    Upstream(hyper::StatusCode),
    #[error("the upstream proxy failed: {0}")]
    UpstreamHttp(#[from] hyper::Error),
    #[error("no answer from {to} within {after:?}")]
    Silent { to: String, after: Duration },
    #[error(
        "no TLS with the client: {source}; it must trust the certificates that SSL_CERT_FILE names"
    )]
    Client { source: io::Error },
    #[error("no TLS with {to} that can be trusted: {source}")]
    Tls { to: String, source: io::Error },
    #[error("{to} switched to another protocol, which nobody asked for")]
    Unasked { to: String },
    #[error("{to} broke off: {source}")]
    Broken { to: String, source: hyper::Error },
}

impl Unreachable {
    /// What an HTTP client is told.
    pub(crate) fn status(&self) -> hyper::StatusCode {
        match self {
            Self::ResolveTimeout { .. } | Self::ConnectTimeout { .. } | Self::Silent { .. } => {
                hyper::StatusCode::GATEWAY_TIMEOUT
            }
            _ => hyper::StatusCode::BAD_GATEWAY,
        }
    }
}
