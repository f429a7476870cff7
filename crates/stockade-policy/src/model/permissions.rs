//! What a single command asks for beyond the policy.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How a command relates to the policy in force.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "each must be handled where permissions are judged"
)]
pub enum SandboxPermissions {
    // In order of power: `merge` and `Ord` rely on it.
    /// It runs under the policy as it is.
    #[default]
    UseDefault,
    /// It asks for some paths more.
    WithAdditionalPermissions,
    /// It asks to run without the sandbox.
    RequireEscalated,
    /// It asks to go around the sandbox.
    BypassSandbox,
}

/// Paths that a command asks for beyond the policy.
///
/// A grant adds exactly what it names: a path to read becomes readable, a path to write becomes
/// readable and writable, and nothing else changes, not even the working directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdditionalPermissions {
    /// Paths to read; lifts a mask that lies over them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fs_read: Vec<PathBuf>,
    /// Paths to read and write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fs_write: Vec<PathBuf>,
}

/// Why a request is refused before anybody is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PermissionsError {
    /// Leaving the sandbox and adding paths to it exclude each other.
    #[error("additional paths can't be combined with leaving the sandbox")]
    Contradiction,
    /// Leaving the sandbox needs a reason.
    #[error("leaving the sandbox needs a justification")]
    NoJustification,
    /// Additional permissions without any path.
    #[error("additional permissions name no path")]
    NoPaths,
}

impl SandboxPermissions {
    /// Whether somebody must approve.
    pub const fn requires_approval(self) -> bool {
        !matches!(self, Self::UseDefault)
    }

    /// Whether it wants to run without the sandbox.
    pub const fn requires_escalated_permissions(self) -> bool {
        matches!(self, Self::RequireEscalated | Self::BypassSandbox)
    }

    /// Whether it wants anything beyond the policy.
    pub const fn requires_additional_permissions(self) -> bool {
        self.requires_approval()
    }

    /// Whether it wants some paths more, inside the sandbox.
    pub const fn uses_additional_permissions(self) -> bool {
        matches!(self, Self::WithAdditionalPermissions)
    }

    /// Whether it wants to go around the sandbox.
    pub const fn bypasses_sandbox(self) -> bool {
        matches!(self, Self::BypassSandbox)
    }

    /// The more powerful of two.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        self.max(other)
    }

    /// What the request means once its paths are known: paths without a mode ask for them.
    #[must_use]
    pub fn normalized_for(self, additional: &AdditionalPermissions) -> Self {
        if self == Self::UseDefault && !additional.is_empty() {
            Self::WithAdditionalPermissions
        } else {
            self
        }
    }

    /// Checks that a request is one that somebody could approve.
    ///
    /// # Errors
    /// If it contradicts itself, names nothing, or gives no reason for leaving the sandbox.
    pub fn check(
        self,
        additional: &AdditionalPermissions,
        justification: Option<&str>,
    ) -> Result<Self, PermissionsError> {
        let mode = self.normalized_for(additional);
        if mode.requires_escalated_permissions() {
            if !additional.is_empty() {
                return Err(PermissionsError::Contradiction);
            }
            if justification.is_none_or(|text| text.trim().is_empty()) {
                return Err(PermissionsError::NoJustification);
            }
        }
        if mode.uses_additional_permissions() && additional.is_empty() {
            return Err(PermissionsError::NoPaths);
        }
        Ok(mode)
    }
}

impl AdditionalPermissions {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.fs_read.is_empty() && self.fs_write.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SandboxPermissions as P;

    #[test]
    fn table() {
        let row = |p: P| {
            [
                p.requires_approval(),
                p.requires_escalated_permissions(),
                p.requires_additional_permissions(),
                p.uses_additional_permissions(),
                p.bypasses_sandbox(),
            ]
        };
        assert_eq!(row(P::UseDefault), [false; 5]);
        assert_eq!(
            row(P::WithAdditionalPermissions),
            [true, false, true, true, false]
        );
        assert_eq!(row(P::RequireEscalated), [true, true, true, false, false]);
        assert_eq!(row(P::BypassSandbox), [true, true, true, false, true]);
    }

    #[test]
    fn merge_takes_the_more_powerful() {
        assert_eq!(
            P::UseDefault.merge(P::WithAdditionalPermissions),
            P::WithAdditionalPermissions
        );
        assert_eq!(
            P::RequireEscalated.merge(P::WithAdditionalPermissions),
            P::RequireEscalated
        );
        assert_eq!(
            P::RequireEscalated.merge(P::BypassSandbox),
            P::BypassSandbox
        );
    }

    #[test]
    fn json_names() {
        let names = [
            P::UseDefault,
            P::RequireEscalated,
            P::WithAdditionalPermissions,
            P::BypassSandbox,
        ]
        .map(|p| serde_json::to_string(&p).unwrap());
        assert_eq!(
            names,
            [
                r#""use_default""#,
                r#""require_escalated""#,
                r#""with_additional_permissions""#,
                r#""bypass_sandbox""#
            ]
        );
        assert_eq!(
            serde_json::to_string(&AdditionalPermissions::default()).unwrap(),
            "{}"
        );
        assert!(serde_json::from_str::<AdditionalPermissions>(r#"{"fs_wirte":["/"]}"#).is_err());
    }

    #[test]
    fn requests_are_checked() {
        let paths = AdditionalPermissions {
            fs_write: vec!["/x".into()],
            ..Default::default()
        };
        let none = AdditionalPermissions::default();
        assert_eq!(
            P::UseDefault.check(&paths, None),
            Ok(P::WithAdditionalPermissions)
        );
        assert_eq!(P::UseDefault.check(&none, None), Ok(P::UseDefault));
        assert_eq!(
            P::WithAdditionalPermissions.check(&none, None),
            Err(PermissionsError::NoPaths)
        );
        assert_eq!(
            P::RequireEscalated.check(&none, Some("  ")),
            Err(PermissionsError::NoJustification)
        );
        assert_eq!(
            P::BypassSandbox.check(&none, Some("why")),
            Ok(P::BypassSandbox)
        );
        assert_eq!(
            P::BypassSandbox.check(&paths, Some("why")),
            Err(PermissionsError::Contradiction)
        );
    }
}
