//! The process that becomes the command.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::control::Report;
use crate::plan::{Command, LinuxPlan, Text};
use crate::stage::{At, Failure, Stage};
use crate::sys;

/// Turns the calling process into the command; returns only what went wrong.
pub(super) fn run(plan: &LinuxPlan, terminal: Option<OwnedFd>) -> Failure {
    match prepare(terminal) {
        Ok(()) => execute(&plan.command),
        Err(failure) => failure,
    }
}

fn prepare(terminal: Option<OwnedFd>) -> Result<(), Failure> {
    rustix::process::setsid().at(Stage::NewSession)?;
    if let Some(terminal) = terminal {
        sys::process::take_terminal(terminal.as_fd()).at(Stage::Terminal)?;
        rustix::stdio::dup2_stdin(&terminal).at(Stage::Terminal)?;
        rustix::stdio::dup2_stdout(&terminal).at(Stage::Terminal)?;
        rustix::stdio::dup2_stderr(&terminal).at(Stage::Terminal)?;
    }
    sys::signal::restore_defaults().at(Stage::Signals)
}

/// Tries each place where the program may be, as `execvp(3)` does.
fn execute(command: &Command) -> Failure {
    let argv: Vec<CString> = command
        .argv
        .iter()
        .map(|text| text.as_c_str().clone())
        .collect();
    let env: Vec<CString> = command
        .env
        .iter()
        .map(|text| text.as_c_str().clone())
        .collect();
    let Some(program) = argv.first() else {
        return Failure {
            stage: Stage::Find,
            errno: libc::ENOENT,
            subject: Vec::new(),
        };
    };
    let subject = program.as_bytes().to_vec();
    let mut found_but = None;
    for candidate in candidates(program, &command.env) {
        let Err(error) = sys::process::execute(&candidate, &argv, &env);
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let exists =
            rustix::fs::accessat(CWD, &candidate, Access::EXISTS, AtFlags::empty()).is_ok();
        if exists || !matches!(errno, libc::ENOENT | libc::ENOTDIR) {
            found_but.get_or_insert(errno);
        }
    }
    match found_but {
        Some(errno) => Failure {
            stage: Stage::Execute,
            errno,
            subject,
        },
        None => Failure {
            stage: Stage::Find,
            errno: libc::ENOENT,
            subject,
        },
    }
}

/// A program with a slash is itself; any other is looked for in the absolute directories of the
/// command's `PATH`. Relative entries are skipped: they would mean whatever the cwd holds.
fn candidates(program: &CString, env: &[Text]) -> Vec<CString> {
    if program.as_bytes().contains(&b'/') {
        return vec![program.clone()];
    }
    let path = env
        .iter()
        .find_map(|entry| entry.as_os_str().as_bytes().strip_prefix(b"PATH="));
    path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin")
        .split(|byte| *byte == b':')
        .filter(|directory| directory.first() == Some(&b'/'))
        .filter_map(|directory| CString::new([directory, b"/", program.as_bytes()].concat()).ok())
        .collect()
}

/// Makes a terminal from the sandbox's own `/dev/pts` and hands the launcher its end.
pub(super) fn make_terminal(control: BorrowedFd<'_>) -> Result<OwnedFd, Failure> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let launcher_end = rustix::fs::open("/dev/ptmx", flags, Mode::empty()).at(Stage::Terminal)?;
    rustix::pty::unlockpt(&launcher_end).at(Stage::Terminal)?;
    let name = rustix::pty::ptsname(&launcher_end, Vec::new()).at(Stage::Terminal)?;
    let command_end = rustix::fs::open(&name, flags, Mode::empty()).at(Stage::Terminal)?;
    Report::Terminal(launcher_end)
        .send(control)
        .at(Stage::Terminal)?;
    Ok(command_end)
}

/// How the command's process tells pid 1 that it could not become the command.
pub(super) struct Failures {
    read: OwnedFd,
    write: OwnedFd,
}

impl Failures {
    pub(super) fn new() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self { read, write })
    }

    pub(super) fn put(&self, failure: &Failure) {
        let mut message = Vec::new();
        failure.encode(&mut message);
        // The pipe is empty and holds 64 KiB: this fits, or there is nothing left to try.
        let _ = rustix::io::write(&self.write, &message);
    }

    pub(super) fn take(self) -> Option<Failure> {
        let mut message = [0; 8192];
        let length = rustix::io::read(&self.read, &mut message).ok()?;
        Failure::decode(&message[..length])
    }
}
