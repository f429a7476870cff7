//! The same verbs for programs that run on tokio.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use stockade_engine::{Finished, RunError};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::unix::pipe;

use crate::child::Child;
use crate::command::{Command, Output};
use crate::error::Error;

/// A command that runs in its sandbox, for programs on tokio. Dropping it kills everything in the
/// sandbox, so a future that is cancelled leaves nothing behind.
#[derive(Debug)]
pub struct AsyncChild {
    // A descriptor of its own: it stays registered for as long as we like.
    messages: AsyncFd<OwnedFd>,
    child: Child,
    /// The other end of the command's standard input, if it was [`Stdio::Piped`](crate::Stdio).
    pub stdin: Option<pipe::Sender>,
    /// The other end of its standard output.
    pub stdout: Option<pipe::Receiver>,
    /// The other end of its standard error.
    pub stderr: Option<pipe::Receiver>,
}

impl Command {
    /// As [`Command::spawn`]. Must be called in a tokio runtime with its I/O driver; starting takes
    /// a few milliseconds, in which the thread is blocked.
    ///
    /// # Errors
    /// As [`Command::spawn`].
    pub fn spawn_async(&mut self) -> Result<AsyncChild, Error> {
        AsyncChild::new(self.spawn()?)
    }

    /// As [`Command::status`].
    ///
    /// # Errors
    /// As [`Command::status`].
    pub async fn status_async(&mut self) -> Result<Finished, Error> {
        self.spawn_async()?.wait().await
    }

    /// As [`Command::output`].
    ///
    /// # Errors
    /// As [`Command::output`].
    pub async fn output_async(&mut self) -> Result<Output, Error> {
        let mut child = AsyncChild::new(self.spawn_piped()?)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (finished, stdout, stderr) =
            tokio::join!(child.wait(), read_to_end(stdout), read_to_end(stderr));
        Ok(Output {
            finished: finished?,
            stdout: stdout?,
            stderr: stderr?,
        })
    }
}

impl AsyncChild {
    fn new(mut child: Child) -> Result<Self, Error> {
        let messages = child.running.messages().try_clone_to_owned();
        let messages = messages.map_err(failed)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for types that give their descriptor away, which \
                      OwnedFd does not"
        )]
        let messages = AsyncFd::with_interest(messages, Interest::READABLE);
        let receiver = |file: Option<File>| file.map(pipe::Receiver::from_file).transpose();
        let sender = |file: Option<File>| file.map(pipe::Sender::from_file).transpose();
        Ok(Self {
            stdin: sender(child.stdin.take()).map_err(failed)?,
            stdout: receiver(child.stdout.take()).map_err(failed)?,
            stderr: receiver(child.stderr.take()).map_err(failed)?,
            messages: messages.map_err(failed)?,
            child,
        })
    }

    /// Kills everything in the sandbox; [`AsyncChild::wait`] tells when it is gone.
    pub fn kill(&mut self) {
        self.child.kill();
    }

    /// Sends a signal to the command's process group.
    ///
    /// # Errors
    /// If the sandbox has ended.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        self.child.signal(signal)
    }

    /// Closes the command's input and waits until the sandbox is gone.
    ///
    /// # Errors
    /// If the end of the command can't be known.
    pub async fn wait(&mut self) -> Result<Finished, Error> {
        // A command that reads to the end of its input would wait for us.
        drop(self.stdin.take());
        loop {
            let mut ready = self.messages.readable().await.map_err(failed)?;
            ready.clear_ready();
            while has_message(self.messages.get_ref()) {
                if !self.child.running.hear()? {
                    return self.child.finish();
                }
            }
        }
    }
}

/// Whether the helper has said something that nobody has heard.
fn has_message(messages: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut watched = [PollFd::new(messages, PollFlags::IN)];
    poll(&mut watched, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

async fn read_to_end(pipe: Option<pipe::Receiver>) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes).await.map_err(failed)?;
    }
    Ok(bytes)
}

fn failed(source: io::Error) -> Error {
    Error::Run(RunError::Io {
        act: "wait for the sandbox",
        source,
    })
}
