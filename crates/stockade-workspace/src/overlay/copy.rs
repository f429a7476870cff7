//! Copying from the layer, for a store on another file system.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::layer;
use crate::content;
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
) -> std::io::Result<()> {
    let stat = files::stat_at(from, name)?;
    if stat.file_type() == FileType::CharacterDevice && stat.rdev == 0 {
        return Ok(());
    }
    if !stat.is_dir() {
        return copy(from, name, &stat, to, new_name);
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

/// Copies a file, holes and attributes included.
fn copy(
    from: BorrowedFd<'_>,
    name: &[u8],
    stat: &Stat,
    stage: BorrowedFd<'_>,
    to: &[u8],
) -> std::io::Result<()> {
    let attributes = content::meta(stat, Vec::new());
    match stat.file_type() {
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let source = File::from(rustix::fs::openat(from, name, flags, Mode::empty())?);
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let target = File::from(rustix::fs::openat(stage, to, flags, Mode::from(0o600))?);
            copy_content(&source, &target, stat.size)?;
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
fn copy_content(source: &File, target: &File, size: u64) -> std::io::Result<()> {
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
