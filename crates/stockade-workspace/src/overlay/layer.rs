//! Reading a layer: what differs from the directory below it. Takes time in proportion to what
//! changed.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::diff::{Change, ChangeKind, FileInfo, Source};
use crate::error::{Error, Trying};
pub(super) use crate::files::names;
use crate::files::{self, Stat};

/// What a layer says about a name.
#[derive(Clone, Debug)]
pub(super) enum Said {
    /// It is gone.
    Whiteout,
    /// A directory; what is below it shows through, or not.
    Directory { stat: Stat, opaque: bool },
    /// Any other file.
    File(Stat),
}

/// An entry of a layer; paths are below the root.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) path: Vec<u8>,
    pub(super) said: Said,
}

/// Everything in a layer, directories before what is in them.
pub(super) fn entries(upper: &Path) -> Result<Vec<Entry>, Error> {
    let top = files::open_top(upper)?;
    let mut found = Vec::new();
    let mut waiting = vec![Vec::new()];
    while let Some(directory) = waiting.pop() {
        let fd = files::open_dir_below(top.as_fd(), &directory)
            .trying("read", files::full(upper, &directory))?;
        for name in names(&fd).trying("read", files::full(upper, &directory))? {
            let path = files::join(&directory, &name);
            let said = look(fd.as_fd(), &name).trying("look at", files::full(upper, &path))?;
            if matches!(said, Said::Directory { .. }) {
                waiting.push(path.clone());
            }
            found.push(Entry { path, said });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// What the layer says about a name in one of its directories.
pub(super) fn look(directory: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Said> {
    let stat = files::stat_at(directory, name)?;
    Ok(match stat.file_type() {
        FileType::CharacterDevice if stat.rdev == 0 => Said::Whiteout,
        FileType::Directory => {
            let fd = files::open_dir_below(directory, name)?;
            let mut value = [0u8; 8];
            let length = rustix::fs::fgetxattr(&fd, "user.overlay.opaque", &mut value);
            // Since Linux 6.7 `x` says that there are whiteouts in it that are attributes.
            let opaque = length.is_ok_and(|length| value[..length] == *b"y");
            Said::Directory { stat, opaque }
        }
        _ => Said::File(stat),
    })
}

/// The attributes by which overlayfs marks a file of its layer.
pub(super) fn marks(directory: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Vec<Vec<u8>>> {
    let mut buffer = [0; 1024];
    let path = by_descriptor(directory, name);
    let length = match rustix::fs::llistxattr(&path, &mut buffer) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP) => 0,
        Err(Errno::RANGE) => {
            let mut buffer = vec![0; 65536];
            let length = rustix::fs::llistxattr(&path, &mut buffer)?;
            return Ok(own_marks(&buffer[..length]));
        }
        Err(error) => return Err(error),
    };
    Ok(own_marks(&buffer[..length]))
}

fn own_marks(names: &[u8]) -> Vec<Vec<u8>> {
    let names = names.split(|byte| *byte == 0);
    // Capabilities that a user namespace gave are nobody's outside.
    let is_mark =
        |name: &&[u8]| name.starts_with(b"user.overlay.") || *name == b"security.capability";
    names.filter(is_mark).map(<[u8]>::to_vec).collect()
}

/// A path for calls that take no descriptor of a directory.
pub(super) fn by_descriptor(directory: BorrowedFd<'_>, name: &[u8]) -> PathBuf {
    let top = format!("/proc/self/fd/{}", directory.as_raw_fd());
    files::full(Path::new(&top), name)
}

/// What a name in a directory is; none if there is nothing.
pub(super) fn stat_if_any(
    directory: BorrowedFd<'_>,
    name: &[u8],
) -> rustix::io::Result<Option<Stat>> {
    match files::stat_at(directory, name) {
        Err(Errno::NOENT) => Ok(None),
        stat => stat.map(Some),
    }
}

/// What a name is on the host; none if there is nothing.
pub(super) fn on_host(root: BorrowedFd<'_>, path: &[u8]) -> rustix::io::Result<Option<Stat>> {
    let (parent, name) = files::split(path);
    let found = files::open_dir_below(root, parent).and_then(|fd| files::stat_at(fd.as_fd(), name));
    match found {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

struct Walk<'a> {
    root: &'a Path,
    root_fd: OwnedFd,
    upper: &'a Path,
    changes: Vec<Change>,
}

/// What differs between the host's directory and the view over it.
pub(super) fn changes(root: &Path, upper: &Path) -> Result<Vec<Change>, Error> {
    let mut walk = Walk {
        root,
        root_fd: files::open_top(root)?,
        upper,
        changes: Vec::new(),
    };
    for entry in entries(upper)? {
        walk.entry(&entry)?;
    }
    Ok(walk.changes)
}

impl Walk<'_> {
    fn entry(&mut self, entry: &Entry) -> Result<(), Error> {
        let path = &entry.path;
        let old = on_host(self.root_fd.as_fd(), path).trying("look at", self.full(path))?;
        match (&entry.said, old) {
            (Said::Whiteout, None) => {}
            (Said::Whiteout, Some(old)) => self.removed(path, &old)?,
            (Said::Directory { stat, opaque }, Some(old)) if old.is_dir() => {
                if *opaque {
                    self.hidden(path)?;
                }
                if attributes(stat) != attributes(&old) {
                    self.push(path, ChangeKind::Attributes, Some(&old), Some(stat));
                }
            }
            (Said::Directory { stat, .. } | Said::File(stat), None) => {
                self.push(path, ChangeKind::Added, None, Some(stat));
            }
            (Said::Directory { stat, .. } | Said::File(stat), Some(old))
                if stat.file_type() != old.file_type() =>
            {
                if old.is_dir() {
                    self.hidden(path)?;
                }
                self.push(path, ChangeKind::Retyped, Some(&old), Some(stat));
            }
            (Said::Directory { stat, .. } | Said::File(stat), Some(old)) => {
                if !self.is_same(path, stat, &old)? {
                    self.push(path, ChangeKind::Modified, Some(&old), Some(stat));
                } else if attributes(stat) != attributes(&old) {
                    self.push(path, ChangeKind::Attributes, Some(&old), Some(stat));
                }
            }
        }
        Ok(())
    }

    /// Something that went, with everything in it.
    fn removed(&mut self, path: &[u8], old: &Stat) -> Result<(), Error> {
        self.push(path, ChangeKind::Removed, Some(old), None);
        if old.is_dir() {
            self.hidden(path)?;
        }
        Ok(())
    }

    /// What is in a directory of the host and does not show through.
    fn hidden(&mut self, path: &[u8]) -> Result<(), Error> {
        let act = "read";
        let fd = files::open_dir_below(self.root_fd.as_fd(), path).trying(act, self.full(path))?;
        for name in names(&fd).trying(act, self.full(path))? {
            let inner = files::join(path, &name);
            // What the layer has itself is told by its own entry.
            if files::full(self.upper, &inner).symlink_metadata().is_err() {
                let stat = files::stat_at(fd.as_fd(), &name).trying(act, self.full(&inner))?;
                self.removed(&inner, &stat)?;
            }
        }
        Ok(())
    }

    fn is_same(&self, path: &[u8], new: &Stat, old: &Stat) -> Result<bool, Error> {
        match new.file_type() {
            FileType::RegularFile => {
                if new.size != old.size {
                    return Ok(false);
                }
                is_same_content(&open(self.root, path)?, &open(self.upper, path)?)
                    .trying("compare", self.full(path))
            }
            FileType::Symlink => {
                let target = |top: &Path| std::fs::read_link(files::full(top, path));
                Ok(target(self.root).ok() == target(self.upper).ok())
            }
            _ => Ok(new.rdev == old.rdev),
        }
    }

    fn push(&mut self, path: &[u8], kind: ChangeKind, old: Option<&Stat>, new: Option<&Stat>) {
        let side = |stat: Option<&Stat>, top: &Path| {
            stat.map(|stat| (told(stat), source(top, path, stat)))
        };
        let change = Change::known(path, kind, side(old, self.root), side(new, self.upper));
        self.changes.push(change);
    }

    fn full(&self, path: &[u8]) -> PathBuf {
        files::full(self.root, path)
    }
}

fn open(top: &Path, path: &[u8]) -> Result<File, Error> {
    let fd = files::open_top(top)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = files::open_below(fd.as_fd(), path, flags);
    Ok(File::from(file.trying("read", files::full(top, path))?))
}

/// What a change of attributes is a change of.
pub(super) fn attributes(stat: &Stat) -> (u32, u32, u32) {
    (stat.permissions(), stat.uid, stat.gid)
}

fn told(stat: &Stat) -> FileInfo {
    let kind = match stat.file_type() {
        FileType::Directory => "directory",
        FileType::RegularFile => "file",
        FileType::Symlink => "symlink",
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
        _ => "device",
    };
    let size = if kind == "file" { stat.size } else { 0 };
    FileInfo {
        kind,
        mode: stat.permissions(),
        size,
    }
}

fn source(top: &Path, path: &[u8], stat: &Stat) -> Source {
    use std::os::unix::ffi::OsStringExt;
    match stat.file_type() {
        FileType::RegularFile => Source::File(top.to_owned(), path.to_vec()),
        FileType::Symlink => {
            let target = std::fs::read_link(files::full(top, path)).unwrap_or_default();
            Source::Bytes(target.into_os_string().into_vec())
        }
        _ => Source::Nothing,
    }
}

pub(super) fn is_same_content(mut one: &File, mut other: &File) -> std::io::Result<bool> {
    let mut buffers = [vec![0; 64 * 1024], vec![0; 64 * 1024]];
    loop {
        let [first, second] = &mut buffers;
        let got = one.read(first)?;
        if got == 0 {
            return Ok(other.read(second)? == 0);
        }
        if other.read_exact(&mut second[..got]).is_err() || first[..got] != second[..got] {
            return Ok(false);
        }
    }
}
