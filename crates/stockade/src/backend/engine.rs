//! Stockade's own two tiers: `native` and `landlock`.

use std::borrow::Cow;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use stockade_linux::{Denial, LinuxPlan, Outcome, Running};
use stockade_policy::profile::{Backend as Name, Profile};

use super::{Answering, Backend, Held, Launch};
use crate::network::NetworkGuard;
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
        let mut answering = Answering::new(plan, launch)?;
        let linux = match answering.trust(plan)? {
            Some(trust) => Cow::Owned(trusting(plan, trust)),
            None => Cow::Borrowed(&plan.linux),
        };
        let running = stockade_linux::spawn(
            &linux,
            launch.builder,
            launch.standard,
            launch.kept,
            &mut |sockets| answering.attach(sockets),
        )?;
        Ok(Box::new(Confined {
            running,
            network: answering.guard,
        }))
    }
}

/// The plan with the certificates that programs inside are to trust.
fn trusting(plan: &ExecPlan, trust: &str) -> LinuxPlan {
    let mut linux = plan.linux.clone();
    for file in &mut linux.files {
        trust.clone_into(&mut file.content);
    }
    linux
}

/// A sandbox of the helper's, and what answers in its network.
#[derive(Debug)]
pub(super) struct Confined {
    pub(super) running: Running,
    pub(super) network: Option<Box<dyn NetworkGuard>>,
}

impl Held for Confined {
    fn take_network(&mut self) -> Option<Box<dyn NetworkGuard>> {
        self.network.take()
    }

    fn kill(&mut self) {
        self.running.kill();
    }

    fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.running.take_terminal()
    }

    fn hear(&mut self) -> io::Result<bool> {
        self.running.hear()
    }

    fn take_stopped(&mut self) -> bool {
        self.running.take_stopped()
    }

    fn messages(&self) -> BorrowedFd<'_> {
        self.running.messages()
    }

    fn pidfd(&self) -> BorrowedFd<'_> {
        self.running.pidfd()
    }

    fn denials(&self) -> &[Denial] {
        self.running.denials()
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        self.running.signal(signal)
    }

    fn wait(&mut self) -> Result<Outcome, RunError> {
        wait(&mut self.running)
    }
}

pub(super) fn wait(running: &mut Running) -> Result<Outcome, RunError> {
    running.wait().map_err(|source| RunError::Io {
        act: "wait for the sandbox",
        source,
    })
}
