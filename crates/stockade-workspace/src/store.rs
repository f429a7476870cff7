//! The store: a directory with packs, workspaces and two locks.
//!
//! ```text
//! format               what this is
//! gate, lock           who may be in it
//! packs/*.pack         content
//! workspaces/NAME/     state, snapshots, cache, overlay of one workspace
//! homes/ID/            what the runs in one directory wrote to the home directory
//! ```
//!
//! Everybody who reads or writes holds `lock` shared; whoever removes content holds it alone. A
//! lock is `flock(2)`, so it ends with its holder, however that ends. `gate` keeps a stream of
//! readers from holding off the one who wants to be alone.

mod session;
mod sink;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::error::{Error, Trying};
use crate::files;
use crate::home;
use crate::name::WorkspaceName;
use crate::overlay;

pub(crate) use session::Session;
pub(crate) use sink::Sink;

const FORMAT: &str = "stockade-store 1\n";

/// A store on disk.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// Held as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    /// A copy of this process must not release what the original holds.
    owner: u32,
}

impl Drop for Lock {
    /// Closing is not enough: a program that another thread is just starting has the descriptor too
    /// until it executes, and flock(2) locks belong to all of its copies.
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

impl Store {
    /// Opens a store, and makes it if there is none.
    ///
    /// # Errors
    /// If it can't be made or read, or is of a later version.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, Error> {
        let mut store = Self { root: root.into() };
        // By the path that the kernel knows: what is in it is opened without following links.
        match files::open_typed(&store.root) {
            Ok((_, real)) => store.root = real,
            Err(Error::NotADirectory(_)) => {
                files::make_private_dir(&store.root)?;
                store.root = files::open_typed(&store.root)?.1;
            }
            Err(error) => return Err(error),
        }
        let format = store.root.join("format");
        match fs::read_to_string(&format) {
            Ok(text) if text == FORMAT => {
                check_owner(&store.packs())?;
                check_owner(&store.workspaces())?;
                return Ok(store);
            }
            Ok(text) => {
                let found = text.trim().chars().take(40).collect();
                let path = store.root.clone();
                return Err(Error::Format { path, found });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).trying("read", &format),
        }
        files::make_private_dir(&store.packs())?;
        files::make_private_dir(&store.workspaces())?;
        files::replace(&format, FORMAT.as_bytes())?;
        Ok(store)
    }

    /// A store at a place, which is neither looked at nor made: for plans.
    pub fn planned(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.root
    }

    pub(crate) fn packs(&self) -> PathBuf {
        self.root.join("packs")
    }

    pub(crate) fn workspaces(&self) -> PathBuf {
        self.root.join("workspaces")
    }

    pub(crate) fn workspace(&self, name: &WorkspaceName) -> PathBuf {
        self.workspaces().join(name.as_str())
    }

    /// Enters the store together with others.
    pub(crate) fn enter(&self) -> Result<Session, Error> {
        let gate = self.lock_file("gate", FlockOperation::LockShared)?;
        let lock = self.lock_file("lock", FlockOperation::LockShared)?;
        drop(gate);
        Ok(Session::new(self.clone(), lock))
    }

    /// Enters the store alone.
    pub(crate) fn enter_alone(&self) -> Result<Session, Error> {
        let gate = self.lock_file("gate", FlockOperation::LockExclusive)?;
        let lock = self.lock_file("lock", FlockOperation::LockExclusive)?;
        drop(gate);
        Ok(Session::new(self.clone(), lock))
    }

    fn lock_file(&self, name: &str, how: FlockOperation) -> Result<Lock, Error> {
        lock(&self.root.join(name), how)
    }

    /// Names of temporary files and directories that nobody owns any more; only while alone.
    pub(crate) fn left_behind(&self) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        let mut directories = vec![self.root.clone(), self.packs(), self.workspaces()];
        for name in self.names()? {
            directories.push(self.workspace(&name));
            directories.push(self.workspace(&name).join("snapshots"));
            directories.push(overlay::directory_in(&self.workspace(&name)));
            found.extend(overlay::left_behind(&self.workspace(&name))?);
        }
        found.extend(home::left_behind(self)?);
        for directory in directories {
            let in_it = list(&directory)?.into_iter();
            found.extend(in_it.filter(|path| files::is_temporary(path)));
        }
        Ok(found)
    }

    /// Names of all workspaces, in order.
    pub(crate) fn names(&self) -> Result<Vec<WorkspaceName>, Error> {
        let mut names: Vec<WorkspaceName> = list(&self.workspaces())?
            .iter()
            .filter_map(|path| path.file_name()?.to_str()?.parse().ok())
            .collect();
        names.sort();
        Ok(names)
    }
}

/// What the store says is believed, so nobody else may be able to write it.
fn check_owner(path: &Path) -> Result<(), Error> {
    let stat = match files::open_top(path) {
        Ok(fd) => files::stat_of(&fd).trying("look at", path)?,
        // Whoever needs it says so.
        Err(Error::NotADirectory(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    let owner = rustix::process::geteuid();
    if stat.uid != owner.as_raw() && !owner.is_root() || stat.permissions() & 0o022 != 0 {
        return Err(Error::StoreOfOthers(path.to_owned()));
    }
    Ok(())
}

/// Waits for a lock.
pub(crate) fn lock(path: &Path, how: FlockOperation) -> Result<Lock, Error> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .trying("open", path)?;
    loop {
        match rustix::fs::flock(&file, how) {
            Ok(()) => {
                let owner = std::process::id();
                return Ok(Lock { file, owner });
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).trying("lock", path),
        }
    }
}

/// What is in a directory; nothing if it does not exist.
pub(crate) fn list(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.trying("read", directory)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.trying("read", directory)?.path());
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_with_its_holder_though_a_starting_program_has_the_descriptor() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let how = FlockOperation::NonBlockingLockExclusive;
        let held = lock(&path, how).unwrap();
        let starting = held.file.try_clone().unwrap();
        assert!(lock(&path, how).is_err(), "it is not held at all");
        drop(held);
        assert!(lock(&path, how).is_ok());
        drop(starting);
    }
}
