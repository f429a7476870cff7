//! Reading another process's memory (`process_vm_readv(2)`).

use std::io;

use rustix::process::Pid;

use super::checked;

/// Reads from `address` in `process`; how much of the buffer was filled.
///
/// Fewer bytes than asked for means that what follows is not mapped.
pub(crate) fn read(process: Pid, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let address = usize::try_from(address).map_err(io::Error::other)?;
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(address),
        iov_len: buffer.len(),
    };
    // SAFETY: the local vector describes `buffer`, which is writable and outlives the call; the
    // remote one is only interpreted in the other process, by the kernel, which checks it.
    let got = unsafe {
        libc::process_vm_readv(
            process.as_raw_nonzero().get(),
            &raw const local,
            1,
            &raw const remote,
            1,
            0,
        )
    };
    usize::try_from(checked(got as libc::c_long)?).map_err(io::Error::other)
}
