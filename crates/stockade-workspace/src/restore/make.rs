//! Making files as a snapshot has them, in a directory where nobody looks yet.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid};
use rustix::io::Errno;

use super::plan::{Change, Plan};
use crate::error::{Error, Trying};
use crate::files;
use crate::progress::Progress;
use crate::store::Session;
use crate::tree::{Extent, Kind, Meta, Node, Time};
use crate::xattr;

/// What was prepared.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    pub(super) skipped: Vec<String>,
}

struct Maker<'a> {
    session: &'a Session,
    xattrs: bool,
    dir: &'a Path,
    left_out: &'a BTreeSet<Vec<u8>>,
    progress: &'a dyn Progress,
    prepared: Prepared,
}

/// Makes everything that the plan puts somewhere, each under the number of its change.
pub(super) fn prepare(
    session: &Session,
    plan: &Plan,
    stage: BorrowedFd<'_>,
    xattrs: bool,
    dir: &Path,
    progress: &dyn Progress,
) -> Result<Prepared, Error> {
    let mut maker = Maker {
        session,
        xattrs,
        dir,
        left_out: &plan.left_out,
        progress,
        prepared: Prepared::default(),
    };
    for (number, change) in plan.changes.iter().enumerate() {
        if let Change::Put { path, node } = change {
            maker.make(stage, staged(number).as_bytes(), path, node)?;
        }
    }
    // What is renamed into its place must be on the disk before its name is.
    rustix::fs::syncfs(stage).trying("write", dir)?;
    Ok(maker.prepared)
}

/// The name under which a change waits.
pub(super) fn staged(number: usize) -> String {
    format!("n{number}")
}

impl Maker<'_> {
    fn make(
        &mut self,
        at: BorrowedFd<'_>,
        name: &[u8],
        path: &[u8],
        node: &Node,
    ) -> Result<(), Error> {
        let full = || files::full(self.dir, path);
        match &node.kind {
            Kind::Directory(tree) => return self.make_directory(at, name, path, tree),
            Kind::File { size, content } => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let file = rustix::fs::openat(at, name, flags, Mode::from(0o600));
                let file = File::from(file.trying("write", full())?);
                self.fill(&file, *size, &self.session.extents(content)?, path)?;
                return set_attributes(file.as_fd(), &node.meta, self.xattrs)
                    .trying("set the attributes of", full());
            }
            // Made when its first name is there.
            Kind::HardLink(_) => return Ok(()),
            Kind::Symlink(target) => {
                rustix::fs::symlinkat(&target[..], at, name).trying("make the link", full())?;
            }
            Kind::Fifo => make_node(at, name, FileType::Fifo, 0).trying("make", full())?,
            Kind::Socket => make_node(at, name, FileType::Socket, 0).trying("make", full())?,
            Kind::CharDevice(device) | Kind::BlockDevice(device) => {
                let kind = if matches!(node.kind, Kind::CharDevice(_)) {
                    FileType::CharacterDevice
                } else {
                    FileType::BlockDevice
                };
                match make_node(at, name, kind, *device) {
                    Err(Errno::PERM) => {
                        self.prepared.skipped.push(full().display().to_string());
                        return Ok(());
                    }
                    made => made.trying("make", full())?,
                }
            }
        }
        set_attributes_at(at, name, &node.meta, matches!(node.kind, Kind::Symlink(_)))
            .trying("set the attributes of", full())
    }

    fn make_directory(
        &mut self,
        at: BorrowedFd<'_>,
        name: &[u8],
        path: &[u8],
        tree: &crate::id::ObjectId,
    ) -> Result<(), Error> {
        let full = || files::full(self.dir, path);
        rustix::fs::mkdirat(at, name, Mode::from(0o700)).trying("make the directory", full())?;
        let made = files::open_dir_below(at, name).trying("open", full())?;
        for (name, node) in self.session.tree(tree)? {
            let path = files::join(path, &name);
            if !self.left_out.contains(&path) {
                self.make(made.as_fd(), &name, &path, &node)?;
            }
        }
        Ok(())
    }

    fn fill(&self, file: &File, size: u64, extents: &[Extent], path: &[u8]) -> Result<(), Error> {
        let full = || files::full(self.dir, path);
        let mut at = 0u64;
        for extent in extents {
            let wrong =
                || Error::damaged(&self.session.store().packs(), "a file's pieces do not fit");
            if let Extent::Data(length, id) = extent {
                let content = self.session.get(id)?;
                if content.len() != *length as usize {
                    return Err(wrong());
                }
                file.write_all_at(&content, at).trying("write", full())?;
                self.progress.advance(u64::from(*length));
            }
            at = at.checked_add(extent.len()).ok_or_else(wrong)?;
        }
        if at == size {
            file.set_len(size).trying("write", full())
        } else {
            Err(Error::damaged(
                &self.session.store().packs(),
                format!("`{}` is not as long as it should be", full().display()),
            ))
        }
    }
}

