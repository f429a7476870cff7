//! Backends: what can build a sandbox, each behind the same three acts.
//!
//! A backend is *tried* before it is believed ([`Backend::probe`] has it confine a command), makes
//! a plan that says clause by clause what it will enforce ([`Backend::plan`]), and carries the
//! plan out ([`Backend::spawn`]). All of them get the same view of files, worked out once by the
//! tier `native`; each says honestly which clauses it can't hold. A policy is never carried out
//! by a weaker backend than was asked for: what is missing is an error.
//!
//! [`Backends`] is the list to choose from. What is built in needs nothing but the host's own
//! programs; others (containers) are added by those who link them.

mod bwrap;
mod clauses;
mod engine;
mod external;
pub mod foundation;
mod gvisor;
mod lookup;
mod nsjail;
mod program;

use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use stockade_linux::{Builder, Denial, Outcome};
use stockade_policy::profile::{Backend as Name, BasePolicy, Level, Profile};

use crate::child::RunError;
use crate::network::{NetworkGuard, NetworkOrder, NetworkService, NetworkSession};
use crate::plan::{ExecPlan, PlanError, Spec};
use crate::probe::Support;

pub use bwrap::Bwrap;
pub use engine::Engine;
pub use external::External;
pub use gvisor::Gvisor;
pub use nsjail::Nsjail;

/// Something that can build a sandbox.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Under which name it is asked for.
    fn name(&self) -> Name;

    /// Whether it works here, by having it confine a command. `helper` is the program that acts
    /// as Stockade's helper.
    fn probe(&self, helper: &Path) -> Support;

    /// What a run would do, and what of the profile it would enforce.
    ///
    /// # Errors
    /// If the profile can't be enforced by this backend.
    fn plan(&self, profile: &Profile, spec: &Spec) -> Result<ExecPlan, PlanError>;

    /// Whether this backend made the plan.
    fn carries(&self, plan: &ExecPlan) -> bool {
        plan.backend == self.name()
    }

    /// Starts the command of a plan that this backend made.
    ///
    /// # Errors
    /// If it could not be started; then nothing of it has run.
    fn spawn(
        &self,
        plan: &ExecPlan,
        launch: &Launch<'_>,
    ) -> Result<Box<dyn RunningSandbox>, RunError>;
}

/// What a command is started with.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct Launch<'a> {
    /// Which process of ours begins it, where a process of ours does.
    pub builder: Builder<'a>,
    /// Standard input, output and error.
    pub standard: [BorrowedFd<'a>; 3],
    /// What the command has besides, with the numbers there.
    pub kept: &'a [(BorrowedFd<'a>, i32)],
    /// Who answers in the sandbox's network, where the plan has an order for it.
    pub network: Option<&'a dyn NetworkService>,
}

/// Who answers in a sandbox's network that is about to be, and then what does.
#[derive(Debug)]
pub struct NetworkSetup<'a> {
    ready: Option<(&'a NetworkOrder, Box<dyn NetworkSession>)>,
    /// What answers, once the sockets are there.
    pub guard: Option<Box<dyn NetworkGuard>>,
}

impl<'a> NetworkSetup<'a> {
    /// For a plan that is started with this.
    ///
    /// # Errors
    /// If no network service was given, or it failed to prepare.
    pub fn new(plan: &'a ExecPlan, launch: &Launch<'a>) -> Result<Self, RunError> {
        let ready = match (&plan.network, launch.network) {
            (None, _) => None,
            (Some(order), Some(service)) => {
                Some((order, service.prepare(order).map_err(not_ready)?))
            }
            (Some(_), None) => return Err(RunError::NoNetworkService),
        };
        Ok(Self { ready, guard: None })
    }

    /// The certificates that programs inside are to trust, in PEM, for the files of a plan where
    /// TLS is opened.
    ///
    /// # Errors
    /// If the plan needs them and there are none.
    pub fn trust(&self, plan: &ExecPlan) -> Result<Option<&str>, RunError> {
        if plan.linux.files.is_empty() {
            return Ok(None);
        }
        let trust = self.ready.as_ref().and_then(|ready| ready.1.trust());
        let reason = "the policy needs TLS to be opened, and the network service does not do that";
        let trust = trust.ok_or_else(|| not_ready(io::Error::other(reason)))?;
        Ok(Some(trust))
    }

    /// Has the sockets answered on, which came from inside.
    ///
    /// # Errors
    /// If they can't be; then the command does not run.
    pub fn attach(&mut self, sockets: Vec<OwnedFd>) -> io::Result<()> {
        if let Some((order, session)) = self.ready.take() {
            self.guard = Some(session.serve(order, sockets)?);
        }
        Ok(())
    }
}

fn not_ready(source: io::Error) -> RunError {
    RunError::Io {
        act: "make the network service ready",
        source,
    }
}

/// A sandbox that has been started. Dropping it ends it.
pub trait RunningSandbox: fmt::Debug + Send {
    /// Ends the sandbox: everything in it is killed. [`RunningSandbox::wait`] tells when it is gone.
    fn kill(&mut self);

