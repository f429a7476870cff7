//! The process that becomes the command. Until then it shares memory and descriptors with pid 1,
//! which stands still.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::termios::{OptionalActions, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

use crate::control::Report;
use crate::plan::{LinuxPlan, Text};
use crate::seccomp::{InstallFlags, Program, install};
use crate::stage::{At, Failure, Stage};
use crate::{landlock, limits, search, sys};

/// Turns the calling process into the command; returns only what went wrong. The filter's
/// listener is left behind for pid 1.
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
fn install_filter(
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

/// Tries each place where the program may be. What is nowhere is not found, even if a directory of
/// the search path could not be searched.
pub(super) fn execute(argv: &[Text], env: &[Text]) -> Failure {
    let Some(program) = argv.first() else {
        return Failure {
            stage: Stage::Find,
            errno: libc::ENOENT,
            subject: Vec::new(),
        };
    };
    let searched = search::is_searched(program);
    let mut found_but = None;
    for candidate in search::candidates(program, env) {
        let Err(error) = sys::process::execute(candidate.as_c_str(), argv, env);
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let is_there = match rustix::fs::stat(candidate.as_c_str()) {
            Ok(found) => !(searched && is_directory(&found)),
            Err(_) => !(searched || matches!(errno, libc::ENOENT | libc::ENOTDIR)),
        };
        if is_there {
            found_but.get_or_insert(errno);
        }
    }
    Failure {
        stage: found_but.map_or(Stage::Find, |_| Stage::Execute),
        errno: found_but.unwrap_or(libc::ENOENT),
        subject: program.as_os_str().as_bytes().to_vec(),
    }
}

fn is_directory(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Directory
}

/// Makes a terminal from the sandbox's own `/dev/pts` and hands the launcher its end.
pub(super) fn make_terminal(control: BorrowedFd<'_>) -> Result<OwnedFd, Failure> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let launcher_end = rustix::fs::open("/dev/ptmx", flags, Mode::empty()).at(Stage::Terminal)?;
    rustix::pty::unlockpt(&launcher_end).at(Stage::Terminal)?;
    let name = rustix::pty::ptsname(&launcher_end, Vec::new()).at(Stage::Terminal)?;
    let command_end = rustix::fs::open(&name, flags, Mode::empty()).at(Stage::Terminal)?;
    resemble(&command_end, rustix::stdio::stdin());
    sys::process::take_terminal(command_end.as_fd()).at(Stage::Terminal)?;
    Report::Terminal(launcher_end)
        .send(control)
        .at(Stage::Terminal)?;
    Ok(command_end)
}

/// Gives the command's terminal the size and the modes (echo, erase character, UTF-8) of the
/// launcher's, which is still standard input here: before the command can look at them or change
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
