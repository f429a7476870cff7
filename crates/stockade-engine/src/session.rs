//! A sandbox that stays open for many commands.
//!
//! The sandbox is built once; then each command costs a fork and an exec. Commands share the view
//! of files, `/tmp`, the loopback and what earlier ones left running; each has its own descriptors
//! or terminal, directory, environment, time limit, ending, usage and denials.

use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use stockade_linux::plan::{LinuxPlan, Text};
use stockade_linux::{Builder, Denial, Order, Outcome, SessionCommand as Running};
use stockade_policy::host::NetworkRules;
use stockade_policy::profile::Backend;

use crate::backend::{Engine, Launch, RunningSandbox};
use crate::child::{Child, RunError, is_directory, open_null};
use crate::network::{CommandId, NetworkGuard, NetworkOrder, NetworkRecord, NetworkService};
use crate::plan::{ExecPlan, PlanError, Spec};
use crate::report::{Ending, NetworkOutcome, Report};

/// A sandbox that stays open. Dropping it ends it and kills everything in it.
#[derive(Debug)]
pub struct Session {
    plan: Arc<ExecPlan>,
    engine: stockade_linux::Session,
    network: SharedGuard,
    opened: Instant,
}

/// What answers in a session's network, until the session is closed.
type SharedGuard = Arc<Mutex<Option<Box<dyn NetworkGuard>>>>;

/// A command to be started in a session.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct SessionSpec {
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// Variables to set. The others are those that the policy let pass when the session was opened.
    pub env: Vec<(OsString, OsString)>,
    /// Where the command starts, as seen inside; a relative path is relative to the session's
    /// directory, which is the default.
    pub cwd: PathBuf,
    /// Which of the standard three are a new terminal, the command's controlling one;
    /// [`Child::take_terminal`] gives its other end.
    pub terminal: [bool; 3],
    /// When the command is killed, if it has not ended; by default the policy's wall time.
    pub timeout: Option<Duration>,
}

impl Session {
    /// What a plan is made from that is for a session: it needs the name of a program, which is
    /// never executed.
    pub fn spec() -> Spec {
        Spec {
            argv: vec!["session".into()],
            session: true,
            ..Spec::default()
        }
    }

    /// Opens a session that carries out this plan, which was made from [`Session::spec`].
    ///
    /// # Errors
    /// If the sandbox can't be built, or the plan's backend has no sessions.
    pub fn open(
        mut plan: ExecPlan,
        builder: Builder<'_>,
        network: Option<&dyn NetworkService>,
    ) -> Result<Self, RunError> {
        if plan.backend != Backend::Native {
            return Err(RunError::NoSessions(plan.backend));
        }
        as_session(&mut plan.linux);
        let null = open_null()?;
        let launch = Launch {
            builder,
            standard: [null.as_fd(); 3],
            kept: &[],
            network,
        };
        let (engine, guard) = Engine::open_session(&plan, &launch)?;
        if let Some(guard) = &guard {
            guard.set_owner_lookup(engine.owner_lookup()?);
        }
        Ok(Self {
            plan: Arc::new(plan),
            engine,
            network: Arc::new(Mutex::new(guard)),
            opened: Instant::now(),
        })
    }

    /// Starts a command.
    ///
    /// # Errors
    /// If it could not be started; then nothing of it has run.
    pub fn start(
        &self,
        spec: &SessionSpec,
        standard: [BorrowedFd<'_>; 3],
    ) -> Result<Child, RunError> {
        if let Some((number, _)) = (0..).zip(standard).find(|(_, fd)| is_directory(*fd)) {
            // Whoever holds a directory of the host can climb from it to everywhere.
            return Err(RunError::Directory(number));
        }
        let running = self.engine.start(&self.order(spec)?, standard)?;
        let guard = CommandNetwork {
            session: Arc::clone(&self.network),
            command: running.id(),
        };
        Ok(Child::in_session(
            Arc::clone(&self.plan),
            Box::new(running),
            Box::new(guard),
            spec.timeout.or(self.plan.wall_time),
        ))
    }

    fn order(&self, spec: &SessionSpec) -> Result<Order, PlanError> {
        let text = |word: OsString| Text::new(word.clone()).ok_or(PlanError::Nul(word));
        let is_set = |entry: &&Text| {
            let name = entry.as_os_str().as_encoded_bytes();
            let name = name.split(|byte| *byte == b'=').next();
            let mut set = spec.env.iter().map(|(name, _)| name.as_encoded_bytes());
            set.any(|set| Some(set) == name)
        };
        let command = &self.plan.linux.command;
        let kept = command.env.iter();
        let mut env: Vec<Text> = kept.filter(|entry| !is_set(entry)).cloned().collect();
        for (name, value) in &spec.env {
            let mut entry = name.clone();
            entry.push("=");
            entry.push(value);
            env.push(text(entry)?);
        }
        let argv: Result<Vec<Text>, _> = spec.argv.iter().cloned().map(text).collect();
        Ok(Order {
            argv: argv?,
            env,
            cwd: text(command.cwd.as_path().join(&spec.cwd).into())?,
            terminal: spec.terminal,
        })
    }

    /// Takes over hosts and Unix sockets of a plan that differs in nothing else: they hold from now
    /// on, for commands that run already too. False if the sandbox has to be built again for it;
    /// then nothing has changed.
    ///
    /// # Errors
    /// If the session has ended.
    pub fn adopt(&self, plan: &ExecPlan) -> Result<bool, RunError> {
        let rules = |plan: &ExecPlan| plan.network.as_ref().map(|order| order.rules.clone());
        if differs_beyond_grants(&self.plan, plan) {
            return Ok(false);
        }
        // The sockets first: a grant that only half arrived is no more than was asked for.
        let mediation = plan.linux.mediation.as_ref();
        let granted = mediation.map_or(&[][..], |mediation| &mediation.unix_sockets);
        let texts = granted.iter().map(|path| Text::new(path.as_path()));
        let texts: Option<Vec<Text>> = texts.collect();
        if let Some(texts) = texts {
            self.engine.set_sockets(&texts)?;
        }
        let guard = locked(&self.network);
        Ok(match (rules(plan), guard.as_ref()) {
            (Some(rules), Some(guard)) => guard.set_rules(&rules),
            (wanted, _) => wanted.is_none(),
        })
    }

    /// What is carried out.
    pub fn plan(&self) -> &ExecPlan {
        &self.plan
    }

    /// Becomes readable when the session has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.engine.pidfd()
    }

