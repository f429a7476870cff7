//! A command in the foreground of a terminal or script: signals, wall time, output, the terminal.

mod relay;
mod terminal;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use stockade_linux::{Builder, Signals};

use crate::backend::{Backends, Launch};
use crate::network::NetworkService;
use crate::plan::ExecPlan;
use crate::report::Ending;
use crate::sandbox::{Child, Finished, RunError, timespec};

use self::relay::Relays;
use self::terminal::Screen;

/// What the launcher of a foreground command passes on.
#[expect(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct Foreground<'a> {
    /// Descriptors that the command keeps, with their numbers there.
    pub keep: Vec<(OwnedFd, i32)>,
    /// What can carry the plan out.
    pub backends: &'a Backends,
    /// Who answers in the sandbox's network.
    pub network: Option<Arc<dyn NetworkService>>,
    /// Who is shown what the command prints.
    pub tap: Option<&'a dyn Tap>,
}

/// Sees what the command prints.
///
/// It is called after the bytes were passed on, so it neither delays nor changes them; but while it
/// works nothing more is passed on.
pub trait Tap {
    /// These bytes went out on this stream. They are cut wherever they happened to arrive.
    fn passed(&self, stream: Stream, bytes: &[u8]);
}

/// Where output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a process has these")]
pub enum Stream {
    /// Standard error.
    Stderr,
    /// Standard output.
    Stdout,
    /// The command's own terminal, which shows both.
    Terminal,
}

impl fmt::Debug for Foreground<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreground")
            .field("backends", &self.backends)
            .field("keep", &self.keep)
            .field("network", &self.network)
            .field("tap", &self.tap.is_some())
            .finish()
    }
}

/// Signals that are the command's to handle.
const FORWARDED: &[i32] = &[
    signal::HUP,
    signal::INT,
    signal::QUIT,
    signal::TERM,
    signal::USR1,
    signal::USR2,
];

mod signal {
    use rustix::process::Signal;

    pub(super) const HUP: i32 = Signal::HUP.as_raw();
    pub(super) const INT: i32 = Signal::INT.as_raw();
    pub(super) const QUIT: i32 = Signal::QUIT.as_raw();
    pub(super) const TERM: i32 = Signal::TERM.as_raw();
    pub(super) const USR1: i32 = Signal::USR1.as_raw();
    pub(super) const USR2: i32 = Signal::USR2.as_raw();
    pub(super) const CONT: i32 = Signal::CONT.as_raw();
    pub(super) const WINCH: i32 = Signal::WINCH.as_raw();
}

/// Executes the plan with the caller's own standard descriptors, to its end. For programs with a
/// single thread: signals are caught while the command runs, and a copy of the caller builds the
/// sandbox.
///
/// # Errors
/// If the command could not be started or waited for.
pub fn run_in_foreground(plan: ExecPlan, launch: &Foreground<'_>) -> Result<Finished, RunError> {
    let caught: Vec<i32> = FORWARDED
        .iter()
        .copied()
        .chain([signal::CONT, signal::WINCH])
        .collect();
    let signals = Signals::catch(&caught).map_err(io_error("catch signals"))?;
    let limit = plan.output;
    let has_terminal = plan.linux.terminal;
    let mut relays = if has_terminal {
        Relays::none()
    } else {
        Relays::new(limit, launch.tap)?
    };
    let kept: Vec<(BorrowedFd<'_>, i32)> = launch
        .keep
        .iter()
        .map(|(fd, number)| (fd.as_fd(), *number))
        .collect();
    let mut child = {
        let standard = [rustix::stdio::stdin(), relays.stdout(), relays.stderr()];
        let start = Launch {
            builder: Builder::Copy,
            standard,
            kept: &kept,
            network: launch.network.as_deref(),
        };
        Child::start(plan, launch.backends, start)?
    };
    relays.close_inner();
    let mut screen = match child.running().take_terminal() {
        Some(command_side) => Some(Screen::enter(command_side, limit, launch.tap)?),
        None => None,
    };
    supervise(&mut child, &signals, &mut relays, &mut screen)?;
    let finished = child.finish()?;
    relays.drain();
    if let Some(screen) = &mut screen {
        screen.drain();
    }
    Ok(finished)
}

fn supervise(
    child: &mut Child,
    signals: &Signals,
    relays: &mut Relays<'_>,
    screen: &mut Option<Screen<'_>>,
) -> Result<(), RunError> {
    loop {
        let timeout = child.time_left().and_then(timespec);
        let [heard, signalled] = {
            let messages = child.running().messages();
            let mut watched = vec![
                PollFd::from_borrowed_fd(messages, PollFlags::IN),
                PollFd::new(signals, PollFlags::IN),
            ];
            watched.extend(relays.watched());
            if let Some(screen) = screen {
                watched.extend(screen.watched());
            }
            match poll(&mut watched, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(io_error("wait for the sandbox")(error.into())),
            }
            [
                !watched[0].revents().is_empty(),
                !watched[1].revents().is_empty(),
            ]
        };
        child.end_if_late();
        if relays.pump().map_err(io_error("pass output on"))? {
            child.end(Ending::OutputLimit);
        }
        if let Some(screen) = screen
            && screen.pump().map_err(io_error("relay the terminal"))?
        {
            child.end(Ending::OutputLimit);
        }
        if signalled {
            while let Some(number) = signals.next().map_err(io_error("read signals"))? {
                react(number, child, screen);
            }
        }
        if heard {
            if !child.hear()? {
                return Ok(());
            }
            if child.running().take_stopped()
                && let Some(screen) = screen
            {
                // The shell that started us gets its terminal back, as it would from the command.
                screen
                    .suspend()
                    .map_err(|error| io_error("suspend")(error.into()))?;
                let _ = child.signal(signal::CONT);
            }
        }
    }
}

fn react(number: i32, child: &mut Child, screen: &mut Option<Screen<'_>>) {
    match (number, screen) {
        (signal::WINCH, Some(screen)) => {
            screen.resize();
            if let Ok(size) = rustix::termios::tcgetwinsize(rustix::stdio::stdin()) {
                child.running().resize(size.ws_row, size.ws_col);
            }
        }
        (signal::WINCH | signal::CONT, _) => {}
        // A sandbox that has ended in this moment needs no signal.
        (number, _) => drop(child.signal(number)),
    }
}

fn io_error(act: &'static str) -> impl Fn(io::Error) -> RunError {
    move |source| RunError::Io { act, source }
}
