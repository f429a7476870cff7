//! A [`SandboxPolicy`], the small document that callers exchange, as a layer of a profile.

use stockade_rules::{AbsPath, Access, Origin, PathRule, Pattern};

use crate::model::{
    Network, ResourceLimits, SandboxPolicy, SeccompProfile, Surroundings, WritableRoot,
};

use super::choice::{BasePolicy, NetworkMode, SeccompMode};
use super::error::{LoadError, ProfileError};
use super::layer::{Layer, NetworkLayer};
use super::limits::{LimitKey, LimitSetting};
use super::sourced::Sourced;

/// A part of a policy that no sandbox can be made from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy key `{key}`: {reason}")]
#[non_exhaustive]
pub struct PolicyError {
    /// Which part.
    pub key: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

/// Reads a policy in JSON.
pub(super) fn json_layer(
    path: &AbsPath,
    bytes: &[u8],
    around: &Surroundings,
) -> Result<Layer, ProfileError> {
    let policy = SandboxPolicy::from_json(bytes).map_err(|source| LoadError::Json {
        path: path.clone(),
        source,
    })?;
    let origin = |key: &str| Origin::flag(format!("{path}: {key}"));
    Ok(policy_layer(&policy, around, &origin)?)
}

/// A policy as a layer; `origin` names the place of a key.
pub(super) fn policy_layer(
    policy: &SandboxPolicy,
    around: &Surroundings,
    origin: &dyn Fn(&str) -> Origin,
) -> Result<Layer, PolicyError> {
    let mut layer = Layer {
        network: network_layer(policy.network(), origin)?,
        ..Layer::default()
    };
    let base_policy = match policy {
        SandboxPolicy::ReadOnly { .. } => BasePolicy::ReadOnly,
        SandboxPolicy::WorkspaceWrite { .. } => BasePolicy::WorkspaceWrite,
        SandboxPolicy::DangerFullAccess => BasePolicy::DangerFullAccess,
        SandboxPolicy::ExternalSandbox { .. } => BasePolicy::External,
    };
    layer.base_policy = Some(Sourced::new(base_policy, origin("type")));
    if let SandboxPolicy::WorkspaceWrite {
        writable_roots,
        exclude_cwd,
        exclude_tmpdir_env_var,
        exclude_slash_tmp,
        ..
    } = policy
    {
        layer.exclude_cwd = Some(*exclude_cwd);
        for root in writable_roots {
            let rule = grant(root, Access::Write, "writable_roots", around, origin)?;
            layer.rules.push(rule);
        }
        let tmp = (!exclude_slash_tmp).then(|| WritableRoot::new("/tmp"));
        let tmpdir = around.tmpdir.clone().filter(|_| !exclude_tmpdir_env_var);
        for (root, key) in [
            (tmp, "exclude_slash_tmp"),
            (tmpdir.map(WritableRoot::from), "exclude_tmpdir_env_var"),
        ] {
            if let Some(root) = root {
                layer
                    .rules
                    .push(grant(&root, Access::Write, key, around, origin)?);
            }
        }
    }
    if let SandboxPolicy::ReadOnly {
        readable_paths,
        sensitive_paths,
        resource_limits,
        seccomp_profile,
        ..
    }
    | SandboxPolicy::WorkspaceWrite {
        readable_paths,
        sensitive_paths,
        resource_limits,
        seccomp_profile,
        ..
    } = policy
    {
        for path in readable_paths.iter().map(WritableRoot::new) {
            let rule = grant(&path, Access::Read, "readable_paths", around, origin)?;
            layer.rules.push(rule);
        }
        layer.sensitive = sensitive_paths.as_ref().map(|places| {
            let rules = places.iter().filter_map(|place| {
                let pattern = place.pattern(around.home.as_ref())?;
                Some(PathRule::stated(
                    pattern,
                    place.access()?,
                    origin("sensitive_paths"),
                ))
            });
            rules.collect()
        });
        layer.limits = limits(resource_limits)
            .map(|setting| Sourced::new(setting, origin("resource_limits")))
            .collect();
        add_seccomp(&mut layer, seccomp_profile, &origin("seccomp_profile"))?;
    }
    Ok(layer)
}

fn grant(
    root: &WritableRoot,
    access: Access,
    key: &'static str,
    around: &Surroundings,
    origin: &dyn Fn(&str) -> Origin,
) -> Result<PathRule, PolicyError> {
    let path = root.resolve(&around.cwd).ok_or_else(|| PolicyError {
        key,
        reason: "a path is empty or contains a NUL byte".to_owned(),
    })?;
    Ok(PathRule::stated(
        Pattern::Subtree(path),
        access,
        origin(key),
    ))
}

fn network_layer(
    network: &Network,
    origin: &dyn Fn(&str) -> Origin,
) -> Result<NetworkLayer, PolicyError> {
    let (mode, key) = match network {
        Network::Off => (NetworkMode::Off, "network_access"),
        Network::Open => (NetworkMode::Open, "network_access"),
        Network::Allowlist(_) => (NetworkMode::Allowlist, "network_allowlist"),
    };
    let mut layer = NetworkLayer {
        mode: Some(Sourced::new(mode, origin(key))),
        ..NetworkLayer::default()
    };
    for entry in network.allowlist() {
        let pattern = entry.pattern().map_err(|error| PolicyError {
            key: "network_allowlist",
            reason: error.to_string(),
        })?;
        // Only TCP is forwarded; an entry for UDP permits nothing.
        if entry.protocol == crate::model::Protocol::Tcp {
            layer.allow.push(Sourced::new(pattern, origin(key)));
        }
    }
    Ok(layer)
}

/// The limits that a policy states.
///
/// Zero means none there. A policy that states nothing but the default wall time leaves the rest
/// as Stockade has it, so that limits are on by default.
pub(super) fn limits(limits: &ResourceLimits) -> impl Iterator<Item = LimitSetting> {
    const MIB: u64 = 1 << 20;
    let ResourceLimits {
        max_memory_mb,
        max_pids,
        max_disk_mb,
        cpu_time_secs,
        timeout_secs: _,
    } = *limits;
    let silent = ResourceLimits {
        timeout_secs: 0,
        ..*limits
    } == ResourceLimits::unlimited();
    let times = |number: u64, unit: u64| (number > 0).then(|| number.saturating_mul(unit));
    let disk = times(max_disk_mb, MIB);
    [
        (LimitKey::Memory, times(max_memory_mb, MIB)),
        (LimitKey::Pids, times(max_pids.into(), 1)),
        (LimitKey::FileSize, disk),
        (LimitKey::TmpSize, disk),
        (LimitKey::CpuTime, times(cpu_time_secs, 1000)),
    ]
    .into_iter()
    .filter(move |_| !silent)
    .chain([(
        LimitKey::WallTime,
        times(limits.effective_timeout_secs(), 1000),
    )])
    .map(|(key, amount)| LimitSetting::new(key, amount))
}

/// The nearest filter that refuses at least what the profile refuses, short of a list shorter
/// than the shortest that ships.
fn add_seccomp(
    layer: &mut Layer,
    profile: &SeccompProfile,
    origin: &Origin,
) -> Result<(), PolicyError> {
    let covers = |all: &SeccompProfile| {
        all.blocked_syscalls
            .iter()
            .all(|name| profile.blocked_syscalls.contains(name))
    };
    let (strict, permissive) = (SeccompProfile::strict(), SeccompProfile::permissive());
    let (mode, known) = match (profile.log_only, covers(&strict)) {
        (true, _) => (SeccompMode::Logging, strict),
        (false, true) => (SeccompMode::Strict, strict),
        (false, false) => (SeccompMode::Permissive, permissive),
    };
    layer.seccomp = Some(Sourced::new(mode, origin.clone()));
    for name in &profile.blocked_syscalls {
        let parsed = name
            .parse()
            .map_err(|error: super::SyscallNameError| PolicyError {
                key: "seccomp_profile",
                reason: error.to_string(),
            })?;
        if !known.blocked_syscalls.contains(name) {
            layer
                .seccomp_block
                .push(Sourced::new(parsed, origin.clone()));
        }
    }
    if profile.allow_namespaces {
        layer.danger_nested_namespaces = Some(Sourced::new(true, origin.clone()));
    }
    Ok(())
}
