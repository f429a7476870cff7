//! Network interfaces: bringing a new namespace's loopback up (`netdevice(7)`).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::checked;

/// Sets the loopback interface of the namespace of `socket` up.
pub(crate) fn loopback_up(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: `ifreq` is integers and byte arrays, for which all-zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags = UP_AND_RUNNING;
    // SAFETY: SIOCSIFFLAGS reads one `ifreq`, which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCSIFFLAGS, &raw const request) };
    checked(result.into()).map(drop)
}

/// `IFF_UP | IFF_RUNNING` in the width of the field.
const UP_AND_RUNNING: libc::c_short = 0x41;

/// The request number's C type differs between C libraries.
#[cfg(target_env = "musl")]
const SIOCSIFFLAGS: libc::c_int = libc::SIOCSIFFLAGS as libc::c_int;
#[cfg(not(target_env = "musl"))]
const SIOCSIFFLAGS: libc::c_ulong = libc::SIOCSIFFLAGS;
