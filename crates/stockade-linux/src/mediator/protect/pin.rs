//! Names that no caller can give to anything: the mediator puts there what is on its way to another
//! name, so that nobody can put something else in its place.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, RenameFlags, Stat};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::mediator::place::{Directory, Name};
use crate::mediator::unfinished::Unfinished;

/// Private names of copies of protected files.
pub(super) const COPY_PREFIX: &str = ".stockade-copy-";

/// Private names of what a caller renames. The old name is the end of such a name, so that a later
/// run can give it back ([`super::leftovers`]). Nobody removes what has such a name: it is the
/// caller's.
pub(super) const MOVE_PREFIX: &str = ".stockade-move-";

/// No name is longer (`NAME_MAX`).
const MAX_NAME_BYTES: usize = 255;

/// What is renamed, under a private name.
pub(super) struct Pinned<'n> {
    from: &'n Name,
    pub(super) directory: &'n Directory,
    pub(super) last: CString,
    _unfinished: Unfinished,
}

impl<'n> Pinned<'n> {
    /// Pins what has the name `from` in `directory`, where no caller can use private names. `EBUSY`
    /// if something of another kind has the name by now than was seen there.
    pub(super) fn new(
        from: &'n Name,
        directory: &'n Directory,
        seen: &Stat,
    ) -> Result<Self, Errno> {
        let last = move_name(&from.last);
        let unfinished = Unfinished::begin();
        rustix::fs::renameat(&from.directory, &from.last, directory, &last)?;
        let pinned = Self {
            from,
            directory,
            last,
            _unfinished: unfinished,
        };
        match rustix::fs::statat(directory, &pinned.last, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if kind_of(&stat) == kind_of(seen) => Ok(pinned),
            _ => {
                pinned.put_back();
                Err(Errno::BUSY)
            }
        }
    }

    pub(super) fn put_back(&self) {
        let (here, there) = (self.directory.as_fd(), self.from.directory.as_fd());
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

/// A name that no caller can use. The process's number and the time keep runs apart.
pub(super) fn private_name(prefix: &str) -> CString {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let time = time.unwrap_or_default().as_nanos();
    let name = format!("{prefix}{}-{time}-{number}", std::process::id());
    CString::new(name).unwrap_or_default()
}

/// A private name for what had the name `old`, of which it keeps as much as there is room for.
fn move_name(old: &CStr) -> CString {
    let mut name = private_name(MOVE_PREFIX).into_bytes();
    name.push(b'-');
    let room = MAX_NAME_BYTES - name.len();
    let old = old.to_bytes();
    name.extend_from_slice(&old[..old.len().min(room)]);
    CString::new(name).unwrap_or_default()
}

/// The process that gave something a private name while it moved, and the name it had before.
pub(super) fn parse_move_name(name: &[u8]) -> Option<(Pid, &[u8])> {
    let mut parts = name
        .strip_prefix(MOVE_PREFIX.as_bytes())?
        .splitn(4, |byte| *byte == b'-');
    let process = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
    let old = parts.nth(2)?;
    let is_name = !old.is_empty() && !matches!(old, b"." | b"..");
    Some((Pid::from_raw(process)?, old)).filter(|_| is_name)
}

/// Moves something back to the name it had. If something else has that name, what moves gets a
/// private one: it must not stay where it is.
pub(in crate::mediator) fn put_back(
    (here, name): (BorrowedFd<'_>, &CStr),
    (there, old): (BorrowedFd<'_>, &CStr),
) -> Result<(), Errno> {
    rustix::fs::renameat_with(here, name, there, old, RenameFlags::NOREPLACE)
        .or_else(|_| rustix::fs::renameat(here, name, there, move_name(old)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_name_has_the_process_and_the_old_name() {
        for old in [c"f", c"a-b-c", c".x"] {
            let name = move_name(old);
            let (process, found) = parse_move_name(name.as_bytes()).unwrap();
            assert_eq!(process, rustix::process::getpid());
            assert_eq!(found, old.to_bytes());
        }
    }

    #[test]
    fn a_long_old_name_loses_its_end() {
        let old = CString::new("x".repeat(MAX_NAME_BYTES)).unwrap();
        let name = move_name(&old);
        assert_eq!(name.as_bytes().len(), MAX_NAME_BYTES);
        let (_, found) = parse_move_name(name.as_bytes()).unwrap();
        assert!(old.as_bytes().starts_with(found) && found.len() > 150);
    }

    #[test]
    fn other_names_are_of_no_move() {
        for name in [
            "x",
            ".stockade-move-",
            ".stockade-move-1-2",
            ".stockade-move-1-2-3",
            ".stockade-move-1-2-3-",
            ".stockade-move-1-2-3-..",
            ".stockade-move-0-2-3-x",
            ".stockade-move-a-2-3-x",
            ".stockade-copy-1-2-3-x",
        ] {
            assert_eq!(parse_move_name(name.as_bytes()), None, "{name}");
        }
    }
}
