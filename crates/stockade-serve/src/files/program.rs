//! This program, for a process inside that may not find it by any path.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// What a process executes whose standard input is the program.
pub(super) const PATH: &str = "/proc/self/fd/0";

static COPY: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// A sealed copy of this program in memory, made once. Not its file: whoever gets at a descriptor
/// of that could open it again for writing (CVE-2019-5736).
pub(super) fn sealed_copy() -> io::Result<OwnedFd> {
    let mut copy = COPY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(copy) = &*copy {
        return copy.try_clone();
    }
    let made = make()?;
    let clone = made.try_clone()?;
    *copy = Some(made);
    Ok(clone)
}

fn make() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut writable = File::from(memfd_create("stockade", flags)?);
    io::copy(&mut File::open("/proc/self/exe")?, &mut writable)?;
    fcntl_add_seals(
        &writable,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    // A file that is open for writing can't be executed (ETXTBSY).
    let path = format!("/proc/self/fd/{}", writable.as_raw_fd());
    Ok(File::open(path)?.into())
}
