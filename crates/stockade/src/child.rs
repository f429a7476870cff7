//! A command that runs.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use stockade_engine::{Child as Running, Finished};

use crate::error::Error;

/// A command that runs in its sandbox. Dropping it kills everything in the sandbox, or what the
/// command started if it runs in a [`Session`](crate::Session).
///
/// The limits hold whether or not anybody waits or reads.
#[derive(Debug)]
pub struct Child {
    // Before the overlay: everything inside is dead when the overlay is let go.
    pub(crate) running: Running,
    #[cfg(feature = "overlay")]
    pub(crate) overlay: Option<stockade_workspace::Overlay>,
    /// Shared with the session that the command runs in. There, what a command left behind may keep
    /// its outputs open after its end.
    pub(crate) session: Option<Arc<()>>,
    /// The other end of the command's standard input, if it was [`Stdio::Piped`](crate::Stdio).
    pub stdin: Option<File>,
    /// The other end of its standard output.
    pub stdout: Option<File>,
    /// The other end of its standard error.
    pub stderr: Option<File>,
}

impl Child {
    /// Kills everything in the sandbox; [`Child::wait`] tells when it is gone.
    pub fn kill(&mut self) {
        self.running.kill();
    }

    /// Sends a signal to the command's process group.
    ///
    /// # Errors
    /// If the sandbox has ended.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        self.running.signal(signal)
    }

    /// Takes the other end of the command's terminal, if it has one.
    pub fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.running.take_terminal()
    }

    /// Becomes readable when [`Child::hear`] has something to hear: for callers with an event loop of
    /// their own.
    pub fn messages(&self) -> BorrowedFd<'_> {
        self.running.messages()
    }

    /// Takes in one message of the supervisor; false when the command has ended. Then
    /// [`Child::wait`] returns at once.
    ///
    /// # Errors
    /// If the supervisor can't be heard.
    pub fn hear(&mut self) -> Result<bool, Error> {
        Ok(self.running.hear()?)
    }

    /// Becomes readable when the sandbox is gone: for callers with an event loop of their own.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.running.pidfd()
    }

    /// Closes the command's input and waits until the sandbox is gone.
    ///
    /// # Errors
    /// If the end of the command can't be known.
    pub fn wait(&mut self) -> Result<Finished, Error> {
        // A command that reads to the end of its input would wait for us.
        drop(self.stdin.take());
        let finished = self.running.wait()?;
        self.note_changes()?;
        Ok(finished)
    }

    /// The same for a command that is dead, or about to be.
    pub(crate) fn finish(&mut self) -> Result<Finished, Error> {
        let finished = self.running.finish()?;
        self.note_changes()?;
        Ok(finished)
    }

    /// Records what the host's files were that the command changed, and lets the overlay go.
    #[cfg_attr(
        not(feature = "overlay"),
        expect(
            clippy::unnecessary_wraps,
            clippy::unused_self,
            reason = "there is no overlay"
        )
    )]
    fn note_changes(&mut self) -> Result<(), Error> {
        #[cfg(feature = "overlay")]
        if let Some(overlay) = self.overlay.take() {
            overlay.note()?;
        }
        Ok(())
    }
}
