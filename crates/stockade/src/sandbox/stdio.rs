//! Where a command's standard input and output lead.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use super::RunError;

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

/// What the command gets, and what the caller keeps.
pub(super) struct Ends {
    pub(super) inner: OwnedFd,
    pub(super) outer: Option<File>,
}

pub(super) fn input(stdin: Stdio) -> Result<Ends, RunError> {
    ends(stdin, 0, |read, write| (read, write))
}

pub(super) fn output(stdout: Stdio, number: i32) -> Result<Ends, RunError> {
    ends(stdout, number, |read, write| (write, read))
}

/// What reads as nothing and swallows everything.
pub(super) fn open_null() -> Result<File, RunError> {
    let null = File::options().read(true).write(true).open("/dev/null");
    null.map_err(|source| RunError::Io {
        act: "open /dev/null",
        source,
    })
}

/// Whether a descriptor is a directory.
pub(super) fn is_directory(fd: std::os::fd::BorrowedFd<'_>) -> bool {
    let stat = rustix::fs::fstat(fd);
    stat.is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir())
}

fn ends(
    kind: Stdio,
    number: i32,
    sides: impl Fn(OwnedFd, OwnedFd) -> (OwnedFd, OwnedFd),
) -> Result<Ends, RunError> {
    let failed = |source: io::Error| RunError::Io {
        act: "make the command's pipes",
        source,
    };
    let alone = |inner| Ends { inner, outer: None };
    match kind {
        Stdio::Fd(fd) => Ok(alone(fd)),
        Stdio::Inherit => {
            let own = match number {
                0 => rustix::io::dup(rustix::stdio::stdin()),
                1 => rustix::io::dup(rustix::stdio::stdout()),
                _ => rustix::io::dup(rustix::stdio::stderr()),
            };
            own.map(alone).map_err(|error| failed(error.into()))
        }
        Stdio::Null => open_null().map(|file| alone(file.into())),
        Stdio::Piped => {
            let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
                .map_err(|error| failed(error.into()))?;
            let (inner, outer) = sides(read, write);
            Ok(Ends {
                inner,
                outer: Some(outer.into()),
            })
        }
    }
}
