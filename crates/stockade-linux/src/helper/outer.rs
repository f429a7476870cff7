//! Outside the namespaces: enters limits and namespaces, starts pid 1, and outlives both the
//! launcher and the sandbox just long enough to leave nothing behind.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::init;
use crate::control::Report;
use crate::plan::LinuxPlan;
use crate::stage::{At, Failure, Stage};
use crate::sys::process::{Fork, Reaped};
use crate::{cgroup, namespaces, sys};

pub(super) fn run(
    plan: &LinuxPlan,
    control: BorrowedFd<'_>,
    life: &OwnedFd,
) -> Result<(), Failure> {
    // Away from the launcher's terminal: its Ctrl-C is the launcher's to forward.
    rustix::process::setsid().at(Stage::NewSession)?;
    let groups = cgroup::enter(plan.cgroup.as_ref())?;
    let outcome = namespaces::enter(plan.own_network).and_then(|()| run_init(plan, control, life));
    groups.remove();
    // Only now, so that whoever hears it finds nothing left of the sandbox.
    tell_usage(&outcome?, control);
    Ok(())
}

/// The helper's last word.
pub(super) fn tell_usage(used: &Reaped, control: BorrowedFd<'_>) {
    let report = Report::Used {
        user_micros: used.user_micros,
        system_micros: used.system_micros,
        peak_kib: used.peak_kib,
    };
    // If the launcher is gone there is nobody to tell.
    let _ = report.send(control);
}

fn run_init(plan: &LinuxPlan, control: BorrowedFd<'_>, life: &OwnedFd) -> Result<Reaped, Failure> {
    // Hangs up when this process is gone; pid 1 looks at it once, after it asked to be killed
    // then: its parent's id reads 0 in its namespace and can't tell.
    let (alive, alive_end) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).at(Stage::ForkInit)?;
    match sys::process::fork().at(Stage::ForkInit)? {
        Fork::Child => {
            drop(alive_end);
            sys::process::exit_now(init::run(plan, control, &alive))
        }
        Fork::Parent(pid) => {
            drop(alive);
            wait_for(pid, life).at(Stage::ForkInit)
        }
    }
}

/// Waits for pid 1 to end; kills it when the launcher goes away.
fn wait_for(init: Pid, life: &OwnedFd) -> std::io::Result<Reaped> {
    let pidfd = pidfd_open(init, PidfdFlags::empty())?;
    let mut watched = [
        PollFd::new(life, PollFlags::empty()),
        PollFd::new(&pidfd, PollFlags::IN),
    ];
    loop {
        match poll(&mut watched, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !watched[0].revents().is_empty() {
            end(&pidfd)?;
            break;
        }
        if !watched[1].revents().is_empty() {
            break;
        }
    }
    collect(init)
}

/// Reaps a child that is about to end.
pub(super) fn collect(init: Pid) -> std::io::Result<Reaped> {
    loop {
        match sys::process::wait(init.as_raw_nonzero().get(), true) {
            Ok(Some(reaped)) => return Ok(reaped),
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => return Err(error),
            Ok(None) | Err(_) => {}
        }
    }
}

/// Ends the sandbox. Pid 1 gets a moment to end everybody else and to judge what they made, and
/// then takes its whole pid namespace with it (`pid_namespaces(7)`).
fn end(init: &OwnedFd) -> std::io::Result<()> {
    const MOMENT: Timespec = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    pidfd_send_signal(init, Signal::TERM)?;
    let mut watched = [PollFd::new(init, PollFlags::IN)];
    if poll(&mut watched, Some(&MOMENT)) != Ok(1) {
        pidfd_send_signal(init, Signal::KILL)?;
    }
    Ok(())
}
