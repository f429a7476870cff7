//! A sandbox that stays open: the supervisor starts the commands that the launcher orders, reports
//! about each of them on a line of its own, and ends the sandbox when the launcher is gone.
//!
//! The loop here runs in the supervisor's first thread and never waits for anything inside. A
//! thread of its own makes the processes ([`spawner`]), because a process that is about to be the
//! command can be held up: stopped by another command, or by a lease on its program.

mod spawner;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Scope;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use self::spawner::{Job, Spawner};
use super::command::open_terminal;
use super::supervisor::{Confined, pass_on};
use crate::commands::{Command, Commands};
use crate::control::{Report, Request};
use crate::limits;
use crate::network::Connector;
use crate::plan::LinuxPlan;
use crate::resolver::Resolver;
use crate::session::{Order, Received, answer_owner};
use crate::socket_owners::ClientSocket;
use crate::stage::{At, Failure, Stage};
use crate::sys::process::Reaped;
use crate::{capabilities, sys};

/// How long a process may take to become its command.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// A session, as its supervisor sees it.
pub(super) struct Session<'a> {
    plan: &'a LinuxPlan,
    signals: OwnedFd,
    connector: Option<Connector>,
    resolver: Option<Resolver>,
    /// Everything inside has ended when this process has.
    init: Pid,
    /// The `/proc` of the supervisor's own pid namespace.
    proc: OwnedFd,
    spawner: Spawner,
    /// A copy of what the mediator listens on, for the launcher.
    listener: Option<OwnedFd>,
    /// Where the launcher asks for the owners of sockets.
    owner_line: Option<OwnedFd>,
    /// What the spawner is to start next.
    waiting: VecDeque<(Job, Arc<Command>)>,
    /// The command that the spawner is starting, since when.
    starting: Option<(Arc<Command>, Instant)>,
    commands: Arc<Commands>,
    running: Vec<Running>,
}

/// A command whose end was not reported yet.
struct Running {
    command: Arc<Command>,
    is_started: bool,
    /// The process, if it had ended before it was reported as started.
    pidfd: Option<OwnedFd>,
    ended: Option<Report>,
    used: Option<Report>,
    /// Whether nobody listens any more.
    is_abandoned: bool,
    /// Whether it is to be killed as soon as it is a process.
    is_doomed: bool,
}

