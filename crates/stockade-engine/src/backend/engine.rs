//! Stockade's own two tiers: `native` and `landlock`, the latter also without a mediator.

use std::borrow::Cow;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use stockade_linux::{Denial, LinuxPlan, Outcome, Running, Session, SpawnError};
use stockade_policy::profile::{Backend as Name, Profile};

use super::{Backend, Launch, NetworkSetup, RunningSandbox};
use crate::child::RunError;
use crate::lower::Mediator;
use crate::network::NetworkGuard;
use crate::plan::{ExecPlan, PlanError, Spec};
use crate::probe::{self, Support, Tier};

/// One of the two tiers that the helper carries out.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    tier: Tier,
    mediator: Mediator,
}

impl Engine {
    /// Namespaces, mounts, Landlock, seccomp and the mediator.
    pub fn native() -> Self {
        Self::mediated(Tier::Native)
    }

    /// The same without namespaces.
    pub fn landlock() -> Self {
        Self::mediated(Tier::Landlock)
    }

    /// Landlock and a filter, where another sandbox has the only listener: the names that are
    /// protected are not, so that only best effort gets it.
    pub fn unmediated() -> Self {
        Self {
            tier: Tier::Landlock,
            mediator: Mediator::Absent,
        }
    }

    /// Opens a session, for a plan of the backend `native`.
    pub(crate) fn open_session(
        plan: &ExecPlan,
        launch: &Launch<'_>,
    ) -> Result<(Session, Option<Box<dyn NetworkGuard>>), RunError> {
        with_network(plan, launch, |linux, attach| {
            Session::open(linux, launch.builder, attach)
        })
    }

    fn mediated(tier: Tier) -> Self {
        Self {
            tier,
            mediator: Mediator::Present,
        }
    }
}

impl Backend for Engine {
    fn name(&self) -> Name {
        match self.tier {
            Tier::Native => Name::Native,
            Tier::Landlock => Name::Landlock,
        }
    }

    fn probe(&self, helper: &Path) -> Support {
        match self.mediator {
            Mediator::Present => probe::engine(helper, self.tier),
            Mediator::Absent => probe::unmediated(helper),
        }
    }

    fn plan(&self, profile: &Profile, spec: &Spec) -> Result<ExecPlan, PlanError> {
        ExecPlan::in_tier(profile, spec, self.tier, self.mediator)
    }

    fn spawn(
        &self,
        plan: &ExecPlan,
        launch: &Launch<'_>,
    ) -> Result<Box<dyn RunningSandbox>, RunError> {
        let (running, network) = with_network(plan, launch, |linux, attach| {
            stockade_linux::spawn(linux, launch.builder, launch.standard, launch.kept, attach)
        })?;
        Ok(Box::new(Confined { running, network }))
    }
}

/// Starts something in a sandbox whose network is answered in.
fn with_network<T>(
    plan: &ExecPlan,
    launch: &Launch<'_>,
    start: impl FnOnce(
        &LinuxPlan,
        &mut dyn FnMut(Vec<OwnedFd>) -> io::Result<()>,
    ) -> Result<T, SpawnError>,
) -> Result<(T, Option<Box<dyn NetworkGuard>>), RunError> {
    let mut answering = NetworkSetup::new(plan, launch)?;
    let linux = match answering.trust(plan)? {
        Some(trust) => Cow::Owned(trusting(plan, trust)),
        None => Cow::Borrowed(&plan.linux),
    };
    let started = start(&linux, &mut |sockets| answering.attach(sockets))?;
    Ok((started, answering.guard))
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

impl RunningSandbox for Confined {
    fn take_network(&mut self) -> Option<Box<dyn NetworkGuard>> {
        self.network.take()
    }

    fn kill(&mut self) {
        self.running.kill();
    }

    fn killer(&self) -> Box<dyn FnOnce() + Send> {
        let life = self.running.lifeline();
        Box::new(move || life.cut())
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
