//! Restrictions that a program puts on itself, without a sandbox around it.
//!
//! They protect the user from a program that is about to handle what it does not trust: a parser,
//! a plug-in, a worker. None of them can be taken back. None of them is a sandbox: processes,
//! sockets, limits and the environment stay as they are. For somebody else's code use
//! [`Sandbox`](crate::Sandbox).

use std::io;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

pub use stockade_linux::seccomp::{ApplyError, FilterSpec, apply_seccomp, default_seccomp_profile};
pub use stockade_linux::{LandlockApplied, LandlockError, LandlockGap, LandlockSandbox};

/// Asks the kernel to end this process, with SIGKILL, when its parent ends.
///
/// It can't tell whether the parent had ended before the call; where the caller knows its parent's
/// id, [`setup_parent_death_signal_with_check`] can. "Parent" is the *thread* that started this
/// process (prctl(2), `PR_SET_PDEATHSIG`): the signal comes when that thread ends, even if its
/// process lives on. Executing a program with a set-user-id bit or capabilities undoes it.
///
/// # Errors
/// None on the kernels that this crate runs on; a filter may refuse the call.
pub fn setup_parent_death_signal() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
}

/// The same for a process whose parent is `expected`, by its id: the id that the parent saw before
/// it started this process, handed over as an argument for instance.
///
/// # Errors
/// `ESRCH` if the parent is another one by now: the expected one has ended, no signal will come,
/// and the caller should end itself. Nothing is undone.
pub fn setup_parent_death_signal_with_check(expected: u32) -> io::Result<()> {
    setup_parent_death_signal()?;
    // After asking for the signal: a parent that ends from now on is told by the kernel.
    let parent = getppid().map(Pid::as_raw_pid);
    if parent.and_then(|pid| u32::try_from(pid).ok()) == Some(expected) {
        Ok(())
    } else {
        Err(rustix::io::Errno::SRCH.into())
    }
}
