//! Leases on files (`fcntl(2)`): whoever opens a leased file waits until the holder lets go.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::checked;

/// Keeps everybody else from opening a file that nobody else has open. The calling thread is
/// interrupted when somebody tries, as by [`super::signal::interrupt`].
pub(crate) fn take(fd: BorrowedFd<'_>, holder: rustix::process::Pid) -> io::Result<()> {
    let owner = Owner {
        kind: OWNER_THREAD,
        thread: holder.as_raw_nonzero().get(),
    };
    // SAFETY: the kernel reads one `f_owner_ex` behind the pointer, which is valid for the call.
    let result = unsafe { libc::fcntl(fd.as_raw_fd(), SET_OWNER, &raw const owner) };
    checked(result.into())?;
    change(fd, SET_SIGNAL, libc::SIGUSR1)?;
    change(fd, libc::F_SETLEASE, libc::F_WRLCK)
}

/// Lets others open the file.
pub(crate) fn release(fd: BorrowedFd<'_>) -> io::Result<()> {
    change(fd, libc::F_SETLEASE, libc::F_UNLCK)
}

/// Whether somebody waits for the lease.
pub(crate) fn is_wanted(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: F_GETLEASE takes no argument.
    let held = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETLEASE) };
    held >= 0 && held != libc::F_WRLCK
}

/// Whether anybody has a file open for writing. `fd` must be open for reading.
pub(crate) fn has_writers(fd: BorrowedFd<'_>) -> bool {
    // The kernel gives a read lease only where there are none.
    match change(fd, libc::F_SETLEASE, libc::F_RDLCK) {
        Ok(()) => {
            let _ = release(fd);
            false
        }
        Err(error) => error.raw_os_error() == Some(libc::EAGAIN),
    }
}

/// `struct f_owner_ex`.
#[repr(C)]
struct Owner {
    kind: i32,
    thread: i32,
}

const OWNER_THREAD: i32 = 0;
const SET_OWNER: i32 = 15;
/// `F_SETSIG`, which musl's bindings lack.
const SET_SIGNAL: i32 = 10;

fn change(fd: BorrowedFd<'_>, command: i32, argument: i32) -> io::Result<()> {
    // SAFETY: these commands take an integer.
    checked(unsafe { libc::fcntl(fd.as_raw_fd(), command, argument) }.into()).map(drop)
}
