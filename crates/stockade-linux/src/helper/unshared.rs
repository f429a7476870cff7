//! The run without namespaces, for hosts that refuse them.
//!
//! Two processes do what a pid namespace does elsewhere. The *supervisor* stands in for pid 1: it
//! lives in the command's Landlock domain, mediates, and as a subreaper (`prctl(2)`) gets every
//! orphan, double-forked and in a session of its own or not. The *keeper* stays outside the
//! domain, gets the supervisor's children should that be killed, and removes what was made for
//! the run. Either ends the whole tree when the other or the launcher is gone.
//!
//! It does not hide other processes, and before Landlock ABI 6 it can't keep the command from
//! signalling them, these two among them. If both are killed at once, the command ends with its
//! parent and its children are confined still, but nobody ends them.

mod scratch;
mod tree;

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::process::{DumpableBehavior, Pid, getpid, set_child_subreaper, set_dumpable_behavior};

use rustix::thread::UnshareFlags;

use self::scratch::Scratch;
use super::{outer, supervisor};
use crate::control::Report;
use crate::namespaces::Ids;
use crate::network::Connector;
use crate::plan::LinuxPlan;
use crate::stage::{At, Failure, Stage};
use crate::sys::network_namespace::NewNetwork;
use crate::sys::process::{Fork, Reaped, exit_now};
use crate::{cgroup, mediator, network, sys};

/// As the keeper.
pub(super) fn run(
    plan: &LinuxPlan,
    control: BorrowedFd<'_>,
    life: &OwnedFd,
) -> Result<(), Failure> {
    // Away from the launcher's terminal: its Ctrl-C is the launcher's to forward.
    rustix::process::setsid().at(Stage::NewSession)?;
    guard_self()?;
    let scratch = Scratch::make(&plan.scratch)?;
    let groups = match cgroup::enter(plan.cgroup.as_ref()) {
        Ok(groups) => groups,
        Err(failure) => {
            scratch.remove();
            return Err(failure);
        }
    };
    let outcome = run_supervisor(plan, control, life);
    // Nothing, unless the supervisor was killed.
    tree::end_descendants();
    let memory_limit = groups.was_out_of_memory();
    groups.remove();
    scratch.remove();
    // Only now, so that whoever hears it finds nothing left of the sandbox.
    outer::tell_usage(&outcome?, memory_limit, control);
    Ok(())
}

/// Orphans below come to this process, and nobody may look into it.
fn guard_self() -> Result<(), Failure> {
    set_child_subreaper(Some(getpid())).at(Stage::DieWithParent)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Stage::DieWithParent)
}

fn run_supervisor(
    plan: &LinuxPlan,
    control: BorrowedFd<'_>,
    life: &OwnedFd,
) -> Result<Reaped, Failure> {
    // Hangs up when the keeper is gone.
    let (alive, alive_end) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).at(Stage::ForkInit)?;
    let keeper = getpid();
    match sys::process::fork().at(Stage::ForkInit)? {
        Fork::Child => {
            drop(alive_end);
            supervise(plan, control, &alive, keeper)
        }
        Fork::Parent(pid) => {
            drop(alive);
            outer::wait_for(pid, life).at(Stage::ForkInit)
        }
    }
}

/// A network of its own for a program that builds the rest of the sandbox and would have nobody
/// answer in there. Without privileges a user namespace comes with it, in which the program has
/// the user's own number and, once it is executed, no capability.
fn own_network(plan: &LinuxPlan, control: BorrowedFd<'_>) -> Result<Option<Connector>, Failure> {
    if !plan.own_network {
        return Ok(None);
    }
    if !rustix::process::geteuid().is_root() {
        let ids = Ids::own();
        sys::process::unshare(UnshareFlags::NEWUSER).at(Stage::Unshare)?;
        // The files belong to root otherwise (proc(5)).
        set_dumpable_behavior(DumpableBehavior::Dumpable).at(Stage::MapIds)?;
        let mapped = ids.map().at(Stage::MapIds);
        set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Stage::MapIds)?;
        mapped?;
    }
    let network = NewNetwork::begin().at(Stage::Network)?;
    network.enter().at(Stage::Network).map(drop)?;
    network::prepare(plan.network.as_ref(), control)
}

/// As the supervisor, which ends the process; the exit code only matters to the keeper.
fn supervise(plan: &LinuxPlan, control: BorrowedFd<'_>, alive: &OwnedFd, keeper: Pid) -> ! {
    std::thread::scope(|scope| {
        // As a supervisor with namespaces has one.
        let session = || rustix::process::setsid().at(Stage::NewSession);
        let confined = guard_self()
            .and_then(|()| session())
            .and_then(|_| own_network(plan, control))
            .and_then(|connector| {
                let proc = match &plan.mediation {
                    Some(_) => supervisor::open_own_proc().at(Stage::OwnProc)?,
                    None => supervisor::open_proc().at(Stage::ForkInit)?,
                };
                let view = mediator::View {
                    proc,
                    own_pids: false,
                    commands: None,
                };
                let confined = supervisor::confine(scope, plan, control, view)?;
                let command = confined.start_command(plan, control, None)?;
                Ok(command.with(connector, None))
            });
        let code = match confined {
            Ok(command) => {
                let outcome = supervisor::supervise(command, plan, control, alive);
                tree::end_domain(keeper);
                i32::from(outcome.is_err())
            }
            Err(failure) => {
                let _ = Report::Failed(failure).send(control);
                1
            }
        };
        mediator::await_unfinished();
        // Without waiting for the mediator, which ends with the process.
        exit_now(code)
    })
}
