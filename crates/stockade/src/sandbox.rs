//! A policy that is ready to confine commands.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use stockade_engine::backend::Backends;
use stockade_engine::network::NetworkService;
use stockade_engine::{ExecPlan, SandboxSelection};
use stockade_policy::profile::{Level, Profile};

use crate::builder::SandboxBuilder;
use crate::command::Command;
use crate::error::Error;

/// A policy, the helper that enforces it and an overlay, if there is one; commands are started from
/// it. Cheap to clone; any number of threads may use one.
///
/// ```no_run
/// # fn main() -> Result<(), stockade::Error> {
/// use stockade::Sandbox;
///
/// stockade::init();
/// let sandbox = Sandbox::builder().overlay().build()?;
/// let finished = sandbox.command("./migrate.sh").status()?;
/// if finished.success() {
///     sandbox.commit()?;
/// } else {
///     sandbox.discard()?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Sandbox {
    pub(crate) parts: Arc<Parts>,
}

/// What every command of a sandbox shares.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) profile: Profile,
    pub(crate) helper: PathBuf,
    pub(crate) backends: Backends,
    pub(crate) network: Option<Arc<dyn NetworkService>>,
    #[cfg(feature = "overlay")]
    pub(crate) overlay: Option<crate::overlay::OverlayPlace>,
}

impl Parts {
    /// Refuses a plan that needs the proxy in a build that has none.
    pub(crate) fn require_network(&self, plan: &ExecPlan) -> Result<(), Error> {
        if plan.network.is_some() && self.network.is_none() {
            return Err(Error::Feature {
                what: "a list of allowed hosts",
                feature: "network",
            });
        }
        Ok(())
    }
}

impl Sandbox {
    /// Describes a sandbox: the current directory is writable, there is no network, the
    /// environment is an allowlist and credentials are hidden, until more is granted.
    pub fn builder() -> SandboxBuilder {
        SandboxBuilder::default()
    }

    /// A command to start; a program without a slash is looked up inside.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        Command::new(self.clone(), program.as_ref())
    }

    /// What would build the sandbox at this level, by trying. Nothing else is started.
    ///
    /// # Errors
    /// If nothing here reaches the level and enforces the policy.
    pub fn select(&self, level: Level) -> Result<SandboxSelection, Error> {
        let parts = &self.parts;
        Ok(parts
            .backends
            .select(level, &parts.profile, &parts.helper)?)
    }

    /// What the sandbox enforces.
    pub fn profile(&self) -> &Profile {
        &self.parts.profile
    }

    /// The helper that builds it.
    pub fn helper(&self) -> &std::path::Path {
        &self.parts.helper
    }
}
