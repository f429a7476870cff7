//! A settings file that a hostile project may have prepared: no link is followed to it, and it is
//! replaced as a whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Mode, OFlags, fchmod, fstat, fsync, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::Errno;

use crate::exit::Exit;
use crate::failure::Failure;

/// Nobody's settings are larger.
const MAX_BYTES: u64 = 1 << 20;

/// A file by its name in a directory that is open.
pub(super) struct SettingsFile {
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl SettingsFile {
    /// Opens the directory of a file below `base`; makes missing ones if asked to.
    pub(super) fn open(base: &Path, below: &Path, make: bool) -> Result<Self, Failure> {
        let path = base.join(below);
        let refuse = |act: &str, error: io::Error| refusal(act, &path, error);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(base, flags, Mode::empty());
        let mut directory = opened.map_err(|error| refuse("enter", error.into()))?;
        let parents = below.parent().into_iter().flat_map(Path::iter);
        for name in parents {
            if make {
                match mkdirat(&directory, name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(refuse("make", error.into())),
                }
            }
            let opened = openat(&directory, name, flags | OFlags::NOFOLLOW, Mode::empty());
            directory = opened.map_err(|error| refuse("enter", link_error(error)))?;
        }
        let name = below.file_name().unwrap_or(OsStr::new("")).to_owned();
        Ok(Self {
            directory,
            name,
            path,
        })
    }

    /// The text; `None` if there is no file.
    pub(super) fn read(&self) -> Result<Option<String>, Failure> {
        let refuse = |error: io::Error| refusal("read", &self.path, error);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.directory, &self.name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(refuse(link_error(error))),
        };
        if !file.metadata().map_err(refuse)?.is_file() {
            return Err(refuse(io::Error::other("it is not a regular file")));
        }
        let mut text = String::new();
        file.take(MAX_BYTES)
            .read_to_string(&mut text)
            .map_err(refuse)?;
        if text.len() as u64 == MAX_BYTES {
            return Err(refuse(io::ErrorKind::FileTooLarge.into()));
        }
        Ok(Some(text))
    }

    /// Replaces the file.
    pub(super) fn write(&self, text: &str) -> Result<(), Failure> {
        let refuse = |error: io::Error| refusal("write", &self.path, error);
        let mode = self.mode().map_err(refuse)?;
        if mode.is_some_and(|mode| !mode.contains(Mode::WUSR)) {
            let hint = format!("chmod u+w '{}'", self.path.display());
            return Err(refuse(io::Error::other("it is read-only")).hint(hint));
        }
        self.replace(text, mode).map_err(refuse)
    }

    fn replace(&self, text: &str, mode: Option<Mode>) -> io::Result<()> {
        let mut new_name = self.name.clone();
        new_name.push(format!(".stockade-{}", std::process::id()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let new = openat(&self.directory, &new_name, flags, Mode::RUSR | Mode::WUSR)?;
        let replaced = (|| {
            if let Some(mode) = mode {
                fchmod(&new, mode)?;
            }
            let mut new = File::from(new);
            new.write_all(text.as_bytes())?;
            fsync(&new)?;
            Ok(renameat(
                &self.directory,
                &new_name,
                &self.directory,
                &self.name,
            )?)
        })();
        if replaced.is_err() {
            let _ = unlinkat(&self.directory, &new_name, AtFlags::empty());
        }
        replaced
    }

    pub(super) fn remove(&self) -> Result<(), Failure> {
        let removed = unlinkat(&self.directory, &self.name, AtFlags::empty());
        removed.map_err(|error| refusal("remove", &self.path, error.into()))
    }

    /// The permissions of the file, if there is one.
    fn mode(&self) -> io::Result<Option<Mode>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.directory, &self.name, flags, Mode::empty()) {
            Ok(file) => Ok(Some(Mode::from_raw_mode(fstat(&file)?.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// `O_NOFOLLOW` says `ELOOP` of a link, and `ENOTDIR` where a directory was expected.
fn link_error(error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::NOTDIR => {
            io::Error::other("it, or a directory of it, is a symbolic link, and none is followed")
        }
        other => other.into(),
    }
}

fn refusal(act: &str, path: &Path, error: io::Error) -> Failure {
    let what = format!("can't {act} `{}`", path.display());
    Failure::new(Exit::Negative, anyhow::Error::new(error).context(what))
}
