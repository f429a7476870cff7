//! Where a command's standard input and output lead.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::pipe::PipeFlags;
use stockade_engine::RunError;

/// One of a command's three standard descriptors.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "these are the ways there are")]
pub enum Stdio {
    /// This descriptor.
    Fd(OwnedFd),
    /// The caller's own.
    Inherit,
    /// `/dev/null`.
    Null,
    /// A pipe, whose other end the caller gets.
    Piped,
}

impl Stdio {
    /// The caller's own descriptor.
    pub fn inherit() -> Self {
        Self::Inherit
    }

    /// `/dev/null`.
    pub fn null() -> Self {
        Self::Null
    }

    /// A pipe, whose other end is a field of [`Child`](crate::Child).
    pub fn piped() -> Self {
        Self::Piped
    }
}

impl From<File> for Stdio {
    fn from(file: File) -> Self {
        Self::Fd(file.into())
    }
}

impl From<OwnedFd> for Stdio {
    fn from(fd: OwnedFd) -> Self {
        Self::Fd(fd)
    }
}

/// What the command gets, and what the caller keeps.
pub(crate) struct Ends {
    pub(crate) inner: OwnedFd,
    pub(crate) outer: Option<File>,
}

pub(crate) fn input(stdin: &Stdio) -> Result<Ends, RunError> {
    ends(stdin, 0, |(read, write)| (read, write))
}

pub(crate) fn output(stdout: &Stdio, number: i32) -> Result<Ends, RunError> {
    ends(stdout, number, |(read, write)| (write, read))
}

/// The reading and the writing end of a pipe.
pub(crate) fn pipe() -> Result<(OwnedFd, OwnedFd), RunError> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))
}

fn ends(
    kind: &Stdio,
    number: i32,
    sides: impl Fn((OwnedFd, OwnedFd)) -> (OwnedFd, OwnedFd),
) -> Result<Ends, RunError> {
    let alone = |inner: io::Result<OwnedFd>| match inner {
        Ok(inner) => Ok(Ends { inner, outer: None }),
        Err(error) => Err(failed(error)),
    };
    match kind {
        Stdio::Fd(fd) => alone(fd.try_clone()),
        Stdio::Inherit => {
            let own = match number {
                0 => rustix::io::dup(rustix::stdio::stdin()),
                1 => rustix::io::dup(rustix::stdio::stdout()),
                _ => rustix::io::dup(rustix::stdio::stderr()),
            };
            alone(own.map_err(Into::into))
        }
        Stdio::Null => {
            let null = File::options().read(true).write(true).open("/dev/null");
            alone(null.map(Into::into))
        }
        Stdio::Piped => {
            let (inner, outer) = sides(pipe()?);
            Ok(Ends {
                inner,
                outer: Some(outer.into()),
            })
        }
    }
}

fn failed(source: io::Error) -> RunError {
    RunError::Io {
        act: "make the command's pipes",
        source,
    }
}
