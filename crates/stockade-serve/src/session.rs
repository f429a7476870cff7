//! An open session of a client, and how its sandbox is replaced.

use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use stockade::{Sandbox, Session, Stdio};

use crate::api;
use crate::command::{Command, OutputSink};
use crate::error::{Failure, Kind};
use crate::open;

/// A sandbox that stays open for one client.
///
/// An overlay can be committed or discarded, and a grant be added, only while the sandbox is closed.
/// Then the sandbox is built again: `/tmp` is empty and what ran in the background is gone.
#[derive(Debug)]
pub struct ServedSession {
    params: Mutex<api::Open>,
    /// None when it was closed, or could not be opened again.
    open: RwLock<Option<Opened>>,
    commands: Mutex<Vec<Command>>,
}

#[derive(Debug)]
pub(crate) struct Opened {
    // Before the sandbox: it has the overlay.
    pub(crate) session: Session,
    pub(crate) sandbox: Sandbox,
}

/// A command to start.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct CommandSpec {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Where it starts, relative to the workspace.
    pub cwd: Option<String>,
    /// Variables to set.
    pub env: Vec<(String, String)>,
    /// When it is killed.
    pub timeout: Option<Duration>,
    /// The size of its terminal, if it gets one.
    pub terminal: Option<api::Size>,
    /// Whether its input stays open.
    pub stdin: bool,
    /// Bytes of output before more credit is needed.
    pub credit: Option<u64>,
}

impl ServedSession {
    /// Opens a session.
    ///
    /// # Errors
    /// If the policy can't be read or enforced.
    pub fn open(params: api::Open) -> Result<Self, Failure> {
        let opened = Opened::new(&params)?;
        Ok(Self {
            params: Mutex::new(params),
            open: RwLock::new(Some(opened)),
            commands: Mutex::default(),
        })
    }

    /// Starts a command.
    ///
    /// # Errors
    /// If it can't be started; then nothing of it has run.
    pub fn start(&self, spec: &CommandSpec, sink: Box<dyn OutputSink>) -> Result<Command, Failure> {
        let open = self.read();
        let session = &opened(open.as_ref())?.session;
        let program = spec
            .argv
            .first()
            .ok_or_else(|| Failure::new(Kind::InvalidParams, "`argv` is empty"))?;
        let mut command = session.command(program);
        command
            .args(&spec.argv[1..])
            .stdout(Stdio::Piped)
            .stderr(Stdio::Piped);
        command.stdin(if spec.stdin {
            Stdio::Piped
        } else {
            Stdio::Null
        });
        command.terminal([spec.terminal.is_some(); 3]);
        if let Some(cwd) = &spec.cwd {
            command.current_dir(cwd);
        }
        for (name, value) in &spec.env {
            command.env(name, value);
        }
        if let Some(limit) = spec.timeout {
            command.timeout(limit);
        }
        let command = Command::attend(command.spawn()?, spec.credit, sink)?;
        if let Some(size) = spec.terminal {
            command.resize(size)?;
        }
        let mut commands = self.commands();
        commands.retain(|command| !command.has_ended());
        commands.push(command.clone());
        Ok(command)
    }

    /// Adds grants for commands that start later, by building the sandbox again.
    ///
    /// # Errors
    /// If a command runs, or the grants can't be enforced; then the session is as it was.
    pub fn allow(&self, grants: &api::Allow) -> Result<(), Failure> {
        let mut params = self.params.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wider = params.clone();
        wider.allow.extend(grants.hosts.iter().cloned());
        wider.sockets.extend(grants.sockets.iter().cloned());
        wider.read.extend(grants.read.iter().cloned());
        wider.write.extend(grants.write.iter().cloned());
        // What can't be read must not cost the sandbox that is open.
        open::build(&wider)?;
        match self.reopen(&wider, |_| Ok(())) {
            Ok(()) => {
                *params = wider;
                Ok(())
            }
            Err(failure) => {
                self.reopen(&params, |_| Ok(()))?;
                Err(failure)
            }
        }
    }

    /// Closes the sandbox, does something with what it left, and builds the sandbox again.
    pub(crate) fn while_closed<T>(
        &self,
        act: impl FnOnce(&Sandbox) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let params = self
            .params
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        self.reopen(&params, act)
    }

    fn reopen<T>(
        &self,
        params: &api::Open,
        act: impl FnOnce(&Sandbox) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut open = self.write();
        if self.commands().iter().any(|command| !command.has_ended()) {
            return Err(Failure::new(
                Kind::Busy,
                "a command runs in the session; wait for it or kill it first",
            ));
        }
        let acted = match open.take() {
            Some(Opened { session, sandbox }) => {
                session.close()?;
                act(&sandbox)
            }
            None => open::build(params).and_then(|sandbox| act(&sandbox)),
        };
        *open = Some(Opened::new(params)?);
        acted
    }

    /// Ends the session: everything in it is killed and gone when this returns.
    ///
    /// # Errors
    /// If its end can't be known.
    pub fn close(&self) -> Result<api::Closed, Failure> {
        let mut open = self.write();
        for command in self.commands().drain(..) {
            command.kill();
        }
        let Some(Opened { session, .. }) = open.take() else {
            return Ok(api::Closed::default());
        };
        let report = session.close()?;
        let records = report.network.iter().map(serde_json::to_value);
        Ok(api::Closed {
            denials: report.denials.iter().map(Into::into).collect(),
            network: records.filter_map(Result::ok).collect(),
        })
    }

    /// What the session enforces.
    ///
    /// # Errors
    /// If it was closed.
    pub fn report(&self) -> Result<api::Report, Failure> {
        let open = self.read();
        let plan = opened(open.as_ref())?.session.plan();
        let landlock = plan.linux.landlock.as_ref();
        Ok(api::Report {
            backend: plan.backend.to_string(),
            landlock_abi: landlock.map_or(0, |landlock| landlock.abi),
            enforcement: plan.enforcement.iter().map(Into::into).collect(),
            env_removed: plan.env_removed.clone(),
            warnings: plan.warnings.clone(),
        })
    }

    /// The directory that commands start in.
    ///
    /// # Errors
    /// If it was closed.
    pub fn workspace(&self) -> Result<String, Failure> {
        let open = self.read();
        let profile = opened(open.as_ref())?.sandbox.profile();
        Ok(shown(profile.cwd.as_path()))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Option<Opened>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<Opened>> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn commands(&self) -> std::sync::MutexGuard<'_, Vec<Command>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Opened {
    fn new(params: &api::Open) -> Result<Self, Failure> {
        let sandbox = open::build(params)?;
        let session = sandbox.open()?;
        Ok(Self { session, sandbox })
    }
}

pub(crate) fn opened(open: Option<&Opened>) -> Result<&Opened, Failure> {
    open.ok_or_else(|| Failure::new(Kind::Ended, "the session has ended"))
}

pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
