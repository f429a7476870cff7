//! The library's front: a sandbox, a command in it, what becomes of it.

mod output;
mod stdio;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stockade_linux::{Builder, SpawnError};
use stockade_policy::profile::{Backend as BackendName, Profile};
use stockade_rules::AbsPath;

use crate::backend::{Backends, Held, Launch};
use crate::network::{NetworkGuard, NetworkService};
use crate::plan::{ExecPlan, PlanError, Spec};
use crate::report::{Ending, NetworkOutcome, Report};

pub use output::Output;
pub use stdio::Stdio;

/// A policy and the helper that enforces it; commands are started from it.
///
/// There is no global state: a process may have any number of sandboxes, on any thread.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use stockade_policy::profile::Profile;
/// use stockade_policy::{SandboxPolicy, Surroundings};
///
/// let here = Surroundings::from_env(&std::env::current_dir()?)?;
/// let profile = Profile::from_policy(&SandboxPolicy::workspace_write(Vec::new()), &here)?;
/// let sandbox = stockade::Sandbox::new(profile, "/usr/libexec/stockade-init");
/// let output = sandbox.command("cargo").arg("test").output()?;
/// println!("{} {:?}", output.finished.status_code(), output.finished.report.denials);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Sandbox {
    profile: Profile,
    helper: PathBuf,
    network: Option<Arc<dyn NetworkService>>,
    backends: Backends,
}

/// A command to be started in a sandbox.
#[derive(Debug)]
pub struct Command {
    sandbox: Sandbox,
    argv: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    standard: [Stdio; 3],
    keep: Vec<(OwnedFd, i32)>,
    explain: bool,
}

/// A command that runs in its sandbox. Dropping it ends the sandbox.
#[derive(Debug)]
pub struct Child {
    plan: ExecPlan,
    running: Box<dyn Held>,
    network: Option<Box<dyn NetworkGuard>>,
    started: Instant,
    ended_by: Option<Ending>,
    /// The other end of the command's standard input, if it was [`Stdio::Piped`].
    pub stdin: Option<File>,
    /// The other end of its standard output.
    pub stdout: Option<File>,
    /// The other end of its standard error.
    pub stderr: Option<File>,
}

/// How a run ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finished {
    /// The command's status; none if the sandbox was ended before the command.
    pub status: Option<ExitStatus>,
    /// What was enforced, refused and used.
    pub report: Report,
}

/// Why a command could not be started or waited for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The policy can't be enforced.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The sandbox could not be built; nothing of the command has run.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A descriptor that is to be passed on is a directory, from which the host's tree can be
    /// climbed.
    #[error("descriptor {0} is a directory and can't be passed on")]
    Directory(i32),
    /// The policy limits what the command may write, and the caller takes it without counting.
    #[error("the policy limits the command's output, which only `Command::output` counts")]
    OutputNotCounted,
    /// The policy needs somebody who answers in the sandbox's network.
    #[error("the policy lists hosts or forwards ports, and no network service was given")]
    NoNetworkService,
    /// What builds the sandbox can't be used; nothing of the command has run.
    #[error("the backend `{backend}` failed: {reason}")]
    NotStarted {
        /// Which one.
        backend: BackendName,
        /// What it said.
        reason: String,
    },
    /// What builds the sandbox failed; the command was not started, or its end is not known.
    #[error("the backend `{backend}` failed: {reason}")]
    Backend {
        /// Which one.
        backend: BackendName,
        /// What it said.
        reason: String,
    },
    /// Pipes or waiting failed.
    #[error("could not {act}")]
    Io {
        /// What was tried.
        act: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl Sandbox {
    /// A sandbox that enforces `profile`.
    ///
    /// `helper` is the path of the program `stockade-init`, or of `stockade` itself. It is never
    /// looked up anywhere. Where it lies in a directory that the profile lets be written, it is
    /// protected there.
    pub fn new(mut profile: Profile, helper: impl Into<PathBuf>) -> Self {
        let helper = helper.into();
        let real = helper.canonicalize().ok().map(AbsPath::new);
        if let Some(Ok(real)) = real {
            profile.protect_program(&real);
        }
        Self {
            profile,
            helper,
            network: None,
            backends: Backends::built_in(),
        }
    }

    /// Who answers in the sandbox's network; needed where the policy lists hosts or forwards
    /// ports.
    #[must_use]
    pub fn network(mut self, service: Arc<dyn NetworkService>) -> Self {
        self.network = Some(service);
        self
    }

    /// The same sandbox with these backends to choose from.
    #[must_use]
    pub fn with_backends(mut self, backends: Backends) -> Self {
        self.backends = backends;
        self
    }

    /// A command to start; a program without a slash is looked up inside.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        Command {
            sandbox: self.clone(),
            argv: vec![program.as_ref().to_owned()],
            env: std::env::vars_os().collect(),
            standard: [Stdio::Inherit, Stdio::Inherit, Stdio::Inherit],
            keep: Vec::new(),
            explain: false,
        }
    }

    /// What it enforces.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }
}

