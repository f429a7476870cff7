//! Collecting what a command writes.

use std::fs::File;
use std::io::{self, Read};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use stockade_engine::{Denial, Ending, Finished, RunError};

use crate::child::Child;
use crate::error::Error;

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

impl Output {
    /// Whether the command ended by itself with code 0.
    pub fn success(&self) -> bool {
        self.finished.success()
    }

    /// How the command ended.
    pub fn ending(&self) -> Ending {
        self.finished.report.ending
    }

    /// What was refused.
    pub fn denials(&self) -> &[Denial] {
        &self.finished.report.denials
    }
}

/// Reads both pipes as they fill, in one thread: a command that fills one while the other is read
/// would hang.
pub(crate) fn collect(mut child: Child) -> Result<Output, Error> {
    // A command that reads to the end of its input would wait for us.
    drop(child.stdin.take());
    let mut pipes = [
        Collected::new(child.stdout.take()),
        Collected::new(child.stderr.take()),
    ];
    while gather(&mut child, &mut pipes)? {}
    // The command writes no more; what is left is in the pipes, or on its way through a thread that
    // counts it. In a session something that it left in the background may hold them open.
    let longest = if child.session.is_some() {
        AT_ONCE
    } else {
        DRAIN_TIMEOUT
    };
    for pipe in &mut pipes {
        while pipe.has_more(&longest) && pipe.read().map_err(failed)? {}
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
fn gather(child: &mut Child, pipes: &mut [Collected; 2]) -> Result<bool, RunError> {
    let mut watched = vec![PollFd::from_borrowed_fd(
        child.running.messages(),
        PollFlags::IN,
    )];
    let files = pipes.iter().filter_map(|pipe| pipe.file.as_ref());
    watched.extend(files.map(|file| PollFd::new(file, PollFlags::IN)));
    match poll(&mut watched, None) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(failed(error.into())),
    }
    let mut ready = watched.iter().map(|fd| !fd.revents().is_empty());
    let heard = ready.next() == Some(true);
    let ready: Vec<bool> = ready.collect();
    let open = pipes.iter_mut().filter(|pipe| pipe.file.is_some());
    for (pipe, _) in open.zip(ready).filter(|(_, ready)| *ready) {
        pipe.read().map_err(failed)?;
    }
    if heard {
        child.running.hear()
    } else {
        Ok(true)
    }
}

/// One of the command's outputs and what has come of it.
struct Collected {
    /// None when the command's side is closed.
    file: Option<File>,
    bytes: Vec<u8>,
}

const CHUNK: usize = 16 * 1024;

const AT_ONCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// How long output that is on its way is waited for.
const DRAIN_TIMEOUT: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

impl Collected {
    fn new(file: Option<File>) -> Self {
        Self {
            file,
            bytes: Vec::new(),
        }
    }

    /// Whether something can be read within this time, be it the end.
    fn has_more(&self, longest: &Timespec) -> bool {
        let watch = |file| PollFd::new(file, PollFlags::IN);
        let mut watched: Vec<PollFd<'_>> = self.file.iter().map(watch).collect();
        !watched.is_empty() && poll(&mut watched, Some(longest)).is_ok_and(|ready| ready > 0)
    }

    /// Reads once; false when there is nothing more.
    fn read(&mut self) -> io::Result<bool> {
        let Some(file) = &mut self.file else {
            return Ok(false);
        };
        let mut chunk = [0; CHUNK];
        let length = file.read(&mut chunk)?;
        self.bytes.extend_from_slice(&chunk[..length]);
        if length == 0 {
            self.file = None;
        }
        Ok(self.file.is_some())
    }
}

fn failed(source: io::Error) -> RunError {
    RunError::Io {
        act: "read the command's output",
        source,
    }
}
