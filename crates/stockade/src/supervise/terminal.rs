//! The relay between the caller's terminal and the command's own.
//!
//! The command has a terminal from the sandbox's own `/dev/pts`: what it does to it (modes,
//! TIOCSTI, a controlling session) stays inside. The caller's terminal is in raw mode meanwhile, so
//! that every key, Ctrl-C and Ctrl-Z included, reaches the command's terminal and has its effect
//! there.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};

use super::{Stream, Tap};
use crate::sandbox::RunError;

pub(super) struct Screen<'a> {
    command: OwnedFd,
    saved: Termios,
    /// Keys that the command has not taken yet.
    keys: VecDeque<u8>,
    input_open: bool,
    command_open: bool,
    /// How many bytes may still be shown.
    left: u64,
    tap: Option<&'a dyn Tap>,
}

/// As many keys as are read ahead; a paste waits in the caller's terminal.
const MAX_KEYS: usize = 64 * 1024;

impl<'a> Screen<'a> {
    /// Puts the caller's terminal into raw mode; it is restored when this is dropped.
    pub(super) fn enter(
        command: OwnedFd,
        limit: Option<u64>,
        tap: Option<&'a dyn Tap>,
    ) -> Result<Self, RunError> {
        let failed = |error: Errno| RunError::Io {
            act: "set the terminal up",
            source: error.into(),
        };
        let saved = tcgetattr(input()).map_err(failed)?;
        let screen = Self {
            command,
            saved,
            keys: VecDeque::new(),
            input_open: true,
            command_open: true,
            left: limit.unwrap_or(u64::MAX),
            tap,
        };
        screen.make_raw().map_err(failed)?;
        Ok(screen)
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
                Ok(length) => drop(self.keys.drain(..length)),
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
                    let allowed = usize::try_from(self.left).unwrap_or(usize::MAX).min(length);
                    self.left -= allowed as u64;
                    let shown = &chunk[..allowed];
                    write_all(shown)?;
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
    }

    /// The caller's terminal changed its size.
    pub(super) fn resize(&mut self) {
        if let Ok(size) = tcgetwinsize(input()) {
            let _ = tcsetwinsize(&self.command, size);
        }
    }

    /// Stops this program as the command was stopped; returns when it is continued.
    pub(super) fn suspend(&mut self) -> rustix::io::Result<()> {
        self.restore();
        rustix::process::kill_process(rustix::process::getpid(), Signal::STOP)?;
        self.saved = tcgetattr(input())?;
        self.resize();
        self.make_raw()
    }

    fn make_raw(&self) -> rustix::io::Result<()> {
        let mut raw = self.saved.clone();
        raw.make_raw();
        tcsetattr(input(), OptionalActions::Drain, &raw)
    }

    fn restore(&self) {
        // If the terminal is gone there is nothing to restore.
        let _ = tcsetattr(input(), OptionalActions::Drain, &self.saved);
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

fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut watched = [PollFd::from_borrowed_fd(
                    rustix::stdio::stdout(),
                    PollFlags::OUT,
                )];
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
