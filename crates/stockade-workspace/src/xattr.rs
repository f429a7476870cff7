//! Extended attributes, of files and directories that are open.

use std::os::fd::BorrowedFd;

use rustix::fs::XattrFlags;
use rustix::io::Errno;

/// Those that belong to the file. What a security module or an overlay says about it belongs to
/// them and is made anew where the file is.
fn is_kept(name: &[u8]) -> bool {
    let user = name.starts_with(b"user.") && !is_overlay_mark(name);
    user || name.starts_with(b"system.posix_acl_") || name == b"security.capability"
}

/// What overlayfs wrote down about a file of a layer.
fn is_overlay_mark(name: &[u8]) -> bool {
    name.starts_with(b"user.overlay.")
}

/// An attribute's name and value.
pub(crate) type Attribute = (Vec<u8>, Vec<u8>);

/// What a file has, in the order of names.
pub(crate) fn read(fd: BorrowedFd<'_>) -> rustix::io::Result<Vec<Attribute>> {
    read_those(fd, is_kept)
}

/// Gives a copy of a layer's file the marks that overlayfs left on the file.
pub(crate) fn copy_overlay_marks(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
) -> rustix::io::Result<()> {
    for (name, value) in read_those(from, is_overlay_mark)? {
        rustix::fs::fsetxattr(to, &name[..], &value, XattrFlags::empty())?;
    }
    Ok(())
}

fn read_those(
    fd: BorrowedFd<'_>,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> rustix::io::Result<Vec<Attribute>> {
    let names = match grow(|buffer| rustix::fs::flistxattr(fd, buffer)) {
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        names => names?,
    };
    let mut found = Vec::new();
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| is_wanted(name))
    {
        match grow(|buffer| rustix::fs::fgetxattr(fd, name, buffer)) {
            Ok(value) => found.push((name.to_vec(), value)),
            // Removed in between.
            Err(Errno::NODATA) => {}
            Err(error) => return Err(error),
        }
    }
    found.sort();
    Ok(found)
}

/// Makes a file's attributes these and no others.
pub(crate) fn write(fd: BorrowedFd<'_>, wanted: &[Attribute]) -> rustix::io::Result<()> {
    let present = read(fd)?;
    for (name, _) in &present {
        if !wanted.iter().any(|(other, _)| other == name) {
            rustix::fs::fremovexattr(fd, &name[..])?;
        }
    }
    for pair in wanted {
        if !present.contains(pair) {
            rustix::fs::fsetxattr(fd, &pair.0[..], &pair.1, XattrFlags::empty())?;
        }
    }
    Ok(())
}

/// Asks with larger and larger buffers until the answer fits.
fn grow(
    mut ask: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>,
) -> rustix::io::Result<Vec<u8>> {
    /// What the kernel allows at most (`XATTR_SIZE_MAX`).
    const XATTR_SIZE_MAX: usize = 65536;
    let mut buffer = vec![0; 1024];
    loop {
        match ask(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < XATTR_SIZE_MAX => {
                buffer.resize(buffer.len() * 4, 0);
            }
            Err(error) => return Err(error),
        }
    }
}
