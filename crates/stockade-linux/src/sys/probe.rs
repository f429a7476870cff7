//! `landlock_create_ruleset(2)` as a question: which version, which errata.

use std::io;
use std::ptr;

use super::checked;

/// `LANDLOCK_CREATE_RULESET_VERSION` and `_ERRATA` of `linux/landlock.h`.
const VERSION: u32 = 1 << 0;
const ERRATA: u32 = 1 << 1;

/// The Landlock ABI of the running kernel (Linux 5.13 and later).
pub(crate) fn landlock_abi() -> io::Result<u32> {
    query(VERSION)
}

/// The mended errata of the running kernel's Landlock, as a bit set (Linux 6.15).
pub(crate) fn landlock_errata() -> io::Result<u32> {
    query(ERRATA)
}

fn query(flag: u32) -> io::Result<u32> {
    // SAFETY: with one of the query flags the kernel reads no memory: the attribute pointer must
    // be null and its size zero.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<libc::c_void>(),
            0usize,
            flag,
        )
    };
    u32::try_from(checked(answer)?).map_err(io::Error::other)
}
