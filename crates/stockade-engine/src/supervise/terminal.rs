//! The relay between the caller's terminal and the command's own.
//!
//! The command has a terminal from the sandbox's own `/dev/pts`: what it does to it (modes,
//! TIOCSTI, a controlling session) stays inside. While keys come from the caller's terminal it is in
//! raw mode, so that every key, Ctrl-C and Ctrl-Z included, reaches the command's terminal and has
//! its effect there. In the background it is the shell's, and is left alone.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::termios::{
    OptionalActions, Termios, Winsize, isatty, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
    tcsetwinsize,
};

use super::allowance::Allowance;
use super::{Stream, Tap};
use crate::child::RunError;

pub(super) struct Screen<'a> {
    command: OwnedFd,
    caller: Caller,
    /// The modes of the caller's terminal, while it is in raw mode.
    saved: Option<Termios>,
    /// Keys that the command has not taken yet.
    keys: VecDeque<u8>,
    input_open: bool,
    command_open: bool,
    allowance: &'a Allowance,
    tap: Option<&'a dyn Tap>,
}

/// What of the caller's standard descriptors is a terminal.
#[derive(Clone, Copy, Debug)]
struct Caller {
    /// Whether keys come from it.
    has_input: bool,
    /// Where what the command shows goes.
    output: BorrowedFd<'static>,
}

impl Caller {
    fn look() -> Self {
        let (stdin, stdout, stderr) = (
            rustix::stdio::stdin(),
            rustix::stdio::stdout(),
            rustix::stdio::stderr(),
        );
        // Mostly standard input can be written, too; what the command echoes or writes to its
        // /dev/tty is shown there if nothing else is a terminal.
        let output = [stdout, stderr, stdin]
            .into_iter()
            .find(|fd| isatty(fd))
            .unwrap_or(stdout);
        Self {
            has_input: isatty(stdin),
            output,
        }
    }
}

/// Whether the shell has given us the terminal; so it has where there is no job control.
fn is_foreground() -> bool {
    match tcgetpgrp(input()) {
        Ok(group) => group == rustix::process::getpgrp(),
        Err(error) => error == Errno::NOTTY,
    }
}

/// As many keys as are read ahead; a paste waits in the caller's terminal.
const MAX_KEYS: usize = 64 * 1024;

impl<'a> Screen<'a> {
    /// Puts the caller's terminal into raw mode, if keys come from it and it is ours; it is restored
    /// when this is dropped.
    pub(super) fn enter(
        command: OwnedFd,
        allowance: &'a Allowance,
        tap: Option<&'a dyn Tap>,
    ) -> Result<Self, RunError> {
        let mut screen = Self {
            command,
            caller: Caller::look(),
            saved: None,
            keys: VecDeque::new(),
            input_open: false,
            command_open: true,
            allowance,
            tap,
        };
        screen.take_over().map_err(|error: Errno| RunError::Io {
            act: "set the terminal up",
            source: error.into(),
        })?;
        Ok(screen)
    }

    /// Whether keys would come from the caller's terminal, were it not somebody else's now.
    pub(super) fn waits_for_foreground(&self) -> bool {
        self.caller.has_input && self.saved.is_none() && self.command_open
    }

    /// The shell may have moved us to the foreground.
    pub(super) fn look_for_foreground(&mut self) {
        // If the terminal is gone there is nothing to set up.
        let _ = self.take_over();
        self.resize();
    }

    /// Takes keys from the caller's terminal, in raw mode, unless it is somebody else's now.
    fn take_over(&mut self) -> rustix::io::Result<()> {
        if !self.caller.has_input {
            return Ok(());
        }
        self.input_open = is_foreground();
        if self.input_open && self.saved.is_none() {
            let modes = tcgetattr(input())?;
            let mut raw = modes.clone();
            raw.make_raw();
            self.saved = Some(modes);
            tcsetattr(input(), OptionalActions::Drain, &raw)?;
        }
        Ok(())
    }

