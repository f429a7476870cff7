//! The process that becomes the command. Until then it shares memory and descriptors with the
//! supervisor, whose first thread stands still.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::termios::{OptionalActions, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

use crate::control::Report;
use crate::plan::{LinuxPlan, Text};
use crate::seccomp::{InstallFlags, Program, install};
use crate::stage::{At, Failure, Stage};
use crate::sys::process::Words;
use crate::{landlock, limits, search, sys};

/// Turns the calling process into the command; returns only what went wrong. The filter's
/// listener is left behind for the mediator.
pub(super) fn run(
    plan: &LinuxPlan,
    terminal: Option<&OwnedFd>,
    filter: &Program,
    listener: &mut Option<OwnedFd>,
) -> Failure {
    let ready = prepare(terminal)
        .and_then(|()| limits::apply_to_command(&plan.rlimits).at(Stage::Rlimit))
        .and_then(|()| set_apart(plan))
        .and_then(|()| install_filter(plan, filter, listener));
    match ready {
        Ok(()) => execute(&plan.command.argv, &plan.command.env),
        Err(failure) => failure,
    }
}

/// The last lock. From here on only calls that are not mediated may be made: nobody answers yet.
pub(super) fn install_filter(
    plan: &LinuxPlan,
    filter: &Program,
    listener: &mut Option<OwnedFd>,
) -> Result<(), Failure> {
    if plan.trusted {
        return Ok(());
    }
    if plan.mediation.is_none() {
        return install(filter, InstallFlags::NONE)
            .at(Stage::Seccomp)
            .map(drop);
    }
    // A signal must not tear a call that the mediator is carrying out (Linux 5.19).
    *listener = install(filter, InstallFlags::LISTENER | InstallFlags::WAIT_KILLABLE)
        .or_else(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => install(filter, InstallFlags::LISTENER),
            _ => Err(error),
        })
        .at(Stage::Seccomp)?;
    Ok(())
}

/// What keeps the command from the supervisor, where it can name it at all, is a Landlock domain
/// inside the supervisor's own: signals and traces go down, not up.
fn set_apart(plan: &LinuxPlan) -> Result<(), Failure> {
    if !plan.own_namespaces {
        // The supervisor is the parent and stands still until the command is executed.
        set_parent_process_death_signal(Some(Signal::KILL)).at(Stage::DieWithParent)?;
    }
    match &plan.landlock {
        Some(rules) => landlock::restrict_scopes(rules.abi).at(Stage::Landlock),
        None => Ok(()),
    }
}

/// The descriptor table is still shared with the supervisor: nothing may be closed here.
fn prepare(terminal: Option<&OwnedFd>) -> Result<(), Failure> {
    let Some(terminal) = terminal else {
        rustix::process::setsid().at(Stage::NewSession)?;
        return sys::signal::restore_defaults().at(Stage::Signals);
    };
    rustix::process::setpgid(None, None).at(Stage::NewSession)?;
    // Taking the foreground from the background raises SIGTTOU, which would stop us.
    sys::signal::catch(&[libc::SIGTTOU]).at(Stage::Signals)?;
    rustix::termios::tcsetpgrp(terminal, rustix::process::getpid()).at(Stage::Terminal)?;
    // A pipe or a file stays what it is; the launcher's terminal is kept from the command.
    if isatty(rustix::stdio::stdin()) {
        rustix::stdio::dup2_stdin(terminal).at(Stage::Terminal)?;
    }
    if isatty(rustix::stdio::stdout()) {
        rustix::stdio::dup2_stdout(terminal).at(Stage::Terminal)?;
    }
    if isatty(rustix::stdio::stderr()) {
        rustix::stdio::dup2_stderr(terminal).at(Stage::Terminal)?;
    }
    sys::signal::restore_defaults().at(Stage::Signals)
}

/// The program of a command and where it may be, ready to be executed without allocating.
pub(super) struct Image<'a> {
    candidates: Vec<Text>,
    is_searched: bool,
    argv: Words<'a>,
    env: Words<'a>,
}

impl<'a> Image<'a> {
    pub(super) fn new(argv: &'a [Text], env: &'a [Text]) -> Self {
        let program = argv.first();
        Self {
            candidates: program.map_or_else(Vec::new, |name| search::candidates(name, env)),
            is_searched: program.is_none_or(search::is_searched),
            argv: Words::new(argv),
            env: Words::new(env),
        }
    }

    /// Tries each place where the program may be. What is nowhere is not found, even if a directory
    /// of the search path could not be searched.
    pub(super) fn execute(&self) -> (Stage, i32) {
        let mut found_but = None;
        for candidate in &self.candidates {
            let path = candidate.as_c_str();
            let Err(error) = sys::process::execute(path, &self.argv, &self.env);
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            let is_there = match rustix::fs::stat(path.as_c_str()) {
                Ok(found) => !(self.is_searched && is_directory(&found)),
                Err(_) => !(self.is_searched || matches!(errno, libc::ENOENT | libc::ENOTDIR)),
            };
            if is_there {
                found_but.get_or_insert(errno);
            }
        }
        (
            found_but.map_or(Stage::Find, |_| Stage::Execute),
            found_but.unwrap_or(libc::ENOENT),
        )
    }
}

/// Executes a program; returns what went wrong.
pub(super) fn execute(argv: &[Text], env: &[Text]) -> Failure {
    let (stage, errno) = Image::new(argv, env).execute();
    let program = argv.first().map(|name| name.as_os_str().as_bytes());
    Failure {
        stage,
        errno,
        subject: program.unwrap_or_default().to_vec(),
    }
}

fn is_directory(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Directory
}

/// Makes a terminal from the sandbox's own `/dev/pts` and hands the launcher its end.
pub(super) fn make_terminal(control: BorrowedFd<'_>) -> Result<OwnedFd, Failure> {
    let standard = [
        rustix::stdio::stdin(),
        rustix::stdio::stdout(),
        rustix::stdio::stderr(),
    ];
    let (launcher_end, command_end) = open_terminal(standard).at(Stage::Terminal)?;
    sys::process::take_terminal(command_end.as_fd()).at(Stage::Terminal)?;
    Report::Terminal(launcher_end)
        .send(control)
        .at(Stage::Terminal)?;
    Ok(command_end)
}

/// The launcher's end and the command's end of a new terminal, which resembles the one among these
/// descriptors.
pub(super) fn open_terminal(
    standard: [BorrowedFd<'_>; 3],
) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let launcher_end = rustix::fs::open("/dev/ptmx", flags, Mode::empty())?;
    rustix::pty::unlockpt(&launcher_end)?;
    let name = rustix::pty::ptsname(&launcher_end, Vec::new())?;
    let command_end = rustix::fs::open(&name, flags, Mode::empty())?;
    if let Some(model) = standard.into_iter().find(|fd| isatty(fd)) {
        resemble(&command_end, model);
    }
    Ok((launcher_end, command_end))
}

/// Gives the command's terminal the size and the modes (echo, erase character, UTF-8) of the
/// launcher's, which is still a standard descriptor here: before the command can look at them or change
/// them.
fn resemble(terminal: &OwnedFd, model: BorrowedFd<'_>) {
    // A terminal that can't tell leaves the kernel's defaults.
    if let Ok(modes) = tcgetattr(model) {
        let _ = tcsetattr(terminal, OptionalActions::Now, &modes);
    }
    if let Ok(size) = tcgetwinsize(model) {
        let _ = tcsetwinsize(terminal, size);
    }
}
