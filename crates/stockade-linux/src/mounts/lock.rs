//! Attributes of mounts: `mount_setattr(2)`, or a remount of each mount before Linux 5.12.
//!
//! The old call changes one mount at a time, by path, and only where the mount is attached. Nobody
//! runs in this mount namespace before the view is complete, so that the moment between attaching
//! and locking is of no use to anybody. A path could meanwhile lead elsewhere, because another
//! process renames directories of the host: each mount is opened first, without following a link,
//! and its id is compared with the one that `mountinfo` named.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount_change, mount_remount};

use super::attach;
use crate::stage::{At, Failure, Stage};
use crate::sys::mount::{Lock, lock};

/// Sets attributes of mounts in the way that the kernel has.
pub(super) struct Locker {
    /// The host's `/proc`, which the staging area covers soon.
    proc: OwnedFd,
}

/// How often directories of the host may be renamed while a tree is locked.
const ATTEMPTS: u32 = 100;

impl Locker {
    /// Must be made before anything covers `/proc`.
    pub(super) fn new() -> Result<Self, Failure> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = rustix::fs::open("/proc", flags, Mode::empty());
        Ok(Self {
            proc: proc.at(Stage::MountAttributes)?,
        })
    }

    /// Locks a detached mount and puts it at a name in a directory, as [`attach`] does.
    pub(super) fn attach(
        &self,
        mount: BorrowedFd<'_>,
        kind: Lock,
        at: BorrowedFd<'_>,
        name: impl AsRef<Path>,
        stage: Stage,
    ) -> Result<(), Failure> {
        match lock(mount, kind) {
            Err(error) if is_missing(&error) => {
                attach(mount, at, name, stage)?;
                self.remount(mount, kind).at(Stage::MountAttributes)
            }
            locked => {
                locked.at(Stage::MountAttributes)?;
                attach(mount, at, name, stage)
            }
        }
    }

    /// Locks a mount that is attached.
    pub(super) fn lock(&self, mount: BorrowedFd<'_>, kind: Lock) -> Result<(), Failure> {
        match lock(mount, kind) {
            Err(error) if is_missing(&error) => self.remount(mount, kind),
            locked => locked,
        }
        .at(Stage::MountAttributes)
    }

    fn remount(&self, top: BorrowedFd<'_>, kind: Lock) -> io::Result<()> {
        // What a descriptor refers to has a path below `/proc` only, and that is covered.
        rustix::process::fchdir(&self.proc)?;
        let private = if kind.is_recursive() {
            MountPropagationFlags::PRIVATE | MountPropagationFlags::REC
        } else {
            MountPropagationFlags::PRIVATE
        };
        mount_change(descriptor_path(top), private)?;
        let id = mount_id(top)?;
        let mut locked = HashSet::new();
        for _ in 0..ATTEMPTS {
            let all = self.mounts()?;
            let wanted: Vec<&Mount> = if kind.is_recursive() {
                descendants(&all, id)
            } else {
                all.iter().filter(|mount| mount.id == id).collect()
            };
            let mut moved = false;
            for mount in wanted {
                if locked.contains(&mount.id) {
                    continue;
                }
                let opened = if mount.id == id {
                    top.try_clone_to_owned()
                } else {
                    mount.open().map_err(io::Error::from)
                };
                match opened {
                    Ok(fd) if mount_id(fd.as_fd())? == mount.id => {
                        let flags = MountFlags::BIND | mount.flags | kind.remount_flags();
                        mount_remount(descriptor_path(fd.as_fd()), flags, c"")?;
                        locked.insert(mount.id);
                    }
                    // Something else is mounted over it: no path leads to it any more.
                    Ok(_) if mount.is_covered(&all) => {}
                    Ok(_) => moved = true,
                    Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                        // The command, which is the same user, can't reach it either.
                        Some(Errno::ACCESS) => {}
                        Some(Errno::NOENT) if mount.is_deleted() => {}
                        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => moved = true,
                        _ => return Err(error),
                    },
                }
            }
            if !moved {
                return Ok(());
            }
        }
        Err(Errno::BUSY.into())
    }

    /// All mounts of this namespace, as they are now.
    fn mounts(&self) -> io::Result<Vec<Mount>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.proc, "self/mountinfo", flags, Mode::empty())?;
        let mut text = Vec::new();
        File::from(file).read_to_end(&mut text)?;
        let lines = text.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        let broken = || io::Error::from_raw_os_error(libc::EINVAL);
        lines
            .map(|line| Mount::parse(line).ok_or_else(broken))
            .collect()
    }
}

