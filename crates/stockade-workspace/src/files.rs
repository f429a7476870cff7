//! Files by descriptor: every path below a workspace is resolved with `openat2(2)` beneath its
//! top, without following a link, because what lies there was written by sandboxed code.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

use crate::error::{Error, Trying};
use crate::tree::Time;

/// What `stat(2)` says, as far as it matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    /// With the file's type.
    pub(crate) mode: u32,
    pub(crate) nlink: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u64,
    pub(crate) size: u64,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
}

impl Stat {
    pub(crate) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.file_type().is_dir()
    }

    /// Permission bits without the type.
    pub(crate) const fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }
}

impl From<rustix::fs::Stat> for Stat {
    #[expect(
        clippy::unnecessary_cast,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the types differ between architectures; nanoseconds are below 10^9, sizes positive"
    )]
    fn from(stat: rustix::fs::Stat) -> Self {
        let time = |seconds: i64, nanos: u64| Time {
            seconds,
            nanos: nanos as u32,
        };
        Self {
            dev: stat.st_dev as u64,
            ino: stat.st_ino as u64,
            mode: stat.st_mode as u32,
            nlink: stat.st_nlink as u32,
            uid: stat.st_uid,
            gid: stat.st_gid,
            rdev: stat.st_rdev as u64,
            size: stat.st_size as u64,
            mtime: time(stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            ctime: time(stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        }
    }
}

pub(crate) fn stat_of(fd: impl AsFd) -> rustix::io::Result<Stat> {
    rustix::fs::fstat(fd).map(Stat::from)
}

/// Of the entry itself, not of what a link leads to.
pub(crate) fn stat_at(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Stat> {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(Stat::from)
}

/// Opens the top of a tree by a path that the kernel gave: no component may be a link.
pub(crate) fn open_top(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), resolve) {
        Err(Errno::NOTDIR | Errno::NOENT) => Err(Error::NotADirectory(path.to_owned())),
        Err(Errno::LOOP) => Err(Error::BehindLink(path.to_owned())),
        other => other.trying("open", path),
    }
}

/// Opens a directory that the user named, and answers with the path by which the kernel knows it.
pub(crate) fn open_typed(path: &Path) -> Result<(OwnedFd, PathBuf), Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::NOENT) => Err(Error::NotADirectory(path.to_owned())),
        other => other.trying("open", path),
    }?;
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let real = fs::read_link(link).trying("find the path of", path)?;
    Ok((fd, real))
}

const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// The longest path that one system call takes (`PATH_MAX` with its NUL), with some room.
const ONE_CALL: usize = 4000;

/// Opens a path below `top` without following any link; longer paths than a call takes are
/// walked in steps. The empty path is the top itself.
pub(crate) fn open_below(
    top: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let mut step: Option<OwnedFd> = None;
    let mut rest = path;
    while rest.len() > ONE_CALL {
        let cut = rest[..ONE_CALL]
            .iter()
            .rposition(|byte| *byte == b'/')
            .ok_or(Errno::NAMETOOLONG)?;
        let at = step.as_ref().map_or(top, AsFd::as_fd);
        let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let next = rustix::fs::openat2(at, &rest[..cut], directory, Mode::empty(), BENEATH)?;
        step = Some(next);
        rest = &rest[cut + 1..];
    }
    let at = step.as_ref().map_or(top, AsFd::as_fd);
    let rest = if rest.is_empty() { b"." } else { rest };
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        match rustix::fs::openat2(at, rest, flags, Mode::empty(), BENEATH) {
            // The tree was renamed while `..` or a mount was looked at (openat2(2)).
            Err(Errno::AGAIN) if !flags.contains(OFlags::NONBLOCK) => {}
            other => return other,
        }
    }
}

pub(crate) fn open_dir_below(top: BorrowedFd<'_>, path: &[u8]) -> rustix::io::Result<OwnedFd> {
    open_below(top, path, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// What is in a directory, in order.
pub(crate) fn names(directory: &OwnedFd) -> rustix::io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// A path as its directory and its last name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// A path and one more name.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(directory.len() + 1 + name.len());
    path.extend_from_slice(directory);
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// A path below a directory, for messages and the standard library.
pub(crate) fn full(top: &Path, path: &[u8]) -> PathBuf {
    if path.is_empty() {
        top.to_owned()
    } else {
        top.join(OsStr::from_bytes(path))
    }
}

/// Whether a rename leads from one to the other.
pub(crate) fn is_same_mount(one: &OwnedFd, other: &OwnedFd) -> bool {
    let look = |fd: &OwnedFd| {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let stat = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, wanted).ok()?;
        Some((stat.stx_mnt_id, stat.stx_dev_major, stat.stx_dev_minor))
    };
    let (one, other) = (look(one), look(other));
    one.is_some() && one == other
}

/// Makes a directory that only its owner may enter, and those above it.
pub(crate) fn make_private_dir(path: &Path) -> Result<(), Error> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .trying("make the directory", path)
}

/// Makes a directory and those above it; it may exist. No link is followed: a sandboxed command may
/// have left one.
pub(crate) fn make_dir(path: &Path) -> Result<OwnedFd, Error> {
    let missing = match (open_top(path), path.parent(), path.file_name()) {
        (Err(Error::NotADirectory(_)), Some(parent), Some(name)) => (make_dir(parent)?, name),
        (opened, ..) => return opened,
    };
    let (parent, name) = missing;
    match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => open_top(path),
        Err(error) => Err(error).trying("make the directory", path),
    }
}