impl Command {
    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.argv.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.argv.extend(
            arguments
                .into_iter()
                .map(|argument| argument.as_ref().to_owned()),
        );
        self
    }

    /// The environment from which the profile chooses what to hand on; the caller's own if this
    /// is not called. What the profile sets comes on top.
    #[must_use]
    pub fn inherit_env(mut self, env: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.env = env.into_iter().collect();
        self
    }

    /// What the command reads.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdio) -> Self {
        self.standard[0] = stdin;
        self
    }

    /// Where its output goes.
    #[must_use]
    pub fn stdout(mut self, stdout: Stdio) -> Self {
        self.standard[1] = stdout;
        self
    }

    /// Where its errors go.
    #[must_use]
    pub fn stderr(mut self, stderr: Stdio) -> Self {
        self.standard[2] = stderr;
        self
    }

    /// Hands the command one more descriptor, under this number.
    #[must_use]
    pub fn pass_fd(mut self, fd: OwnedFd, number: i32) -> Self {
        self.keep.push((fd, number));
        self
    }

    /// Has refused reads recorded as well, which makes every open a little slower.
    #[must_use]
    pub fn explain(mut self) -> Self {
        self.explain = true;
        self
    }

    /// What would be done.
    ///
    /// # Errors
    /// If the policy can't be enforced here.
    pub fn plan(&self) -> Result<ExecPlan, PlanError> {
        self.sandbox
            .backends
            .plan(&self.sandbox.profile, &self.spec())
    }

    fn spec(&self) -> Spec {
        Spec {
            argv: self.argv.clone(),
            env: self.env.clone(),
            keep_descriptors: self.keep.iter().map(|(_, number)| *number).collect(),
            terminal: false,
            explain: self.explain,
        }
    }

    /// Starts the command.
    ///
    /// # Errors
    /// If it could not be started in its sandbox, or its policy limits output, which only
    /// [`Command::output`] counts; then nothing of it has run.
    pub fn spawn(self) -> Result<Child, RunError> {
        if self.sandbox.profile.limits.output().is_some() {
            return Err(RunError::OutputNotCounted);
        }
        self.start()
    }

    fn start(self) -> Result<Child, RunError> {
        let spec = self.spec();
        let profile = &self.sandbox.profile;
        let backends = &self.sandbox.backends;
        let mut choice = backends.choose(profile, &self.sandbox.helper)?;
        let [stdin, stdout, stderr] = self.standard;
        let input = stdio::input(stdin)?;
        let output = stdio::output(stdout, 1)?;
        let errors = stdio::output(stderr, 2)?;
        let standard = [
            input.inner.as_fd(),
            output.inner.as_fd(),
            errors.inner.as_fd(),
        ];
        let kept: Vec<_> = self
            .keep
            .iter()
            .map(|(fd, number)| (fd.as_fd(), *number))
            .collect();
        let launch = Launch {
            builder: Builder::Program(&self.sandbox.helper),
            standard,
            kept: &kept,
            network: self.sandbox.network.as_deref(),
        };
        let mut child = loop {
            match Child::start(choice.next(&spec)?, backends, launch) {
                Ok(child) => break child,
                Err(error) => choice.passed_over(error)?,
            }
        };
        child.stdin = input.outer;
        child.stdout = output.outer;
        child.stderr = errors.outer;
        Ok(child)
    }

    /// Runs the command to its end.
    ///
    /// # Errors
    /// As [`Command::spawn`], and if it could not be waited for.
    pub fn status(self) -> Result<Finished, RunError> {
        self.spawn()?.wait()
    }

    /// Runs the command to its end and collects what it writes.
    ///
    /// # Errors
    /// If it could not be started or waited for.
    pub fn output(self) -> Result<Output, RunError> {
        let mut child = self.stdout(Stdio::Piped).stderr(Stdio::Piped).start()?;
        output::collect(&mut child)
    }
}

