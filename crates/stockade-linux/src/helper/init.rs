//! Pid 1 of the sandbox: builds the view from inside, starts the command, reaps, passes signals
//! on. It holds no capability while anything untrusted runs and can't be traced.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, Signal, set_dumpable_behavior, set_parent_process_death_signal,
};

use super::command;
use crate::control::{Report, Request};
use crate::plan::LinuxPlan;
use crate::stage::{At, Failure, Stage};
use crate::sys::process::{Fork, exit_now};
use crate::{capabilities, landlock, limits, mounts, namespaces, sys};

/// Runs as pid 1; the exit code only matters to the outer helper.
pub(super) fn run(plan: &LinuxPlan, control: BorrowedFd<'_>, alive: &OwnedFd) -> i32 {
    match start(plan, control, alive) {
        Ok(command) => i32::from(supervise(&command, control).is_err()),
        Err(failure) => {
            let _ = Report::Failed(failure).send(control);
            1
        }
    }
}

/// Builds the sandbox in the order in which each step still can, and the next one can't undo it.
fn start(plan: &LinuxPlan, control: BorrowedFd<'_>, alive: &OwnedFd) -> Result<Running, Failure> {
    set_parent_process_death_signal(Some(Signal::KILL)).at(Stage::DieWithParent)?;
    require_parent(alive).at(Stage::DieWithParent)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Stage::DieWithParent)?;
    if plan.own_network {
        namespaces::loopback_up().at(Stage::Loopback)?;
    }
    if !plan.nested_namespaces {
        // While the capability to do so is there and the host's /proc still shows; the limit is
        // of the namespace of whoever writes, not of the mount.
        namespaces::forbid_nested().at(Stage::LockNamespaces)?;
    }
    mounts::enter(plan)?;
    for limit in &plan.rlimits {
        limits::apply(*limit).at(Stage::Rlimit)?;
    }
    rustix::process::chdir(plan.command.cwd.as_path())
        .at_path(Stage::WorkingDirectory, plan.command.cwd.as_path())?;
    let terminal = if plan.terminal {
        Some(command::make_terminal(control)?)
    } else {
        None
    };
    capabilities::drop_all().at(Stage::DropCapabilities)?;
    rustix::thread::set_no_new_privs(true).at(Stage::NoNewPrivileges)?;
    if let Some(rules) = &plan.landlock {
        landlock::restrict(rules).at(Stage::Landlock)?;
    }
    let signals = sys::signal::catch(&[libc::SIGCHLD]).at(Stage::Signals)?;
    let failures = command::Failures::new().at(Stage::ForkCommand)?;
    match sys::process::fork_until_execution().at(Stage::ForkCommand)? {
        Fork::Child => {
            let failure = command::run(plan, terminal);
            failures.put(&failure);
            exit_now(1)
        }
        // It has executed its program by now, or it has ended.
        Fork::Parent(pid) => {
            if let Some(failure) = failures.take() {
                return Err(failure);
            }
            let _ = Report::Started.send(control);
            Ok(Running { pid, signals })
        }
    }
}

struct Running {
    pid: Pid,
    signals: OwnedFd,
}

/// Waits until the command ends, reaping whatever else ends before.
fn supervise(command: &Running, control: BorrowedFd<'_>) -> io::Result<()> {
    let mut watched = [
        PollFd::new(&command.signals, PollFlags::IN),
        PollFd::from_borrowed_fd(control, PollFlags::IN),
    ];
    loop {
        match poll(&mut watched, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !watched[0].revents().is_empty() {
            while sys::signal::next(command.signals.as_fd())?.is_some() {}
            if let Some(status) = reap(command.pid)? {
                return Report::Exited(status).send(control);
            }
        }
        if !watched[1].revents().is_empty() {
            match Request::receive(control)? {
                Some(Request::Signal(signal)) => pass_on(command.pid, signal),
                // The launcher is gone; the outer helper is about to end us.
                None => return Ok(()),
            }
        }
    }
}

/// Collects every ended child; the command's status if it is among them.
fn reap(command: Pid) -> io::Result<Option<i32>> {
    let mut ended = None;
    loop {
        match sys::process::wait(-1, false) {
            Ok(Some(child)) if child.pid == command.as_raw_nonzero().get() => {
                ended = Some(child.status);
            }
            Ok(Some(_)) => {}
            Ok(None) => return Ok(ended),
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(ended),
            Err(error) => return Err(error),
        }
    }
}

/// To the command's process group, as a terminal would.
fn pass_on(command: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = rustix::process::kill_process_group(command, signal);
    }
}

fn require_parent(alive: &OwnedFd) -> rustix::io::Result<()> {
    let mut watched = [PollFd::new(alive, PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut watched, Some(&at_once))?;
    if watched[0].revents().is_empty() {
        Ok(())
    } else {
        Err(rustix::io::Errno::SRCH)
    }
}
