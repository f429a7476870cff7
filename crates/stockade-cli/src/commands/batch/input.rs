//! Where tasks come from.

use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};

use crate::exit::Exit;
use crate::failure::Failure;

/// A file or standard input, which ends when the batch is stopped: nobody waits for a task then.
pub(super) struct Input {
    file: File,
    stopped: Arc<PipeReader>,
}

impl Input {
    /// Opens a file; `-` and no name are standard input.
    pub(super) fn open(name: Option<&Path>, stopped: Arc<PipeReader>) -> Result<Self, Failure> {
        let file = match name.filter(|name| name.as_os_str() != "-") {
            None => io::stdin().as_fd().try_clone_to_owned()?.into(),
            Some(name) => File::open(name).map_err(|error| {
                let text = format!("can't read the tasks in `{}`", name.display());
                Failure::new(Exit::Usage, anyhow::Error::new(error).context(text))
            })?,
        };
        Ok(Self { file, stopped })
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut watched = [
            PollFd::new(&self.file, PollFlags::IN),
            PollFd::new(&*self.stopped, PollFlags::IN),
        ];
        poll(&mut watched, None)?;
        if watched[1].revents().is_empty() {
            self.file.read(buffer)
        } else {
            Ok(0)
        }
    }
}