    pub(super) fn watched(&self) -> impl Iterator<Item = PollFd<'_>> {
        let mut flags = PollFlags::IN;
        if !self.keys.is_empty() {
            flags |= PollFlags::OUT;
        }
        let command = self.command_open.then(|| PollFd::new(&self.command, flags));
        let input = (self.input_open && self.keys.len() < MAX_KEYS)
            .then(|| PollFd::from_borrowed_fd(input(), PollFlags::IN));
        command.into_iter().chain(input)
    }

    /// Moves what has come, in both directions; true if the command wrote too much.
    pub(super) fn pump(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 16 * 1024];
        if self.input_open && self.keys.len() < MAX_KEYS && is(input(), PollFlags::IN) {
            match rustix::io::read(input(), &mut chunk) {
                Ok(0) | Err(Errno::IO) => self.input_open = false,
                Ok(length) => self.keys.extend(&chunk[..length]),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        while !self.keys.is_empty() && is(self.command(), PollFlags::OUT) {
            let (front, _) = self.keys.as_slices();
            match rustix::io::write(&self.command, front) {
                Ok(length) => {
                    if let Some(tap) = self.tap {
                        tap.typed(&front[..length]);
                    }
                    self.keys.drain(..length);
                }
                Err(Errno::AGAIN | Errno::INTR) => break,
                Err(_) => {
                    self.keys.clear();
                    break;
                }
            }
        }
        self.show(&mut chunk)
    }

    fn show(&mut self, chunk: &mut [u8]) -> io::Result<bool> {
        while self.command_open && is(self.command(), PollFlags::IN) {
            match rustix::io::read(&self.command, &mut *chunk) {
                // EIO: nobody has the command's side open any more.
                Ok(0) | Err(Errno::IO) => self.command_open = false,
                Ok(length) => {
                    let allowed = self.allowance.take(length);
                    let shown = &chunk[..allowed];
                    let replaced = self
                        .tap
                        .and_then(|tap| tap.replace(Stream::Terminal, shown));
                    write_all(self.caller.output, replaced.as_deref().unwrap_or(shown))?;
                    if let Some(tap) = self.tap {
                        tap.passed(Stream::Terminal, shown);
                    }
                    if allowed < length {
                        return Ok(true);
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    /// What was still on its way when the command ended.
    pub(super) fn drain(&mut self) {
        let mut chunk = [0; 16 * 1024];
        let _ = self.show(&mut chunk);
        if let Some(tap) = self.tap {
            let _ = write_all(self.caller.output, &tap.rest(Stream::Terminal));
        }
    }

    /// The caller's terminal changed its size; gives the new one.
    pub(super) fn resize(&mut self) -> Option<Winsize> {
        let size = tcgetwinsize(self.caller.output).ok()?;
        let _ = tcsetwinsize(&self.command, size);
        Some(size)
    }

    /// Stops this program as the command was stopped; returns when it is continued.
    pub(super) fn suspend(&mut self) -> rustix::io::Result<()> {
        self.restore();
        rustix::process::kill_process(rustix::process::getpid(), Signal::STOP)?;
        self.take_over()?;
        self.resize();
        Ok(())
    }

    fn restore(&mut self) {
        if let Some(saved) = self.saved.take() {
            // If the terminal is gone there is nothing to restore.
            let _ = tcsetattr(input(), OptionalActions::Drain, &saved);
        }
    }

    fn command(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.command)
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        self.restore();
    }
}

fn input() -> BorrowedFd<'static> {
    rustix::stdio::stdin()
}

fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut watched = [PollFd::from_borrowed_fd(to, PollFlags::OUT)];
                poll(&mut watched, None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn is(fd: BorrowedFd<'_>, flags: PollFlags) -> bool {
    let mut watched = [PollFd::from_borrowed_fd(fd, flags)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut watched, Some(&at_once)).is_ok_and(|ready| ready > 0)
        && !watched[0].revents().is_empty()
}
