//! A command to be started in a sandbox, with the verbs of [`std::process::Command`].

mod output;
pub(crate) mod stdio;

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use stockade_engine::backend::Launch;
use stockade_engine::{
    Attempt, Child as Running, CountedOutput, ExecPlan, Finished, PlanError, RunError, Spec,
};
use stockade_linux::Builder;
use stockade_policy::AbsPath;
use stockade_policy::profile::{EnvName, EnvVar, LimitSetting, Profile, Sourced};
use stockade_rules::Origin;

use crate::child::Child;
use crate::error::Error;
use crate::sandbox::Sandbox;

pub use output::Output;
pub(crate) use output::collect;
pub use stdio::Stdio;

use self::stdio::Ends;

/// The setters that every kind of command has, of which `argv` is the field with the arguments.
macro_rules! command_setters {
    ($($argv:ident).+) => {
    /// Adds an argument.
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.$($argv).+.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args(&mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        for argument in arguments {
            self.arg(argument);
        }
        self
    }

    /// What the command reads.
    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Self {
        self.standard[0] = stdin.into();
        self
    }

    /// Where its output goes.
    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Self {
        self.standard[1] = stdout.into();
        self
    }

    /// Where its errors go.
    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Self {
        self.standard[2] = stderr.into();
        self
    }
    };
}
pub(crate) use command_setters;

/// A command to be started in a sandbox. It can be started any number of times.
#[derive(Debug)]
pub struct Command {
    sandbox: Sandbox,
    argv: Vec<OsString>,
    /// The environment from which the profile selects what is handed on.
    inherited: Vec<(OsString, OsString)>,
    set: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
    timeout: Option<Duration>,
    standard: [Stdio; 3],
    keep: Vec<(OwnedFd, i32)>,
    explain: bool,
}

impl Command {
    pub(crate) fn new(sandbox: Sandbox, program: &OsStr) -> Self {
        Self {
            sandbox,
            argv: vec![program.to_owned()],
            inherited: std::env::vars_os().collect(),
            set: Vec::new(),
            directory: None,
            timeout: None,
            standard: [Stdio::Inherit, Stdio::Inherit, Stdio::Inherit],
            keep: Vec::new(),
            explain: false,
        }
    }

    command_setters!(argv);

