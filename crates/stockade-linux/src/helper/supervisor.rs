//! The process that starts the command and waits for it. It shares the command's user, mount and
//! network namespaces and its Landlock domain, but not its pid namespace: nothing inside can name,
//! see, signal, limit or trace it.
//!
//! Its first thread starts the command, reaps it, forwards signals and ends the run; nothing that
//! happens inside can hold that thread up. A second thread is the mediator's. It is started before
//! the first thread turns to the pid namespace of [`Init`]: from then on the kernel lets that
//! thread make processes there and no threads here (`pid_namespaces(7)`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::Scope;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{
    DumpableBehavior, Pid, Signal, set_dumpable_behavior, set_parent_process_death_signal,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::session::Session;
use super::{FAILED, command};
use crate::commands::Commands;
use crate::control::{Report, Request};
use crate::landlock::Signals;
use crate::mediator;
use crate::namespaces::{self, Ids};
use crate::network::Connector;
use crate::plan::{LinuxPlan, Rlimit};
use crate::resolver::Resolver;
use crate::seccomp::{Program, compile};
use crate::stage::{At, Failure, Stage};
use crate::sys::init_process::Init;
use crate::sys::network_namespace::NewNetwork;
use crate::{capabilities, landlock, limits, mounts, network, sys, title};

/// Runs as the supervisor of a sandbox with namespaces of its own, and ends the process. The exit
/// code only matters to the parent.
pub(super) fn run(plan: &LinuxPlan, ids: Ids, control: BorrowedFd<'_>, alive: &OwnedFd) -> ! {
    std::thread::scope(|scope| {
        let code = match start(scope, plan, ids, control, alive) {
            Ok((started, init)) => {
                let outcome = match started {
                    Started::Command(command) => supervise(command, plan, control, alive),
                    Started::Session(session) => session.serve(control, alive),
                };
                i32::from(init.end().and(outcome).is_err())
            }
            Err(failure) => {
                let _ = Report::Failed(failure).send(control);
                1
            }
        };
        mediator::await_unfinished();
        // Without waiting for the mediator, which ends with the process.
        sys::process::exit_now(code)
    })
}

/// What runs in a sandbox that was built.
enum Started<'a> {
    Command(Running),
    Session(Session<'a>),
}

/// Builds the sandbox in the order in which each step still can, and the next one can't undo it.
fn start<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    plan: &'env LinuxPlan,
    ids: Ids,
    control: BorrowedFd<'env>,
    alive: &OwnedFd,
) -> Result<(Started<'env>, Init), Failure> {
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
    let proc = open_own_proc().at(Stage::OwnProc)?;
    // It shows as the command line of pid 1, whose memory is this process's. Nothing depends on it.
    let _ = title::overwrite(&proc, b"init");
    let init = Init::start().at(Stage::ForkInit)?;
    let pid_namespace = pid_namespace_of(&init, &proc).at(Stage::ForkInit)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Stage::DieWithParent)?;
    if !plan.nested_namespaces {
        // While the capability to do so is there and the host's /proc still shows; the limit is
        // of the namespace of whoever writes, not of the mount.
        namespaces::forbid_nested().at(Stage::LockNamespaces)?;
    }
    mounts::enter(plan, &init)?;
    let entered = network.map(NewNetwork::enter).transpose();
    let entered = entered.at(Stage::Network)?.flatten();
    init.settle(entered.as_ref().map(AsFd::as_fd))
        .at(Stage::ForkInit)?;
    let connector = if plan.own_network {
        network::prepare(plan.network.as_ref(), control)?
    } else {
        None
    };
    let resolver = start_resolver(plan);
    let started = if plan.session {
        let own_proc = proc.try_clone().at(Stage::OwnProc)?;
        let commands = Arc::new(Commands::default());
        let view = mediator::View {
            proc,
            own_pids: true,
            commands: Some(Arc::clone(&commands)),
        };
        let confined = confine(scope, plan, control, view)?;
        let inside = (init.pid(), pid_namespace);
        let session = Session::start(scope, plan, confined, inside, commands, own_proc)?;
        Started::Session(session.with(connector, resolver))
    } else {
        let view = mediator::View {
            proc,
            own_pids: true,
            commands: None,
        };
        let confined = confine(scope, plan, control, view)?;
        let command = confined.start_command(plan, control, Some(&pid_namespace))?;
        Started::Command(command.with(connector, resolver))
    };
    Ok((started, init))
}

/// The host's `/proc`, which shows every caller of the mediator, and the mediator to itself.
pub(super) fn open_proc() -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open("/proc", flags, Mode::empty())
}

/// The same, if it has the pid namespace of this process. In another one's the mediator would take
/// strangers for its callers.
pub(super) fn open_own_proc() -> rustix::io::Result<OwnedFd> {
    if shows_own_pids() {
        open_proc()
    } else {
        Err(rustix::io::Errno::SRCH)
    }
}

/// Whether `/proc` has the pid namespace of this process, and not that of a sandbox around it.
pub(super) fn shows_own_pids() -> bool {
    let own = rustix::process::getpid().as_raw_nonzero().to_string();
    std::fs::read_link("/proc/self").is_ok_and(|name| name.as_os_str() == own.as_str())
}

fn pid_namespace_of(init: &Init, proc: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let path = format!("{}/ns/pid", init.pid().as_raw_nonzero());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::openat(proc, path, flags, Mode::empty())
}

/// A supervisor under everything that it shares with the command.
pub(super) struct Confined {
    pub(super) signals: OwnedFd,
    pub(super) filter: Program,
    pub(super) mediator: Option<mediator::Waiting>,
    terminal: Option<OwnedFd>,
}