impl Child {
    pub(crate) fn start(
        mut plan: ExecPlan,
        backends: &Backends,
        launch: Launch<'_>,
    ) -> Result<Self, RunError> {
        let null = stdio::open_null()?;
        let standard = launch.standard.map(|fd| {
            if stdio::is_directory(fd) {
                // Whoever holds a directory of the host can climb from it to everywhere.
                plan.warnings
                    .push("a directory can't be standard input or output".to_owned());
                return null.as_fd();
            }
            fd
        });
        let mut kept = launch.kept.iter();
        if let Some((_, number)) = kept.find(|(fd, _)| stdio::is_directory(*fd)) {
            return Err(RunError::Directory(*number));
        }
        let mut running = backends.spawn(&plan, &Launch { standard, ..launch })?;
        let network = running.take_network();
        Ok(Self {
            plan,
            running,
            network,
            started: Instant::now(),
            ended_by: None,
            stdin: None,
            stdout: None,
            stderr: None,
        })
    }

    /// Ends the sandbox: everything in it is killed.
    pub fn kill(&mut self) {
        self.end(Ending::Killed);
    }

    /// Becomes readable when the sandbox is gone: for callers with an event loop of their own.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.running.pidfd()
    }

    /// Passes a signal on to the command's process group.
    ///
    /// # Errors
    /// If the sandbox has ended.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        self.running.signal(signal)
    }

    /// Waits until the sandbox is gone, or ends it when its wall time is over.
    ///
    /// # Errors
    /// If the helper can't be heard.
    pub fn wait(&mut self) -> Result<Finished, RunError> {
        // A command that reads to the end of its input would wait for us.
        drop(self.stdin.take());
        while self.ended_by.is_none() {
            let Some(left) = self.time_left() else { break };
            let mut watched = [PollFd::from_borrowed_fd(
                self.running.messages(),
                PollFlags::IN,
            )];
            let ready = poll(&mut watched, timespec(left).as_ref()).unwrap_or(0);
            if ready == 0 {
                self.end_if_late();
            } else if !self.hear()? {
                break;
            }
        }
        self.finish()
    }

    pub(crate) fn running(&mut self) -> &mut dyn Held {
        self.running.as_mut()
    }

    /// Hears one message; false when there will be no more.
    pub(crate) fn hear(&mut self) -> Result<bool, RunError> {
        self.running.hear().map_err(|source| RunError::Io {
            act: "hear the helper",
            source,
        })
    }

    pub(crate) fn end(&mut self, why: Ending) {
        self.ended_by.get_or_insert(why);
        self.running.kill();
    }

    /// How long the command may still run; none if for ever.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.plan
            .wall_time
            .map(|limit| limit.saturating_sub(self.started.elapsed()))
    }

    pub(crate) fn end_if_late(&mut self) {
        if self.time_left().is_some_and(|left| left.is_zero()) {
            self.end(Ending::TimedOut);
        }
    }

    pub(crate) fn finish(&mut self) -> Result<Finished, RunError> {
        let report = Report::begin(&self.plan);
        let outcome = self.running.wait()?;
        let status = outcome.status.map(ExitStatus::from_raw);
        let ending = match (self.ended_by, status) {
            (Some(why), _) => why,
            (None, _) if outcome.cpu_limit => Ending::CpuLimit,
            (None, Some(status)) => match (status.code(), status.signal()) {
                (Some(code), _) => Ending::Exited(code),
                (None, Some(signal)) => Ending::Signalled(signal),
                (None, None) => Ending::Killed,
            },
            (None, None) => Ending::Killed,
        };
        let wall = self.started.elapsed();
        let denials = self.running.denials();
        let network = self.network.take();
        let network = network.map(|guard| NetworkOutcome::new(guard, denials));
        let report = report.end(
            &self.plan,
            self.running.denials(),
            outcome.usage,
            wall,
            ending,
            network.unwrap_or_default(),
        );
        Ok(Finished { status, report })
    }
}

impl Finished {
    /// The code that a shell would give: the command's own, or 128 and the signal's number.
    pub fn status_code(&self) -> i32 {
        shell_code(self.status)
    }
}

/// The code that a shell would give.
pub(crate) fn shell_code(status: Option<ExitStatus>) -> i32 {
    let Some(status) = status else {
        return KILLED;
    };
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// 128 + SIGKILL.
const KILLED: i32 = 137;

pub(crate) fn timespec(time: Duration) -> Option<Timespec> {
    Timespec::try_from(time).ok()
}
