//! A shell command as something to execute in its place.

use std::path::{Path, PathBuf};

use stockade_engine::SandboxManager;
use stockade_policy::{
    CommandSpec, ExecEnv, Network, ResourceLimits, SandboxPolicy, SandboxTransformError,
    SeccompProfile,
};

use super::Mode;
use crate::compat::or_current;

/// What [`wrap_command`] is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct SandboxConfig {
    /// How much the command may do.
    pub mode: Mode,
    /// The directory it starts in, and writes in the mode [`Mode::Workspace`]; the current one
    /// if empty.
    pub workspace_dir: PathBuf,
    /// Whether it has the host's network; a private loopback otherwise.
    pub allow_network: bool,
}

/// What to execute in place of a shell command; its environment is complete. `stockade` is the
/// path of that program.
///
/// # Errors
/// If the mode can't be enforced here.
pub fn wrap_command(
    command: &str,
    config: &SandboxConfig,
    stockade: &Path,
) -> Result<ExecEnv, SandboxTransformError> {
    let network = if config.allow_network {
        Network::Open
    } else {
        Network::Off
    };
    let policy = match config.mode {
        Mode::Strict => SandboxPolicy::ReadOnly {
            network,
            readable_paths: Vec::new(),
            sensitive_paths: None,
            resource_limits: ResourceLimits::default(),
            seccomp_profile: SeccompProfile::strict(),
        },
        Mode::Workspace => SandboxPolicy::WorkspaceWrite {
            writable_roots: Vec::new(),
            network,
            readable_paths: Vec::new(),
            sensitive_paths: None,
            resource_limits: ResourceLimits::default(),
            seccomp_profile: SeccompProfile::strict(),
            exclude_cwd: false,
            exclude_tmpdir_env_var: true,
            exclude_slash_tmp: true,
        },
        Mode::Off => SandboxPolicy::DangerFullAccess,
    };
    let stated = Some(config.workspace_dir.as_path()).filter(|dir| !dir.as_os_str().is_empty());
    let dir = or_current(stated)
        .map_err(|error| SandboxTransformError::InvalidPolicy(error.to_string()))?;
    let spec = CommandSpec::new("bash").with_args(["-c", command]);
    SandboxManager::new().transform(spec, &policy, &dir, Some(stockade))
}
