//! The launcher's side of a session: a sandbox that stays open, and the commands in it.
//!
//! Each command has a line of its own, a pair of sockets: the supervisor reports about the command
//! on it and hears what to do with it. No descriptor of a line, nor of the control socket, is ever
//! in a command's descriptor table.

mod command_group;
mod order;
mod owner_lookup;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType};

use crate::control::{Report, Request};
use crate::heard::Heard;
use crate::mediator::Denial;
use crate::plan::{LinuxPlan, Text};
use crate::socket_owners::CommandId;
use crate::spawn::{Builder, Lifeline, Outcome, Running, SpawnError, UsageScope, spawn};

use self::command_group::{CommandGroup, CommandGroups};
pub use self::order::Order;
pub(crate) use self::order::Received;
pub use self::owner_lookup::OwnerLookup;
pub(crate) use self::owner_lookup::answer_owner;

/// A sandbox that stays open. Dropping it ends it, and everything that runs in it.
#[derive(Debug)]
pub struct Session {
    running: Running,
    started: AtomicU64,
    groups: Option<Arc<CommandGroups>>,
}

/// A command that runs in a session. Dropping it kills it.
#[derive(Debug)]
pub struct SessionCommand {
    id: CommandId,
    line: Arc<OwnedFd>,
    pidfd: OwnedFd,
    heard: Heard,
    /// Whether it is known to have ended.
    is_over: bool,
    group: Option<CommandGroup>,
}

impl Session {
    /// Opens a session: builds the sandbox of a plan whose `session` is set.
    ///
    /// `attach` gets the sockets of the plan's network, if it has any, before any command runs.
    ///
    /// # Errors
    /// If anything could not be set up.
    pub fn open(
        plan: &LinuxPlan,
        builder: Builder<'_>,
        attach: &mut dyn FnMut(Vec<OwnedFd>) -> io::Result<()>,
    ) -> Result<Self, SpawnError> {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .map_err(|error| SpawnError::Channels(error.into()))?;
        let running = spawn(plan, builder, [null.as_fd(); 3], &[], attach)?;
        Ok(Self {
            running,
            started: AtomicU64::new(0),
            groups: CommandGroups::open(plan)?,
        })
    }

    /// Starts a command and waits until it was executed.
    ///
    /// # Errors
    /// If it could not be started, or the session has ended; then nothing of it has run.
    pub fn start(
        &self,
        order: &Order,
        standard: [BorrowedFd<'_>; 3],
    ) -> Result<SessionCommand, SpawnError> {
        let (line, inner) = line_pair()?;
        let id = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let group = self.groups.as_ref().map(|groups| groups.make(id));
        let group = group.transpose()?;
        let processes = group.as_ref().map(CommandGroup::processes);
        order
            .send(
                id,
                self.running.messages(),
                standard,
                inner.as_fd(),
                processes,
            )
            .map_err(not_sent)?;
        drop(inner);
        let mut heard = Heard::default();
        loop {
            match Report::receive(line.as_fd()).map_err(SpawnError::Channels)? {
                Some(Report::Started(Some(pidfd))) => {
                    return Ok(SessionCommand {
                        id,
                        line: Arc::new(line),
                        pidfd,
                        heard,
                        is_over: false,
                        group,
                    });
                }
                Some(Report::Failed(failure)) => return Err(failure.into()),
                Some(Report::Started(None)) | None => return Err(SpawnError::Lost),
                Some(other) => heard.take(other),
            }
        }
    }

    /// Lets commands connect to these sockets of the host, besides those of the plan: those that
    /// run now as well as later ones. What was granted so before and is not among them is not
    /// granted any more.
    ///
    /// # Errors
    /// If the session has ended.
    pub fn set_sockets(&self, paths: &[Text]) -> Result<(), SpawnError> {
        let (line, inner) = line_pair()?;
        order::send_sockets(self.running.messages(), paths, inner.as_fd()).map_err(not_sent)?;
        drop(inner);
        match Report::receive(line.as_fd()).map_err(SpawnError::Channels)? {
            Some(Report::Started(None)) => Ok(()),
            _ => Err(SpawnError::Lost),
        }
    }

    /// What tells which command a socket of the sandbox's network belongs to.
    ///
    /// # Errors
    /// If the session has ended.
    pub fn owner_lookup(&self) -> Result<OwnerLookup, SpawnError> {
        let (line, inner) = line_pair()?;
        order::send_owners(self.running.messages(), inner.as_fd()).map_err(not_sent)?;
        Ok(OwnerLookup::new(line))
    }

    /// Ends the session: everything in it is killed and gone when this returns.
    ///
    /// # Errors
    /// If its end can't be known.
    pub fn close(&mut self) -> io::Result<Outcome> {
        self.running.kill();
        self.running.wait()
    }

    /// What ends the session from another thread.
    pub fn lifeline(&self) -> Lifeline {
        self.running.lifeline()
    }

    /// Becomes readable when the session has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.running.pidfd()
    }