fn make_node(
    at: BorrowedFd<'_>,
    name: &[u8],
    kind: FileType,
    device: u64,
) -> rustix::io::Result<()> {
    rustix::fs::mknodat(at, name, kind, Mode::from(0o600), device)
}

/// Sets what a snapshot knows about an open file; times last, since all else changes them.
pub(crate) fn set_attributes(fd: BorrowedFd<'_>, meta: &Meta, xattrs: bool) -> io::Result<()> {
    let now = files::stat_of(fd)?;
    if (now.uid, now.gid) != (meta.uid, meta.gid) {
        own_if_possible(rustix::fs::fchown(
            fd,
            Some(Uid::from_raw(meta.uid)),
            Some(Gid::from_raw(meta.gid)),
        ))?;
    }
    if xattrs {
        xattr::write(fd, &meta.xattrs)?;
    }
    // A change of owner clears set-id bits, so the mode comes after it.
    rustix::fs::fchmod(fd, Mode::from_raw_mode(meta.mode))?;
    set_times(fd, meta.mtime)
}

/// The same for what can't be opened.
pub(crate) fn set_attributes_at(
    at: BorrowedFd<'_>,
    name: &[u8],
    meta: &Meta,
    is_link: bool,
) -> io::Result<()> {
    let now = files::stat_at(at, name)?;
    if (now.uid, now.gid) != (meta.uid, meta.gid) {
        own_if_possible(rustix::fs::chownat(
            at,
            name,
            Some(Uid::from_raw(meta.uid)),
            Some(Gid::from_raw(meta.gid)),
            AtFlags::SYMLINK_NOFOLLOW,
        ))?;
    }
    if !is_link {
        chmod_unfollowed(at, name, meta.mode)?;
    }
    rustix::fs::utimensat(at, name, &times(meta.mtime), AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

/// Sets the mode of the very file: the name may have become a link, which chmod(2) follows.
fn chmod_unfollowed(at: BorrowedFd<'_>, name: &[u8], mode: u32) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(at, OsStr::from_bytes(name), flags, Mode::empty())?;
    if files::stat_of(&fd)?.file_type().is_symlink() {
        return Err(Errno::LOOP.into());
    }
    // A descriptor of this kind takes no fchmod(2), and fchmodat2(2) came with Linux 6.6.
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::chmod(path, Mode::from_raw_mode(mode))?;
    Ok(())
}

/// Only root can give files away; for everyone else they are their own.
fn own_if_possible(changed: rustix::io::Result<()>) -> rustix::io::Result<()> {
    match changed {
        Err(Errno::PERM) if !rustix::process::geteuid().is_root() => Ok(()),
        other => other,
    }
}

pub(crate) fn set_times(fd: BorrowedFd<'_>, mtime: Time) -> io::Result<()> {
    Ok(rustix::fs::futimens(fd, &times(mtime))?)
}

fn times(mtime: Time) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: mtime.seconds,
            tv_nsec: mtime.nanos.into(),
        },
    }
}

/// Opens a file of which only attributes are to change.
pub(super) fn open_for_attributes(at: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(at, OsStr::from_bytes(name), flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    #[test]
    fn attributes_of_a_link_are_not_those_of_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "").unwrap();
        std::fs::set_permissions(&victim, std::fs::Permissions::from_mode(0o600)).unwrap();
        symlink("victim", dir.path().join("link")).unwrap();
        let mode = || std::fs::metadata(&victim).unwrap().mode() & 0o7777;
        let top = File::open(dir.path()).unwrap();
        let data = std::fs::metadata(&victim).unwrap();
        let meta = Meta {
            mode: 0o777,
            uid: data.uid(),
            gid: data.gid(),
            ..Meta::default()
        };
        // Control: this is what chmod(2) does.
        let plain = Mode::from_raw_mode(0o640);
        rustix::fs::chmodat(&top, "link", plain, AtFlags::empty()).unwrap();
        assert_eq!(mode(), 0o640);
        assert!(set_attributes_at(top.as_fd(), b"link", &meta, false).is_err());
        assert_eq!(mode(), 0o640);
        set_attributes_at(top.as_fd(), b"victim", &meta, false).unwrap();
        assert_eq!(mode(), 0o777);
    }
}
