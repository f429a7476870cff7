//! Names that no caller can give to anything: the mediator puts there what is on its way to another
//! name, so that nobody can put something else in its place.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, FileType, RenameFlags, Stat};
use rustix::io::Errno;

use super::facts::COPY_PREFIX;
use crate::mediator::place::Name;

/// What is renamed, under a private name in the directory that it goes to.
pub(super) struct Pinned<'n> {
    from: &'n Name,
    to: &'n Name,
    pub(super) last: CString,
}

impl<'n> Pinned<'n> {
    /// `EBUSY` if something of another kind has the name by now than was seen there.
    pub(super) fn new(from: &'n Name, to: &'n Name, seen: &Stat) -> Result<Self, Errno> {
        let last = private_name();
        rustix::fs::renameat(&from.directory, &from.last, &to.directory, &last)?;
        let pinned = Self { from, to, last };
        match rustix::fs::statat(&to.directory, &pinned.last, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if kind_of(&stat) == kind_of(seen) => Ok(pinned),
            _ => {
                pinned.put_back();
                Err(Errno::BUSY)
            }
        }
    }

    pub(super) fn put_back(&self) {
        let (here, there) = (self.to.directory.as_fd(), self.from.directory.as_fd());
        // Only a caller that removes private names is in the way.
        let _ = put_back((here, &self.last), (there, &self.from.last));
    }
}

pub(super) fn kind_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// A name that no caller can use. The process's number keeps runs apart.
pub(super) fn private_name() -> CString {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{COPY_PREFIX}{}-{number}", std::process::id());
    CString::new(name).unwrap_or_default()
}

/// Moves something back to the name it had. If something else has that name, what moves gets a
/// private one: it must not stay where it is.
pub(in crate::mediator) fn put_back(
    (here, name): (BorrowedFd<'_>, &CStr),
    (there, old): (BorrowedFd<'_>, &CStr),
) -> Result<(), Errno> {
    rustix::fs::renameat_with(here, name, there, old, RenameFlags::NOREPLACE)
        .or_else(|_| rustix::fs::renameat(here, name, there, private_name()))
}
