//! `mount_setattr(2)` (Linux 5.12), which rustix does not wrap.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::mount::MountFlags;

use super::checked;

/// What to set on a mount; each mount set is made private too.
#[derive(Clone, Copy)]
pub(crate) enum Lock {
    /// No set-id programs, for a whole tree of mounts of device nodes.
    Devices,
    /// Read-only.
    Seal,
    /// No set-id programs and no device nodes, for a whole tree of mounts.
    Tree,
    /// As `Tree`, and read-only.
    TreeReadOnly,
}

impl Lock {
    /// Whether the mounts below are meant as well.
    pub(crate) fn is_recursive(self) -> bool {
        !matches!(self, Self::Seal)
    }

    /// The same attributes for `mount(2)`.
    pub(crate) fn remount_flags(self) -> MountFlags {
        let tree = MountFlags::NODEV | MountFlags::NOSUID;
        match self {
            Self::Devices => MountFlags::NOSUID,
            Self::Seal => MountFlags::RDONLY,
            Self::Tree => tree,
            Self::TreeReadOnly => tree | MountFlags::RDONLY,
        }
    }
}

/// Sets attributes on the mount that `mount` is the root of.
pub(crate) fn lock(mount: BorrowedFd<'_>, lock: Lock) -> io::Result<()> {
    let tree = libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOSUID;
    let set = match lock {
        Lock::Devices => libc::MOUNT_ATTR_NOSUID,
        Lock::Seal => libc::MOUNT_ATTR_RDONLY,
        Lock::Tree => tree,
        Lock::TreeReadOnly => tree | libc::MOUNT_ATTR_RDONLY,
    };
    let recursive = if lock.is_recursive() {
        libc::AT_RECURSIVE
    } else {
        0
    };
    let attributes = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    let flags = libc::AT_EMPTY_PATH | recursive;
    let empty: &CStr = c"";
    // SAFETY: the path is a NUL-terminated static, the attribute structure outlives the call and
    // its true size is passed; the kernel writes to neither.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            empty.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    checked(result).map(drop)
}
