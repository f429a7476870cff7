//! A command that waits to be started, and ends when its context is cancelled.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use stockade_engine::{Report, RunError, shell_code};

use super::FrontError;
use crate::command::{Command, Stdio, collect};
use crate::compat::{CancelGuard, Context};
use crate::error::Error;

/// A command that is ready to be started.
#[derive(Debug)]
#[non_exhaustive]
pub struct Prepared {
    /// The command.
    pub command: PreparedCommand,
    context: Context,
}

/// The two ways in which a command can be prepared.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "callers must see which of the two they have"
)]
pub enum PreparedCommand {
    /// In a sandbox.
    Confined(Box<Command>),
    /// As it is, because that is what was asked for.
    Plain(Box<std::process::Command>),
}

/// What became of a command.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ended {
    /// The code that a shell would give.
    pub code: i32,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it complained about.
    pub stderr: Vec<u8>,
    /// What was enforced; none if nothing was asked for.
    pub report: Option<Report>,
}

impl Prepared {
    pub(super) fn confined(context: &Context, command: Command) -> Self {
        Self {
            command: PreparedCommand::Confined(Box::new(command)),
            context: context.clone(),
        }
    }

    pub(super) fn plain(context: &Context, command: std::process::Command) -> Self {
        Self {
            command: PreparedCommand::Plain(Box::new(command)),
            context: context.clone(),
        }
    }

    /// Whether there is a sandbox around it.
    pub fn is_confined(&self) -> bool {
        matches!(self.command, PreparedCommand::Confined(_))
    }

    /// Runs it to its end, without input, and collects what it writes.
    ///
    /// # Errors
    /// If it could not be started or waited for, or the context was cancelled before its end.
    pub fn output(self) -> Result<Ended, FrontError> {
        self.context.check()?;
        let ended = match self.command {
            PreparedCommand::Confined(command) => run_confined(*command, &self.context),
            PreparedCommand::Plain(command) => {
                run_plain(*command, &self.context).map_err(|source| {
                    Error::from(RunError::Io {
                        act: "run the command",
                        source,
                    })
                })
            }
        };
        // Whatever a killed command left is not its result.
        self.context.check()?;
        Ok(ended?)
    }
}

fn run_confined(mut command: Command, context: &Context) -> Result<Ended, Error> {
    let child = command.stdin(Stdio::Null).spawn_piped()?;
    let _cancel = context.after_cancel(child.running.killer());
    let output = collect(child)?;
    Ok(Ended {
        code: output.finished.status_code(),
        stdout: output.stdout,
        stderr: output.stderr,
        report: Some(output.finished.report),
    })
}

fn run_plain(mut command: std::process::Command, context: &Context) -> io::Result<Ended> {
    let mut child = command
        .process_group(0)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()?;
    let group = Group::of(&child)?;
    let _cancel = group.end_with(context)?;
    let (stdout, stderr) = read_both(child.stdout.take(), child.stderr.take())?;
    group.forget();
    let status = child.wait()?;
    Ok(Ended {
        code: shell_code(Some(status)),
        stdout,
        stderr,
        report: None,
    })
}

/// Reads both pipes at once: a command that fills one while the other is read would hang.
fn read_both(
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
) -> io::Result<(Vec<u8>, Vec<u8>)> {
    fn read(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }
    thread::scope(|scope| {
        let complaints = scope.spawn(|| read(stderr));
        let written = read(stdout)?;
        let complaints = complaints.join().unwrap_or_else(|_| Ok(Vec::new()))?;
        Ok((written, complaints))
    })
}

/// The process group of a command. Its number is only used while its leader is not reaped: after
/// that the kernel may give it to another group.
#[derive(Clone)]
struct Group {
    leader: Pid,
    is_ours: Arc<Mutex<bool>>,
}

impl Group {
    fn of(child: &Child) -> io::Result<Self> {
        let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let leader = number.ok_or_else(|| io::Error::other("a process without a number"))?;
        Ok(Self {
            leader,
            is_ours: Arc::new(Mutex::new(true)),
        })
    }

    fn end_with(&self, context: &Context) -> io::Result<CancelGuard> {
        let leader = pidfd_open(self.leader, PidfdFlags::empty())?;
        let group = self.clone();
        Ok(context.after_cancel(move || {
            let is_ours = group.is_ours.lock().unwrap_or_else(PoisonError::into_inner);
            if *is_ours {
                // It has ended by itself.
                let _ = kill_process_group(group.leader, Signal::KILL);
            }
            // A leader that closed its outputs and runs on.
            let _ = pidfd_send_signal(&leader, Signal::KILL);
        }))
    }

    fn forget(&self) {
        *self.is_ours.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}
