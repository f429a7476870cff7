//! The ordinary files of a directory, with their content.
//!
//! Everything in the directory may have been written by an enemy: no link is followed, nothing but
//! ordinary files is opened for reading, and the sum of all sizes is bounded.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};

use super::SandboxManagerError;

/// More is not held in memory.
const MAX_BYTES: u64 = 1 << 30;

pub(super) fn read(dir: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, SandboxManagerError> {
    let mut reader = Reader {
        files: BTreeMap::new(),
        left: MAX_BYTES,
    };
    let read = open(CWD, dir.as_os_str().as_bytes(), OFlags::DIRECTORY)
        .and_then(|top| reader.directory(top.as_fd(), Path::new("")));
    match read {
        Ok(()) => Ok(reader.files),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            Err(SandboxManagerError::TooLarge {
                dir: dir.to_owned(),
                limit: MAX_BYTES,
            })
        }
        Err(source) => Err(SandboxManagerError::Io {
            act: "read the files of the sandbox",
            source,
        }),
    }
}

struct Reader {
    files: BTreeMap<PathBuf, Vec<u8>>,
    left: u64,
}

impl Reader {
    fn directory(&mut self, dir: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
        let names = Dir::read_from(dir)?;
        for entry in names {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let path = path.join(std::ffi::OsStr::from_bytes(name));
            // A FIFO would wait for its writer.
            match open(dir, name, OFlags::NONBLOCK) {
                Ok(file) => self.entry(file, path)?,
                // A link, a socket, or something that was removed meanwhile.
                Err(error) if is_passed_over(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn entry(&mut self, file: OwnedFd, path: PathBuf) -> io::Result<()> {
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::Directory => self.directory(file.as_fd(), &path),
            FileType::RegularFile => {
                let mut content = Vec::new();
                let mut bounded = File::from(file).take(self.left + 1);
                let length = bounded.read_to_end(&mut content)? as u64;
                self.left = self
                    .left
                    .checked_sub(length)
                    .ok_or(io::ErrorKind::FileTooLarge)?;
                self.files.insert(path, content);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn open(dir: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(dir, name, flags, Mode::empty())?)
}

fn is_passed_over(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let codes = [Errno::LOOP, Errno::NXIO, Errno::NOENT, Errno::NODEV];
    codes
        .iter()
        .any(|code| error.raw_os_error() == Some(code.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_ordinary_files_are_read() {
        let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret"), "s").unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("a/.b")).unwrap();
        fs::write(at("a/.b/f"), "content").unwrap();
        symlink(outside.path(), at("link")).unwrap();
        symlink(outside.path().join("secret"), at("file-link")).unwrap();
        rustix::fs::mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let files = read(place.path()).unwrap();
        let expected = BTreeMap::from([(PathBuf::from("a/.b/f"), b"content".to_vec())]);
        assert_eq!(files, expected);
        assert!(read(&at("link")).is_err(), "the directory itself is a link");
    }
}
