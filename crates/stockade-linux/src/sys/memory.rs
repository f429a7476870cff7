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

/// Reads two pieces in one call; how many bytes of both were read.
pub(crate) fn read_two(process: Pid, parts: [(u64, &mut [u8]); 2]) -> io::Result<usize> {
    let mut local = [NOWHERE; 2];
    let mut remote = [NOWHERE; 2];
    for (at, (address, buffer)) in parts.into_iter().enumerate() {
        (local[at], remote[at]) = vectors(address, buffer)?;
    }
    // SAFETY: the local vectors describe two buffers that the caller lent exclusively, which
    // outlive the call.
    unsafe { read_vectors(process, &local, &remote) }
}

fn read_by_call(process: Pid, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let (local, remote) = vectors(address, buffer)?;
    // SAFETY: the local vector describes `buffer`, which is writable and outlives the call.
    unsafe { read_vectors(process, &[local], &[remote]) }
}

const NOWHERE: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

/// Where to read to, and where from.
fn vectors(address: u64, buffer: &mut [u8]) -> io::Result<(libc::iovec, libc::iovec)> {
    let address = usize::try_from(address).map_err(io::Error::other)?;
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(address),
        iov_len: buffer.len(),
    };
    Ok((local, remote))
}

/// # Safety
///
/// `local` must describe memory that may be written until this returns.
unsafe fn read_vectors<const N: usize>(
    process: Pid,
    local: &[libc::iovec; N],
    remote: &[libc::iovec; N],
) -> io::Result<usize> {
    // SAFETY: the caller vouches for the local vectors; the remote ones are only interpreted in
    // the other process, by the kernel, which checks them.
    let got = unsafe {
        libc::process_vm_readv(
            process.as_raw_nonzero().get(),
            local.as_ptr(),
            N as libc::c_ulong,
            remote.as_ptr(),
            N as libc::c_ulong,
            0,
        )
    };
    usize::try_from(checked(got as libc::c_long)?).map_err(io::Error::other)
}
