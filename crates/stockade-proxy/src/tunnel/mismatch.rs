//! A connection that is not for the name that was asked for, or does not show that it is.

use crate::gate::{Denial, Target};

/// Why a tunnel is refused after its first bytes.
#[derive(Debug)]
pub(super) struct Mismatch {
    rule: &'static str,
    reason: String,
    grant: Option<&'static str>,
}

impl Mismatch {
    pub(super) fn tls(reason: String) -> Self {
        Self {
            rule: "the name in TLS must be the name that was asked for",
            reason,
            grant: None,
        }
    }

    /// The name may be another one, and nobody can see it.
    pub(super) fn hidden(reason: &str) -> Self {
        Self {
            grant: Some("--danger-hidden-names"),
            ..Self::tls(reason.to_owned())
        }
    }

    pub(super) fn http(reason: String) -> Self {
        Self {
            rule: "`Host` must be the host that was asked for",
            reason,
            grant: None,
        }
    }

    pub(super) fn denial(self, target: &Target) -> Denial {
        Denial {
            host: target.host.to_string(),
            port: target.port,
            rule: Some(self.rule.to_owned()),
            reason: self.reason,
            grant: self.grant.map(str::to_owned),
        }
    }
}