/// Before Linux 5.12. A filter around this process may answer the same for a call that it does not
/// know.
fn is_missing(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOSYS)
}

/// The path of a descriptor from `/proc`.
fn descriptor_path(fd: BorrowedFd<'_>) -> String {
    format!("self/fd/{}", fd.as_raw_fd())
}

/// Linux 5.8.
fn mount_id(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let found = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    if found.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
        return Err(Errno::NOSYS.into());
    }
    Ok(found.stx_mnt_id)
}

/// The mount `id` and all below it.
fn descendants(all: &[Mount], id: u64) -> Vec<&Mount> {
    let mut found: Vec<&Mount> = all.iter().filter(|mount| mount.id == id).collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|mount| mount.id) {
        found.extend(all.iter().filter(|mount| mount.parent == parent));
        next += 1;
    }
    found
}

/// What a line of `mountinfo` says about a mount.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    parent: u64,
    point: PathBuf,
    /// Attributes that it has: the kernel refuses a remount that would take one away. What is not
    /// said about access times stays as it is.
    flags: MountFlags,
}

impl Mount {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
        let (id, parent) = (number()?, number()?);
        let point = unescape(fields.nth(2)?);
        let options = fields.next()?.split(|byte| *byte == b',');
        let flags = options.map(|option| match option {
            b"ro" => MountFlags::RDONLY,
            b"nosuid" => MountFlags::NOSUID,
            b"nodev" => MountFlags::NODEV,
            b"noexec" => MountFlags::NOEXEC,
            _ => MountFlags::empty(),
        });
        Some(Self {
            id,
            parent,
            point,
            flags: flags.collect(),
        })
    }

    fn open(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(CWD, &self.point, flags, Mode::empty(), resolve)
    }

    /// Whether another mount is on top of it.
    fn is_covered(&self, all: &[Self]) -> bool {
        let mut others = all.iter();
        others.any(|other| other.parent == self.id && other.point == self.point)
    }

    /// Whether its directory was removed, which `mountinfo` marks.
    fn is_deleted(&self) -> bool {
        self.point
            .as_os_str()
            .as_encoded_bytes()
            .ends_with(b"//deleted")
    }
}

/// Blanks, tabs, newlines and backslashes are written in octal (`proc_pid_mountinfo(5)`).
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..3).filter(|_| *first == b'\\');
        let octal = digits.and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &tail[3..] } else { tail };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda rw
30 21 0:5 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
31 30 0:9 / /proc/root\\040a ro,nosuid - tmpfs tmpfs rw
32 31 0:9 / /proc/root\\040a rw - tmpfs tmpfs rw
33 21 0:9 / /gone//deleted rw - tmpfs tmpfs rw
34 32 0:9 / /proc/root\\040a/b rw - tmpfs tmpfs rw";

    fn table() -> Vec<Mount> {
        let lines = TABLE.split(|byte| *byte == b'\n');
        lines.map(|line| Mount::parse(line).unwrap()).collect()
    }

    #[test]
    fn a_line_tells_place_and_attributes() {
        let all = table();
        assert_eq!(all[2].point, Path::new("/proc/root a"));
        assert_eq!(all[2].flags, MountFlags::RDONLY | MountFlags::NOSUID);
        assert_eq!(all[0].flags, MountFlags::empty());
        assert!(all[4].is_deleted() && !all[2].is_deleted());
        for line in [&b""[..], b"1 2", b"x 1 8:1 / / rw", b"1 2 3:4 / /"] {
            assert_eq!(Mount::parse(line), None);
        }
    }

    #[test]
    fn a_tree_is_what_hangs_on_its_top() {
        let all = table();
        let ids = |top| -> Vec<u64> { descendants(&all, top).iter().map(|it| it.id).collect() };
        assert_eq!(ids(30), [30, 31, 32, 34]);
        assert_eq!(ids(34), [34]);
        assert!(ids(99).is_empty());
        assert!(all[2].is_covered(&all) && !all[3].is_covered(&all));
    }
}