    /// Kills everything in the session; [`Session::pidfd`] tells when it is gone.
    pub fn kill(&self) {
        self.engine.lifeline().cut();
    }

    /// Ends the session: everything in it is killed and gone when this returns. The report is about
    /// what belongs to no single command: connections that were let pass, and denials of daemons.
    ///
    /// # Errors
    /// If its end can't be known.
    pub fn close(mut self) -> Result<Report, RunError> {
        self.end()
    }

    /// The same for a session that is replaced later: it starts no command any more.
    ///
    /// # Errors
    /// If its end can't be known.
    pub fn end(&mut self) -> Result<Report, RunError> {
        let outcome = self.engine.close().map_err(|source| RunError::Io {
            act: "wait for the session",
            source,
        })?;
        let guard = locked(&self.network).take();
        let denials = self.engine.denials();
        let network = guard.map(|guard| NetworkOutcome::new(guard, denials));
        Ok(Report::begin(&self.plan).end(
            &self.plan,
            denials,
            outcome.usage,
            self.opened.elapsed(),
            Ending::Killed,
            network.unwrap_or_default(),
        ))
    }
}

/// Whether two plans differ in more than the hosts and Unix sockets that they grant.
fn differs_beyond_grants(old: &ExecPlan, new: &ExecPlan) -> bool {
    let rest = |plan: &ExecPlan| {
        let mut linux = plan.linux.clone();
        as_session(&mut linux);
        if let Some(mediation) = &mut linux.mediation {
            mediation.unix_sockets.clear();
        }
        // The names of groups are each plan's own.
        if let Some(cgroup) = &mut linux.cgroup {
            cgroup.commands = None;
            for group in &mut cgroup.groups {
                group.path = group.origin.clone();
            }
        }
        let order = plan.network.clone().map(|mut order| {
            order.rules = NetworkRules::default();
            order
        });
        let opens_tls = plan.network.as_ref().map(NetworkOrder::opens_tls);
        (plan.backend, linux, order, opens_tls)
    };
    rest(old) != rest(new)
}

/// The plan of a sandbox that stays open has no command.
fn as_session(linux: &mut LinuxPlan) {
    linux.session = true;
    linux.command.argv.clear();
}

impl RunningSandbox for Running {
    fn kill(&mut self) {
        Running::kill(self);
    }

    fn killer(&self) -> Box<dyn FnOnce() + Send> {
        Box::new(Running::killer(self))
    }

    fn take_terminal(&mut self) -> Option<OwnedFd> {
        Running::take_terminal(self)
    }

    fn hear(&mut self) -> io::Result<bool> {
        Running::hear(self)
    }

    fn take_stopped(&mut self) -> bool {
        Running::take_stopped(self)
    }

    fn messages(&self) -> BorrowedFd<'_> {
        Running::messages(self)
    }

    fn pidfd(&self) -> BorrowedFd<'_> {
        Running::pidfd(self)
    }

    fn denials(&self) -> &[Denial] {
        Running::denials(self)
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        Running::signal(self, signal)
    }

    fn wait(&mut self) -> Result<Outcome, RunError> {
        Running::wait(self).map_err(|source| RunError::Io {
            act: "wait for the command",
            source,
        })
    }
}

/// What concerns one command in a session's network: names, and the connections that were refused.
/// Other connections are the session's.
#[derive(Debug)]
struct CommandNetwork {
    session: SharedGuard,
    command: CommandId,
}

impl NetworkGuard for CommandNetwork {
    fn finish(self: Box<Self>) -> Vec<NetworkRecord> {
        let guard = locked(&self.session);
        let guard = guard.as_ref();
        guard.map_or_else(Vec::new, |guard| guard.take_refused(self.command))
    }

    fn name_of(&self, address: IpAddr) -> Option<String> {
        locked(&self.session).as_ref()?.name_of(address)
    }
}

fn locked(guard: &SharedGuard) -> std::sync::MutexGuard<'_, Option<Box<dyn NetworkGuard>>> {
    guard.lock().unwrap_or_else(PoisonError::into_inner)
}
