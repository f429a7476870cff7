//! An open session of a client, and how its sandbox is replaced.

use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use stockade::overlay::WorkspaceName;
use stockade::{Sandbox, Session, Stdio};

use crate::api;
use crate::command::{Command, OutputSink};
use crate::error::{Failure, Kind};
use crate::model_terminal::ModelTerminal;
use crate::open;

/// A sandbox that stays open for one client.
///
/// An overlay can be changed from outside or copied, and a path be granted, only while the sandbox is
/// closed. Then the sandbox is built again: `/tmp` is empty and what ran in the background is gone.
#[derive(Debug)]
pub struct ServedSession {
    params: Mutex<api::Open>,
    /// The overlay that is a copy of another session's, if it is one.
    fork: Option<WorkspaceName>,
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
        Self::over(params, None)
    }

    /// Opens a session over this overlay, if it is not the workspace's own.
    fn over(params: api::Open, fork: Option<WorkspaceName>) -> Result<Self, Failure> {
        let opened = Opened::new(&params, fork.as_ref())?;
        Ok(Self {
            params: Mutex::new(params),
            fork,
            open: RwLock::new(Some(opened)),
            commands: Mutex::default(),
        })
    }

    /// Opens a session with the same policy over a copy of the overlay.
    ///
    /// # Errors
    /// If a command runs, the session has no overlay, or the copy can't be made.
    pub fn fork(&self) -> Result<(Self, String), Failure> {
        let sandbox = self.while_closed(|sandbox| Ok(sandbox.fork()?))?;
        let name = sandbox.overlay_name()?.clone();
        let fork = Self::over(self.params(), Some(name.clone()));
        let fork = fork.inspect_err(|_| {
            // What was copied is of no use to anybody.
            let _ = sandbox.remove_overlay();
        })?;
        Ok((fork, name.to_string()))
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
        // The command's terminal takes the size of its model before the command starts, and is the
        // input itself: nobody would read from a pipe.
        let model = spec.terminal.map(ModelTerminal::new).transpose()?;
        command.stdin(match &model {
            Some(model) => Stdio::Fd(model.end.try_clone()?),
            None if spec.stdin => Stdio::Piped,
            None => Stdio::Null,
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
        let mut commands = self.commands();
        commands.retain(|command| !command.has_ended());
        commands.push(command.clone());
        Ok(command)
    }

    /// Adds grants. Hosts and Unix sockets hold at once, unless the sandbox needs a part for them that
    /// it was built without; other grants need the sandbox to be built again.
    ///
    /// # Errors
    /// If the sandbox has to be built again and a command runs, or the grants can't be enforced; then
    /// the session is as it was.
    pub fn allow(&self, grants: &api::Allow) -> Result<api::Allowed, Failure> {
        let mut params = self.params.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wider = params.clone();
        wider.allow.extend(grants.hosts.iter().cloned());
        wider.sockets.extend(grants.sockets.iter().cloned());
        wider.read.extend(grants.read.iter().cloned());
        wider.write.extend(grants.write.iter().cloned());
        // What can't be read must not cost the sandbox that is open.
        let sandbox = open::build(&wider, self.fork.as_ref())?;
        let adopted = opened(self.read().as_ref())?.session.adopt(&sandbox)?;
        if let Some(warnings) = adopted {
            *params = wider;
            return Ok(api::Allowed {
                rebuilt: false,
                warnings,
            });
        }
        match self.reopen(&wider, |_| Ok(())) {
            Ok(()) => {
                *params = wider;
                Ok(api::Allowed {
                    rebuilt: true,
                    warnings: self.report()?.warnings,
                })
            }
            Err(failure) => {
                self.reopen(&params, |_| Ok(()))?;
                Err(failure)
            }
        }
    }

    /// Closes the sandbox, does something with the overlay, and builds the sandbox again.
    pub(crate) fn while_closed<T>(
        &self,
        act: impl FnOnce(&Sandbox) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if let Some(open) = self.read().as_ref() {
            open.sandbox.overlay_name()?;
        }
        self.reopen(&self.params(), act)
    }

    fn params(&self) -> api::Open {
        let params = self.params.lock().unwrap_or_else(PoisonError::into_inner);
        params.clone()
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
            None => open::build(params, self.fork.as_ref()).and_then(|sandbox| act(&sandbox)),
        };
        *open = Some(Opened::new(params, self.fork.as_ref())?);
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
        let Some(Opened { session, sandbox }) = open.take() else {
            return Ok(api::Closed::default());
        };
        let report = session.close()?;
        if self.fork.is_some() && sandbox.diff()?.changes.is_empty() {
            // Nobody would look for it.
            sandbox.remove_overlay()?;
        }
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
    fn new(params: &api::Open, fork: Option<&WorkspaceName>) -> Result<Self, Failure> {
        let sandbox = open::build(params, fork)?;
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
