//! Copying from a layer: to the host, for a store on another file system, and whole layers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::layer::{self, Said};
use crate::content;
use crate::error::{Error, Trying};
use crate::files::{self, Stat};
use crate::restore::{set_attributes, set_attributes_at};
use crate::xattr;

/// Copies a file or a whole directory of the layer, without `skipped` paths and whiteouts.
pub(super) fn copy_tree(
    from: BorrowedFd<'_>,
    name: &[u8],
    to: BorrowedFd<'_>,
    new_name: &[u8],
    path: &[u8],
    skipped: &BTreeSet<&[u8]>,
) -> io::Result<()> {
    let stat = files::stat_at(from, name)?;
    if stat.file_type() == FileType::CharacterDevice && stat.rdev == 0 {
        return Ok(());
    }
    if !stat.is_dir() {
        return copy(from, name, &stat, to, new_name, Marks::Dropped);
    }
    rustix::fs::mkdirat(to, new_name, Mode::from(0o700))?;
    let source = files::open_dir_below(from, name)?;
    let target = files::open_dir_below(to, new_name)?;
    for name in layer::names(&source)? {
        let inner = files::join(path, &name);
        if !skipped.contains(&inner[..]) {
            copy_tree(
                source.as_fd(),
                &name,
                target.as_fd(),
                &name,
                &inner,
                skipped,
            )?;
        }
    }
    let meta = content::meta(&stat, xattr::read(source.as_fd())?);
    set_attributes(target.as_fd(), &meta, true)
}

/// Copies a layer with whiteouts and the marks of overlayfs, so that the copy shows the same. `to` is
/// an empty directory.
pub(super) fn copy_layer(from: &Path, to: &Path) -> Result<(), Error> {
    let (source, target) = (files::open_top(from)?, files::open_top(to)?);
    let (source, target) = (source.as_fd(), target.as_fd());
    let mut linked = BTreeMap::new();
    let mut directories = vec![Vec::new()];
    for entry in layer::entries(from)? {
        let path = &entry.path;
        let done = if let Said::Directory { .. } = entry.said {
            directories.push(path.clone());
            make_directory(target, path)
        } else {
            copy_file_of_layer(source, target, path, &mut linked)
        };
        done.trying("copy", files::full(from, path))?;
    }
    // The last ones first: what is put into a directory changes its times.
    for path in directories.iter().rev() {
        copy_directory_attributes(source, target, path)
            .trying("copy the attributes of", files::full(from, path))?;
    }
    Ok(())
}

fn make_directory(target: BorrowedFd<'_>, path: &[u8]) -> io::Result<()> {
    let (above, name) = files::split(path);
    let above = files::open_dir_below(target, above)?;
    Ok(rustix::fs::mkdirat(&above, name, Mode::from(0o700))?)
}

fn copy_directory_attributes(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    path: &[u8],
) -> io::Result<()> {
    let from = files::open_dir_below(source, path)?;
    let to = files::open_dir_below(target, path)?;
    xattr::copy_overlay_marks(from.as_fd(), to.as_fd())?;
    let stat = files::stat_of(&from)?;
    let meta = content::meta(&stat, xattr::read(from.as_fd())?);
    set_attributes(to.as_fd(), &meta, true)
}

/// Files with several names, by device and inode: where the first name was copied to.
type Linked = BTreeMap<(u64, u64), Vec<u8>>;

fn copy_file_of_layer(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    path: &[u8],
    linked: &mut Linked,
) -> io::Result<()> {
    let (above, name) = files::split(path);
    let from = files::open_dir_below(source, above)?;
    let to = files::open_dir_below(target, above)?;
    let stat = files::stat_at(from.as_fd(), name)?;
    let is_file = stat.file_type() == FileType::RegularFile;
    // overlayfs gives many names one whiteout, which need not share an inode.
    if is_file && stat.nlink > 1 {
        if let Some(first) = linked.get(&(stat.dev, stat.ino)) {
            let (above, first) = files::split(first);
            let above = files::open_dir_below(target, above)?;
            return Ok(rustix::fs::linkat(
                above,
                first,
                to,
                name,
                AtFlags::empty(),
            )?);
        }
        linked.insert((stat.dev, stat.ino), path.to_vec());
    }
    copy(from.as_fd(), name, &stat, to.as_fd(), name, Marks::Kept)
}

/// What becomes of the marks that overlayfs left on a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    Kept,
    Dropped,
}

/// Copies a file, holes and attributes included.
fn copy(
    from: BorrowedFd<'_>,
    name: &[u8],
    stat: &Stat,
    stage: BorrowedFd<'_>,
    to: &[u8],
    marks: Marks,
) -> io::Result<()> {
    let attributes = content::meta(stat, Vec::new());
    match stat.file_type() {
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let source = File::from(rustix::fs::openat(from, name, flags, Mode::empty())?);
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let target = File::from(rustix::fs::openat(stage, to, flags, Mode::from(0o600))?);
            copy_content(&source, &target, stat.size)?;
            if marks == Marks::Kept {
                xattr::copy_overlay_marks(source.as_fd(), target.as_fd())?;
            }
            let meta = content::meta(stat, xattr::read(source.as_fd())?);
            return set_attributes(target.as_fd(), &meta, true);
        }
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(from, name, Vec::new())?;
            rustix::fs::symlinkat(&*target, stage, to)?;
        }
        kind => rustix::fs::mknodat(stage, to, kind, Mode::from(0o600), stat.rdev)?,
    }
    let is_link = stat.file_type().is_symlink();
    set_attributes_at(stage, to, &attributes, is_link)
}

fn copy_content(source: &File, target: &File, size: u64) -> io::Result<()> {
    // Shares the blocks where the file system can (ioctl_ficlone(2)).
    if rustix::fs::ioctl_ficlone(target, source).is_ok() {
        return Ok(());
    }
    let mut buffer = vec![0; 256 * 1024];
    let mut at = 0;
    while at < size {
        at = match rustix::fs::seek(source, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            Err(_) => at,
        };
        let end = rustix::fs::seek(source, SeekFrom::Hole(at)).unwrap_or(size);
        while at < end {
            let wanted = usize::try_from(end - at)
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            let got = source.read_at(&mut buffer[..wanted], at)?;
            if got == 0 {
                break;
            }
            target.write_all_at(&buffer[..got], at)?;
            at += got as u64;
        }
        if at < end {
            break;
        }
    }
    target.set_len(size)
}
