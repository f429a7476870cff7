//! System calls that no safe crate wraps: all `unsafe` of the project lives in this folder.
//!
//! One call per wrapper. Each takes borrowed descriptors and C strings, returns owned
//! descriptors or `io::Result`, and argues its preconditions at the block.

#![expect(
    unsafe_code,
    reason = "system calls without a safe wrapper; nothing else is in here"
)]

pub(crate) mod arena;
pub(crate) mod init_process;
pub(crate) mod interface;
pub(crate) mod lease;
pub(crate) mod memory;
pub(crate) mod mount;
pub(crate) mod network_namespace;
pub(crate) mod probe;
pub(crate) mod process;
pub(crate) mod seccomp;
pub(crate) mod signal;
pub(crate) mod socket;
pub(crate) mod spawn;

use std::io;

/// Turns the C convention (-1 and errno) into a result.
fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
