//! Symbolic links in git directories: none but those that were there before the run. Git on the
//! host would write to what they lead to.
//!
//! A link is refused where it is made or moved to. A directory that moves into a git directory, or
//! becomes one, is searched for links before and after: it may be one that was filled elsewhere.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use stockade_rules::protected::ProtectedName;
use stockade_rules::protected::git::link::{directory_of_link, is_written_by_git};

use super::facts;
use crate::mediator::Worker;
use crate::mediator::caller::Caller;
use crate::mediator::place::Directory;
use crate::mediator::record::Operation;

/// More entries are not searched, which counts as a link. A repository of a million loose objects
/// is one that `git gc` gave up on.
const MAX_ENTRIES: usize = 1 << 20;

/// Each level takes a descriptor. Git's own directories have five, and one more for each `/` in
/// the name of a branch.
const MAX_DEPTH: usize = 64;

/// A search for links below a directory.
struct Search {
    entries_left: usize,
    /// The way to the directory that is being searched.
    at: PathBuf,
}

impl Worker<'_, '_> {
    /// Why a symbolic link of this path would lead git's own writes elsewhere. Its directory is
    /// asked by the descriptor where there is one: its path may be too long to be looked at, or
    /// lead through a directory that the caller may not search.
    pub(super) fn refusing_git_link(
        &self,
        path: &Path,
        held: Option<&Directory>,
    ) -> Option<&'static ProtectedName> {
        self.refusing_link_in(path, |at| match held {
            Some(held) if path.parent() == Some(at) => facts::is_git_directory_at(held),
            _ => facts::is_git_directory(at),
        })
    }

    fn refusing_link_in(
        &self,
        path: &Path,
        is_repository: impl Fn(&Path) -> bool,
    ) -> Option<&'static ProtectedName> {
        // The git directory of a linked worktree is granted like the worktree itself.
        let is_tree = |at: &Path| self.is_anchor(at) && !self.is_own_git_directory(at);
        let git = directory_of_link(path, is_repository, is_tree)?;
        let entry = git.join(path.strip_prefix(git).ok()?.iter().next()?);
        let refused = self.in_reach(path) && !self.is_lifted(&entry, path);
        refused.then_some(&facts::GIT_LINK)
    }

    /// Refuses to move a directory with links in it to a place in a git directory. Whether the
    /// directory is one itself does not matter: it was one before.
    pub(super) fn require_no_links_at(
        &self,
        caller: &Caller,
        moving: &Directory,
        to: &Path,
    ) -> Result<(), Errno> {
        let is_repository = |at: &Path| at != to && facts::is_git_directory(at);
        if self
            .refusing_link_in(&to.join("entry"), is_repository)
            .is_none()
        {
            return Ok(());
        }
        let found = Search::new().below(moving.as_fd(), c".", 0);
        self.refuse_found(caller, to, found)
    }

    /// Refuses to make a git directory of one that has links where git writes.
    pub(super) fn require_no_links_in(
        &self,
        caller: &Caller,
        directory: &Directory,
    ) -> Result<(), Errno> {
        let found = Search::new().repository(directory.as_fd());
        self.refuse_found(caller, &directory.path, found)
    }

    fn refuse_found(
        &self,
        caller: &Caller,
        directory: &Path,
        found: Option<PathBuf>,
    ) -> Result<(), Errno> {
        match found {
            Some(link) => {
                let link = directory.join(link);
                Err(self.refuse(caller, Operation::MakeLink, &link, &facts::GIT_LINK))
            }
            None => Ok(()),
        }
    }
}

impl Search {
    fn new() -> Self {
        Self {
            entries_left: MAX_ENTRIES,
            at: PathBuf::new(),
        }
    }

    /// The first link in a repository, which may be bare and hold working trees.
    fn repository(&mut self, directory: BorrowedFd<'_>) -> Option<PathBuf> {
        self.entries(directory, c".", |search, directory, name| {
            let is_git = is_written_by_git(OsStr::from_bytes(name.to_bytes()));
            is_git.then(|| search.below(directory, name, 1)).flatten()
        })
    }

    /// The first link at any depth below a directory. What can't be read may be one: whoever took
    /// the right to read a directory away can give it back.
    fn below(&mut self, at: BorrowedFd<'_>, name: &CStr, depth: usize) -> Option<PathBuf> {
        if depth > MAX_DEPTH {
            return Some(self.at.clone());
        }
        self.entries(at, name, |search, directory, entry| {
            search.below(directory, entry, depth + 1)
        })
    }

    /// The first link among the entries of a directory, or what `descend` finds in the directories
    /// among them.
    fn entries(
        &mut self,
        at: BorrowedFd<'_>,
        name: &CStr,
        mut descend: impl FnMut(&mut Self, BorrowedFd<'_>, &CStr) -> Option<PathBuf>,
    ) -> Option<PathBuf> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match rustix::fs::openat(at, name, flags, Mode::empty()) {
            Ok(directory) => directory,
            // Removed meanwhile.
            Err(Errno::NOENT) => return None,
            Err(_) => return Some(self.at.clone()),
        };
        let Ok(listed) = Dir::read_from(&directory) else {
            return Some(self.at.clone());
        };
        for entry in listed {
            let Ok(entry) = entry else {
                return Some(self.at.clone());
            };
            let last = entry.file_name();
            if matches!(last.to_bytes(), b"." | b"..") {
                continue;
            }
            self.at.push(OsStr::from_bytes(last.to_bytes()));
            let Some(left) = self.entries_left.checked_sub(1) else {
                return Some(self.at.clone());
            };
            self.entries_left = left;
            let found = match kind(directory.as_fd(), last, entry.file_type()) {
                FileType::Symlink => Some(self.at.clone()),
                FileType::Directory => descend(self, directory.as_fd(), last),
                _ => None,
            };
            if found.is_some() {
                return found;
            }
            self.at.pop();
        }
        None
    }
}

/// Not every file system tells the kind of an entry with its name.
fn kind(directory: BorrowedFd<'_>, name: &CStr, listed: FileType) -> FileType {
    if listed != FileType::Unknown {
        return listed;
    }
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(FileType::Unknown, |stat| {
        FileType::from_raw_mode(stat.st_mode)
    })
}
