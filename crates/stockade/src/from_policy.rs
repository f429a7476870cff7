//! A sandbox from the small policy document that callers exchange.

use std::path::{Path, PathBuf};

use stockade_policy::profile::{Profile, ProfileError};
use stockade_policy::{PathError, SandboxPolicy, Surroundings};

use crate::sandbox::Sandbox;

/// Why a policy makes no sandbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FromPolicyError {
    /// The directory is not absolute, or can't be a path.
    #[error("the working directory `{}` can't be used", .path.display())]
    Cwd {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: PathError,
    },
    /// The policy contradicts itself or names what can't exist.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

impl Sandbox {
    /// A sandbox that enforces `policy`, and nothing beside it: no file of the user or of the
    /// project is read. `cwd` is the directory that the policy is about and that commands start
    /// in; it must be absolute. For `helper` see [`Sandbox::new`].
    ///
    /// A policy that confines nothing ([`SandboxPolicy::DangerFullAccess`],
    /// [`SandboxPolicy::ExternalSandbox`]) makes a sandbox whose commands can't be started;
    /// [`SandboxManager`](crate::SandboxManager) is for those.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::path::Path;
    /// use stockade::Sandbox;
    /// use stockade_policy::SandboxPolicy;
    ///
    /// let policy = SandboxPolicy::workspace_write(vec![]);
    /// let helper = "/usr/local/bin/stockade";
    /// let sandbox = Sandbox::from_policy(&policy, Path::new("/home/me/project"), helper)?;
    /// let finished = sandbox.command("cargo").arg("test").status()?;
    /// assert_eq!(finished.status_code(), 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the policy or the directory makes no sense. Whether it can be enforced here is seen when
    /// a command is planned or started.
    pub fn from_policy(
        policy: &SandboxPolicy,
        cwd: &Path,
        helper: impl Into<PathBuf>,
    ) -> Result<Self, FromPolicyError> {
        let around = Surroundings::from_env(cwd).map_err(|source| FromPolicyError::Cwd {
            path: cwd.to_owned(),
            source,
        })?;
        Ok(Self::new(Profile::from_policy(policy, &around)?, helper))
    }
}
