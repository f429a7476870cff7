//! The short way for ordinary names: those that nothing but the policy's rules is about.
//!
//! Most calls name a file by a path without links and dots, below a directory of the caller. For
//! these the worker goes to that directory, asks where it is, judges the path by its text, and acts
//! from there. Nothing is opened that the caller does not get, and nothing is looked at that the
//! act itself tells.
//!
//! The path is resolved once, by the call that acts (`openat2(2)` without links) or by the one that
//! opens the directory of the name. As no link can be on that way, what is acted on has the path
//! that was judged. Everything else, and whatever fails in a way that needs a closer look, takes
//! the long way from the beginning.

use std::ffi::{CStr, CString, OsString};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use rustix::process::{chdir, fchdir, getcwd};
use stockade_rules::Kind;

use super::caller::{Caller, low_word};
use super::files::{Opening, is_plain, without_waiting};
use super::names::identity;
use super::place::{lies_below, open_without_links};
use super::protect::put_back;
use super::{Answer, Worker, locked};

/// A directory argument and a path, as a caller wrote them.
#[derive(Clone, Copy)]
pub(super) struct Written<'t> {
    pub(super) directory: u64,
    pub(super) text: &'t CStr,
}

/// Where relative paths of this call start.
struct Start {
    directory: i32,
    path: Vec<u8>,
}

impl<'t> Written<'t> {
    pub(super) fn new(directory: u64, text: &'t CStr) -> Self {
        Self { directory, text }
    }

    /// The way to the directory, and the name in it.
    fn parts(self) -> (&'t [u8], &'t CStr) {
        let bytes = self.text.to_bytes_with_nul();
        let slash = bytes.iter().rposition(|byte| *byte == b'/');
        let (way, last) = bytes.split_at(slash.map_or(0, |at| at + 1));
        (way, CStr::from_bytes_with_nul(last).unwrap_or(c""))
    }
}

impl Worker<'_, '_> {
    /// Makes or opens a file; none if that has to be looked at more closely: a link, what may
    /// block or belongs to somebody in particular, what the policy is about.
    pub(super) fn open_ordinary(
        &mut self,
        caller: &Caller,
        written: Written<'_>,
        opening: Opening,
    ) -> Result<Option<Answer>, Errno> {
        let closer = OFlags::TMPFILE | OFlags::DIRECTORY | OFlags::PATH;
        if opening.flags.intersects(closer) {
            return Ok(None);
        }
        let Some(path) = self.absolute(caller, written, &mut None) else {
            return Ok(None);
        };
        let changes = opening.writes() || opening.creates();
        let kind = if changes { Kind::Write } else { Kind::Read };
        if !self.shared.rules.decide(kind, &path).allowed || changes && self.needs_guard(&path) {
            return Ok(None);
        }
        if opening.creates() {
            // Without looking first whether it is there: making it tells.
            let flags = opening.flags | OFlags::EXCL;
            let make = |_: &mut Self| open_here(written.text, flags, opening.mode);
            match self.with_umask_of(caller, make) {
                Ok(fd) => {
                    let text = written.text.to_owned();
                    return Ok(Some(Answer::MadeHere(fd, opening.inherit, text)));
                }
                Err(Errno::LOOP | Errno::ACCESS) => return Ok(None),
                Err(error) if opening.is_exclusive() => return Err(error),
                Err(Errno::EXIST) => {}
                Err(_) => return Ok(None),
            }
        }
        let stat = rustix::fs::statat(CWD, written.text, AtFlags::SYMLINK_NOFOLLOW);
        if !stat.is_ok_and(|stat| is_plain(&stat)) {
            return Ok(None);
        }
        let flags = opening.flags & !OFlags::CREATE;
        match without_waiting(flags, |flags| open_here(written.text, flags, Mode::empty())) {
            Ok(fd) => Ok(Some(Answer::Descriptor(fd, opening.inherit))),
            Err(_) => Ok(None),
        }
    }

