//! Trying a sandbox out: one command, or a self-test that says whether a policy really holds.
//!
//! A self-test has three answers, because "it failed" is not "it was refused": a program that is
//! missing, a directory that does not exist or a helper that crashed prove nothing about a
//! sandbox. Each test therefore runs controls: the same access outside, which must work, and
//! accesses inside that must work and must fail whatever the policy says. No test needs another
//! host, a shell or a program of the system.
//!
//! # Differences from VT Code's functions
//! - The functions are plain ones: they wait for a process. In an async program call them where
//!   blocking is allowed.
//! - The tests return a [`SelfTest`] in place of a boolean.
//! - The summary is of what was tried on this machine, by the helper, which it therefore needs.

#[cfg(target_os = "linux")]
mod self_test;
mod summary;

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use stockade_policy::{CommandSpec, ExecEnv, SandboxPolicy, SandboxTransformError, SandboxType};

use stockade_engine::SandboxManager;

#[cfg(target_os = "linux")]
pub use self_test::{SelfTest, Verdict, test_network_blocked, test_path_writable};
pub use summary::sandbox_capabilities_summary;

/// What became of a command that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxDebugResult {
    /// Whether it ended with 0.
    pub success: bool,
    /// Its exit code; none if a signal or the time limit ended it.
    pub exit_code: Option<i32>,
    /// What it wrote; bytes that are not Unicode are replaced.
    pub stdout: String,
    /// What it complained.
    pub stderr: String,
    /// What was around it.
    pub sandbox_type: SandboxType,
    /// Whether that was really there: the helper said that the command was started inside.
    pub sandbox_active: bool,
}

/// What `debug` commands of other programs offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "VT Code has these three")]
pub enum DebugSubcommand {
    /// What this machine offers.
    Capabilities,
    /// A command under Linux.
    Landlock,
    /// A command under macOS.
    Seatbelt,
}

