//! Output that is counted or watched on its way. Without a limit or a tap the command writes to the
//! caller's own descriptors and nothing stands in between.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use super::{Stream, Tap};
use crate::sandbox::RunError;

pub(super) struct Relays<'a> {
    /// How many bytes may still pass.
    left: u64,
    tap: Option<&'a dyn Tap>,
    pipes: Vec<Pipe>,
}

struct Pipe {
    /// The command's end, until it has it.
    inner: Option<OwnedFd>,
    /// Our end; none when the command's side is closed.
    outer: Option<File>,
    stream: Stream,
}

const CHUNK: usize = 64 * 1024;

impl<'a> Relays<'a> {
    /// Where nothing has to pass through here: the command has a terminal, or the caller's own
    /// descriptors.
    pub(super) const fn none() -> Self {
        Self {
            left: 0,
            tap: None,
            pipes: Vec::new(),
        }
    }

    pub(super) fn new(limit: Option<u64>, tap: Option<&'a dyn Tap>) -> Result<Self, RunError> {
        if limit.is_none() && tap.is_none() {
            return Ok(Self::none());
        }
        let pipe = |stream| -> Result<Pipe, RunError> {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| RunError::Io {
                act: "make pipes for the output",
                source: error.into(),
            })?;
            Ok(Pipe {
                inner: Some(write),
                outer: Some(File::from(read)),
                stream,
            })
        };
        Ok(Self {
            left: limit.unwrap_or(u64::MAX),
            tap,
            pipes: vec![pipe(Stream::Stdout)?, pipe(Stream::Stderr)?],
        })
    }

    pub(super) fn stdout(&self) -> BorrowedFd<'_> {
        self.inner(0).unwrap_or(rustix::stdio::stdout())
    }

    pub(super) fn stderr(&self) -> BorrowedFd<'_> {
        self.inner(1).unwrap_or(rustix::stdio::stderr())
    }

    fn inner(&self, index: usize) -> Option<BorrowedFd<'_>> {
        self.pipes.get(index)?.inner.as_ref().map(AsFd::as_fd)
    }

    /// The command has its ends now.
    pub(super) fn close_inner(&mut self) {
        for pipe in &mut self.pipes {
            pipe.inner = None;
        }
    }

    pub(super) fn watched(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.pipes
            .iter()
            .filter_map(|pipe| Some(PollFd::new(pipe.outer.as_ref()?, PollFlags::IN)))
    }

    /// Passes on what has come; true if it was too much.
    pub(super) fn pump(&mut self) -> io::Result<bool> {
        let mut over = false;
        for pipe in &mut self.pipes {
            while let Some(file) = &mut pipe.outer {
                if !is_readable(file.as_fd()) {
                    break;
                }
                let mut chunk = vec![0; CHUNK];
                let length = file.read(&mut chunk)?;
                if length == 0 {
                    pipe.outer = None;
                    break;
                }
                let allowed = usize::try_from(self.left).unwrap_or(usize::MAX).min(length);
                self.left -= allowed as u64;
                over |= allowed < length;
                let passed = &chunk[..allowed];
                if pipe.stream == Stream::Stderr {
                    io::stderr().write_all(passed)?;
                } else {
                    let mut stdout = io::stdout().lock();
                    stdout.write_all(passed)?;
                    stdout.flush()?;
                }
                if let Some(tap) = self.tap {
                    tap.passed(pipe.stream, passed);
                }
                if over {
                    break;
                }
            }
        }
        Ok(over)
    }

    /// What was left in the pipes when the sandbox ended.
    pub(super) fn drain(&mut self) {
        // If the reader of our own output is gone there is nobody to pass it on to.
        let _ = self.pump();
    }
}

fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let mut watched = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut watched, Some(&at_once)).is_ok_and(|ready| ready > 0)
}
