//! A network namespace that is made beside whatever else this process does.
//!
//! Making one takes 0.4 of the 0.5 ms that all namespaces of a sandbox take, nearly all of it in
//! the kernel and under locks that mounting has no use for. So a second process makes it, on
//! another processor, while this one builds the file-system view, and this one moves in then.
//!
//! The maker shares this process's memory, so nothing is copied. It may therefore neither
//! allocate nor use thread-local storage: it makes system calls, all without the C library, and
//! reads and writes two atomic numbers.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{ThreadNameSpaceType, UnshareFlags, futex, move_into_thread_name_spaces};

use super::{checked, process};

/// The namespace, and the process that is making it or keeps it.
pub(crate) struct NewNetwork {
    maker: Option<Pid>,
    shared: Arc<Shared>,
    /// The maker's.
    _stack: Vec<u128>,
}

#[derive(Default)]
struct Shared {
    state: AtomicU32,
    /// Why there is none, or 0.
    errno: AtomicI32,
}

const MAKING: u32 = 0;
const MADE: u32 = 1;
const NEEDED_NO_MORE: u32 = 2;

impl NewNetwork {
    /// Begins to make one, which needs `CAP_SYS_ADMIN` in the caller's user namespace.
    pub(crate) fn begin() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut stack: Vec<u128> = Vec::with_capacity(STACK_SIZE / size_of::<u128>());
        let top = stack.spare_capacity_mut().as_mut_ptr_range().end;
        let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::SIGCHLD;
        let argument = Arc::as_ptr(&shared).cast_mut().cast();
        // SAFETY: the stack is aligned and grows down from its end; it and the shared numbers
        // live until the maker has ended, for which `end` waits. What the maker does in this
        // memory is said above.
        let pid = unsafe { libc::clone(make, top.cast(), flags, argument) };
        checked(pid.into())?;
        Ok(Self {
            maker: Pid::from_raw(pid),
            shared,
            _stack: stack,
        })
    }

    /// Moves the calling process into it. It must still be one that may be looked into
    /// (`PR_SET_DUMPABLE`, see setns(2)).
    pub(crate) fn enter(mut self) -> io::Result<()> {
        self.shared.wait_while(MAKING);
        match self.shared.errno.load(Ordering::Acquire) {
            0 => {}
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
        let maker = self.maker.ok_or(io::ErrorKind::NotFound)?;
        let maker = pidfd_open(maker, PidfdFlags::empty())?;
        move_into_thread_name_spaces(maker.as_fd(), ThreadNameSpaceType::NETWORK)?;
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(maker) = self.maker.take() else {
            return Ok(());
        };
        self.shared.become_state(NEEDED_NO_MORE);
        loop {
            match process::wait(maker.as_raw_nonzero().get(), true) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(_) => return Ok(()),
            }
        }
    }
}

impl Drop for NewNetwork {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl Shared {
    fn become_state(&self, state: u32) {
        self.state.store(state, Ordering::Release);
        // It has a valid address, and there is at most one that waits.
        let _ = futex::wake(&self.state, futex::Flags::PRIVATE, 1);
    }

    fn wait_while(&self, state: u32) {
        while self.state.load(Ordering::Acquire) == state {
            // Whatever the reason for waking up, the loop looks again.
            let _ = futex::wait(&self.state, futex::Flags::PRIVATE, state, None);
        }
    }
}

/// The maker's stack: two calls deep.
const STACK_SIZE: usize = 64 << 10;

/// As the maker.
extern "C" fn make(shared: *mut libc::c_void) -> libc::c_int {
    // SAFETY: it is the one that `begin` passed, which outlives this process.
    let shared = unsafe { &*shared.cast::<Shared>() };
    // SAFETY: no descriptor is taken back by a network namespace.
    if let Err(errno) = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) } {
        shared.errno.store(errno.raw_os_error(), Ordering::Release);
    }
    let told = shared
        .state
        .compare_exchange(MAKING, MADE, Ordering::AcqRel, Ordering::Acquire);
    if told.is_ok() {
        let _ = futex::wake(&shared.state, futex::Flags::PRIVATE, 1);
        shared.wait_while(MADE);
    }
    0
}