/// Why nothing could be tried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DebugError {
    /// There is no command.
    #[error("no command was given")]
    Empty,
    /// The command could not be executed, or what it wrote not be read.
    #[error("`{program}` could not be run")]
    Execute {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// A control needs something of the host that it did not get.
    #[error("the self-test could not {act}")]
    Host {
        /// What was tried.
        act: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The sandbox could not be built, or the command not be run in it.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Sandbox(#[from] crate::Error),
    /// The policy can't be enforced.
    #[error(transparent)]
    Transform(#[from] SandboxTransformError),
}

impl SandboxDebugResult {
    /// There is no sandbox of this kind.
    pub fn unavailable(sandbox_type: SandboxType) -> Self {
        Self {
            success: false,
            exit_code: None,
            stdout: String::new(),
            stderr: format!("the sandbox {sandbox_type} is not available on this system"),
            sandbox_type,
            sandbox_active: false,
        }
    }
}

impl DebugSubcommand {
    /// The kind of sandbox that it is about.
    pub const fn sandbox_type(self) -> SandboxType {
        match self {
            Self::Capabilities => SandboxType::platform_default(),
            Self::Landlock => SandboxType::LinuxLandlock,
            Self::Seatbelt => SandboxType::MacosSeatbelt,
        }
    }
}

/// Runs a command under a policy to its end, at most thirty seconds, and tells what became of it.
///
/// A `sandbox_type` that this system does not have is an answer, not an error. Otherwise the
/// policy decides what is around the command, and the result says what was.
///
/// # Errors
/// If there is no command, or it can't be run under the policy.
pub fn debug_sandbox(
    sandbox_type: SandboxType,
    policy: &SandboxPolicy,
    command: &[impl AsRef<OsStr>],
    cwd: &Path,
    helper: Option<&Path>,
) -> Result<SandboxDebugResult, DebugError> {
    if !sandbox_type.is_available() {
        return Ok(SandboxDebugResult::unavailable(sandbox_type));
    }
    let (program, args) = command.split_first().ok_or(DebugError::Empty)?;
    let spec = CommandSpec::new(program.as_ref()).with_args(args.iter().map(AsRef::as_ref));
    if policy.has_full_disk_write_access() {
        bare(&SandboxManager::new().transform(spec, policy, cwd, helper)?)
    } else {
        confined(&spec, policy, cwd, helper)
    }
}

/// Through the library, so that the helper confirms that the command was started inside.
#[cfg(target_os = "linux")]
fn confined(
    spec: &CommandSpec,
    policy: &SandboxPolicy,
    cwd: &Path,
    helper: Option<&Path>,
) -> Result<SandboxDebugResult, DebugError> {
    let helper = helper.ok_or(SandboxTransformError::MissingSandboxExecutable)?;
    let sandbox = sandbox(policy, cwd, helper)?;
    let mut command = sandbox.command(&spec.program);
    if let Some(limit) = spec.expiration.timeout_duration() {
        command.timeout(limit);
    }
    let output = command
        .args(&spec.args)
        .stdin(crate::Stdio::Null)
        .output()?;
    let exit_code = match output.ending() {
        crate::Ending::Exited(code) => Some(code),
        _ => None,
    };
    Ok(SandboxDebugResult {
        success: exit_code == Some(0),
        exit_code,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        sandbox_type: SandboxType::platform_default(),
        sandbox_active: true,
    })
}

/// What a policy makes, and nothing beside it.
#[cfg(target_os = "linux")]
fn sandbox(
    policy: &SandboxPolicy,
    cwd: &Path,
    helper: &Path,
) -> Result<crate::Sandbox, crate::Error> {
    let mut builder = crate::Sandbox::builder();
    builder.policy(policy.clone()).workspace(cwd).helper(helper);
    builder.build()
}

/// Without anything around it, as the policy says.
#[cfg(target_os = "linux")]
fn bare(prepared: &ExecEnv) -> Result<SandboxDebugResult, DebugError> {
    use stockade_engine::probe::deadline::{self, Ended};
    let failed = |source| DebugError::Execute {
        program: prepared.program.display().to_string(),
        source,
    };
    let mut command = std::process::Command::new(&prepared.program);
    command
        .args(&prepared.args)
        .current_dir(&prepared.cwd)
        .env_clear()
        .envs(&prepared.env);
    let patience = prepared.expiration.timeout_duration().unwrap_or_default();
    let (exit_code, stdout, stderr) = match deadline::run(command, patience) {
        Ended::Exited {
            status,
            stdout,
            stderr,
        } => (status.code(), stdout, stderr),
        Ended::NotStarted(error) => return Err(failed(error)),
        Ended::TimedOut => (None, String::new(), "it took too long".to_owned()),
    };
    Ok(SandboxDebugResult {
        success: exit_code == Some(0),
        exit_code,
        stdout,
        stderr,
        sandbox_type: prepared.sandbox_type,
        sandbox_active: false,
    })
}

#[cfg(not(target_os = "linux"))]
fn confined(
    _: &CommandSpec,
    _: &SandboxPolicy,
    _: &Path,
    _: Option<&Path>,
) -> Result<SandboxDebugResult, DebugError> {
    Ok(SandboxDebugResult::unavailable(
        SandboxType::platform_default(),
    ))
}

#[cfg(not(target_os = "linux"))]
fn bare(prepared: &ExecEnv) -> Result<SandboxDebugResult, DebugError> {
    let output = std::process::Command::new(&prepared.program)
        .args(&prepared.args)
        .current_dir(&prepared.cwd)
        .env_clear()
        .envs(&prepared.env)
        .output()
        .map_err(|source| DebugError::Execute {
            program: prepared.program.display().to_string(),
            source,
        })?;
    Ok(SandboxDebugResult {
        success: output.status.success(),
        exit_code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        sandbox_type: prepared.sandbox_type,
        sandbox_active: false,
    })
}
