//! The copy of a protected file, on its way to its name.
//!
//! It has no name while it is written (`O_TMPFILE`), so a mediator that is killed leaves nothing.
//! Only a copy that replaces a file needs a private name, for one system call: `linkat(2)` replaces
//! nothing. A copy that is left under such a name goes when the next one is made in its directory.
//! Whoever uses a copy holds a lock on it (`flock(2)`), and the kernel releases that of the dead.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::Identity;
use super::pin::{COPY_PREFIX, private_name};
use crate::mediator::caller::errno;
use crate::mediator::place::{Directory, Name};
use crate::mediator::unfinished::Unfinished;
use crate::mediator::{Mediator, locked};

/// What becomes of a file's metadata.
pub(super) struct Metadata {
    mode: Mode,
    times: Timestamps,
}

impl Metadata {
    pub(super) fn of(file: &OwnedFd) -> Result<Self, Errno> {
        let stat = rustix::fs::fstat(file)?;
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Err(Errno::ACCESS);
        }
        let time = |seconds, nanoseconds: u64| Timespec {
            tv_sec: seconds,
            tv_nsec: i64::try_from(nanoseconds).unwrap_or(0),
        };
        Ok(Self {
            mode: Mode::from_raw_mode(stat.st_mode & 0o777),
            times: Timestamps {
                last_access: time(stat.st_atime, stat.st_atime_nsec),
                last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
            },
        })
    }
}

impl Mediator<'_> {
    /// Puts a file with this content at a name, complete, with no second name, and open to nobody.
    pub(super) fn publish(
        &self,
        to: &Name,
        content: &[u8],
        metadata: &Metadata,
    ) -> Result<(), Errno> {
        self.publish_open(to, content, metadata).map(drop)
    }

    /// As [`Mediator::publish`]; the result is the only descriptor of the file.
    pub(super) fn publish_open(
        &self,
        to: &Name,
        content: &[u8],
        metadata: &Metadata,
    ) -> Result<OwnedFd, Errno> {
        let _unfinished = Unfinished::begin();
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = match rustix::fs::openat(&to.directory, c".", flags, mode) {
            // Not every file system has files without a name; EISDIR is the kernel's own answer.
            Err(Errno::OPNOTSUPP | Errno::ISDIR) => return publish_named(to, content, metadata),
            file => file?,
        };
        self.remove_leftovers(&to.directory);
        let is_locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        fill(&file, content, metadata)?;
        let link = |last: &std::ffi::CStr| {
            let (own, number) = (&self.own_descriptors, file.as_raw_fd().to_string());
            rustix::fs::linkat(own, number, &to.directory, last, AtFlags::SYMLINK_FOLLOW)
        };
        match link(&to.last) {
            Err(Errno::EXIST) => {
                let copy = private_name(COPY_PREFIX);
                link(&copy)?;
                rename_copy(to, &copy)?;
            }
            linked => linked?,
        }
        if is_locked {
            rustix::fs::flock(&file, FlockOperation::Unlock)?;
        }
        Ok(file)
    }

    /// Removes the copies that a mediator left in a directory when it was killed. Once for each
    /// directory of a run.
    fn remove_leftovers(&self, directory: &Directory) {
        let Some(identity) = Identity::of(directory, c"") else {
            return;
        };
        if !locked(&self.memory.cleaned).insert(identity) {
            return;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = rustix::fs::openat(directory, c".", flags, Mode::empty());
        let Ok(entries) = listed.and_then(Dir::read_from) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !name.to_bytes().starts_with(COPY_PREFIX.as_bytes()) {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(file) = rustix::fs::openat(directory, name, flags, Mode::empty()) else {
                continue;
            };
            let is_file = rustix::fs::fstat(&file)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
            let is_unused =
                || rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
            if is_file && is_unused() {
                let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
            }
        }
    }
}

/// As [`Mediator::publish_open`], where every file has a name.
fn publish_named(to: &Name, content: &[u8], metadata: &Metadata) -> Result<OwnedFd, Errno> {
    let copy = private_name(COPY_PREFIX);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&to.directory, &copy, flags, Mode::RUSR | Mode::WUSR)?;
    let filled = fill(&file, content, metadata);
    if filled.is_err() {
        let _ = rustix::fs::unlinkat(&to.directory, &copy, AtFlags::empty());
    }
    filled.and_then(|()| rename_copy(to, &copy))?;
    Ok(file)
}

fn rename_copy(to: &Name, copy: &std::ffi::CStr) -> Result<(), Errno> {
    let renamed = rustix::fs::renameat(&to.directory, copy, &to.directory, &to.last);
    if renamed.is_err() {
        let _ = rustix::fs::unlinkat(&to.directory, copy, AtFlags::empty());
    }
    renamed
}

/// Makes a file hold this content and have this metadata.
pub(super) fn fill(file: impl AsFd, content: &[u8], metadata: &Metadata) -> Result<(), Errno> {
    let copy = rustix::io::fcntl_dupfd_cloexec(&file, 0)?;
    rustix::fs::ftruncate(&copy, 0)?;
    File::from(copy)
        .write_all_at(content, 0)
        .map_err(|error| errno(&error))?;
    rustix::fs::fchmod(&file, metadata.mode)?;
    rustix::fs::futimens(&file, &metadata.times)
}