impl<'a> Session<'a> {
    /// Starts the thread that makes processes, and gives up what only that needed.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, 'a>,
        plan: &'a LinuxPlan,
        confined: Confined,
        (init, pid_namespace): (Pid, OwnedFd),
        commands: Arc<Commands>,
        proc: OwnedFd,
    ) -> Result<Self, Failure>
    where
        'a: 'scope,
    {
        let (spawner, listener) = Spawner::start(
            scope,
            plan,
            confined.filter,
            confined.mediator,
            pid_namespace,
        )?;
        capabilities::drop_all().at(Stage::DropCapabilities)?;
        Ok(Self {
            plan,
            signals: confined.signals,
            connector: None,
            resolver: None,
            init,
            proc,
            spawner,
            listener,
            owner_line: None,
            waiting: VecDeque::new(),
            starting: None,
            commands,
            running: Vec::new(),
        })
    }

    /// The same with a line on which the launcher may ask for sockets, and with a resolver.
    pub(super) fn with(self, connector: Option<Connector>, resolver: Option<Resolver>) -> Self {
        Self {
            connector,
            resolver,
            ..self
        }
    }

    /// Serves the launcher until it is gone or closes the session.
    pub(super) fn serve(mut self, control: BorrowedFd<'_>, alive: &OwnedFd) -> io::Result<()> {
        if let Some(listener) = self.listener.take() {
            Report::Listener(listener).send(control)?;
        }
        Report::Started(None).send(control)?;
        // A launcher that does not listen to denials must not hold the mediator up.
        rustix::io::ioctl_fionbio(control, true)?;
        loop {
            let ready = self.wait(control, alive)?;
            if ready.is_abandoned {
                return Ok(());
            }
            if ready.connector
                && let Some(line) = &self.connector
                && !line.serve().unwrap_or(false)
            {
                self.connector = None;
            }
            if ready.owner_line
                && let Some(line) = &self.owner_line
                && !answer_owner(line.as_fd(), &self.commands)
            {
                self.owner_line = None;
            }
            if let Some(resolver) = &mut self.resolver {
                let commands = &self.commands;
                let command_of = |local| commands.of_socket(ClientSocket::Datagram { local });
                resolver.answer(control, command_of);
            }
            if ready.signals && self.take_signals()? {
                return Ok(());
            }
            if ready.spawner {
                self.finish_start();
            }
            self.kill_if_stuck();
            for index in ready.lines {
                self.hear(index);
            }
            if ready.control {
                match Order::receive(control) {
                    Ok(Some(Received::Command {
                        id,
                        order,
                        standard,
                        line,
                        group,
                    })) => self.accept(Command::new(id, line, group), order, standard),
                    Ok(Some(Received::Owners { line })) => self.owner_line = Some(line),
                    Ok(Some(Received::Sockets { paths, line })) => {
                        self.commands.set_sockets(paths);
                        // If nobody listens any more there is nobody to tell.
                        let _ = Report::Started(None).send(line.as_fd());
                    }
                    Ok(None) => return Ok(()),
                    // The launcher hears its line hang up.
                    Err(error) if error.raw_os_error() == Some(libc::EBADMSG) => {}
                    Err(error) => return Err(error),
                }
            }
            self.start_next();
            self.report_ends();
        }
    }

    fn wait(&self, control: BorrowedFd<'_>, alive: &OwnedFd) -> io::Result<Ready> {
        let mut watched = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::from_borrowed_fd(control, PollFlags::IN),
            PollFd::new(alive, PollFlags::empty()),
            PollFd::from_borrowed_fd(self.spawner.finished(), PollFlags::IN),
        ];
        let first_line = watched.len();
        for running in &self.running {
            let mut flags = PollFlags::IN;
            if running.is_ready_to_end() {
                flags |= PollFlags::OUT;
            }
            if !running.is_abandoned {
                watched.push(PollFd::new(&running.command.line, flags));
            }
        }
        let connector = watched.len();
        watched.extend(
            self.connector
                .iter()
                .map(|line| PollFd::new(line, PollFlags::IN)),
        );
        let owner_line = watched.len();
        let lines = self.owner_line.iter();
        watched.extend(lines.map(|line| PollFd::new(line, PollFlags::IN)));
        let sockets = self.resolver.iter().flat_map(Resolver::sockets);
        watched.extend(sockets.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN)));
        match poll(&mut watched, self.next_look().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is = |at: usize| watched.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let heard = self.running.iter().enumerate();
        let heard = heard.filter(|(_, running)| !running.is_abandoned);
        let mut lines = Vec::new();
        for (at, (index, _)) in heard.enumerate() {
            let events = watched[first_line + at].revents();
            if events.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                lines.push(index);
            }
        }
        Ok(Ready {
            signals: is(0),
            control: is(1),
            is_abandoned: is(2),
            spawner: is(3),
            connector: is(connector),
            owner_line: is(owner_line),
            lines,
        })
    }

    /// When a process that is about to be its command has taken too long.
    fn next_look(&self) -> Option<Timespec> {
        let (_, since) = self.starting.as_ref()?;
        let left = START_TIMEOUT.saturating_sub(since.elapsed());
        Timespec::try_from(left).ok()
    }

    fn kill_if_stuck(&self) {
        let Some((command, since)) = &self.starting else {
            return;
        };
        if since.elapsed() >= START_TIMEOUT
            && let Some(pid) = Pid::from_raw(command.pid.load(Ordering::Acquire))
        {
            // It has not been reaped, so the number is still its own.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Reads what the launcher has to say about a command.
    fn hear(&mut self, index: usize) {
        let running = &mut self.running[index];
        let pid = Pid::from_raw(running.command.pid.load(Ordering::Acquire));
        let pid = pid.filter(|_| running.ended.is_none());
        match Request::receive(running.command.line.as_fd()) {
            Ok(Some(Request::Signal(signal))) => {
                if let Some(pid) = pid {
                    pass_on(pid, signal);
                }
                return;
            }
            Ok(Some(Request::Proceed)) => return,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Ok(Some(Request::Kill)) => {}
            Ok(None) | Err(_) => running.is_abandoned = true,
        }
        running.is_doomed = true;
        running.kill(&self.commands, &self.proc);
    }

    fn accept(&mut self, command: Command, order: Order, standard: [OwnedFd; 3]) {
        let command = Arc::new(command);
        match Job::new(order, standard, &command) {
            Ok(job) => self.waiting.push_back((job, command)),
            // If nobody listens any more there is nobody to tell.
            Err(failure) => drop(Report::Failed(failure).send(command.line.as_fd())),
        }
    }

    fn start_next(&mut self) {
        if self.starting.is_some() {
            return;
        }
        let Some((job, command)) = self.waiting.pop_front() else {
            return;
        };
        self.commands.add(&command);
        self.running.push(Running {
            command: Arc::clone(&command),
            is_started: false,
            pidfd: None,
            ended: None,
            used: None,
            is_abandoned: false,
            is_doomed: false,
        });
        self.starting = Some((command, Instant::now()));
        self.spawner.start_command(job);
    }

    /// The spawner has finished with the command that it was starting.
    fn finish_start(&mut self) {
        let Some(outcome) = self.spawner.take_outcome() else {
            return;
        };
        let Some((command, _)) = self.starting.take() else {
            return;
        };
        let mut running = self.running.iter_mut();
        let Some(running) = running.find(|one| Arc::ptr_eq(&one.command, &command)) else {
            return;
        };
        let pid = match outcome {
            Ok(pid) => pid,
            Err(failure) => {
                // If nobody listens any more there is nobody to tell.
                let _ = Report::Failed(failure).send(command.line.as_fd());
                self.forget(&command);
                return;
            }
        };
        let pidfd = running.pidfd.take();
        let pidfd = pidfd.or_else(|| pidfd_open(pid, PidfdFlags::empty()).ok());
        // If nobody listens any more, the line hangs up and the command is killed.
        let _ = Report::Started(pidfd).send(command.line.as_fd());
        running.is_started = true;
        if running.is_doomed {
            running.kill(&self.commands, &self.proc);
        }
    }

    fn forget(&mut self, command: &Arc<Command>) {
        self.running
            .retain(|one| !Arc::ptr_eq(&one.command, command));
        self.commands.remove(command);
    }

    /// Reaps what has ended; whether the session is to end.
    fn take_signals(&mut self) -> io::Result<bool> {
        let mut is_told_to_end = false;
        while let Some(signal) = sys::signal::next(self.signals.as_fd())? {
            is_told_to_end |= signal == libc::SIGTERM;
        }
        loop {
            let next = match sys::process::next_to_reap() {
                Ok(Some(next)) => next,
                Ok(None) => return Ok(is_told_to_end),
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => {
                    return Ok(is_told_to_end);
                }
                Err(error) => return Err(error),
            };
            if next == self.init {
                return Ok(true);
            }
            let number = next.as_raw_nonzero().get();
            let mut running = self.running.iter_mut();
            let running = running.find(|one| one.command.pid.load(Ordering::Acquire) == number);
            // Nobody can ask the kernel any more once it has been reaped.
            let cpu_time = sys::process::limited_cpu_time(next);
            let pidfd = pidfd_open(next, PidfdFlags::empty());
            let child = sys::process::wait(number, false)?;
            let (Some(child), Some(running)) = (child, running) else {
                continue;
            };
            if child.is_stopped() {
                let _ = Report::Stopped.send(running.command.line.as_fd());
                continue;
            }
            let cpu_limit = child.is_killed()
                && cpu_time.is_ok_and(|used| limits::is_all_cpu_time(&self.plan.rlimits, used));
            if !running.is_started {
                running.pidfd = pidfd.ok();
            }
            running.end(child, cpu_limit);
        }
    }

    /// Reports the ends of commands, as far as those who listen have room for it.
    fn report_ends(&mut self) {
        let commands = &self.commands;
        self.running.retain_mut(|running| {
            let is_over = running.is_ready_to_end() && running.report_end();
            if is_over {
                commands.remove(&running.command);
            }
            !is_over
        });
    }
}

/// What has something to be read.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct Ready {
    signals: bool,
    control: bool,
    is_abandoned: bool,
    spawner: bool,
    connector: bool,
    owner_line: bool,
    /// Commands, by their place among those that run.
    lines: Vec<usize>,
}