    /// Denials of processes that belong to no command, as far as the session was closed.
    pub fn denials(&self) -> &[Denial] {
        self.running.denials()
    }
}

/// A line to the supervisor: the launcher's end, and the one to send along.
fn line_pair() -> Result<(OwnedFd, OwnedFd), SpawnError> {
    let channels = |error: rustix::io::Errno| SpawnError::Channels(error.into());
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    let (line, inner) =
        rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None).map_err(channels)?;
    // A launcher that does not listen must not hold the supervisor up.
    rustix::io::ioctl_fionbio(&inner, true).map_err(channels)?;
    Ok((line, inner))
}

fn not_sent(error: io::Error) -> SpawnError {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => SpawnError::Lost,
        _ => SpawnError::Channels(error),
    }
}

impl SessionCommand {
    /// The command's number in its session.
    pub fn id(&self) -> CommandId {
        self.id
    }

    /// Kills the command and what it started. Where it has no control group, processes that left its
    /// session and lost their parents end with the session.
    pub fn kill(&self) {
        // A command that has ended needs no signal.
        let _ = Request::Kill.send(self.line.as_fd());
    }

    /// What kills the command from another thread, as [`SessionCommand::kill`] does.
    pub fn killer(&self) -> impl FnOnce() + Send + 'static {
        let line = Arc::clone(&self.line);
        move || drop(Request::Kill.send(line.as_fd()))
    }

    /// Takes the launcher's end of the command's terminal, if the order asked for one.
    pub fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.heard.terminal.take()
    }

    /// Hears one message; false when there will be no more.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn hear(&mut self) -> io::Result<bool> {
        self.heard.hear(self.line.as_fd())
    }

    /// Whether the command was stopped since this was last asked.
    pub fn take_stopped(&mut self) -> bool {
        std::mem::take(&mut self.heard.stopped)
    }

    /// Becomes readable when [`SessionCommand::hear`] has something to hear.
    pub fn messages(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }

    /// Becomes readable when the command has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// What the mediator refused the command so far.
    pub fn denials(&self) -> &[Denial] {
        &self.heard.denials
    }

    /// Passes a signal on to the command's process group.
    ///
    /// # Errors
    /// If the session has ended.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        Request::Signal(signal).send(self.line.as_fd())
    }

    /// Waits for the command to end. What it left running in the background goes on.
    ///
    /// # Errors
    /// If the supervisor can't be heard.
    pub fn wait(&mut self) -> io::Result<Outcome> {
        while self.hear()? {}
        self.is_over = true;
        let mut outcome = self.heard.outcome();
        outcome.usage.scope = UsageScope::Waited;
        if let Some(group) = self.group.take()
            && let Ok((user, system)) = group.cpu_time()
        {
            outcome.usage.user_micros = user;
            outcome.usage.system_micros = system;
            outcome.usage.scope = UsageScope::All;
        }
        Ok(outcome)
    }
}

impl Drop for SessionCommand {
    fn drop(&mut self) {
        if !self.is_over {
            self.kill();
            // There is nobody to tell.
            let _ = self.wait();
        }
        // Another thread may still hold the line to kill the command.
        let _ = rustix::net::shutdown(&*self.line, Shutdown::Both);
    }
}
