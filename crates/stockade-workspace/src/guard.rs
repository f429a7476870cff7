//! Asking the caller which changes may reach the host.
//!
//! This crate knows paths and content, not which of them run code later. Whoever commits, restores
//! or imports hands over a [`CommitGuard`]; it is asked about every single change, also about those
//! below a directory that is new, moved or removed as a whole.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};
use serde::Serialize;

use crate::files::{self, Stat};
use crate::tree::Time;

/// Decides which changes may reach the host.
pub trait CommitGuard {
    /// Judges one change. Nobody writes the new content while it is asked.
    fn judge(&self, change: &ProposedChange<'_>) -> Verdict;

    /// Called when every change of an overlay has been judged and none has reached the host yet.
    /// `since` is when the first run began that could write to the overlay, if that is known.
    ///
    /// # Errors
    /// If the changes must not reach the host then.
    fn before_commit(&self, since: Option<Time>) -> io::Result<()> {
        let _ = since;
        Ok(())
    }
}

/// What a guard answers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a change is applied or not")]
pub enum Verdict {
    /// The change is applied.
    Allow,
    /// The change is not applied, for this reason. For a directory that is new, that means
    /// everything in it.
    KeepBack(String),
}

/// A change that was not applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KeptBack {
    /// Where, on the host.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are three ways")]
pub enum ProposedKind {
    /// It is made or replaced.
    Put,
    /// It is removed.
    Remove,
    /// Its mode or owner changes.
    Attributes,
}

/// One change of the host's files.
#[expect(missing_debug_implementations, reason = "the trees are no data")]
#[non_exhaustive]
pub struct ProposedChange<'a> {
    /// The path on the host.
    pub path: &'a Path,
    /// What happens to it.
    pub kind: ProposedKind,
    /// What is there now.
    pub old: Option<FileFacts>,
    /// What will be there.
    pub new: Option<FileFacts>,
    /// The host's files as they are.
    pub before: &'a dyn FileTree,
    /// The host's files as they would be if everything were applied.
    pub after: &'a dyn FileTree,
}

/// Files to look at while a change is judged. Paths are the host's; no link is followed.
pub trait FileTree {
    /// What is at a path; none if there is nothing.
    fn facts(&self, path: &Path) -> Option<FileFacts>;
    /// The content of a file, or the target of a link.
    ///
    /// # Errors
    /// If it can't be read, or is longer than `limit`.
    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>>;
    /// The names in a directory.
    fn names(&self, path: &Path) -> Vec<OsString>;
}

/// What is known about a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileFacts {
    /// What it is.
    pub kind: FileKind,
    /// Its permission bits.
    pub mode: u32,
    /// How many names it has.
    pub links: u32,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the kernel has no others")]
pub enum FileKind {
    /// A directory.
    Directory,
    /// An ordinary file.
    File,
    /// A symbolic link.
    Symlink,
    /// A FIFO or a socket.
    Pipe,
    /// A device.
    Device,
}

impl FileFacts {
    pub(crate) fn of(stat: &Stat) -> Self {
        let kind = match stat.file_type() {
            FileType::Directory => FileKind::Directory,
            FileType::RegularFile => FileKind::File,
            FileType::Symlink => FileKind::Symlink,
            FileType::Fifo | FileType::Socket => FileKind::Pipe,
            _ => FileKind::Device,
        };
        Self {
            kind,
            mode: stat.permissions(),
            links: stat.nlink,
        }
    }

    /// With one name.
    pub(crate) const fn new(kind: FileKind, mode: u32) -> Self {
        Self {
            kind,
            mode,
            links: 1,
        }
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == FileKind::Directory
    }
}

/// The files below an open directory.
pub(crate) struct OpenTree<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) top: BorrowedFd<'a>,
}

impl OpenTree<'_> {
    fn below<'p>(&self, path: &'p Path) -> Option<&'p [u8]> {
        path.strip_prefix(self.dir)
            .ok()
            .map(|path| path.as_os_str().as_bytes())
    }

    fn stat(&self, path: &Path) -> Option<Stat> {
        let (parent, name) = files::split(self.below(path)?);
        let name = if name.is_empty() { b"." } else { name };
        let parent = files::open_dir_below(self.top, parent).ok()?;
        files::stat_at(parent.as_fd(), name).ok()
    }
}

impl FileTree for OpenTree<'_> {
    fn facts(&self, path: &Path) -> Option<FileFacts> {
        self.stat(path).as_ref().map(FileFacts::of)
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let below = self.below(path).ok_or(io::ErrorKind::NotFound)?;
        let stat = self.stat(path).ok_or(io::ErrorKind::NotFound)?;
        read_below(self.top, below, &stat, limit)
    }

    fn names(&self, path: &Path) -> Vec<OsString> {
        self.below(path)
            .map(|below| names_below(self.top, below))
            .unwrap_or_default()
    }
}

/// The content of a file below a directory, or the target of a link.
pub(crate) fn read_below(
    top: BorrowedFd<'_>,
    below: &[u8],
    stat: &Stat,
    limit: u64,
) -> io::Result<Vec<u8>> {
    if stat.file_type().is_symlink() {
        let (parent, name) = files::split(below);
        let parent = files::open_dir_below(top, parent)?;
        return Ok(rustix::fs::readlinkat(parent, name, Vec::new())?.into_bytes());
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = File::from(files::open_below(top, below, flags)?);
    let mut content = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(content)
}

/// The names in a directory below another.
pub(crate) fn names_below(top: BorrowedFd<'_>, below: &[u8]) -> Vec<OsString> {
    let names = files::open_dir_below(top, below).and_then(|fd| files::names(&fd));
    let names = names.unwrap_or_default().into_iter();
    names.map(OsString::from_vec).collect()
}

/// A guard that allows everything: for callers that have no sandbox, and for users who said so.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to say")]
pub struct AllowAll;

impl CommitGuard for AllowAll {
    fn judge(&self, _: &ProposedChange<'_>) -> Verdict {
        Verdict::Allow
    }
}
