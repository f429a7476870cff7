//! Signals as something to wait for, beside everything else that the launcher waits for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::sys;

/// Signals that are caught instead of having their effect. For programs with one thread, such as
/// the command line: a mask belongs to a thread.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Catches these from now on.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn catch(signals: &[i32]) -> io::Result<Self> {
        sys::signal::catch(signals).map(Self)
    }

    /// The next caught signal, if there is one.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn next(&self) -> io::Result<Option<i32>> {
        sys::signal::next(self.0.as_fd())
    }

    /// Waits for a caught signal; none if there is none in this time.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn next_within(&self, time: Duration) -> io::Result<Option<i32>> {
        let time = Timespec::try_from(time).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => self.next(),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
