//! Running one program on the host, bounded in time, as one of the two users.
//!
//! Output goes to files, not pipes: a background child that keeps a pipe open would make the
//! harness wait for it, and whether such a child survives is one of the things under test.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::Failure;
use crate::stage::Actor;

/// The search path of every run, with and without the sandbox: what a login shell has.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// One program to run.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Where it starts.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// A file for standard input; empty input otherwise.
    pub stdin: Option<PathBuf>,
    /// Where standard output and error are kept: `<prefix>.out` and `<prefix>.err`.
    pub capture: PathBuf,
    /// When to give up and kill the process group.
    pub bound: Duration,
}

/// What became of it.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The exit code as a shell would give it: 128+n after signal n.
    pub code: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// Wall time.
    pub elapsed: Duration,
    /// Whether the bound was reached.
    pub overran: bool,
}

impl Outcome {
    /// Standard output as text.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// Runs the invocation as the actor and waits for it, not for its orphans.
///
/// # Errors
/// If the program can't be started or its output can't be kept.
pub fn run(invocation: &Invocation, actor: &Actor) -> Result<Outcome, Failure> {
    let out = invocation.capture.with_extension("out");
    let err = invocation.capture.with_extension("err");
    let told = |what: &str, error: io::Error| format!("{what} {:?}: {error}", invocation.argv);
    let (program, arguments) = invocation
        .argv
        .split_first()
        .ok_or("an empty command line")?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(&invocation.cwd)
        .env_clear()
        .envs(invocation.env.iter().map(|(k, v)| (k, v)))
        .stdin(match &invocation.stdin {
            Some(path) => Stdio::from(File::open(path).map_err(|e| told("stdin of", e))?),
            None => Stdio::null(),
        })
        .stdout(actor.create(&out).map_err(|e| told("stdout of", e))?)
        .stderr(actor.create(&err).map_err(|e| told("stderr of", e))?)
        .process_group(0);
    actor.apply(&mut command);

    let begin = Instant::now();
    let mut child = command.spawn().map_err(|e| told("can't start", e))?;
    let finished = wait_bounded(&child, invocation.bound)?;
    if !finished {
        kill_group(&child);
    }
    let status = child.wait().map_err(|e| told("can't wait for", e))?;
    Ok(Outcome {
        code: shell_code(status),
        stdout: fs::read(&out).map_err(|e| told("stdout of", e))?,
        stderr: fs::read(&err).map_err(|e| told("stderr of", e))?,
        elapsed: begin.elapsed(),
        overran: !finished,
    })
}

/// Runs a short host script as the actor; anything but success is an error with its stderr.
///
/// # Errors
/// If the script does not end with 0.
pub fn script(invocation: &Invocation, actor: &Actor) -> Result<String, Failure> {
    let outcome = run(invocation, actor)?;
    if outcome.code == 0 {
        return Ok(outcome.out());
    }
    let text = invocation
        .argv
        .last()
        .map(String::as_str)
        .unwrap_or_default();
    Err(format!(
        "host script ended with {}: {text}\n{}",
        outcome.code,
        outcome.err()
    ))
}

fn wait_bounded(child: &Child, bound: Duration) -> Result<bool, Failure> {
    let pid = pid_of(child).ok_or("a child without a pid")?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| format!("pidfd_open: {e}"))?;
    let deadline = Instant::now() + bound;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(|e| format!("time bound: {e}"))?;
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("poll: {error}")),
        }
    }
}

fn kill_group(child: &Child) {
    if let Some(pid) = pid_of(child) {
        // It may have ended since; then there is nothing left to kill.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

fn shell_code(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}
