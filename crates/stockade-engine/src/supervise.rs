//! A command in the foreground of a terminal or script: signals, wall time, output, the terminal.

mod allowance;
mod attend;
mod relay;
mod terminal;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use stockade_linux::{Builder, Signals};

use crate::backend::{Backends, Launch};
use crate::child::{Child, Finished, RunError, chain, timespec};
use crate::network::NetworkService;
use crate::plan::ExecPlan;
use crate::report::Ending;

use self::allowance::Allowance;
pub use self::attend::{Attended, attend};
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
/// [`Tap::passed`] is called after the bytes were passed on, so it neither delays nor changes them;
/// but while it works nothing more is passed on.
pub trait Tap {
    /// These bytes went out on this stream. They are cut wherever they happened to arrive.
    fn passed(&self, stream: Stream, bytes: &[u8]);

    /// What goes out in place of these bytes; without a value the bytes themselves.
    fn replace(&self, _stream: Stream, _bytes: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// What [`Tap::replace`] held back of a stream that has ended.
    fn rest(&self, _stream: Stream) -> Vec<u8> {
        Vec::new()
    }

    /// These keys went to the command's terminal.
    fn typed(&self, _keys: &[u8]) {}
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

impl Stream {
    /// Whether the caller's own is a terminal.
    fn is_terminal(self) -> bool {
        match self {
            Self::Stderr => rustix::termios::isatty(rustix::stdio::stderr()),
            Self::Stdout => rustix::termios::isatty(rustix::stdio::stdout()),
            Self::Terminal => true,
        }
    }
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

/// How often a job in the background looks whether it is still there.
const FOREGROUND_INTERVAL: Duration = Duration::from_millis(200);

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
    pub(super) const TTIN: i32 = Signal::TTIN.as_raw();
    pub(super) const TTOU: i32 = Signal::TTOU.as_raw();
}

/// Executes the plan with the caller's own standard descriptors, to its end. For programs with a
/// single thread: signals are caught while the command runs, and a copy of the caller builds the
/// sandbox.
///
/// # Errors
/// If the command could not be started or waited for.
pub fn run_in_foreground(plan: ExecPlan, launch: &Foreground<'_>) -> Result<Finished, RunError> {
    let signals = catch_signals()?;
    let limit = plan.output;
    let has_terminal = plan.linux.terminal;
    let allowance = Allowance::new(limit);
    let mut relays = Relays::new(&allowance, launch.tap, |stream| {
        !(has_terminal && stream.is_terminal())
    })?;
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
    // What fails from here on has not kept the command from running: what it did is still reported.
    let terminal = child.running().take_terminal();
    let entered = terminal.map(|command_side| Screen::enter(command_side, &allowance, launch.tap));
    let (mut screen, mut trouble) = match entered.transpose() {
        Ok(screen) => (screen, None),
        Err(error) => (None, Some(error)),
    };
    if trouble.is_none() {
        trouble = supervise(&mut child, &signals, &mut relays, &mut screen).err();
    }
    if trouble.is_some() {
        child.end(Ending::Killed);
    }
    let mut finished = child.finish()?;
    if let Some(error) = trouble {
        finished.trouble = Some(format!("{}; all processes were killed", chain(&error)));
    }
    relays.drain();
    if let Some(screen) = &mut screen {
        screen.drain();
    }
    Ok(finished)
}

/// Catches what is the command's to handle and what is about the terminal: to be called before the
/// command starts, which may be told to end at once.
///
/// # Errors
/// If the kernel refuses.
pub fn catch_signals() -> Result<Signals, RunError> {
    let of_terminal = [signal::CONT, signal::WINCH, signal::TTIN, signal::TTOU];
    let caught: Vec<i32> = FORWARDED.iter().copied().chain(of_terminal).collect();
    Signals::catch(&caught).map_err(io_error("catch signals"))
}

fn supervise(
    child: &mut dyn Attended,
    signals: &Signals,
    relays: &mut Relays<'_>,
    screen: &mut Option<Screen<'_>>,
) -> Result<(), RunError> {
    loop {
        let left = child.next_look();
        // A shell that moves us to the foreground says nothing, unless we were stopped.
        let waits = screen.as_ref().is_some_and(Screen::waits_for_foreground);
        let look = waits.then_some(FOREGROUND_INTERVAL);
        let timeout = left.into_iter().chain(look).min().and_then(timespec);
        let [heard, signalled] = {
            let mut watched = vec![
                PollFd::from_borrowed_fd(child.messages(), PollFlags::IN),
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
        child.keep_limits();
        if let Some(screen) = screen.as_mut().filter(|_| waits) {
            screen.look_for_foreground();
        }
        if relays.pump().map_err(io_error("pass output on"))? {
            child.end(Ending::OutputLimit);
        }
        if let Some(screen) = screen
            && screen.pump().map_err(io_error("relay the terminal"))?
        {
            child.end(Ending::OutputLimit);
        }
        if child.is_ending() {
            // Whatever the inside does, it is gone after a moment.
            return Ok(());
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
            if child.take_stopped()
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

fn react(number: i32, child: &mut dyn Attended, screen: &mut Option<Screen<'_>>) {
    match (number, screen) {
        (signal::WINCH, Some(screen)) => {
            if let Some(size) = screen.resize() {
                child.resize(size.ws_row, size.ws_col);
            }
        }
        // The shell has moved us to the foreground or out of it.
        (signal::CONT, Some(screen)) => screen.look_for_foreground(),
        // In the background the terminal is the shell's: we neither read from it nor change it.
        (signal::WINCH | signal::CONT | signal::TTIN | signal::TTOU, _) => {}
        // A sandbox that has ended in this moment needs no signal.
        (number, _) => drop(child.signal(number)),
    }
}

fn io_error(act: &'static str) -> impl Fn(io::Error) -> RunError {
    move |source| RunError::Io { act, source }
}
