//! A policy whose words no longer depend on where it is read.

use std::path::{Path, PathBuf};

use stockade_policy::profile::Profile;
use stockade_policy::{
    AdditionalPermissions, ApprovalScope, CommandSpec, SandboxPermissions, SandboxPolicy,
    SandboxTransformError, Surroundings, WritableRoot,
};
use stockade_rules::AbsPath;

use super::{chain, invalid};

/// A command's policy and directory, both absolute. What is approved, checked, handed over and
/// enforced is this one value.
#[derive(Debug)]
pub(super) struct Pinned {
    /// Where the command starts.
    pub(super) start: AbsPath,
    pub(super) policy: SandboxPolicy,
}

impl Pinned {
    pub(super) fn new(
        spec: &CommandSpec,
        policy: &SandboxPolicy,
        sandbox_cwd: &Path,
    ) -> Result<Self, SandboxTransformError> {
        let around = surroundings(sandbox_cwd)?;
        let start = WritableRoot::new(&spec.cwd).resolve(&around.cwd);
        let start = match start {
            Some(start) => start,
            None if spec.cwd.as_os_str().is_empty() => around.cwd.clone(),
            None => return Err(invalid("the command's directory contains a NUL byte")),
        };
        Ok(Self {
            start,
            policy: pin(policy, &around)?,
        })
    }

    /// The same with what the command asks for beyond the policy.
    pub(super) fn widened(
        spec: &CommandSpec,
        policy: &SandboxPolicy,
        additional: &AdditionalPermissions,
        sandbox_cwd: &Path,
    ) -> Result<Self, SandboxTransformError> {
        let asks = spec.sandbox_permissions;
        let justification = spec.justification.as_deref();
        let mode = asks
            .check(additional, justification)
            .map_err(|error| invalid(error.to_string()))?;
        let wider = match mode {
            SandboxPermissions::UseDefault => policy.clone(),
            SandboxPermissions::WithAdditionalPermissions => policy
                .with_additional_permissions(additional, &surroundings(sandbox_cwd)?)
                .map_err(|error| invalid(error.to_string()))?,
            SandboxPermissions::RequireEscalated | SandboxPermissions::BypassSandbox => {
                SandboxPolicy::DangerFullAccess
            }
        };
        Self::new(spec, &wider, sandbox_cwd)
    }

    /// What an approval for it is about.
    pub(super) fn scope(&self, spec: &CommandSpec) -> ApprovalScope {
        let spec = spec.clone().with_cwd(self.start.as_path());
        ApprovalScope::new(&spec, &self.policy)
    }

    /// What the helper will find around it.
    #[cfg(target_os = "linux")]
    pub(super) fn surroundings_of_start(&self) -> Result<Surroundings, SandboxTransformError> {
        surroundings(self.start.as_path())
    }
}

/// The policy with a wall time of no more than the command's expiration, in whole seconds: the
/// sandbox then ends by itself, also where its starter is gone by then.
#[cfg(target_os = "linux")]
pub(crate) fn ending_in_time(
    policy: &SandboxPolicy,
    expiration: &stockade_policy::ExecExpiration,
) -> SandboxPolicy {
    let mut policy = policy.clone();
    let seconds = expiration.timeout_duration().map(whole_seconds);
    if let SandboxPolicy::ReadOnly {
        resource_limits, ..
    }
    | SandboxPolicy::WorkspaceWrite {
        resource_limits, ..
    } = &mut policy
        && let Some(seconds) = seconds
    {
        let stated = resource_limits.effective_timeout_secs();
        resource_limits.timeout_secs = seconds.min(stated);
    }
    policy
}

/// Rounded up; none at all would mean the default.
#[cfg(target_os = "linux")]
fn whole_seconds(time: std::time::Duration) -> u64 {
    let more = u64::from(time.subsec_nanos() > 0);
    time.as_secs().saturating_add(more).max(1)
}

fn surroundings(cwd: &Path) -> Result<Surroundings, SandboxTransformError> {
    Surroundings::from_env(cwd).map_err(|error| {
        let text = format!("the sandbox directory `{}`: {error}", cwd.display());
        invalid(text)
    })
}

fn pin(
    policy: &SandboxPolicy,
    around: &Surroundings,
) -> Result<SandboxPolicy, SandboxTransformError> {
    let mut pinned = policy.clone();
    match &mut pinned {
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => {}
        SandboxPolicy::ReadOnly { readable_paths, .. } => absolute(readable_paths, around)?,
        SandboxPolicy::WorkspaceWrite {
            readable_paths,
            writable_roots,
            exclude_cwd,
            exclude_tmpdir_env_var,
            ..
        } => {
            absolute(readable_paths, around)?;
            // One decision about what is writable: the one that enforcement is made from.
            let profile =
                Profile::from_policy(policy, around).map_err(|error| invalid(chain(&error)))?;
            let mut roots: Vec<WritableRoot> = Vec::new();
            for root in writable_roots.iter() {
                roots.push(resolved(&root.root, around)?.into());
            }
            let implied = [
                (*exclude_cwd, Some(&around.cwd)),
                (*exclude_tmpdir_env_var, around.tmpdir.as_ref()),
            ];
            for (excluded, root) in implied {
                if let Some(root) = root
                    && !excluded
                    && profile.writable_roots.contains(root)
                {
                    roots.push(WritableRoot::from(root.clone()));
                }
            }
            *writable_roots = roots;
            *exclude_cwd = true;
            *exclude_tmpdir_env_var = true;
        }
    }
    Ok(pinned)
}

fn absolute(paths: &mut [PathBuf], around: &Surroundings) -> Result<(), SandboxTransformError> {
    for path in paths {
        *path = resolved(path, around)?.into_path_buf();
    }
    Ok(())
}

fn resolved(path: &Path, around: &Surroundings) -> Result<AbsPath, SandboxTransformError> {
    WritableRoot::new(path)
        .resolve(&around.cwd)
        .ok_or_else(|| invalid(format!("`{}` can't be a path", path.display())))
}
