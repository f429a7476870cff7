//! A command as it is asked for, and as it is to be executed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::env::Env;
use crate::model::SandboxPermissions;

/// A command to be executed.
///
/// The words are `OsString`, because arguments need not be Unicode. `CommandSpec<String>` exists
/// so that a literal with `"cat".to_string()` can be written; it turns into the real thing with
/// `into()`, which is what every function here takes.
///
/// ```
/// use stockade_policy::CommandSpec;
///
/// let spec = CommandSpec {
///     program: "cat".to_string(),
///     args: vec!["file.txt".to_string()],
///     ..Default::default()
/// };
/// let spec: CommandSpec = spec.into();
/// assert_eq!(spec, CommandSpec::new("cat").with_args(["file.txt"]));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandSpec<S = OsString> {
    /// The program: a path, or a name to be found on the command's own `PATH`.
    pub program: S,
    /// Its arguments, without the program.
    pub args: Vec<S>,
    /// The directory it starts in.
    pub cwd: PathBuf,
    /// Variables to set, beside those that pass by policy.
    pub env: BTreeMap<S, S>,
    /// When it is to be ended if it does not end by itself.
    pub expiration: ExecExpiration,
    /// What it asks for beyond the policy.
    pub sandbox_permissions: SandboxPermissions,
    /// Why it asks.
    pub justification: Option<String>,
}

/// What ends a command that does not end by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever runs a command must honour each"
)]
pub enum ExecExpiration {
    /// Someone cancels it.
    Cancellation(CancellationToken),
    /// Thirty seconds.
    #[default]
    DefaultTimeout,
    /// This long.
    Timeout(Duration),
}

/// A flag that one side raises and the other looks at. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct CancellationToken(Arc<AtomicBool>);

/// A command ready to be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecEnv {
    /// The program to execute: the command's own, or a helper that builds the sandbox.
    pub program: PathBuf,
    /// Its arguments, without the program.
    pub args: Vec<OsString>,
    /// The directory it starts in.
    pub cwd: PathBuf,
    /// Its whole environment; nothing is inherited.
    pub env: Env,
    /// When it is to be ended.
    pub expiration: ExecExpiration,
    /// Whether a sandbox will be around it. A plan, not a measurement: what holds is in the
    /// enforcement report of the run.
    pub sandbox_active: bool,
    /// The kind of that sandbox.
    pub sandbox_type: SandboxType,
}

/// The kind of sandbox around a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the seeds fix these four")]
pub enum SandboxType {
    /// Linux namespaces, Landlock and seccomp.
    LinuxLandlock,
    /// The macOS sandbox.
    MacosSeatbelt,
    /// No sandbox.
    #[default]
    None,
    /// Kept for the name; there is no such backend.
    WindowsRestrictedToken,
}

/// Why a command can't be turned into an executable plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SandboxTransformError {
    /// The plan could not be made.
    #[error("could not create the sandbox: {0}")]
    CreationFailed(String),
    /// The policy contradicts itself or this command.
    #[error("invalid policy: {0}")]
    InvalidPolicy(String),
    /// The helper that builds the sandbox was not named.
    #[error("the sandbox needs its helper program, and no path to it was given")]
    MissingSandboxExecutable,
    /// This system has no sandbox of that kind.
    #[error("the sandbox {0} is not available on this system")]
    UnavailableSandboxType(SandboxType),
}

/// The time a command gets when nothing else is said.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

impl CommandSpec {
    /// A program without arguments.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            ..Self::default()
        }
    }

    /// Replaces the arguments.
    #[must_use]
    pub fn with_args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the directory.
    #[must_use]
    pub fn with_cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = cwd.into();
        self
    }

    /// Replaces the variables.
    #[must_use]
    pub fn with_env<K: Into<OsString>, V: Into<OsString>>(
        mut self,
        env: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.env = env.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        self
    }

    /// Sets the expiration.
    #[must_use]
    pub fn with_expiration(mut self, expiration: impl Into<ExecExpiration>) -> Self {
        self.expiration = expiration.into();
        self
    }

    /// Sets what it asks for.
    #[must_use]
    pub fn with_sandbox_permissions(mut self, permissions: SandboxPermissions) -> Self {
        self.sandbox_permissions = permissions;
        self
    }

    /// Sets why it asks.
    #[must_use]
    pub fn with_justification(mut self, justification: impl Into<String>) -> Self {
        self.justification = Some(justification.into());
        self
    }

    /// The program and its arguments: what is judged is what is executed.
    pub fn full_command(&self) -> Vec<OsString> {
        std::iter::once(&self.program)
            .chain(&self.args)
            .cloned()
            .collect()
    }
}