    /// Does something with an ordinary name that is to be made or removed; none if it is not
    /// ordinary.
    pub(super) fn act_on_ordinary(
        &mut self,
        caller: &Caller,
        written: Written<'_>,
        act: impl FnOnce(&mut Self, BorrowedFd<'_>, &CStr) -> Result<Option<Answer>, Errno>,
    ) -> Result<Option<Answer>, Errno> {
        let Some(path) = self.absolute(caller, written, &mut None) else {
            return Ok(None);
        };
        if !self.is_ordinary(&path) {
            return Ok(None);
        }
        let (way, last) = written.parts();
        let Ok(directory) = open_way(way) else {
            return Ok(None);
        };
        let at = directory.as_ref().map_or(CWD, AsFd::as_fd);
        act(self, at, last)
    }

    /// Moves a file from one ordinary name to another; none if that has to be looked at more
    /// closely: directories, links, and what is neither here nor there.
    pub(super) fn rename_ordinary(
        &mut self,
        caller: &Caller,
        names: [Written<'_>; 2],
        flags: RenameFlags,
    ) -> Result<Option<Answer>, Errno> {
        if !flags.is_empty() {
            return Ok(None);
        }
        self.between(caller, names, |[(from, old), (to, new)]| {
            if file_at(from, old).is_none() {
                return Ok(None);
            }
            rustix::fs::renameat(from, old, to, new)?;
            // Somebody may have put a symbolic link or a directory in its place.
            if file_at(to, new).is_none() {
                put_back((to, new), (from, old))?;
                return Ok(None);
            }
            Ok(Some(Answer::Value(0)))
        })
    }

    /// Gives a file with an ordinary name another one; none if that has to be looked at more
    /// closely.
    pub(super) fn link_ordinary(
        &mut self,
        caller: &Caller,
        names: [Written<'_>; 2],
    ) -> Result<Option<Answer>, Errno> {
        self.between(caller, names, |[(from, old), (to, new)]| {
            let Some(linked) = file_at(from, old) else {
                return Ok(None);
            };
            rustix::fs::linkat(from, old, to, new, AtFlags::empty())?;
            let made = file_at(to, new);
            if made.is_some_and(|made| made.st_ino == linked.st_ino) {
                return Ok(Some(Answer::Value(0)));
            }
            // A copy, as an overlay makes of a file of the host (see `make_link`), or a symbolic
            // link that somebody put in the place of the file.
            let _ = rustix::fs::unlinkat(to, new, AtFlags::empty());
            match made {
                Some(_) => Err(Errno::XDEV),
                None => Ok(None),
            }
        })
    }

    /// Does something with two ordinary names; none if they are not.
    fn between(
        &mut self,
        caller: &Caller,
        [from, to]: [Written<'_>; 2],
        act: impl FnOnce([(BorrowedFd<'_>, &CStr); 2]) -> Result<Option<Answer>, Errno>,
    ) -> Result<Option<Answer>, Errno> {
        let mut start = None;
        let Some(old) = self.absolute(caller, from, &mut start) else {
            return Ok(None);
        };
        let Some(new) = self.absolute(caller, to, &mut start) else {
            return Ok(None);
        };
        if !self.is_ordinary(&old) || !self.is_ordinary(&new) {
            return Ok(None);
        }
        let ((old_way, old_last), (new_way, new_last)) = (from.parts(), to.parts());
        let Ok(old_directory) = open_way(old_way) else {
            return Ok(None);
        };
        let old_at = old_directory.as_ref().map_or(CWD, AsFd::as_fd);
        if old_way == new_way {
            return act([(old_at, old_last), (old_at, new_last)]);
        }
        let Ok(new_directory) = open_way(new_way) else {
            return Ok(None);
        };
        let new_at = new_directory.as_ref().map_or(CWD, AsFd::as_fd);
        act([(old_at, old_last), (new_at, new_last)])
    }

    /// Whether nothing but the policy's rules is about a name, and they allow to change it.
    fn is_ordinary(&self, path: &Path) -> bool {
        self.shared.rules.decide(Kind::Write, path).allowed && !self.concerns(path)
    }

    /// Whether a socket was bound inside: then removing a name may remove one.
    pub(super) fn has_bound(&self) -> bool {
        !locked(&self.shared.bound).is_empty()
    }

    /// The absolute path of what a caller wrote, with the worker in the directory that it starts
    /// from. None where more than the text decides.
    fn absolute(
        &mut self,
        caller: &Caller,
        written: Written<'_>,
        start: &mut Option<Start>,
    ) -> Option<PathBuf> {
        let bytes = written.text.to_bytes();
        if !is_normal(bytes) || !self.shared.plan.aliases.is_empty() {
            return None;
        }
        let path = if bytes.starts_with(b"/") {
            bytes.to_vec()
        } else {
            let start = match start {
                Some(start) if start.directory == low_word(written.directory) => start,
                Some(_) => return None,
                None => start.insert(self.enter(caller, written.directory).ok()?),
            };
            let mut path = Vec::with_capacity(start.path.len() + bytes.len() + 1);
            path.extend(&start.path);
            path.push(b'/');
            path.extend(bytes);
            path
        };
        let path = PathBuf::from(OsString::from_vec(path));
        (!lies_below(&path, Path::new("/proc"))).then_some(path)
    }

    /// Goes to where relative paths of the caller start.
    fn enter(&mut self, caller: &Caller, directory: u64) -> Result<Start, Errno> {
        let number = low_word(directory);
        if number == libc::AT_FDCWD {
            if !self.is_home {
                fchdir(&self.shared.proc)?;
            }
            self.is_home = false;
            // By its number in `/proc`: opening it first takes half as long again.
            let mut link = [0; 24];
            write!(&mut link[..], "{}/cwd", caller.thread.as_raw_nonzero())
                .map_err(|_| Errno::INVAL)?;
            chdir(CStr::from_bytes_until_nul(&link).map_err(|_| Errno::INVAL)?)?;
        } else {
            self.is_home = false;
            fchdir(caller.descriptor(self.shared.proc.as_fd(), directory)?)?;
        }
        let mut path = getcwd(Vec::new())?.into_bytes();
        // Outside the view there are no paths, only descriptors (`getcwd(2)`).
        if !path.starts_with(b"/") {
            return Err(Errno::NOENT);
        }
        if path.len() == 1 {
            path.clear();
        }
        Ok(Start {
            directory: number,
            path,
        })
    }

    /// Leaves the directory of a caller: who is in it keeps it from going for good.
    pub(super) fn go_home(&mut self) {
        self.is_home = fchdir(&self.shared.proc).is_ok();
    }
}

/// Removes what was made for a caller that has no room for its descriptor. The worker is still
/// where the path starts.
pub(super) fn unmake(text: &CString, file: &OwnedFd) {
    let (way, last) = Written::new(0, text).parts();
    let Ok(directory) = open_way(way) else {
        return;
    };
    let at = directory.as_ref().map_or(CWD, AsFd::as_fd);
    let made = rustix::fs::fstat(file).map(|stat| identity(&stat));
    let there = rustix::fs::statat(at, last, AtFlags::SYMLINK_NOFOLLOW);
    if made.is_ok() && made == there.map(|stat| identity(&stat)) {
        let _ = rustix::fs::unlinkat(at, last, AtFlags::empty());
    }
}

/// The regular file that has this name; none if there is no such.
fn file_at(at: BorrowedFd<'_>, name: &CStr) -> Option<Stat> {
    let stat = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    FileType::from_raw_mode(stat.st_mode)
        .is_file()
        .then_some(stat)
}

/// The directory that a way leads to without a link; none if that is where the worker is.
fn open_way(way: &[u8]) -> Result<Option<OwnedFd>, Errno> {
    if way.is_empty() {
        return Ok(None);
    }
    open_without_links(CWD, way).map(Some)
}

/// Opens what a path without links leads to. Not by `O_NOFOLLOW`, which the caller would find
/// among the flags of its descriptor.
fn open_here(text: &CStr, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    // NOCTTY: a terminal opened here must not become the mediator's.
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
    rustix::fs::openat2(CWD, text, flags, mode, ResolveFlags::NO_SYMLINKS)
}

/// Whether a path has no empty component, no dots and no slash at its end.
fn is_normal(path: &[u8]) -> bool {
    let below = path.strip_prefix(b"/").unwrap_or(path);
    below
        .split(|byte| *byte == b'/')
        .all(|part| !matches!(part, b"" | b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_take_the_short_way() {
        for path in [
            "f",
            "a/f",
            "/f",
            "/a/b/f",
            ".f",
            "..f",
            "a/...",
            "/a/.git/x",
        ] {
            assert!(is_normal(path.as_bytes()), "{path}");
        }
        for path in [
            "", "/", ".", "..", "a/", "a//b", "//a", "./a", "a/.", "a/..", "../a", "/a/../b",
            "/./a",
        ] {
            assert!(!is_normal(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn a_path_is_a_way_and_a_name() {
        for (text, way, last) in [
            (c"f", "", c"f"),
            (c"a/f", "a/", c"f"),
            (c"/f", "/", c"f"),
            (c"/a/b/f", "/a/b/", c"f"),
        ] {
            let found = Written::new(0, text).parts();
            assert_eq!(found, (way.as_bytes(), last));
        }
    }

    #[test]
    fn below_is_by_components() {
        let below = |path: &str, root: &str| lies_below(Path::new(path), Path::new(root));
        assert!(below("/a/b", "/a/b"));
        assert!(below("/a/b/c", "/a/b"));
        assert!(below("/a", "/"));
        assert!(!below("/a/bc", "/a/b"));
        assert!(!below("/a", "/a/b"));
    }
}