    /// Sets a variable.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        let pair = (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.set.push(pair);
        self
    }

    /// Sets variables.
    pub fn envs<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        &mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> &mut Self {
        for (name, value) in variables {
            self.env(name, value);
        }
        self
    }

    /// Hands on nothing of the caller's environment.
    pub fn env_clear(&mut self) -> &mut Self {
        self.inherited.clear();
        self.set.clear();
        self
    }

    /// Does not hand this variable on.
    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        let name = name.as_ref();
        self.inherited.retain(|(known, _)| known != name);
        self.set.retain(|(known, _)| known != name);
        self
    }

    /// Selects what is handed on from this environment, instead of the caller's own.
    pub fn inherit_env(
        &mut self,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> &mut Self {
        self.inherited = environment.into_iter().collect();
        self
    }

    /// Starts the command in this directory, which may be relative to the workspace. The policy is
    /// still about the workspace.
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Self {
        self.directory = Some(directory.as_ref().to_owned());
        self
    }

    /// Kills the command, with everything it started, when it takes longer; the sandbox's own limit
    /// holds as well.
    pub fn timeout(&mut self, limit: Duration) -> &mut Self {
        self.timeout = Some(limit);
        self
    }

    /// Hands the command one more descriptor, under this number.
    pub fn pass_fd(&mut self, fd: OwnedFd, number: i32) -> &mut Self {
        self.keep.push((fd, number));
        self
    }

    /// Records refused reads as well, which makes every open a little slower.
    pub fn explain(&mut self) -> &mut Self {
        self.explain = true;
        self
    }

    /// What would be done, as data that can be printed.
    ///
    /// # Errors
    /// If the policy can't be enforced here.
    pub fn plan(&self) -> Result<ExecPlan, Error> {
        let parts = &self.sandbox.parts;
        Ok(parts.backends.plan(&self.profile()?, &self.spec())?)
    }

    /// Starts the command.
    ///
    /// # Errors
    /// If it could not be started in its sandbox; then nothing of it has run.
    pub fn spawn(&mut self) -> Result<Child, Error> {
        let [stdin, stdout, stderr] = &self.standard;
        self.start(
            stdio::input(stdin)?,
            [stdio::output(stdout, 1)?, stdio::output(stderr, 2)?],
        )
    }

    /// Runs the command to its end.
    ///
    /// # Errors
    /// As [`Command::spawn`], and if it could not be waited for.
    pub fn status(&mut self) -> Result<Finished, Error> {
        self.spawn()?.wait()
    }

    /// Runs the command to its end and collects what it writes.
    ///
    /// # Errors
    /// As [`Command::status`].
    pub fn output(&mut self) -> Result<Output, Error> {
        collect(self.spawn_piped()?)
    }

    /// Starts the command with pipes for both outputs.
    pub(crate) fn spawn_piped(&mut self) -> Result<Child, Error> {
        let stdin = stdio::input(&self.standard[0])?;
        self.start(
            stdin,
            [
                stdio::output(&Stdio::Piped, 1)?,
                stdio::output(&Stdio::Piped, 2)?,
            ],
        )
    }

    fn start(&self, stdin: Ends, outputs: [Ends; 2]) -> Result<Child, Error> {
        let (profile, spec, parts) = (self.profile()?, self.spec(), &self.sandbox.parts);
        let is_counted = profile.limits.output().is_some();
        let [stdout, stderr] = outputs.map(|ends| Counted::new(ends, is_counted));
        let (stdout, stderr) = (stdout?, stderr?);
        let kept: Vec<_> = self
            .keep
            .iter()
            .map(|(fd, number)| (fd.as_fd(), *number))
            .collect();
        let launch = Launch {
            builder: Builder::Program(&parts.helper),
            standard: [
                stdin.inner.as_fd(),
                stdout.inner.as_fd(),
                stderr.inner.as_fd(),
            ],
            kept: &kept,
            network: parts.network.as_deref(),
        };
        #[cfg(feature = "overlay")]
        let mut overlay = self.sandbox.open_overlay()?;
        let mut choice = parts.backends.choose(&profile, &parts.helper)?;
        #[cfg_attr(
            not(feature = "overlay"),
            expect(unused_mut, reason = "nothing edits it")
        )]
        let mut running = choice.start(&spec, |mut plan| {
            #[cfg(feature = "overlay")]
            if let Some(overlay) = &mut overlay {
                crate::overlay::add_layers(&mut plan, overlay).map_err(Attempt::Final)?;
            }
            parts.require_network(&plan).map_err(Attempt::Final)?;
            Running::start(plan, &parts.backends, launch).map_err(Attempt::Refused)
        })?;
        let counted = [stdout.relay, stderr.relay];
        running.keep_limits(counted.into_iter().flatten().collect())?;
        Ok(Child {
            running,
            #[cfg(feature = "overlay")]
            overlay,
            session: None,
            stdin: stdin.outer,
            stdout: stdout.outer,
            stderr: stderr.outer,
        })
    }

    /// The sandbox's profile with what is this command's own.
    fn profile(&self) -> Result<Profile, Error> {
        let mut profile = self.sandbox.parts.profile.clone();
        if let Some(limit) = self.timeout {
            let limit = LimitSetting::wall_time(limit);
            if !profile.limits.raised_by(limit) {
                profile.limits.set(limit, Origin::fixed("Command::timeout"));
            }
        }
        if let Some(directory) = &self.directory {
            let whole = profile.cwd.as_path().join(directory);
            profile.cwd = AbsPath::new(&whole).map_err(|source| Error::Workspace {
                path: whole,
                source,
            })?;
        }
        for (name, value) in &self.set {
            let variable = EnvName::new(name).and_then(|name| EnvVar::new(name, value));
            let variable = variable.map_err(PlanError::Environment)?;
            let origin = Origin::fixed("Command::env");
            profile.environment.set.push(Sourced::new(variable, origin));
        }
        Ok(profile)
    }

    fn spec(&self) -> Spec {
        Spec {
            argv: self.argv.clone(),
            env: self.inherited.clone(),
            keep_descriptors: self.keep.iter().map(|(_, number)| *number).collect(),
            terminal: false,
            explain: self.explain,
            #[cfg(feature = "overlay")]
            overlay: self.sandbox.parts.overlay.is_some(),
            #[cfg(not(feature = "overlay"))]
            overlay: false,
            kept_home: None,
            session: false,
        }
    }
}

/// One of a command's outputs: directly, or through a thread that counts the bytes.
pub(crate) struct Counted {
    pub(crate) inner: OwnedFd,
    pub(crate) outer: Option<std::fs::File>,
    pub(crate) relay: Option<CountedOutput>,
}

impl Counted {
    pub(crate) fn new(ends: Ends, is_counted: bool) -> Result<Self, RunError> {
        if !is_counted {
            return Ok(Self {
                inner: ends.inner,
                outer: ends.outer,
                relay: None,
            });
        }
        let (from, inner) = stdio::pipe()?;
        Ok(Self {
            inner,
            relay: Some(CountedOutput {
                from,
                to: ends.inner,
                drain: ends.outer.is_none(),
            }),
            outer: ends.outer,
        })
    }
}