impl From<CommandSpec<String>> for CommandSpec {
    fn from(spec: CommandSpec<String>) -> Self {
        Self {
            program: spec.program.into(),
            args: spec.args.into_iter().map(Into::into).collect(),
            cwd: spec.cwd,
            env: spec
                .env
                .into_iter()
                .map(|(k, v)| (k.into(), v.into()))
                .collect(),
            expiration: spec.expiration,
            sandbox_permissions: spec.sandbox_permissions,
            justification: spec.justification,
        }
    }
}

impl ExecExpiration {
    /// The time limit in milliseconds; none where only cancellation ends the command.
    pub fn timeout_ms(&self) -> Option<u64> {
        self.timeout_duration()
            .map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX))
    }

    /// The time limit; none where only cancellation ends the command.
    pub fn timeout_duration(&self) -> Option<Duration> {
        match self {
            Self::Cancellation(_) => None,
            Self::DefaultTimeout => Some(DEFAULT_TIMEOUT),
            Self::Timeout(limit) => Some(*limit),
        }
    }
}

/// Milliseconds.
impl From<u64> for ExecExpiration {
    fn from(milliseconds: u64) -> Self {
        Self::Timeout(Duration::from_millis(milliseconds))
    }
}

/// Milliseconds, or the default.
impl From<Option<u64>> for ExecExpiration {
    fn from(milliseconds: Option<u64>) -> Self {
        milliseconds.map_or(Self::DefaultTimeout, Self::from)
    }
}

impl From<Duration> for ExecExpiration {
    fn from(limit: Duration) -> Self {
        Self::Timeout(limit)
    }
}

impl From<CancellationToken> for ExecExpiration {
    fn from(token: CancellationToken) -> Self {
        Self::Cancellation(token)
    }
}

impl CancellationToken {
    /// A flag that is down.
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the flag, for good.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the flag is up.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Two tokens are equal if they share one flag.
impl PartialEq for CancellationToken {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CancellationToken {}

impl SandboxType {
    /// The kind that this operating system has.
    pub const fn platform_default() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacosSeatbelt
        } else if cfg!(target_os = "linux") {
            Self::LinuxLandlock
        } else if cfg!(windows) {
            Self::WindowsRestrictedToken
        } else {
            Self::None
        }
    }

    /// Whether this build has a backend of the kind.
    ///
    /// Says nothing about the running kernel, which is probed by trying. Windows has none.
    pub const fn is_available(self) -> bool {
        match self {
            Self::LinuxLandlock => cfg!(target_os = "linux"),
            Self::MacosSeatbelt => cfg!(target_os = "macos"),
            Self::None => true,
            Self::WindowsRestrictedToken => false,
        }
    }

    /// The name, as the marker variable carries it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LinuxLandlock => "LinuxLandlock",
            Self::MacosSeatbelt => "MacosSeatbelt",
            Self::None => "None",
            Self::WindowsRestrictedToken => "WindowsRestrictedToken",
        }
    }
}

impl fmt::Display for SandboxType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expirations() {
        let token = CancellationToken::new();
        assert_eq!(ExecExpiration::default().timeout_ms(), Some(30_000));
        assert_eq!(ExecExpiration::from(1500).timeout_ms(), Some(1500));
        assert_eq!(ExecExpiration::from(None), ExecExpiration::DefaultTimeout);
        assert_eq!(ExecExpiration::from(token.clone()).timeout_ms(), None);
        let forever = ExecExpiration::Timeout(Duration::MAX);
        assert_eq!(forever.timeout_ms(), Some(u64::MAX));
    }

    #[test]
    fn clones_of_a_token_share_the_flag() {
        let token = CancellationToken::new();
        let other = token.clone();
        assert!(!other.is_cancelled());
        token.cancel();
        assert!(other.is_cancelled());
        assert_eq!(token, other);
        assert_ne!(token, CancellationToken::new());
    }

    #[test]
    fn names_agree_with_debug() {
        for kind in [
            SandboxType::None,
            SandboxType::LinuxLandlock,
            SandboxType::MacosSeatbelt,
            SandboxType::WindowsRestrictedToken,
        ] {
            assert_eq!(kind.as_str(), format!("{kind:?}"));
        }
        assert!(!SandboxType::WindowsRestrictedToken.is_available());
    }

    #[test]
    fn builders_replace() {
        let spec = CommandSpec::new("a")
            .with_args(["b", "c"])
            .with_args(["d"])
            .with_env([("K", "V")])
            .with_cwd("/ws");
        assert_eq!(spec.full_command(), ["a", "d"]);
        assert_eq!(spec.cwd, PathBuf::from("/ws"));
        assert_eq!(spec.env.len(), 1);
    }
}
