//! Stockade's own two tiers: `native` and `landlock`.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use stockade_linux::{Denial, Outcome, Running};
use stockade_policy::profile::{Backend as Name, Profile};

use super::{Backend, Held, Launch};
use crate::plan::{ExecPlan, PlanError, Spec};
use crate::probe::{self, Support, Tier};
use crate::sandbox::RunError;

/// One of the two tiers that the helper carries out.
#[derive(Clone, Copy, Debug)]
pub struct Engine(Tier);

impl Engine {
    /// Namespaces, mounts, Landlock, seccomp and the mediator.
    pub fn native() -> Self {
        Self(Tier::Native)
    }

    /// The same without namespaces.
    pub fn landlock() -> Self {
        Self(Tier::Landlock)
    }
}

impl Backend for Engine {
    fn name(&self) -> Name {
        match self.0 {
            Tier::Native => Name::Native,
            Tier::Landlock => Name::Landlock,
        }
    }

    fn probe(&self, helper: &Path) -> Support {
        probe::engine(helper, self.0)
    }

    fn plan(&self, profile: &Profile, spec: &Spec) -> Result<ExecPlan, PlanError> {
        ExecPlan::in_tier(profile, spec, self.0)
    }

    fn spawn(&self, plan: &ExecPlan, launch: &Launch<'_>) -> Result<Box<dyn Held>, RunError> {
        let running =
            stockade_linux::spawn(&plan.linux, launch.builder, launch.standard, launch.kept)?;
        Ok(Box::new(running))
    }
}

impl Held for Running {
    fn kill(&mut self) {
        Self::kill(self);
    }

    fn take_terminal(&mut self) -> Option<OwnedFd> {
        Self::take_terminal(self)
    }

    fn hear(&mut self) -> io::Result<bool> {
        Self::hear(self)
    }

    fn take_stopped(&mut self) -> bool {
        Self::take_stopped(self)
    }

    fn messages(&self) -> BorrowedFd<'_> {
        Self::messages(self)
    }

    fn pidfd(&self) -> BorrowedFd<'_> {
        Self::pidfd(self)
    }

    fn denials(&self) -> &[Denial] {
        Self::denials(self)
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        Self::signal(self, signal)
    }

    fn wait(&mut self) -> Result<Outcome, RunError> {
        Self::wait(self).map_err(|source| RunError::Io {
            act: "wait for the sandbox",
            source,
        })
    }
}
