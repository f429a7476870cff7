//! Pid 1 of the sandbox: builds the view from inside, starts the command, reaps, passes signals
//! on. It holds no capability while anything untrusted runs and can't be traced.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, Signal, set_dumpable_behavior, set_parent_process_death_signal,
};

use super::{FAILED, command};
use crate::control::{Report, Request};
use crate::mediator::Mediator;
use crate::namespaces::{self, Ids};
use crate::network::Connector;
use crate::plan::{LinuxPlan, Rlimit};
use crate::seccomp::compile;
use crate::stage::{At, Failure, Stage};
use crate::sys::network_namespace::NewNetwork;
use crate::{capabilities, landlock, limits, mounts, network, sys};

/// Runs as pid 1; the exit code only matters to the outer helper.
pub(super) fn run(plan: &LinuxPlan, ids: Ids, control: BorrowedFd<'_>, alive: &OwnedFd) -> i32 {
    match start(plan, ids, control, alive) {
        Ok(command) => {
            let outcome = supervise(command, plan, control, alive, end_everybody);
            i32::from(outcome.is_err())
        }
        Err(failure) => {
            let _ = Report::Failed(failure).send(control);
            1
        }
    }
}

/// Builds the sandbox in the order in which each step still can, and the next one can't undo it.
fn start(
    plan: &LinuxPlan,
    ids: Ids,
    control: BorrowedFd<'_>,
    alive: &OwnedFd,
) -> Result<Running, Failure> {
    set_parent_process_death_signal(Some(Signal::KILL)).at(Stage::DieWithParent)?;
    require_parent(alive).at(Stage::DieWithParent)?;
    // Away from the launcher's terminal: its Ctrl-C is the launcher's to forward. The command's
    // own terminal will be this session's, so that the command's process group has a parent in
    // it: an orphaned group can't be stopped with Ctrl-Z (setpgid(2)).
    rustix::process::setsid().at(Stage::NewSession)?;
    let network = plan.own_network.then(NewNetwork::begin);
    let network = network.transpose().at(Stage::Network)?;
    // While it may still be looked into: the files belong to root otherwise (proc(5)).
    ids.map().at(Stage::MapIds)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Stage::DieWithParent)?;
    if !plan.nested_namespaces {
        // While the capability to do so is there and the host's /proc still shows; the limit is
        // of the namespace of whoever writes, not of the mount.
        namespaces::forbid_nested().at(Stage::LockNamespaces)?;
    }
    mounts::enter(plan)?;
    let connector = match network {
        Some(network) => {
            network.enter().at(Stage::Network)?;
            network::prepare(plan.network.as_ref(), control)?
        }
        None => None,
    };
    Ok(confine(plan, control)?.with(connector))
}

/// What needs no namespace: from the limits to the command itself.
pub(super) fn confine(plan: &LinuxPlan, control: BorrowedFd<'_>) -> Result<Running, Failure> {
    limits::apply_to_all(&plan.rlimits).at(Stage::Rlimit)?;
    rustix::process::chdir(plan.command.cwd.as_path())
        .at_path(Stage::WorkingDirectory, plan.command.cwd.as_path())?;
    let terminal = if plan.terminal {
        Some(command::make_terminal(control)?)
    } else {
        None
    };
    if plan.trusted {
        capabilities::keep_owners().at(Stage::DropCapabilities)?;
    } else {
        capabilities::drop_all().at(Stage::DropCapabilities)?;
        rustix::thread::set_no_new_privs(true).at(Stage::NoNewPrivileges)?;
    }
    if let Some(rules) = &plan.landlock {
        landlock::restrict(rules).at(Stage::Landlock)?;
    }
    let signals = sys::signal::catch(&[libc::SIGCHLD, libc::SIGTERM]).at(Stage::Signals)?;
    let program = compile(&plan.seccomp)
        .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
        .at(Stage::Seccomp)?;
    if plan.network.is_some() {
        await_proxy(control).at(Stage::AwaitProxy)?;
    }
    let mut listener = None;
    let mut failure = None;
    let pid = sys::process::run_until_execution(|| {
        failure = Some(command::run(
            plan,
            terminal.as_ref(),
            &program,
            &mut listener,
        ));
        FAILED
    })
    .at(Stage::ForkCommand)?;
    // It has executed its program by now, or it has ended and says why.
    if let Some(failure) = failure {
        return Err(failure);
    }
    let _ = Report::Started.send(control);
    Ok(Running {
        pid,
        signals,
        listener,
        connector: None,
    })
}

pub(super) struct Running {
    pid: Pid,
    signals: OwnedFd,
    listener: Option<OwnedFd>,
    /// The launcher's line for sockets to connect with.
    connector: Option<Connector>,
}

impl Running {
    /// The same with a line on which the launcher may ask for sockets.
    pub(super) fn with(self, connector: Option<Connector>) -> Self {
        Self { connector, ..self }
    }
}

