//! Names that no caller can give to anything: the mediator puts there what is on its way to another
//! name, so that nobody can put something else in its place.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, FileType, RenameFlags, Stat};
use rustix::io::Errno;

use crate::mediator::place::Name;
use crate::mediator::unfinished::Unfinished;

/// Private names of copies of protected files.
pub(super) const COPY_PREFIX: &str = ".stockade-copy-";

/// Private names of what a caller renames. Nobody removes what is left under such a name: it is the
/// caller's.
const MOVE_PREFIX: &str = ".stockade-move-";

/// What is renamed, under a private name in the directory that it goes to.
pub(super) struct Pinned<'n> {
    from: &'n Name,
    to: &'n Name,
    pub(super) last: CString,
    _unfinished: Unfinished,
}

impl<'n> Pinned<'n> {
    /// `EBUSY` if something of another kind has the name by now than was seen there.
    pub(super) fn new(from: &'n Name, to: &'n Name, seen: &Stat) -> Result<Self, Errno> {
        let last = private_name(MOVE_PREFIX);
        let unfinished = Unfinished::begin();
        rustix::fs::renameat(&from.directory, &from.last, &to.directory, &last)?;
        let pinned = Self {
            from,
            to,
            last,
            _unfinished: unfinished,
        };
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

/// Whether a name is one that no caller can use.
pub(super) fn is_private(name: &[u8]) -> bool {
    let mut prefixes = [COPY_PREFIX, MOVE_PREFIX].into_iter();
    prefixes.any(|prefix| name.starts_with(prefix.as_bytes()))
}

pub(super) fn kind_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// A name that no caller can use. The process's number keeps runs apart.
pub(super) fn private_name(prefix: &str) -> CString {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{prefix}{}-{number}", std::process::id());
    CString::new(name).unwrap_or_default()
}

/// Moves something back to the name it had. If something else has that name, what moves gets a
/// private one: it must not stay where it is.
pub(in crate::mediator) fn put_back(
    (here, name): (BorrowedFd<'_>, &CStr),
    (there, old): (BorrowedFd<'_>, &CStr),
) -> Result<(), Errno> {
    rustix::fs::renameat_with(here, name, there, old, RenameFlags::NOREPLACE)
        .or_else(|_| rustix::fs::renameat(here, name, there, private_name(MOVE_PREFIX)))
}
