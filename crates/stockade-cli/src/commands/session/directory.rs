//! Where the sockets of sessions are: a directory that is this user's alone, out of the sight of
//! every sandbox.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use stockade_linux::{Channel, ChannelListener};

use crate::exit::Exit;
use crate::failure::Failure;

/// The directory with the sockets of this user's sessions.
pub(super) struct Directory(PathBuf);

impl Directory {
    /// Finds the directory, and makes it if it does not exist.
    pub(super) fn open() -> Result<Self, Failure> {
        let uid = rustix::process::geteuid().as_raw();
        let stated = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let usual = PathBuf::from(format!("/run/user/{uid}"));
        let mut above = stated.into_iter().chain([usual]);
        let above = above.find(|path| {
            let found = fs::symlink_metadata(path);
            path.is_absolute() && found.is_ok_and(|found| is_private(&found, uid))
        });
        let path = match above {
            Some(above) => above.join("stockade"),
            None => PathBuf::from(format!("/tmp/stockade-{uid}")),
        };
        Self::make(path, uid)
    }

    fn make(path: PathBuf, uid: u32) -> Result<Self, Failure> {
        let refuse = |error: anyhow::Error| {
            let what = format!("can't use `{}` for the sockets of sessions", path.display());
            Failure::new(Exit::NotSetUp, error.context(what))
        };
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(refuse(error.into())),
        }
        let found = fs::symlink_metadata(&path).map_err(|error| refuse(error.into()))?;
        if !is_private(&found, uid) {
            let text = "it is not a directory that belongs to this user alone (mode 0700)";
            let hint = "set XDG_RUNTIME_DIR to a directory that only you can enter";
            return Err(refuse(anyhow::Error::msg(text)).hint(hint));
        }
        Ok(Self(path))
    }

    /// Connects to a session. `None`: there is no such session; what a dead one left is removed.
    pub(super) fn connect(&self, name: &str) -> io::Result<Option<Channel>> {
        match Channel::connect(&self.0, name) {
            Ok(channel) if channel.peer_uid()? == rustix::process::geteuid().as_raw() => {
                Ok(Some(channel))
            }
            Ok(_) => Err(io::ErrorKind::PermissionDenied.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let _lock = self.lock()?;
                self.remove_if_dead(name)?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes a name. `None`: a session that lives has it.
    pub(super) fn bind(&self, name: &str) -> io::Result<Option<ChannelListener>> {
        let _lock = self.lock()?;
        match ChannelListener::bind(&self.0, name) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                if !self.remove_if_dead(name)? {
                    return Ok(None);
                }
                ChannelListener::bind(&self.0, name).map(Some)
            }
            other => other.map(Some),
        }
    }

    /// Gives a name back.
    pub(super) fn remove(&self, name: &str) {
        // Another process may have found it dead already.
        let _ = fs::remove_file(self.0.join(name));
    }

    /// The names of all sockets, sorted.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if entry.file_type()?.is_socket() {
                names.extend(entry.file_name().into_string().ok());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Whoever removes a dead socket or takes a name holds this: between the look and the removal
    /// nobody else can have taken the name.
    fn lock(&self) -> io::Result<File> {
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(false);
        let file = file.open(self.0.join(".lock"))?;
        file.lock()?;
        Ok(file)
    }

    fn remove_if_dead(&self, name: &str) -> io::Result<bool> {
        match Channel::connect(&self.0, name) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                fs::remove_file(self.0.join(name))?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Ok(_) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

fn is_private(found: &Metadata, uid: u32) -> bool {
    found.is_dir() && found.uid() == uid && found.mode() & 0o777 == 0o700
}

/// Names are parts of paths and are shown on terminals.
pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let begins_well = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    if begins_well && name.len() <= MAX_NAME_BYTES && name.chars().all(is_plain) {
        return Ok(());
    }
    let text = format!("`{name}` can't be the name of a session");
    let hint =
        "a name has up to 64 letters, digits, `.`, `_` and `-`, and begins with a letter or digit";
    Err(Failure::text(Exit::Usage, text).hint(hint))
}

const MAX_NAME_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::check_name;

    #[test]
    fn names_are_plain() {
        for good in ["a", "build-1", "A.b_c", &"x".repeat(64)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "-a",
            ".lock",
            "a/b",
            "a b",
            "é",
            &"x".repeat(65),
        ] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
