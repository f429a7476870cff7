//! Network interfaces: bringing a new namespace's loopback up (`netdevice(7)`).

use rustix::ioctl::{Opcode, Setter, ioctl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Sets the loopback interface of the calling process's network namespace up. Neither allocates
/// nor uses the C library.
pub(crate) fn loopback_up() -> rustix::io::Result<()> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    // SAFETY: `ifreq` is integers and byte arrays, for which all-zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags = UP_AND_RUNNING;
    // SAFETY: SIOCSIFFLAGS reads one `ifreq`.
    let set = unsafe { Setter::<SET_FLAGS, libc::ifreq>::new(request) };
    // SAFETY: it writes nothing to memory.
    unsafe { ioctl(&socket, set) }
}

/// `IFF_UP | IFF_RUNNING` in the width of the field.
const UP_AND_RUNNING: libc::c_short = 0x41;

/// `SIOCSIFFLAGS`.
const SET_FLAGS: Opcode = 0x8914;
