//! Reading another process's memory: `process_vm_readv(2)`, or its file in `/proc` where a container
//! engine's filter forbids that call (that of Docker 20.10 does).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::process::Pid;

use super::checked;

/// Reads from `address` in `process`; how much of the buffer was filled.
///
/// Fewer bytes than asked for means that what follows is not mapped.
pub(crate) fn read(process: Pid, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    match read_by_call(process, address, buffer) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)) => {
            // Whom the call is refused by permission the file is refused as well (proc(5)).
            let file = File::open(format!("/proc/{}/mem", process.as_raw_nonzero()))?;
            file.read_at(buffer, address)
        }
        done => done,
    }
}

fn read_by_call(process: Pid, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
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