/// What needs no namespace: from the limits to the mediator.
pub(super) fn confine<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    plan: &'env LinuxPlan,
    control: BorrowedFd<'env>,
    view: mediator::View,
) -> Result<Confined, Failure> {
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
        capabilities::lock().at(Stage::DropCapabilities)?;
        rustix::thread::set_no_new_privs(true).at(Stage::NoNewPrivileges)?;
    }
    if let Some(rules) = &plan.landlock {
        // Init is outside the domain and must end with this process; the command has a domain of
        // its own inside this one.
        let signals = if view.own_pids {
            Signals::Unrestricted
        } else {
            Signals::Own
        };
        landlock::restrict(rules, view.proc.as_fd(), signals).at(Stage::Landlock)?;
    }
    let signals = sys::signal::catch(&[libc::SIGCHLD, libc::SIGTERM]).at(Stage::Signals)?;
    let filter = compile(&plan.seccomp)
        .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
        .at(Stage::Seccomp)?;
    if plan.network.is_some() {
        await_proxy(control).at(Stage::AwaitProxy)?;
    }
    // Before the turn to the pid namespace, and after everything that it is to inherit.
    let mediation = plan.mediation.as_ref();
    let mediator = mediation.map(|mediation| mediator::start(scope, mediation, control, view));
    Ok(Confined {
        signals,
        filter,
        mediator: mediator.transpose().at(Stage::Mediator)?,
        terminal,
    })
}

impl Confined {
    /// Starts the command, in `pid_namespace` if there is one.
    pub(super) fn start_command(
        self,
        plan: &LinuxPlan,
        control: BorrowedFd<'_>,
        pid_namespace: Option<&OwnedFd>,
    ) -> Result<Running, Failure> {
        if let Some(namespace) = pid_namespace {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::ProcessID))
                .at(Stage::ForkCommand)?;
        }
        if !plan.trusted {
            capabilities::drop_all().at(Stage::DropCapabilities)?;
        }
        let mut listener = None;
        let mut failure = None;
        let pid = sys::process::run_until_execution(|| {
            let terminal = self.terminal.as_ref();
            failure = Some(command::run(plan, terminal, &self.filter, &mut listener));
            FAILED
        })
        .at(Stage::ForkCommand)?;
        // It has executed its program by now, or it has ended and says why.
        if let Some(failure) = failure {
            return Err(failure);
        }
        if let (Some(mediator), Some(listener)) = (self.mediator, listener) {
            mediator.serve(listener).at(Stage::Mediator)?;
        }
        let _ = Report::Started(None).send(control);
        Ok(Running {
            pid,
            signals: self.signals,
            connector: None,
            resolver: None,
        })
    }
}

pub(super) struct Running {
    pid: Pid,
    signals: OwnedFd,
    /// The launcher's line for sockets to connect with.
    connector: Option<Connector>,
    resolver: Option<Resolver>,
}

impl Running {
    /// The same with a line on which the launcher may ask for sockets, and with a resolver.
    pub(super) fn with(self, connector: Option<Connector>, resolver: Option<Resolver>) -> Self {
        Self {
            connector,
            resolver,
            ..self
        }
    }
}

/// Begins to listen to questions about names, if nobody else does.
fn start_resolver(plan: &LinuxPlan) -> Option<Resolver> {
    // RFC 2544 sets the network of this address aside for measurements.
    let own = std::net::Ipv4Addr::new(198, 18, 0, 1);
    let is_needed = plan.own_network && !plan.resolvers.is_empty();
    is_needed.then(|| Resolver::start(&plan.resolvers, own.into()))
}

/// The launcher has the sockets; nothing runs before somebody answers on them.
pub(super) fn await_proxy(control: BorrowedFd<'_>) -> io::Result<()> {
    match Request::receive(control)? {
        Some(Request::Proceed) => Ok(()),
        Some(Request::Kill | Request::Signal(_)) | None => {
            Err(io::ErrorKind::ConnectionAborted.into())
        }
    }
}

/// Waits until the command ends or the run is to end, and forwards signals meanwhile.
pub(super) fn supervise(
    command: Running,
    plan: &LinuxPlan,
    control: BorrowedFd<'_>,
    alive: &OwnedFd,
) -> io::Result<()> {
    let signals = command.signals;
    let mut connector = command.connector;
    let mut resolver = command.resolver;
    loop {
        let [signalled, requested, abandoned, wanted] = {
            let mut watched = vec![
                PollFd::new(&signals, PollFlags::IN),
                PollFd::from_borrowed_fd(control, PollFlags::IN),
                PollFd::new(alive, PollFlags::empty()),
            ];
            if let Some(connector) = &connector {
                watched.push(PollFd::new(connector, PollFlags::IN));
            }
            let sockets = resolver.iter().flat_map(Resolver::sockets);
            watched.extend(sockets.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)));
            match poll(&mut watched, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            [0, 1, 2, 3].map(|at| {
                let fd = watched.get(at);
                fd.is_some_and(|fd| !fd.revents().is_empty())
            })
        };
        if let Some(resolver) = &mut resolver {
            resolver.answer(control, |_| None);
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
                Some(Request::Kill | Request::Proceed) => {}
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
            if let Some((status, cpu_limit)) = ended {
                return Report::Exited { status, cpu_limit }.send(control);
            }
            if told_to_end {
                return Ok(());
            }
            if !events.is_empty() {
                Report::Stopped.send(control)?;
            }
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
pub(super) fn pass_on(command: Pid, signal: i32) {
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
