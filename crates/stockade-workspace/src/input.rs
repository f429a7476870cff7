//! What somebody types for a command that was left running.
//!
//! A FIFO in the workspace's directory, which only its owner may enter. The one that watches over
//! the command holds an end for writing too: the input lasts as long as the command, as that of a
//! terminal does. A FIFO's path may be of any length, unlike a socket's.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Trying};
use crate::files;

/// The way to a command's standard input.
#[derive(Clone, Debug)]
pub struct Input {
    path: PathBuf,
}

impl Input {
    pub(crate) fn make(directory: &Path) -> Result<Self, Error> {
        let input = Self::at(directory.join(format!("input-{}", files::random_name())));
        rustix::fs::mknodat(CWD, &input.path, FileType::Fifo, Mode::from(0o600), 0)
            .trying("make the FIFO", &input.path)?;
        Ok(input)
    }

    /// The one at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The end that the command reads. Somebody must hold the other, or the command finds that
    /// there is nothing.
    ///
    /// # Errors
    /// If it is gone.
    pub fn reader(&self) -> Result<OwnedFd, Error> {
        self.open(OFlags::RDONLY)
    }

    /// The end that is written to; none if nobody reads any more.
    ///
    /// # Errors
    /// If it can't be opened.
    pub fn writer(&self) -> Result<Option<File>, Error> {
        match self.open(OFlags::WRONLY) {
            Ok(fd) => Ok(Some(File::from(fd))),
            Err(Error::Io { source, .. })
                if matches!(
                    Errno::from_io_error(&source),
                    Some(Errno::NXIO | Errno::NOENT)
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Neither end waits for the other (fifo(7)); reading and writing wait as usual.
    fn open(&self, how: OFlags) -> Result<OwnedFd, Error> {
        let flags = how | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || {
            let fd = rustix::fs::open(&self.path, flags, Mode::empty())?;
            rustix::fs::fcntl_setfl(fd.as_fd(), how)?;
            Ok::<_, Errno>(fd)
        };
        open().trying("open", &self.path)
    }

    /// Removes it.
    pub fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn input_lasts_as_long_as_it_is_held() {
        let dir = tempfile::tempdir().unwrap();
        let input = Input::make(dir.path()).unwrap();
        assert!(input.writer().unwrap().is_none());
        let mut reader = File::from(input.reader().unwrap());
        let held = input.writer().unwrap().unwrap();
        let mut text = [0; 3];
        for sent in [b"one", b"two"] {
            input.writer().unwrap().unwrap().write_all(sent).unwrap();
            reader.read_exact(&mut text).unwrap();
            assert_eq!(&text, sent);
        }
        drop(held);
        assert_eq!(reader.read(&mut text).unwrap(), 0);
        input.remove();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(input.writer().unwrap().is_none());
    }
}
