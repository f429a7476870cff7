//! Signal masks and `signalfd(2)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use super::checked;

/// Blocks these signals in the calling thread and returns a descriptor that reads them.
pub(crate) fn catch(signals: &[i32]) -> io::Result<OwnedFd> {
    block_and_read(signals, libc::SFD_NONBLOCK)
}

/// As [`catch`]; reading waits for a signal. Whoever reads gets its own signals (`signalfd(2)`).
pub(crate) fn read_blocking(signals: &[i32]) -> io::Result<OwnedFd> {
    block_and_read(signals, 0)
}

fn block_and_read(signals: &[i32], flags: i32) -> io::Result<OwnedFd> {
    let set = set_of(signals)?;
    change_mask(libc::SIG_BLOCK, &set)?;
    // SAFETY: the set is initialised and outlives the call.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | flags) };
    checked(fd.into())?;
    // SAFETY: the descriptor was just made and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The next caught signal, if one is waiting.
pub(crate) fn next(fd: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    // SAFETY: `signalfd_siginfo` is plain integers, for which all-zero is a valid value.
    let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: the buffer is valid for `size` bytes.
    let got = unsafe { libc::read(fd.as_raw_fd(), (&raw mut info).cast(), size) };
    match checked(got as libc::c_long) {
        Ok(_) => Ok(i32::try_from(info.ssi_signo).ok()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Kills every process that this one may signal but itself: for pid 1, all of its namespace.
pub(crate) fn kill_everybody_else() -> io::Result<()> {
    // SAFETY: kill(2) takes no pointers.
    checked(unsafe { libc::kill(-1, libc::SIGKILL) }.into()).map(drop)
}

/// Undoes what the launcher or its caller did to signals: no mask, default dispositions.
///
/// An ignored SIGPIPE or SIGINT is inherited across `execve(2)` and would surprise the command.
pub(crate) fn restore_defaults() -> io::Result<()> {
    change_mask(libc::SIG_SETMASK, &set_of(&[])?)?;
    for signal in 1..=64 {
        // SAFETY: SIG_DFL is a valid disposition; signals that can't be changed (SIGKILL,
        // SIGSTOP, those the C library keeps for itself) make the call fail, which is harmless.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    Ok(())
}

fn change_mask(how: i32, set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the set is initialised; no old set is asked for.
    checked(unsafe { libc::sigprocmask(how, set, ptr::null_mut()) }.into()).map(drop)
}

fn set_of(signals: &[i32]) -> io::Result<libc::sigset_t> {
    // SAFETY: `sigset_t` is plain integers, for which all-zero is a valid value.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid.
    checked(unsafe { libc::sigemptyset(&raw mut set) }.into())?;
    for signal in signals {
        // SAFETY: the pointer is valid and the set initialised.
        checked(unsafe { libc::sigaddset(&raw mut set, *signal) }.into())?;
    }
    Ok(set)
}

/// What interrupts a call that waits; nothing else sends it.
const INTERRUPT: i32 = libc::SIGUSR1;

/// Lets [`interrupt`] make a waiting call fail with `EINTR`, in every thread of this process.
pub(crate) fn make_interrupting() -> io::Result<()> {
    extern "C" fn nothing(_: i32) {}
    // SAFETY: `sigaction` is plain data, for which all-zero is a valid value: no flags, and so no
    // SA_RESTART.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(i32) = nothing;
    action.sa_sigaction = handler as libc::sighandler_t;
    // SAFETY: the action is initialised; its handler does nothing, which is safe at any moment.
    checked(unsafe { libc::sigaction(INTERRUPT, &raw const action, ptr::null_mut()) }.into())
        .map(drop)
}

/// Lets the calling thread be interrupted; it may have inherited a mask from the launcher, which
/// forwards every signal.
pub(crate) fn allow_interrupt() -> io::Result<()> {
    change_mask(libc::SIG_UNBLOCK, &set_of(&[INTERRUPT])?)
}

/// Makes the call that a thread of this process waits in fail.
pub(crate) fn interrupt(thread: rustix::process::Pid) -> io::Result<()> {
    let process = rustix::process::getpid().as_raw_nonzero().get();
    let thread = thread.as_raw_nonzero().get();
    // SAFETY: tgkill(2) takes integers.
    checked(unsafe { libc::syscall(libc::SYS_tgkill, process, thread, INTERRUPT) }).map(drop)
}
