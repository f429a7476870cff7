//! Outside the namespaces: enters control groups, starts the supervisor in its own, and outlives
//! both the launcher and the sandbox just long enough to leave nothing behind. A launcher that
//! can be copied and needs no control group does without: see [`direct`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper,
};

use super::supervisor;
use crate::control::Report;
use crate::namespaces::{self, Ids};
use crate::plan::LinuxPlan;
use crate::stage::{At, Failure, Stage};
use crate::sys::process::{Fork, Reaped};
use crate::{cgroup, sys};

pub(super) fn run(
    plan: &LinuxPlan,
    control: BorrowedFd<'_>,
    life: &OwnedFd,
) -> Result<(), Failure> {
    // Away from the launcher's terminal: its Ctrl-C is the launcher's to forward.
    rustix::process::setsid().at(Stage::NewSession)?;
    // Should the supervisor be killed, init is this process's to reap.
    set_child_subreaper(Some(getpid())).at(Stage::DieWithParent)?;
    let groups = cgroup::enter(plan.cgroup.as_ref())?;
    let outcome = run_supervisor(plan, control, life);
    while sys::process::wait(-1, true).is_ok() {}
    let memory_limit = groups.was_out_of_memory();
    groups.remove();
    // Only now, so that whoever hears it finds nothing left of the sandbox.
    tell_usage(&outcome?, memory_limit, control);
    Ok(())
}

/// The helper's last word.
pub(super) fn tell_usage(used: &Reaped, memory_limit: bool, control: BorrowedFd<'_>) {
    let report = Report::Used {
        user_micros: used.user_micros,
        system_micros: used.system_micros,
        peak_kib: used.peak_kib,
        memory_limit,
    };
    // If the launcher is gone there is nobody to tell.
    let _ = report.send(control);
}

fn run_supervisor(
    plan: &LinuxPlan,
    control: BorrowedFd<'_>,
    life: &OwnedFd,
) -> Result<Reaped, Failure> {
    // Hangs up when this process is gone.
    let (alive, alive_end) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).at(Stage::ForkInit)?;
    match start().at(Stage::Unshare)? {
        (Fork::Child, ids) => {
            drop(alive_end);
            supervisor::run(plan, ids, control, &alive)
        }
        (Fork::Parent(pid), _) => {
            drop(alive);
            wait_for(pid, life).at(Stage::ForkInit)
        }
    }
}

/// Makes the supervisor a child of the launcher itself, of which this is a copy: nothing outside needs to
/// be tidied up, and the launcher reaps it. Returns in the launcher.
pub(crate) fn direct(
    plan: &LinuxPlan,
    descriptors: &[(BorrowedFd<'_>, i32)],
    own: [i32; 2],
) -> io::Result<Pid> {
    match start()? {
        (Fork::Parent(pid), _) => Ok(pid),
        (Fork::Child, ids) => {
            let adopted = sys::process::place_descriptors(descriptors)
                .and_then(|()| sys::process::adopt_descriptors(own, &plan.keep_descriptors));
            match adopted {
                Ok([control, life]) => supervisor::run(plan, ids, control.as_fd(), &life),
                // The launcher hears the socket hang up.
                Err(_) => sys::process::exit_now(super::FAILED),
            }
        }
    }
}

/// Forks the supervisor into new namespaces.
pub(super) fn start() -> io::Result<(Fork, Ids)> {
    let ids = Ids::own();
    Ok((sys::process::fork_into(namespaces::KINDS)?, ids))
}

/// Waits for the supervisor to end; ends it when the launcher goes away.
pub(super) fn wait_for(init: Pid, life: &OwnedFd) -> io::Result<Reaped> {
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
pub(super) fn collect(init: Pid) -> io::Result<Reaped> {
    loop {
        match sys::process::wait(init.as_raw_nonzero().get(), true) {
            Ok(Some(reaped)) => return Ok(reaped),
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            Ok(None) | Err(_) => {}
        }
    }
}

/// How long the supervisor has to end everything.
pub(crate) const MOMENT: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Ends the sandbox. The supervisor gets a moment to end everything inside; then it is killed, and
/// init with it.
fn end(init: &OwnedFd) -> io::Result<()> {
    pidfd_send_signal(init, Signal::TERM)?;
    let mut watched = [PollFd::new(init, PollFlags::IN)];
    if poll(&mut watched, Some(&MOMENT)) != Ok(1) {
        pidfd_send_signal(init, Signal::KILL)?;
    }
    Ok(())
}
