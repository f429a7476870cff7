//! Directories that belong to one task: its files and the layers of its overlay.
//!
//! All of a batch lie in one directory, which the batch removes at its end. One that was killed
//! leaves its own, and the next batch of the same user removes it: nobody holds its lock.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags};

use super::task::Task;

const PREFIX: &str = "stockade-batch-";
const LOCK: &str = "lock";

pub(super) struct Workplaces {
    dir: PathBuf,
    _lock: File,
    next: AtomicU64,
}

/// The directory of one attempt, removed when it is dropped.
pub(super) struct Workplace(PathBuf);

impl Workplaces {
    pub(super) fn new() -> io::Result<Self> {
        let parent = std::env::temp_dir();
        remove_abandoned(&parent);
        let dir = parent.join(format!("{PREFIX}{}", std::process::id()));
        make_directory(&dir)?;
        let lock = File::create_new(dir.join(LOCK))?;
        lock.lock()?;
        Ok(Self {
            dir,
            _lock: lock,
            next: AtomicU64::new(0),
        })
    }

    pub(super) fn get(&self) -> io::Result<Workplace> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let dir = self.dir.join(number.to_string());
        make_directory(&dir)?;
        Ok(Workplace(dir))
    }

    pub(super) fn remove(&self) {
        remove(&self.dir);
    }
}

impl Workplace {
    /// Where the overlay's layers are kept.
    pub(super) fn store(&self) -> PathBuf {
        self.0.join("store")
    }

    /// Writes the files of a task and returns their directory.
    pub(super) fn write(&self, task: &Task) -> io::Result<PathBuf> {
        let dir = self.0.join("files");
        make_directory(&dir)?;
        for (name, content) in &task.files {
            let path = Path::new(name);
            let mut parts = path.components();
            if name.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
                let text = format!("`{name}` is not a path below the workspace");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            let content = content.clone().decode().ok_or_else(|| {
                let text = format!("the content of `{name}` is not base64");
                io::Error::new(io::ErrorKind::InvalidInput, text)
            })?;
            let path = dir.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, content)?;
        }
        Ok(dir)
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

fn make_directory(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(dir)
}

fn remove_abandoned(parent: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && fs::symlink_metadata(entry.path())
                .is_ok_and(|found| found.is_dir() && found.uid() == user);
        if !is_ours {
            continue;
        }
        // A directory that has no lock yet belongs to a batch that begins.
        if let Ok(lock) = open_lock(&entry.path())
            && lock.try_lock().is_ok()
        {
            remove(&entry.path());
        }
    }
}

/// A sandbox may write where temporary files are: nothing that has the name is waited for or followed.
fn open_lock(dir: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(dir.join(LOCK), flags, Mode::empty())?.into())
}

/// What can't be removed stays, visibly.
fn remove(dir: &Path) {
    let _ = stockade_workspace::remove_tree_of_others(dir);
}
