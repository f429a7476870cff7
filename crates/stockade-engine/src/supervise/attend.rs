//! What the foreground loop attends to: a command of this process, or one that another process holds.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use stockade_linux::Signals;

use super::allowance::Allowance;
use super::relay::Relays;
use super::supervise;
use super::terminal::Screen;
use crate::child::{Child, RunError};
use crate::report::Ending;

/// A command that runs in the foreground.
pub trait Attended {
    /// Becomes readable when [`Attended::hear`] has something to hear.
    fn messages(&self) -> BorrowedFd<'_>;

    /// Hears one message; false when there will be no more.
    ///
    /// # Errors
    /// If the command can't be heard.
    fn hear(&mut self) -> Result<bool, RunError>;

    /// Whether the command was stopped (Ctrl-Z) since this was last asked.
    fn take_stopped(&mut self) -> bool;

    /// Passes a signal on to the command's process group.
    ///
    /// # Errors
    /// If the command has ended.
    fn signal(&self, signal: i32) -> io::Result<()>;

    /// Kills the command.
    fn end(&mut self, why: Ending);

    /// Whether the command is being killed.
    fn is_ending(&self) -> bool;

    /// How long the loop may wait before it looks at the limits again; none if for ever.
    fn next_look(&self) -> Option<Duration> {
        None
    }

    /// Kills the command if it has passed one of its limits.
    fn keep_limits(&mut self) {}

    /// Tells the command's terminal its size, where that is not the caller's own to tell.
    fn resize(&mut self, rows: u16, columns: u16) {
        let _ = (rows, columns);
    }
}

/// Attends to a command that another process holds, until it has ended: forwards signals and relays
/// the terminal, if it has one. For programs with a single thread; `signals` are from
/// [`catch_signals`](super::catch_signals).
///
/// # Errors
/// If the command can't be heard, or the terminal can't be relayed.
pub fn attend(
    command: &mut dyn Attended,
    signals: &Signals,
    terminal: Option<OwnedFd>,
) -> Result<(), RunError> {
    let allowance = Allowance::new(None);
    let mut relays = Relays::new(&allowance, None, |_| false)?;
    let screen = terminal.map(|terminal| Screen::enter(terminal, &allowance, None));
    let mut screen = screen.transpose()?;
    supervise(command, signals, &mut relays, &mut screen)?;
    if let Some(screen) = &mut screen {
        screen.drain();
    }
    Ok(())
}

impl Attended for Child {
    fn messages(&self) -> BorrowedFd<'_> {
        Self::messages(self)
    }

    fn hear(&mut self) -> Result<bool, RunError> {
        Self::hear(self)
    }

    fn take_stopped(&mut self) -> bool {
        Self::take_stopped(self)
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        Self::signal(self, signal)
    }

    fn end(&mut self, why: Ending) {
        Self::end(self, why);
    }

    fn is_ending(&self) -> bool {
        Self::is_ending(self)
    }

    fn next_look(&self) -> Option<Duration> {
        Self::next_look(self)
    }

    fn keep_limits(&mut self) {
        self.end_if_late();
        self.end_if_full();
    }

    fn resize(&mut self, rows: u16, columns: u16) {
        self.running().resize(rows, columns);
    }
}
