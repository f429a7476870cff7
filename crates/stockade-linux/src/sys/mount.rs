//! `mount_setattr(2)` (Linux 5.12), which rustix does not wrap.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::checked;

/// Attributes to set on a mount, or with `recursive` on a whole tree of mounts.
#[derive(Clone, Copy, Default)]
pub(crate) struct MountAttributes {
    pub(crate) read_only: bool,
    pub(crate) no_devices: bool,
    pub(crate) no_set_id: bool,
    pub(crate) recursive: bool,
}

/// Sets attributes on the mount that `mount` is the root of, and makes it private.
pub(crate) fn set_attributes(mount: BorrowedFd<'_>, wanted: MountAttributes) -> io::Result<()> {
    let mut set = 0;
    if wanted.read_only {
        set |= libc::MOUNT_ATTR_RDONLY;
    }
    if wanted.no_devices {
        set |= libc::MOUNT_ATTR_NODEV;
    }
    if wanted.no_set_id {
        set |= libc::MOUNT_ATTR_NOSUID;
    }
    let attributes = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    let mut flags = libc::AT_EMPTY_PATH;
    if wanted.recursive {
        flags |= libc::AT_RECURSIVE;
    }
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
