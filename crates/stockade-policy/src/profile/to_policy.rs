//! A profile as a [`SandboxPolicy`], as far as that document can say it.

use std::time::Duration;

use stockade_rules::{AbsPath, Access, Kind, PathRule, Pattern, Rank};

use crate::model::{
    Network, NetworkAllowlistEntry, ResourceLimits, SandboxPolicy, SeccompProfile, SensitivePath,
    WritableRoot,
};

use super::Profile;
use super::choice::{Base, BasePolicy, NetworkMode, SeccompMode};
use super::limits::{LimitKey, Limits};
use super::network::NetworkProfile;
use super::protected::is_protection;
use super::seccomp::Seccomp;

/// A setting that a [`SandboxPolicy`] can't say, and would be wider without.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a policy can't say `{0}`; use a profile")]
#[non_exhaustive]
pub struct Inexpressible(String);

impl Profile {
    /// The profile as a policy that is no wider.
    ///
    /// Grants that the document has no word for (devices, sockets, ports, patterns, pinned names,
    /// variables) are left out. How the policy is to be enforced (level, backend, required
    /// clauses) is not part of it.
    ///
    /// # Errors
    /// If something narrows that the document has no word for: the minimal base, a pattern that
    /// is denied, a host or a method that is blocked.
    pub fn to_sandbox_policy(&self) -> Result<SandboxPolicy, Inexpressible> {
        match self.base_policy.value {
            BasePolicy::DangerFullAccess => {
                let plain = Limits::default();
                let same = |key: &LimitKey| self.limits.get(*key).value == plain.get(*key).value;
                if !LimitKey::ALL.iter().all(same) {
                    return Err(Inexpressible("limits without a sandbox".to_owned()));
                }
                return Ok(SandboxPolicy::DangerFullAccess);
            }
            BasePolicy::External => {
                return Ok(SandboxPolicy::ExternalSandbox {
                    description: self.base_policy.origin.to_string(),
                });
            }
            BasePolicy::ReadOnly | BasePolicy::WorkspaceWrite => {}
        }
        if self.base.value == Base::Minimal {
            return Err(Inexpressible("base minimal".to_owned()));
        }
        let network = network(&self.network)?;
        let sensitive_paths = Some(self.sensitive_paths()?);
        let readable_paths = self.granted(Access::Read, Rank::Stated);
        let readable_paths = readable_paths
            .map(|path| path.as_path().to_owned())
            .collect();
        let writable_roots = self.granted(Access::Write, Rank::Stated);
        let writable_roots: Vec<WritableRoot> = writable_roots.cloned().map(Into::into).collect();
        let has_cwd = self.granted(Access::Write, Rank::Default).next().is_some();
        let resource_limits = limits(&self.limits);
        let seccomp_profile = seccomp(&self.seccomp, self.danger_nested_namespaces.value);
        if writable_roots.is_empty() && !has_cwd {
            return Ok(SandboxPolicy::ReadOnly {
                network,
                readable_paths,
                sensitive_paths,
                resource_limits,
                seccomp_profile,
            });
        }
        Ok(SandboxPolicy::WorkspaceWrite {
            writable_roots,
            network,
            readable_paths,
            sensitive_paths,
            resource_limits,
            seccomp_profile,
            exclude_cwd: !has_cwd,
            exclude_tmpdir_env_var: true,
            exclude_slash_tmp: true,
        })
    }

    /// The paths, not patterns, that are granted so.
    fn granted(&self, access: Access, rank: Rank) -> impl Iterator<Item = &AbsPath> {
        let granted = move |rule: &&PathRule| rule.access == access && rule.rank == rank;
        self.rules
            .iter()
            .filter(granted)
            .filter_map(|rule| match &rule.pattern {
                Pattern::Subtree(path) => Some(path),
                Pattern::Glob(_) => None,
            })
    }

    /// Everything that is denied but the protected names, which the document has by itself.
    fn sensitive_paths(&self) -> Result<Vec<SensitivePath>, Inexpressible> {
        let denies = |rule: &&PathRule| rule.access.allows(Kind::Write) == Some(false);
        let denials = self.rules.iter().filter(denies);
        let denials = denials.filter(|rule| !is_protection(rule));
        denials.map(sensitive_path).collect()
    }
}

fn sensitive_path(rule: &PathRule) -> Result<SensitivePath, Inexpressible> {
    let path = match &rule.pattern {
        Pattern::Subtree(path) => path.as_path().to_owned(),
        // The document knows patterns at any depth only.
        Pattern::Glob(glob) if glob.as_str().starts_with("/**/") => {
            glob.as_str().trim_start_matches('/').into()
        }
        Pattern::Glob(_) => return Err(Inexpressible(rule.to_string())),
    };
    Ok(SensitivePath {
        path,
        block_read: rule.access.allows(Kind::Read) == Some(false),
        block_write: true,
    })
}

fn network(network: &NetworkProfile) -> Result<Network, Inexpressible> {
    if let (NetworkMode::Allowlist | NetworkMode::Open, Some(block)) =
        (network.mode.value, network.block.first())
    {
        return Err(Inexpressible(format!("block {block}")));
    }
    if network.mode.value == NetworkMode::Allowlist && network.methods.value.is_limited() {
        return Err(Inexpressible(format!("methods {}", network.methods)));
    }
    if network.mode.value == NetworkMode::Allowlist && network.danger_hidden_names.value {
        return Err(Inexpressible("danger_hidden_names".to_owned()));
    }
    Ok(match network.mode.value {
        NetworkMode::Off => Network::Off,
        NetworkMode::Open => Network::Open,
        NetworkMode::Allowlist => {
            let entries = network.allow.iter().flat_map(|allow| {
                let host = allow.value.hosts().to_string();
                let ports = allow
                    .value
                    .port()
                    .map_or_else(|| vec![80, 443], |port| vec![port]);
                ports
                    .into_iter()
                    .map(move |port| NetworkAllowlistEntry::with_port(host.clone(), port))
            });
            Network::only(entries.collect())
        }
    })
}

/// Rounded down, but never to zero, which would be no limit.
fn limits(limits: &Limits) -> ResourceLimits {
    let whole = |amount: Option<u64>, unit: u64| amount.map_or(0, |amount| (amount / unit).max(1));
    let seconds = |span: Option<Duration>| span.map_or(0, |span| span.as_secs().max(1));
    let disk = [limits.file_size(), limits.tmp_size()]
        .into_iter()
        .flatten()
        .min();
    ResourceLimits {
        max_memory_mb: whole(limits.memory(), 1 << 20),
        max_pids: u32::try_from(whole(limits.pids(), 1)).unwrap_or(u32::MAX),
        max_disk_mb: whole(disk, 1 << 20),
        cpu_time_secs: seconds(limits.cpu_time()),
        timeout_secs: seconds(limits.wall_time()),
    }
}

fn seccomp(seccomp: &Seccomp, nested_namespaces: bool) -> SeccompProfile {
    let base = match seccomp.mode.value {
        SeccompMode::Strict => SeccompProfile::strict(),
        SeccompMode::Permissive => SeccompProfile::permissive(),
        SeccompMode::Logging => SeccompProfile::logging(),
    };
    let blocked = seccomp.block.iter();
    let profile = blocked.fold(base, |profile, name| {
        profile.block_syscall(name.value.as_str())
    });
    SeccompProfile {
        allow_namespaces: nested_namespaces,
        ..profile
    }
}
