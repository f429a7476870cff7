//! System calls that ask the kernel what it offers.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use rustix::thread::UnshareFlags;

/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP` of `linux/seccomp.h`, Linux 6.6.
const SYNC_WAKE_UP: u64 = 1;

/// `LANDLOCK_CREATE_RULESET_VERSION` and `_ERRATA` of `linux/landlock.h`.
const LANDLOCK_VERSION: u32 = 1 << 0;
const LANDLOCK_ERRATA: u32 = 1 << 1;

/// Leaves namespaces; the flags must not contain `FILES`.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: only unsharing the descriptor table can break another thread's descriptors, and no
    // caller asks for it.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(io::Error::from)
}

/// The Landlock ABI of the running kernel (Linux 5.13 and later).
pub(crate) fn landlock_abi() -> io::Result<u32> {
    landlock_query(LANDLOCK_VERSION)
}

/// The mended errata of the running kernel's Landlock, as a bit set (Linux 6.15).
pub(crate) fn landlock_errata() -> io::Result<u32> {
    landlock_query(LANDLOCK_ERRATA)
}

fn landlock_query(flag: u32) -> io::Result<u32> {
    // SAFETY: with one of the query flags the kernel reads no memory: the attribute pointer must
    // be null and its size zero (landlock_create_ruleset(2)).
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<libc::c_void>(),
            0usize,
            flag,
        )
    };
    u32::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// Whether the kernel knows a seccomp action (Linux 4.14).
pub(crate) fn seccomp_knows(action: u32) -> io::Result<()> {
    // SAFETY: the kernel reads the four bytes behind the pointer, which outlive the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            &raw const action,
        )
    };
    check(answer)
}

/// Installs a filter with a listener on the calling thread, which must have `no_new_privs`.
pub(crate) fn seccomp_listener(filter: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: `program` names exactly the instructions of `filter`, which outlives the call; the
    // kernel copies them and never writes through the pointer (seccomp(2)).
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    let fd = RawFd::try_from(answer).map_err(|_| io::ErrorKind::InvalidData)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes the listener wake its caller on the same core (Linux 6.6).
pub(crate) fn seccomp_sync_wake_up(listener: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open for the time of the call and the third argument of this
    // request is a value, not a pointer.
    let answer = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS,
            SYNC_WAKE_UP,
        )
    };
    check(libc::c_long::from(answer))
}

fn check(answer: libc::c_long) -> io::Result<()> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