impl Running {
    fn end(&mut self, child: Reaped, cpu_limit: bool) {
        self.ended = Some(Report::Exited {
            status: child.status,
            cpu_limit,
        });
        self.used = Some(Report::Used {
            user_micros: child.user_micros,
            system_micros: child.system_micros,
            peak_kib: child.peak_kib,
            memory_limit: false,
        });
    }

    fn kill(&self, commands: &Commands, proc: &OwnedFd) {
        if self.ended.is_none() {
            // What could not be killed is killed when the session ends.
            let _ = commands.kill(&self.command, proc.as_fd());
        }
    }

    fn is_ready_to_end(&self) -> bool {
        self.is_started && self.ended.is_some()
    }

    /// Whether everything was said that there is to say.
    fn report_end(&mut self) -> bool {
        if self.is_abandoned {
            return true;
        }
        for report in [&self.ended, &self.used].into_iter().flatten() {
            match report.send(self.command.line.as_fd()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // Whoever does not listen any more is not told.
                Ok(()) | Err(_) => {}
            }
        }
        true
    }
}

/// The descriptors of a new command, of which some are a new terminal's end.
fn standard_of(
    order: &Order,
    standard: [OwnedFd; 3],
    line: BorrowedFd<'_>,
) -> Result<[OwnedFd; 3], Failure> {
    if order.terminal == [false; 3] {
        return Ok(standard);
    }
    let model = standard.each_ref().map(AsFd::as_fd);
    let (launcher_end, command_end) = open_terminal(model).at(Stage::Terminal)?;
    Report::Terminal(launcher_end)
        .send(line)
        .at(Stage::Terminal)?;
    let mut standard = standard;
    for (fd, is_terminal) in standard.iter_mut().zip(order.terminal) {
        if is_terminal {
            *fd = command_end.try_clone().at(Stage::Terminal)?;
        }
    }
    Ok(standard)
}
