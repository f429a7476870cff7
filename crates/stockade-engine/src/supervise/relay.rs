//! Output that is counted or watched on its way. Without a limit or a tap the command writes to the
//! caller's own descriptors and nothing stands in between.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use super::allowance::Allowance;
use super::{Stream, Tap};
use crate::child::RunError;

pub(super) struct Relays<'a> {
    allowance: &'a Allowance,
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
    /// Pipes for those streams that `wants` one; none at all where nothing is counted or watched.
    pub(super) fn new(
        allowance: &'a Allowance,
        tap: Option<&'a dyn Tap>,
        wants: impl Fn(Stream) -> bool,
    ) -> Result<Self, RunError> {
        let needed = allowance.is_limited() || tap.is_some();
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
        // In this order they are looked at: what a command complains about is worth more than the
        // last of too much output.
        let streams = [Stream::Stderr, Stream::Stdout];
        let streams = streams
            .into_iter()
            .filter(|stream| needed && wants(*stream));
        Ok(Self {
            allowance,
            tap,
            pipes: streams.map(pipe).collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn stdout(&self) -> BorrowedFd<'_> {
        self.inner(Stream::Stdout)
            .unwrap_or(rustix::stdio::stdout())
    }

    pub(super) fn stderr(&self) -> BorrowedFd<'_> {
        self.inner(Stream::Stderr)
            .unwrap_or(rustix::stdio::stderr())
    }

    fn inner(&self, stream: Stream) -> Option<BorrowedFd<'_>> {
        let pipe = self.pipes.iter().find(|pipe| pipe.stream == stream)?;
        pipe.inner.as_ref().map(AsFd::as_fd)
    }

    /// The command has its ends now.
    pub(super) fn close_inner(&mut self) {
        for pipe in &mut self.pipes {
            pipe.inner = None;
        }
    }

    /// Nothing more may pass, and whoever still writes must not wait for a reader.
    fn close_outer(&mut self) {
        for pipe in &mut self.pipes {
            pipe.outer = None;
        }
    }

    pub(super) fn watched(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.pipes
            .iter()
            .filter_map(|pipe| Some(PollFd::new(pipe.outer.as_ref()?, PollFlags::IN)))
    }

    /// Passes on what has come, in turns; true if it was too much.
    pub(super) fn pump(&mut self) -> io::Result<bool> {
        loop {
            let mut has_come = false;
            for pipe in &mut self.pipes {
                let Some(chunk) = pipe.next_chunk()? else {
                    continue;
                };
                has_come = true;
                let length = chunk.len();
                let allowed = self.allowance.take(length);
                let passed = &chunk[..allowed];
                let replaced = self.tap.and_then(|tap| tap.replace(pipe.stream, passed));
                pipe.stream.write(replaced.as_deref().unwrap_or(passed))?;
                if let Some(tap) = self.tap {
                    tap.passed(pipe.stream, passed);
                }
                if allowed < length {
                    self.close_outer();
                    return Ok(true);
                }
            }
            if !has_come {
                return Ok(false);
            }
        }
    }

    /// What was left in the pipes when the sandbox ended.
    pub(super) fn drain(&mut self) {
        // If the reader of our own output is gone there is nobody to pass it on to.
        let _ = self.pump();
        if let Some(tap) = self.tap {
            for pipe in &self.pipes {
                let _ = pipe.stream.write(&tap.rest(pipe.stream));
            }
        }
    }
}

impl Pipe {
    /// What has come, if anything.
    fn next_chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.outer.as_mut().filter(|file| is_readable(file.as_fd())) else {
            return Ok(None);
        };
        let mut chunk = vec![0; CHUNK];
        let length = file.read(&mut chunk)?;
        if length == 0 {
            self.outer = None;
            return Ok(None);
        }
        chunk.truncate(length);
        Ok(Some(chunk))
    }
}

impl Stream {
    /// To the caller's own.
    fn write(self, bytes: &[u8]) -> io::Result<()> {
        if self == Self::Stderr {
            return io::stderr().write_all(bytes);
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
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
