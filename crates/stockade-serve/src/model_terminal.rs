//! A terminal that a command's terminal is made like.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use rustix::termios::tcsetwinsize;

use crate::api::Size;

/// A terminal of the wanted size, which nobody reads from.
pub(crate) struct ModelTerminal {
    /// What a command is given.
    pub(crate) end: OwnedFd,
    /// The terminal is gone when this end is closed.
    _other_end: OwnedFd,
}

impl ModelTerminal {
    pub(crate) fn new(size: Size) -> io::Result<Self> {
        let other_end = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        unlockpt(&other_end)?;
        let name = ptsname(&other_end, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let end = rustix::fs::open(&name, flags, Mode::empty())?;
        tcsetwinsize(&end, size.into())?;
        Ok(Self {
            end,
            _other_end: other_end,
        })
    }
}
