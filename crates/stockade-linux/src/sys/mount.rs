//! `mount_setattr(2)` (Linux 5.12), which rustix does not wrap.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

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

/// Sets attributes on the mount that `mount` is the root of.
pub(crate) fn lock(mount: BorrowedFd<'_>, lock: Lock) -> io::Result<()> {
    let tree = libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOSUID;
    let (set, recursive) = match lock {
        Lock::Devices => (libc::MOUNT_ATTR_NOSUID, libc::AT_RECURSIVE),
        Lock::Seal => (libc::MOUNT_ATTR_RDONLY, 0),
        Lock::Tree => (tree, libc::AT_RECURSIVE),
        Lock::TreeReadOnly => (tree | libc::MOUNT_ATTR_RDONLY, libc::AT_RECURSIVE),
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
