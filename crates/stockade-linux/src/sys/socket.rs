//! `connect(2)` and `bind(2)` with an address as another process wrote it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::checked;

/// Connects to the address in these bytes.
pub(crate) fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> io::Result<()> {
    let length = length(address)?;
    // SAFETY: the kernel reads `length` bytes from the slice, which outlives the call, and
    // trusts nothing in them.
    let result = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    checked(result.into()).map(drop)
}

/// Binds to the address in these bytes.
pub(crate) fn bind(socket: BorrowedFd<'_>, address: &[u8]) -> io::Result<()> {
    let length = length(address)?;
    // SAFETY: as for `connect`.
    let result = unsafe { libc::bind(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    checked(result.into()).map(drop)
}

fn length(address: &[u8]) -> io::Result<libc::socklen_t> {
    address.len().try_into().map_err(io::Error::other)
}