/// Makes a file that only its owner may read; it must not exist.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Replaces a file as a whole: whoever reads it, or finds it after a crash, sees the old content
/// or the new.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), Error> {
    let temporary = beside(path);
    let written = write_new(&temporary, content);
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written?;
    fs::rename(&temporary, path).trying("replace", path)?;
    sync_parent(path)
}

fn write_new(path: &Path, content: &[u8]) -> Result<(), Error> {
    let mut file = create_private(path).trying("create", path)?;
    file.write_all(content).trying("write", path)?;
    file.sync_all().trying("write", path)
}

/// The same, but what is lost in a power failure is only time.
pub(crate) fn replace_unsynced(path: &Path, parts: &[&[u8]]) -> Result<(), Error> {
    let temporary = beside(path);
    let mut file = create_private(&temporary).trying("create", &temporary)?;
    for part in parts {
        file.write_all(part).trying("write", &temporary)?;
    }
    fs::rename(&temporary, path).trying("replace", path)
}

/// Makes the names in the directory of `path` survive a power failure.
pub(crate) fn sync_parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(Path::new("."));
    File::open(parent)
        .and_then(|directory| directory.sync_all())
        .trying("write", parent)
}

/// What temporary files in the store begin with. Nobody owns one while the store is locked for
/// one user alone.
pub(crate) const TEMPORARY: &str = ".tmp-";

pub(crate) fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_bytes().starts_with(TEMPORARY.as_bytes())
}

fn beside(path: &Path) -> PathBuf {
    path.with_file_name(format!("{TEMPORARY}{}", random_name()))
}

/// Sixteen random digits.
pub(crate) fn random_name() -> String {
    let mut bytes = [0u8; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => {}
        // Uniqueness is all that is needed: `create_new` refuses a name that exists.
        _ => bytes = fallback_seed().to_le_bytes(),
    }
    format!("{:016x}", u64::from_le_bytes(bytes))
}

fn fallback_seed() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    now.tv_nsec.cast_unsigned()
        ^ (now.tv_sec.cast_unsigned() << 32)
        ^ u64::from(pid.cast_unsigned())
}

/// Removes a directory with everything in it; it may be gone already.
pub(crate) fn remove_tree(path: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
            remove_deep_tree(path)
        }
        other => other.trying("remove", path),
    }
}

/// The same for a tree with more levels than this process may have descriptors, which a command
/// can make: the standard library holds one for each level.
fn remove_deep_tree(path: &Path) -> Result<(), Error> {
    let top = open_top(path)?;
    let mut directories = vec![Vec::new()];
    let mut next = 0;
    while let Some(directory) = directories.get(next).cloned() {
        next += 1;
        let fd = open_dir_below(top.as_fd(), &directory).trying("open", path)?;
        for name in names(&fd).trying("read", path)? {
            if stat_at(fd.as_fd(), &name).trying("look at", path)?.is_dir() {
                directories.push(join(&directory, &name));
            } else {
                rustix::fs::unlinkat(&fd, &name[..], AtFlags::empty()).trying("remove", path)?;
            }
        }
    }
    for directory in directories[1..].iter().rev() {
        let (above, name) = split(directory);
        let above = open_dir_below(top.as_fd(), above).trying("open", path)?;
        rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR).trying("remove", path)?;
    }
    fs::remove_dir(path).trying("remove", path)
}

/// Removes a directory with everything in it, also where a command or an overlay made directories
/// that even their owner can't enter. It may be gone already.
///
/// # Errors
/// If something in it can't be removed.
pub fn remove_tree_of_others(path: &Path) -> Result<(), Error> {
    if !rustix::process::geteuid().is_root() {
        open_up(path);
    }
    remove_tree(path)
}

/// What can't be opened up is complained about when it can't be removed. A name is looked up once:
/// whoever puts a link in its place changes nothing outside.
fn open_up(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::open(path, flags, Mode::empty()) else {
        return;
    };
    let directory_path = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let _ = fs::set_permissions(&directory_path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(&directory_path)
        .into_iter()
        .flatten()
        .flatten()
    {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// Removes a file; it may be gone already.
pub(crate) fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.trying("remove", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_up_follows_no_link() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let mode = |name: &str| {
            fs::metadata(dir.path().join(name))
                .unwrap()
                .permissions()
                .mode()
                & 0o777
        };
        for name in ["outside", "tree", "tree/closed"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        std::os::unix::fs::symlink("../outside", dir.path().join("tree/link")).unwrap();
        std::os::unix::fs::symlink("tree", dir.path().join("top")).unwrap();
        for (name, mode) in [("outside", 0o755), ("tree/closed", 0o000), ("tree", 0o500)] {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(dir.path().join(name), mode).unwrap();
        }
        open_up(&dir.path().join("top"));
        assert_eq!(mode("tree"), 0o500);
        open_up(&dir.path().join("tree"));
        assert_eq!((mode("tree"), mode("tree/closed")), (0o700, 0o700));
        assert_eq!(mode("outside"), 0o755);
    }

    #[test]
    fn a_deep_tree_is_removed_without_a_descriptor_for_each_level() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::write(&outside, "kept").unwrap();
        let top = dir.path().join("top");
        let mut deep = top.clone();
        for _ in 0..50 {
            deep.push("d");
            fs::create_dir_all(&deep).unwrap();
            fs::write(deep.join("file"), "x").unwrap();
            std::os::unix::fs::symlink(&outside, deep.join("link")).unwrap();
        }
        remove_deep_tree(&top).unwrap();
        assert!(!top.exists() && outside.exists());
    }
}
