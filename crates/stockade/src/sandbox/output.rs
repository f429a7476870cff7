//! Collecting what a command writes.

use std::fs::File;
use std::io::{self, Read};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::{Child, Finished, RunError, timespec};
use crate::report::Ending;

/// What a finished command wrote, and how it ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Output {
    /// How it ended.
    pub finished: Finished,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

/// Reads both pipes as they fill, in one thread: a command that fills one while the other is read
/// would hang. Ends the sandbox when it has written more than its policy lets it.
pub(super) fn collect(child: &mut Child) -> Result<Output, RunError> {
    // A command that reads to the end of its input would wait for us.
    drop(child.stdin.take());
    let mut pipes = [
        Collected::new(child.stdout.take()),
        Collected::new(child.stderr.take()),
    ];
    let mut budget = Budget {
        left: child.plan.output,
        is_spent: false,
    };
    while gather(child, &mut pipes, &mut budget)? {}
    // Nobody writes any more; what is left is in the pipes.
    for pipe in &mut pipes {
        while pipe.read(&mut budget).map_err(failed)? {}
    }
    if budget.is_spent {
        child.end(Ending::OutputLimit);
    }
    let finished = child.finish()?;
    let [stdout, stderr] = pipes.map(|pipe| pipe.bytes);
    Ok(Output {
        finished,
        stdout,
        stderr,
    })
}

/// Waits for something to happen and takes it in; false when the helper has no more to say.
fn gather(
    child: &mut Child,
    pipes: &mut [Collected; 2],
    budget: &mut Budget,
) -> Result<bool, RunError> {
    let timeout = child.time_left().and_then(timespec);
    let mut watched = vec![PollFd::from_borrowed_fd(
        child.running.messages(),
        PollFlags::IN,
    )];
    let files = pipes.iter().filter_map(|pipe| pipe.file.as_ref());
    watched.extend(files.map(|file| PollFd::new(file, PollFlags::IN)));
    match poll(&mut watched, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(failed(error.into())),
    }
    let mut ready = watched.iter().map(|fd| !fd.revents().is_empty());
    let heard = ready.next() == Some(true);
    let ready: Vec<bool> = ready.collect();
    let open = pipes.iter_mut().filter(|pipe| pipe.file.is_some());
    for (pipe, _) in open.zip(ready).filter(|(_, ready)| *ready) {
        pipe.read(budget).map_err(failed)?;
    }
    child.end_if_late();
    if budget.is_spent {
        child.end(Ending::OutputLimit);
    }
    if heard { child.hear() } else { Ok(true) }
}

/// One of the command's outputs and what has come of it.
struct Collected {
    /// None when the command's side is closed.
    file: Option<File>,
    bytes: Vec<u8>,
}

const CHUNK: usize = 16 * 1024;

impl Collected {
    fn new(file: Option<File>) -> Self {
        Self {
            file,
            bytes: Vec::new(),
        }
    }

    /// Reads once; false when nothing more is wanted.
    fn read(&mut self, budget: &mut Budget) -> io::Result<bool> {
        let Some(file) = &mut self.file else {
            return Ok(false);
        };
        let mut chunk = [0; CHUNK];
        let length = file.read(&mut chunk)?;
        let allowed = budget.take(length);
        self.bytes.extend_from_slice(&chunk[..allowed]);
        if length == 0 || budget.is_spent {
            self.file = None;
        }
        Ok(self.file.is_some())
    }
}

/// How much may still be written.
struct Budget {
    left: Option<u64>,
    /// Whether more was written than that.
    is_spent: bool,
}

impl Budget {
    /// How much of this many bytes is within the limit.
    fn take(&mut self, length: usize) -> usize {
        let Some(left) = &mut self.left else {
            return length;
        };
        let allowed = usize::try_from(*left).unwrap_or(usize::MAX).min(length);
        *left -= allowed as u64;
        self.is_spent |= allowed < length;
        allowed
    }
}

fn failed(source: io::Error) -> RunError {
    RunError::Io {
        act: "read the command's output",
        source,
    }
}