    /// What ends the sandbox from another thread, as [`RunningSandbox::kill`] does.
    fn killer(&self) -> Box<dyn FnOnce() + Send>;

    /// Takes the launcher's end of the command's terminal, if the plan asked for one.
    fn take_terminal(&mut self) -> Option<OwnedFd>;

    /// Takes what answers in the sandbox's network, if the plan asked for it.
    fn take_network(&mut self) -> Option<Box<dyn NetworkGuard>> {
        None
    }

    /// Hears one message; false when there will be no more.
    ///
    /// # Errors
    /// If the sandbox can't be heard.
    fn hear(&mut self) -> io::Result<bool>;

    /// Whether the command was stopped (Ctrl-Z) since this was last asked.
    fn take_stopped(&mut self) -> bool;

    /// Becomes readable when [`RunningSandbox::hear`] has something to hear.
    fn messages(&self) -> BorrowedFd<'_>;

    /// Becomes readable when the sandbox has ended.
    fn pidfd(&self) -> BorrowedFd<'_>;

    /// What was refused so far, where that is known.
    fn denials(&self) -> &[Denial];

    /// Passes a signal on to the command's process group.
    ///
    /// # Errors
    /// If the sandbox has ended.
    fn signal(&self, signal: i32) -> io::Result<()>;

    /// Tells the command's terminal its size, where that is not the caller's own to tell.
    fn resize(&self, rows: u16, columns: u16) {
        let _ = (rows, columns);
    }

    /// Waits for the sandbox to end; everything in it is gone when this returns.
    ///
    /// # Errors
    /// If its end can't be known, or it turns out that the command was never started.
    fn wait(&mut self) -> Result<Outcome, RunError>;
}

/// The backends to choose from.
#[derive(Clone, Debug)]
pub struct Backends(Vec<Arc<dyn Backend>>);

impl Backends {
    /// Those that need no other crate.
    pub fn built_in() -> Self {
        Self(vec![
            Arc::new(Engine::native()),
            Arc::new(Engine::landlock()),
            Arc::new(Engine::unmediated()),
            Arc::new(Bwrap::new()),
            Arc::new(Nsjail::new()),
            Arc::new(Gvisor::new()),
            Arc::new(External),
        ])
    }

    /// None; those to choose from are to be added.
    pub fn empty() -> Self {
        Self(Vec::new())
    }

    /// The same and one more.
    #[must_use]
    pub fn with(mut self, backend: impl Backend + 'static) -> Self {
        self.0.push(Arc::new(backend));
        self
    }

    /// All of them, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Backend> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Plans a run with the backend that the profile names or its level means; no other is tried
    /// if it turns out that it does not work here ([`Backends::choose`] does).
    ///
    /// # Errors
    /// If that backend is missing or can't enforce the profile.
    pub fn plan(&self, profile: &Profile, spec: &Spec) -> Result<ExecPlan, PlanError> {
        self.choose(profile, Path::new(NO_HELPER))?.next(spec)
    }

    /// Starts the command of a plan that one of these made.
    ///
    /// # Errors
    /// If it could not be started; then nothing of it has run.
    pub fn spawn(
        &self,
        plan: &ExecPlan,
        launch: &Launch<'_>,
    ) -> Result<Box<dyn RunningSandbox>, RunError> {
        let maker = self.iter().find(|backend| backend.carries(plan));
        let maker = maker.ok_or(PlanError::Backend(plan.backend))?;
        maker.spawn(plan, launch)
    }
}

impl Default for Backends {
    fn default() -> Self {
        Self::built_in()
    }
}

/// A helper that is not there: no self-test can use it.
const NO_HELPER: &str = "/nonexistent";

/// The backend that a profile names; none where its level means one.
pub(crate) fn named(profile: &Profile) -> Result<Option<Name>, PlanError> {
    let stated = profile.backend.as_ref().map(|backend| backend.value);
    let base = profile.base_policy.value;
    match (base, stated) {
        (BasePolicy::ReadOnly | BasePolicy::WorkspaceWrite, _)
        | (BasePolicy::External, Some(Name::External)) => {}
        _ => return Err(PlanError::NotConfined(base)),
    }
    let level = profile.level.value;
    let Some(backend) = stated else {
        return match level {
            Level::Off => Err(PlanError::Danger(Name::None)),
            _ => Ok(None),
        };
    };
    if backend == Name::None {
        return Err(PlanError::Danger(backend));
    }
    if strength(backend) < level {
        return Err(PlanError::BelowLevel { backend, level });
    }
    Ok(Some(backend))
}

/// The highest level that a backend reaches.
pub(crate) fn strength(backend: Name) -> Level {
    match backend {
        Name::None => Level::Off,
        Name::Bwrap | Name::External | Name::Landlock | Name::Nsjail | Name::Seatbelt => {
            Level::Default
        }
        Name::Native => Level::Enhanced,
        Name::Docker => Level::Container,
        Name::Gvisor => Level::Maximum,
    }
}
