//! A command that runs in its sandbox, and what becomes of it.

mod limits;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stockade_linux::{Outcome, SpawnError};
use stockade_policy::profile::Backend as BackendName;

use self::limits::LimitKeeper;
use crate::backend::{Backends, Launch, RunningSandbox};
use crate::disk::{self, DiskWatch};
use crate::network::NetworkGuard;
use crate::plan::{ExecPlan, PlanError};
use crate::report::{Ending, NetworkOutcome, Report};

pub use limits::CountedOutput;

/// A command that runs in its sandbox. Dropping it ends the sandbox, or kills the command if it
/// runs in a [`Session`](crate::Session).
#[derive(Debug)]
pub struct Child {
    plan: Arc<ExecPlan>,
    running: Box<dyn RunningSandbox>,
    network: Option<Box<dyn NetworkGuard>>,
    started: Instant,
    wall_time: Option<Duration>,
    ended_by: Option<Ending>,
    limits: Option<LimitKeeper>,
    disk: Option<DiskWatch>,
}

/// How a run ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finished {
    /// The command's status; none if the sandbox was ended before the command.
    pub status: Option<ExitStatus>,
    /// What was enforced, refused and used.
    pub report: Report,
    /// Why the sandbox was ended before the command, if the launcher itself failed.
    pub trouble: Option<String>,
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
    /// The policy needs somebody who answers in the sandbox's network.
    #[error("the policy lists hosts or forwards ports, and no network service was given")]
    NoNetworkService,
    /// Only the backend `native` has sessions.
    #[error("the backend `{0}` has no sessions")]
    NoSessions(BackendName),
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
    /// The command was started, and its end is not known.
    #[error("the backend `{backend}` lost the command: {reason}")]
    Lost {
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

impl Child {
    /// Starts the command of a plan that one of the backends made.
    ///
    /// # Errors
    /// If it could not be started; then nothing of it has run.
    pub fn start(
        mut plan: ExecPlan,
        backends: &Backends,
        launch: Launch<'_>,
    ) -> Result<Self, RunError> {
        let null = open_null()?;
        let standard = launch.standard.map(|fd| {
            if is_directory(fd) {
                // Whoever holds a directory of the host can climb from it to everywhere.
                plan.warnings
                    .push("a directory can't be standard input or output".to_owned());
                return null.as_fd();
            }
            fd
        });
        let mut kept = launch.kept.iter();
        if let Some((_, number)) = kept.find(|(fd, _)| is_directory(*fd)) {
            return Err(RunError::Directory(*number));
        }
        let disk = DiskWatch::start(&plan);
        let mut running = backends.spawn(&plan, &Launch { standard, ..launch })?;
        let network = running.take_network();
        Ok(Self {
            wall_time: plan.wall_time,
            plan: Arc::new(plan),
            running,
            network,
            started: Instant::now(),
            ended_by: None,
            limits: None,
            disk,
        })
    }

    /// A command of a session, with a time limit of its own.
    pub(crate) fn in_session(
        plan: Arc<ExecPlan>,
        running: Box<dyn RunningSandbox>,
        network: Box<dyn NetworkGuard>,
        wall_time: Option<Duration>,
    ) -> Self {
        Self {
            disk: DiskWatch::start(&plan),
            plan,
            running,
            network: Some(network),
            started: Instant::now(),
            wall_time,
            ended_by: None,
            limits: None,
        }
    }

    /// Takes the other end of the command's terminal, if it has one.
    pub fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.running.take_terminal()
    }

    /// Whether the command was stopped (Ctrl-Z) since this was last asked.
    pub fn take_stopped(&mut self) -> bool {
        self.running.take_stopped()
    }

    /// Ends the sandbox: everything in it is killed. In a session, the command is killed.
    pub fn kill(&mut self) {
        self.end(Ending::Killed);
    }

    /// What ends the sandbox from another thread, as [`Child::kill`] does.
    pub fn killer(&self) -> Box<dyn FnOnce() + Send> {
        self.running.killer()
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
        while self.ended_by.is_none() {
            let Some(left) = self.time_left() else { break };
            let mut watched = [PollFd::from_borrowed_fd(self.messages(), PollFlags::IN)];
            let ready = poll(&mut watched, timespec(left).as_ref()).unwrap_or(0);
            if ready == 0 {
                self.end_if_late();
            } else if !self.hear()? {
                break;
            }
        }
        self.finish()
    }

    /// Becomes readable when [`Child::hear`] has something to hear.
    pub fn messages(&self) -> BorrowedFd<'_> {
        self.running.messages()
    }

    pub(crate) fn running(&mut self) -> &mut dyn RunningSandbox {
        self.running.as_mut()
    }

    /// Takes in one message of the helper; false when there will be no more. For callers that wait
    /// for more than the sandbox: [`Child::wait`] hears by itself.
    ///
    /// # Errors
    /// If the helper can't be heard.
    pub fn hear(&mut self) -> Result<bool, RunError> {
        self.running.hear().map_err(|source| RunError::Io {
            act: "hear the helper",
            source,
        })
    }

    pub(crate) fn end(&mut self, why: Ending) {
        self.ended_by.get_or_insert(why);
        self.running.kill();
    }

    /// Whether the launcher decided to end the sandbox.
    pub(crate) fn is_ending(&self) -> bool {
        self.ended_by.is_some()
    }

    /// How long the command may still run; none if for ever.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.wall_time
            .map(|limit| limit.saturating_sub(self.started.elapsed()))
    }

    pub(crate) fn end_if_late(&mut self) {
        if self.time_left().is_some_and(|left| left.is_zero()) {
            self.end(Ending::TimedOut);
        }
    }

    /// How long the launcher may wait before it looks at the limits again; none if for ever.
    pub(crate) fn next_look(&self) -> Option<Duration> {
        let disk = self.disk.as_ref().map(|_| disk::INTERVAL);
        self.time_left().into_iter().chain(disk).min()
    }

    pub(crate) fn end_if_full(&mut self) {
        if self.disk.as_ref().is_some_and(DiskWatch::is_over) {
            self.end(Ending::DiskLimit);
        }
    }

    /// Hands time, disk space and output to threads that hold the limits whatever the caller does:
    /// it may read for ever and never wait.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn keep_limits(&mut self, counted: Vec<CountedOutput>) -> Result<(), RunError> {
        let (left, disk) = (self.time_left(), self.disk.take());
        if left.is_none() && disk.is_none() && counted.is_empty() {
            return Ok(());
        }
        let running = self.running.as_ref();
        let keeper = LimitKeeper::start(running, left, disk, self.plan.output, counted);
        self.limits = Some(keeper.map_err(|source| RunError::Io {
            act: "start a thread that holds the limits",
            source,
        })?);
        Ok(())
    }

    /// Waits for the end of a sandbox from which nothing more is heard, or that was killed.
    ///
    /// # Errors
    /// If its end can't be known.
    pub fn finish(&mut self) -> Result<Finished, RunError> {
        let report = Report::begin(&self.plan);
        if let Some(limit) = self.limits.as_ref().and_then(LimitKeeper::passed) {
            self.end(limit);
        }
        // The command has run by now, so what it did is reported even if its end is not known.
        let (outcome, trouble) = match self.running.wait() {
            Ok(outcome) => (outcome, None),
            Err(error @ (RunError::Lost { .. } | RunError::Io { .. })) => {
                self.ended_by.get_or_insert(Ending::Lost);
                (Outcome::UNKNOWN, Some(chain(&error)))
            }
            Err(error) => return Err(error),
        };
        if let Some(limits) = &self.limits {
            limits.drain();
            self.ended_by = self.ended_by.or(limits.passed());
        }
        let status = outcome.status.map(ExitStatus::from_raw);
        let ending = match (self.ended_by, status) {
            (Some(why), _) => why,
            (None, _) if outcome.cpu_limit => Ending::CpuLimit,
            (None, Some(status)) if outcome.memory_limit && !status.success() => {
                Ending::MemoryLimit
            }
            (None, None) if outcome.memory_limit => Ending::MemoryLimit,
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
        Ok(Finished {
            status,
            report,
            trouble,
        })
    }
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

impl Finished {
    /// Whether the command ended by itself with code 0.
    pub fn success(&self) -> bool {
        self.report.ending == Ending::Exited(0)
    }

    /// The code that a shell would give: the command's own, or 128 and the signal's number.
    pub fn status_code(&self) -> i32 {
        shell_code(self.status)
    }
}

/// The code that a shell would give.
pub fn shell_code(status: Option<ExitStatus>) -> i32 {
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

/// What reads as nothing and swallows everything.
pub(crate) fn open_null() -> Result<File, RunError> {
    let null = File::options().read(true).write(true).open("/dev/null");
    null.map_err(|source| RunError::Io {
        act: "open /dev/null",
        source,
    })
}

pub(crate) fn is_directory(fd: BorrowedFd<'_>) -> bool {
    let stat = rustix::fs::fstat(fd);
    stat.is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir())
}