/// The launcher has the sockets; nothing runs before somebody answers on them.
pub(super) fn await_proxy(control: BorrowedFd<'_>) -> io::Result<()> {
    match Request::receive(control)? {
        Some(Request::Proceed) => Ok(()),
        Some(Request::Signal(_)) | None => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// Waits until the command ends: reaps whatever else ends before, passes signals on, mediates.
pub(super) fn supervise(
    command: Running,
    plan: &LinuxPlan,
    control: BorrowedFd<'_>,
    alive: &OwnedFd,
    end_everybody: impl Fn() -> io::Result<()>,
) -> io::Result<()> {
    let mut mediator = match (command.listener, &plan.mediation) {
        (Some(listener), Some(mediation)) => Some(Mediator::new(listener, mediation, control)?),
        _ => None,
    };
    let signals = command.signals;
    let mut connector = command.connector;
    // The listener hangs up when the last caller ends, and says so again and again until that
    // one has been reaped.
    let mut deserted = mediator.is_none();
    loop {
        let [signalled, requested, abandoned, called, connected, wanted] = {
            let mut watched = vec![
                PollFd::new(&signals, PollFlags::IN),
                PollFd::from_borrowed_fd(control, PollFlags::IN),
                PollFd::new(alive, PollFlags::empty()),
            ];
            if let Some(mediator) = mediator.as_ref().filter(|_| !deserted) {
                watched.push(PollFd::from_borrowed_fd(mediator.listener(), PollFlags::IN));
                watched.extend(mediator.pending());
            }
            // Last, so that the others keep their places.
            let mediated = watched.len();
            if let Some(connector) = &connector {
                watched.push(PollFd::new(connector, PollFlags::IN));
            }
            match poll(&mut watched, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let ready = |range: std::ops::Range<usize>| {
                watched[range].iter().any(|fd| !fd.revents().is_empty())
            };
            let (count, all) = (mediated, watched.len());
            deserted |= ready(3..count.min(4)) && !watched[3].revents().contains(PollFlags::IN);
            [
                ready(0..1),
                ready(1..2),
                ready(2..3),
                ready(3..count.min(4)),
                ready(count.min(4)..count),
                ready(count..all),
            ]
        };
        if let Some(mediator) = &mut mediator {
            if called {
                mediator.answer_one()?;
            }
            if connected {
                mediator.finish_connections()?;
            }
        }
        if wanted
            && let Some(line) = &connector
            && !line.serve().unwrap_or(false)
        {
            connector = None;
        }
        let mut told_to_end = abandoned;
        if requested {
            match Request::receive(control)? {
                Some(Request::Signal(signal)) => pass_on(command.pid, signal),
                Some(Request::Proceed) => {}
                // The launcher is gone.
                None => told_to_end = true,
            }
        }
        if signalled || told_to_end {
            while let Some(signal) = sys::signal::next(signals.as_fd())? {
                told_to_end |= signal == libc::SIGTERM;
            }
            let events = reap(command.pid, &plan.rlimits)?;
            let ended = events.iter().find_map(|event| match event {
                Event::Ended { status, cpu_limit } => Some((*status, *cpu_limit)),
                Event::Stopped => None,
            });
            if told_to_end || ended.is_some() {
                if let Some(mediator) = mediator
                    .as_mut()
                    .filter(|mediator| mediator.has_redirects())
                {
                    end_everybody()?;
                    mediator.judge_redirects();
                }
                return ended.map_or(Ok(()), |(status, cpu_limit)| {
                    Report::Exited { status, cpu_limit }.send(control)
                });
            }
            if !events.is_empty() {
                Report::Stopped.send(control)?;
            }
        }
    }
}

/// Kills everybody else in the pid namespace and waits until they are gone.
fn end_everybody() -> io::Result<()> {
    match sys::signal::kill_everybody_else() {
        Err(error) if error.raw_os_error() != Some(libc::ESRCH) => return Err(error),
        _ => {}
    }
    loop {
        match sys::process::wait(-1, true) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// What happened to the command.
enum Event {
    Ended { status: i32, cpu_limit: bool },
    Stopped,
}

/// Collects every child that ended or stopped; what happened to the command among them.
fn reap(command: Pid, rlimits: &[Rlimit]) -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    loop {
        let next = match sys::process::next_to_reap() {
            Ok(Some(next)) => next,
            Ok(None) => return Ok(events),
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(events),
            Err(error) => return Err(error),
        };
        // Nobody knows it any more once it has been reaped.
        let used = (next == command).then(|| sys::process::limited_cpu_time(next));
        let child = sys::process::wait(next.as_raw_nonzero().get(), false)?;
        let (Some(child), Some(used)) = (child, used) else {
            continue;
        };
        events.push(if child.is_stopped() {
            Event::Stopped
        } else {
            Event::Ended {
                status: child.status,
                cpu_limit: child.is_killed()
                    && used.is_ok_and(|used| limits::is_all_cpu_time(rlimits, used)),
            }
        });
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
