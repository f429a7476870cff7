//! A policy as a JSON document.
//!
//! One flat structure is read first, so that a wrong key or value is reported where it stands;
//! only then does it become a policy, and keys that belong to another variant are refused.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use super::limits::{ResourceLimits, StatedLimits};
use super::network::Network;
use super::network_entry::NetworkAllowlistEntry;
use super::path_text;
use super::sandbox_policy::SandboxPolicy;
use super::seccomp_profile::SeccompProfile;
use super::sensitive::SensitivePath;
use super::writable_root::WritableRoot;

/// The largest document that is read.
pub const MAX_POLICY_BYTES: usize = 4 << 20;

/// Why a document is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PolicyJsonError {
    /// The document is malformed, or says something that no policy says.
    #[error("line {line}, column {column}: {message}")]
    Invalid {
        /// The line, from 1.
        line: usize,
        /// The column, in bytes, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// The document is larger than any policy.
    #[error("the policy has {0} bytes; at most {MAX_POLICY_BYTES} are read")]
    TooLarge(usize),
    /// The policy can't be written as JSON.
    #[error("the policy can't be written as JSON: {0}")]
    Write(String),
}

impl SandboxPolicy {
    /// Reads a policy.
    ///
    /// # Errors
    /// With line and column, if the document is not exactly one policy.
    pub fn from_json(document: &[u8]) -> Result<Self, PolicyJsonError> {
        if document.len() > MAX_POLICY_BYTES {
            return Err(PolicyJsonError::TooLarge(document.len()));
        }
        serde_json::from_slice(document).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let text = error.to_string();
            // The library appends the position; it has its own fields here.
            let suffix = format!(" at line {line} column {column}");
            PolicyJsonError::Invalid {
                line,
                column,
                message: text.strip_suffix(&suffix).unwrap_or(&text).to_owned(),
            }
        })
    }

    /// Writes the policy.
    ///
    /// # Errors
    /// If a path can't be written on this system.
    pub fn to_json(&self) -> Result<String, PolicyJsonError> {
        serde_json::to_string(self).map_err(|error| PolicyJsonError::Write(error.to_string()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Type {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
    ExternalSandbox,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyWire {
    #[serde(rename = "type")]
    kind: Type,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    writable_roots: Option<Vec<WritableRoot>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network_access: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network_allowlist: Option<Vec<NetworkAllowlistEntry>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    readable_paths: Option<Vec<ReadablePath>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sensitive_paths: Option<Vec<SensitivePath>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource_limits: Option<LimitsWire>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seccomp_profile: Option<SeccompProfile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exclude_cwd: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exclude_tmpdir_env_var: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exclude_slash_tmp: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// An absolute path to read.
#[derive(Serialize)]
#[serde(transparent)]
struct ReadablePath(#[serde(serialize_with = "path_text::serialize")] PathBuf);

/// Written in full, read in part.
enum LimitsWire {
    Full(ResourceLimits),
    Stated(StatedLimits),
}

#[derive(Debug, Error)]
pub(super) enum WireError {
    #[error("a policy of type `{kind}` has no `{key}`")]
    Foreign {
        kind: &'static str,
        key: &'static str,
    },
    #[error("a policy of type `{kind}` needs `{key}`")]
    Missing {
        kind: &'static str,
        key: &'static str,
    },
}

impl TryFrom<PolicyWire> for SandboxPolicy {
    type Error = WireError;

    fn try_from(wire: PolicyWire) -> Result<Self, WireError> {
        wire.refuse_foreign_keys()?;
        let network = Network::from_fields(
            wire.network_access,
            wire.network_allowlist.unwrap_or_default(),
        );
        let readable_paths = wire.readable_paths.unwrap_or_default();
        let readable_paths = readable_paths.into_iter().map(|path| path.0).collect();
        let limits = |base| {
            wire.resource_limits
                .map_or(base, |limits| limits.over(base))
        };
        let missing = |key| WireError::Missing {
            kind: wire.kind.name(),
            key,
        };
        Ok(match wire.kind {
            Type::ReadOnly => Self::ReadOnly {
                network,
                readable_paths,
                sensitive_paths: wire.sensitive_paths,
                resource_limits: limits(ResourceLimits::conservative()),
                seccomp_profile: wire.seccomp_profile.unwrap_or_default(),
            },
            Type::WorkspaceWrite => Self::WorkspaceWrite {
                writable_roots: wire
                    .writable_roots
                    .ok_or_else(|| missing("writable_roots"))?,
                network,
                readable_paths,
                sensitive_paths: wire.sensitive_paths,
                resource_limits: limits(ResourceLimits::default()),
                seccomp_profile: wire.seccomp_profile.unwrap_or_default(),
                exclude_cwd: wire.exclude_cwd.unwrap_or(false),
                exclude_tmpdir_env_var: wire.exclude_tmpdir_env_var.unwrap_or(true),
                exclude_slash_tmp: wire.exclude_slash_tmp.unwrap_or(true),
            },
            Type::DangerFullAccess => Self::DangerFullAccess,
            Type::ExternalSandbox => Self::ExternalSandbox {
                description: wire.description.ok_or_else(|| missing("description"))?,
            },
        })
    }
}

impl From<SandboxPolicy> for PolicyWire {
    fn from(policy: SandboxPolicy) -> Self {
        let (access, list) = match policy.network() {
            Network::Allowlist(list) => (!list.is_empty(), list.clone()),
            Network::Off => (false, Vec::new()),
            Network::Open => (true, Vec::new()),
        };
        let readable = |paths: Vec<PathBuf>| {
            let paths: Vec<_> = paths.into_iter().map(ReadablePath).collect();
            (!paths.is_empty()).then_some(paths)
        };
        match policy {
            SandboxPolicy::ReadOnly {
                network: _,
                readable_paths,
                sensitive_paths,
                resource_limits,
                seccomp_profile,
            } => Self {
                network_access: Some(access),
                network_allowlist: Some(list),
                readable_paths: readable(readable_paths),
                sensitive_paths,
                resource_limits: (resource_limits != ResourceLimits::conservative())
                    .then_some(LimitsWire::Full(resource_limits)),
                seccomp_profile: (seccomp_profile != SeccompProfile::default())
                    .then_some(seccomp_profile),
                ..Self::empty(Type::ReadOnly)
            },
            SandboxPolicy::WorkspaceWrite {
                writable_roots,
                network: _,
                readable_paths,
                sensitive_paths,
                resource_limits,
                seccomp_profile,
                exclude_cwd,
                exclude_tmpdir_env_var,
                exclude_slash_tmp,
            } => Self {
                writable_roots: Some(writable_roots),
                network_access: Some(access),
                network_allowlist: Some(list),
                readable_paths: readable(readable_paths),
                sensitive_paths,
                resource_limits: Some(LimitsWire::Full(resource_limits)),
                seccomp_profile: Some(seccomp_profile),
                exclude_cwd: exclude_cwd.then_some(true),
                exclude_tmpdir_env_var: Some(exclude_tmpdir_env_var),
                exclude_slash_tmp: Some(exclude_slash_tmp),
                ..Self::empty(Type::WorkspaceWrite)
            },
            SandboxPolicy::DangerFullAccess => Self::empty(Type::DangerFullAccess),
            SandboxPolicy::ExternalSandbox { description } => Self {
                description: Some(description),
                ..Self::empty(Type::ExternalSandbox)
            },
        }
    }
}

impl PolicyWire {
    fn empty(kind: Type) -> Self {
        Self {
            kind,
            writable_roots: None,
            network_access: None,
            network_allowlist: None,
            readable_paths: None,
            sensitive_paths: None,
            resource_limits: None,
            seccomp_profile: None,
            exclude_cwd: None,
            exclude_tmpdir_env_var: None,
            exclude_slash_tmp: None,
            description: None,
        }
    }

    fn refuse_foreign_keys(&self) -> Result<(), WireError> {
        use Type::{ExternalSandbox, ReadOnly, WorkspaceWrite};
        const BOTH: &[Type] = &[ReadOnly, WorkspaceWrite];
        let keys: [(&'static str, bool, &[Type]); 11] = [
            (
                "writable_roots",
                self.writable_roots.is_some(),
                &[WorkspaceWrite],
            ),
            ("network_access", self.network_access.is_some(), BOTH),
            ("network_allowlist", self.network_allowlist.is_some(), BOTH),
            ("readable_paths", self.readable_paths.is_some(), BOTH),
            ("sensitive_paths", self.sensitive_paths.is_some(), BOTH),
            ("resource_limits", self.resource_limits.is_some(), BOTH),
            ("seccomp_profile", self.seccomp_profile.is_some(), BOTH),
            ("exclude_cwd", self.exclude_cwd.is_some(), &[WorkspaceWrite]),
            (
                "exclude_tmpdir_env_var",
                self.exclude_tmpdir_env_var.is_some(),
                &[WorkspaceWrite],
            ),
            (
                "exclude_slash_tmp",
                self.exclude_slash_tmp.is_some(),
                &[WorkspaceWrite],
            ),
            (
                "description",
                self.description.is_some(),
                &[ExternalSandbox],
            ),
        ];
        match keys
            .iter()
            .find(|(_, present, owners)| *present && !owners.contains(&self.kind))
        {
            Some((key, _, _)) => Err(WireError::Foreign {
                kind: self.kind.name(),
                key,
            }),
            None => Ok(()),
        }
    }
}

impl Type {
    const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::WorkspaceWrite => "workspace_write",
            Self::DangerFullAccess => "danger_full_access",
            Self::ExternalSandbox => "external_sandbox",
        }
    }
}

impl LimitsWire {
    fn over(self, base: ResourceLimits) -> ResourceLimits {
        match self {
            Self::Full(limits) => limits,
            Self::Stated(stated) => stated.over(base),
        }
    }
}

impl Serialize for LimitsWire {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Full(limits) => limits.serialize(serializer),
            Self::Stated(stated) => stated.over(ResourceLimits::default()).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for LimitsWire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        StatedLimits::deserialize(deserializer).map(Self::Stated)
    }
}

impl<'de> Deserialize<'de> for ReadablePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = path_text::deserialize(deserializer)?;
        stockade_rules::AbsPath::new(path)
            .map(|path| Self(path.into_path_buf()))
            .map_err(serde::de::Error::custom)
    }
}
