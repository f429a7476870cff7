//! The process that becomes the command.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::control::Report;
use crate::plan::{Command, LinuxPlan, Text};
use crate::seccomp::{InstallFlags, Program, install};
use crate::stage::{At, Failure, Stage, take};
use crate::{landlock, sys};

/// Turns the calling process into the command; returns only what went wrong.
pub(super) fn run(
    plan: &LinuxPlan,
    terminal: Option<&OwnedFd>,
    filter: &Program,
    exchange: &Exchange,
) -> Failure {
    let ready = prepare(terminal)
        .and_then(|()| set_apart(plan))
        .and_then(|()| install_filter(plan, filter, exchange));
    match ready {
        Ok(()) => execute(&plan.command),
        Err(failure) => failure,
    }
}

/// The last lock. From here on only calls that are not mediated may be made: nobody answers yet.
fn install_filter(plan: &LinuxPlan, filter: &Program, exchange: &Exchange) -> Result<(), Failure> {
    if plan.mediation.is_none() {
        return install(filter, InstallFlags::NONE)
            .at(Stage::Seccomp)
            .map(drop);
    }
    // A signal must not tear a call that the mediator is carrying out (Linux 5.19).
    let listener = install(filter, InstallFlags::LISTENER | InstallFlags::WAIT_KILLABLE)
        .or_else(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => install(filter, InstallFlags::LISTENER),
            _ => Err(error),
        })
        .at(Stage::Seccomp)?;
    if let Some(listener) = listener {
        exchange.put_listener(listener);
    }
    Ok(())
}

/// Without a pid namespace, what keeps the command from the supervisor is a Landlock domain inside
/// the supervisor's own: signals and traces go down, not up.
fn set_apart(plan: &LinuxPlan) -> Result<(), Failure> {
    if plan.own_namespaces {
        return Ok(());
    }
    // The supervisor is the parent and stands still until the command is executed.
    set_parent_process_death_signal(Some(Signal::KILL)).at(Stage::DieWithParent)?;
    match &plan.landlock {
        Some(rules) => landlock::restrict_scopes(rules.abi).at(Stage::Landlock),
        None => Ok(()),
    }
}

/// The descriptor table is still shared with pid 1: nothing may be closed here.
fn prepare(terminal: Option<&OwnedFd>) -> Result<(), Failure> {
    let Some(terminal) = terminal else {
        rustix::process::setsid().at(Stage::NewSession)?;
        return sys::signal::restore_defaults().at(Stage::Signals);
    };
    rustix::process::setpgid(None, None).at(Stage::NewSession)?;
    // Taking the foreground from the background raises SIGTTOU, which would stop us.
    sys::signal::catch(&[libc::SIGTTOU]).at(Stage::Signals)?;
    rustix::termios::tcsetpgrp(terminal, rustix::process::getpid()).at(Stage::Terminal)?;
    rustix::stdio::dup2_stdin(terminal).at(Stage::Terminal)?;
    rustix::stdio::dup2_stdout(terminal).at(Stage::Terminal)?;
    rustix::stdio::dup2_stderr(terminal).at(Stage::Terminal)?;
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
    sys::process::take_terminal(command_end.as_fd()).at(Stage::Terminal)?;
    Report::Terminal(launcher_end)
        .send(control)
        .at(Stage::Terminal)?;
    Ok(command_end)
}

/// How the command's process hands pid 1 the listener, or tells why it could not become the
/// command. They share a descriptor table until the command is executed: a number is enough.
pub(super) struct Exchange {
    read: OwnedFd,
    write: OwnedFd,
}

const LISTENER: u8 = 1;
const FAILURE: u8 = 2;

impl Exchange {
    pub(super) fn new() -> io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self { read, write })
    }

    fn put_listener(&self, listener: OwnedFd) {
        let mut message = vec![LISTENER];
        message.extend(listener.into_raw_fd().to_ne_bytes());
        self.put(&message);
    }

    pub(super) fn put_failure(&self, failure: &Failure) {
        let mut message = vec![FAILURE];
        failure.encode(&mut message);
        self.put(&message);
    }

    fn put(&self, message: &[u8]) {
        // The pipe is empty and holds 64 KiB: this fits, or there is nothing left to try.
        let _ = rustix::io::write(&self.write, message);
    }

    /// What the command's process left; to be called once it has executed or ended.
    pub(super) fn take(self) -> Result<Option<OwnedFd>, Failure> {
        let mut buffer = [0; 8192];
        let length = rustix::io::read(&self.read, &mut buffer).unwrap_or(0);
        let mut rest = &buffer[..length];
        let mut listener = None;
        if rest.first() == Some(&LISTENER) {
            rest = &rest[1..];
            let number = take(&mut rest).map(i32::from_ne_bytes);
            listener = number.map(sys::process::own_descriptor);
        }
        match rest.split_first() {
            Some((&FAILURE, failure)) => Err(Failure::decode(failure).unwrap_or(Failure {
                stage: Stage::ForkCommand,
                errno: libc::EIO,
                subject: Vec::new(),
            })),
            _ => Ok(listener),
        }
    }
}
