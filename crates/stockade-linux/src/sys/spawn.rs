//! Starting the helper with `posix_spawn(3)`.
//!
//! glibc and musl implement it with `CLONE_VM | CLONE_VFORK`: the host's page tables are not
//! copied, so the cost does not grow with the host's memory, and no code of ours runs between
//! fork and exec in a process with other threads.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::process::Pid;

/// Starts `path` with each descriptor at its number; everything else that is not close-on-exec
/// is inherited too, and is the helper's to close.
pub(crate) fn spawn(
    path: &CStr,
    argv: &[CString],
    env: &[CString],
    descriptors: &[(BorrowedFd<'_>, i32)],
) -> io::Result<Pid> {
    let pointers = |list: &[CString]| -> Vec<*mut libc::c_char> {
        list.iter()
            .map(|text| text.as_ptr().cast_mut())
            .chain([ptr::null_mut()])
            .collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    let mut actions = FileActions::new()?;
    // First out of the way of each other, then into place: a source may sit at a number that
    // another one is meant for. Just above the numbers in use, because the limit may be low.
    let in_use = descriptors
        .iter()
        .map(|(fd, number)| fd.as_raw_fd().max(*number))
        .max();
    let clear = 1 + in_use.unwrap_or(0);
    for (aside, (fd, _)) in (clear..).zip(descriptors) {
        actions.duplicate(fd.as_raw_fd(), aside)?;
    }
    for (aside, (_, number)) in (clear..).zip(descriptors) {
        actions.duplicate(aside, *number)?;
        actions.close(aside)?;
    }
    let mut pid = 0;
    // SAFETY: path, argv and env are NUL-terminated strings in null-terminated arrays that
    // outlive the call; the actions are initialised; null attributes mean defaults.
    let error = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            path.as_ptr(),
            &raw const actions.0,
            ptr::null(),
            argv.as_ptr(),
            env.as_ptr(),
        )
    };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    Pid::from_raw(pid).ok_or_else(|| io::Error::other("posix_spawn gave no process id"))
}

struct FileActions(libc::posix_spawn_file_actions_t);

impl FileActions {
    fn new() -> io::Result<Self> {
        // SAFETY: the type is integers and pointers, for which all-zero is a valid value until
        // it is initialised on the next line.
        let mut actions = Self(unsafe { std::mem::zeroed() });
        // SAFETY: the pointer is valid.
        code(unsafe { libc::posix_spawn_file_actions_init(&raw mut actions.0) })?;
        Ok(actions)
    }

    fn duplicate(&mut self, from: i32, to: i32) -> io::Result<()> {
        // SAFETY: initialised by `new`.
        code(unsafe { libc::posix_spawn_file_actions_adddup2(&raw mut self.0, from, to) })
    }

    fn close(&mut self, number: i32) -> io::Result<()> {
        // SAFETY: initialised by `new`.
        code(unsafe { libc::posix_spawn_file_actions_addclose(&raw mut self.0, number) })
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        // SAFETY: initialised by `new` and destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}

/// The `posix_spawn` family returns the error instead of setting errno.
fn code(error: i32) -> io::Result<()> {
    if error == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(error))
    }
}
