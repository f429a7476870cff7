//! A network namespace, with its loopback up, that is made beside whatever else this process does.
//!
//! Making one takes 0.4 of the 0.5 ms that all namespaces of a sandbox take, nearly all of it in
//! the kernel and under locks that mounting has no use for. So a second process makes it, on
//! another processor, while this one builds the file-system view, and this one moves in then.
//! Where every processor has enough to do, the second process would wait for one longer than the
//! work takes, and this one for it: there this one does it itself.
//!
//! The maker shares this process's memory, so nothing is copied. It may therefore neither
//! allocate nor use thread-local storage: it makes system calls, all without the C library, and
//! writes two atomic numbers.

use std::io;
use std::os::fd::{AsFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::Pid;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, futex, move_into_link_name_space};

use super::{checked, interface, process};

/// The namespace; none if this process is in it already.
pub(crate) struct NewNetwork(Option<Beside>);

/// One that another process makes.
struct Beside {
    maker: Option<Pid>,
    shared: Arc<Shared>,
    /// The maker's.
    _stack: Vec<u128>,
}

struct Shared {
    /// Whether the maker has done what it can.
    done: AtomicU32,
    /// The namespace's descriptor, or less than 0: why there is none.
    outcome: AtomicI32,
    /// `/proc`, which is covered by something else before long.
    proc: OwnedFd,
}

impl NewNetwork {
    /// Begins to make one, which needs `CAP_SYS_ADMIN` in the caller's user namespace.
    pub(crate) fn begin() -> io::Result<Self> {
        if is_busy() {
            make_here()?;
            return Ok(Self(None));
        }
        Beside::begin().map(|beside| Self(Some(beside)))
    }

    /// Moves the calling process into it. Returns the namespace, for others to follow; none if
    /// the calling process was in it already, and so is every child made since.
    pub(crate) fn enter(self) -> io::Result<Option<OwnedFd>> {
        self.0.map(Beside::enter).transpose()
    }
}

impl Beside {
    fn begin() -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let shared = Arc::new(Shared {
            done: AtomicU32::new(0),
            outcome: AtomicI32::new(-libc::ECHILD),
            proc: openat(CWD, "/proc", flags, Mode::empty())?,
        });
        let mut stack: Vec<u128> = Vec::with_capacity(STACK_SIZE / size_of::<u128>());
        let top = stack.spare_capacity_mut().as_mut_ptr_range().end;
        let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::SIGCHLD;
        let argument = Arc::as_ptr(&shared).cast_mut().cast();
        // SAFETY: the stack is aligned and grows down from its end; it and what is shared live
        // until the maker has ended, for which `reap` waits. What the maker does in this memory
        // is said above.
        let pid = unsafe { libc::clone(make, top.cast(), flags, argument) };
        checked(pid.into())?;
        Ok(Self {
            maker: Pid::from_raw(pid),
            shared,
            _stack: stack,
        })
    }

    fn enter(mut self) -> io::Result<OwnedFd> {
        while self.shared.done.load(Ordering::Acquire) == 0 {
            // Whatever the reason for waking up, the loop looks again.
            let _ = futex::wait(&self.shared.done, futex::Flags::PRIVATE, 0, None);
        }
        let namespace = match self.shared.outcome.swap(-libc::ECHILD, Ordering::AcqRel) {
            // SAFETY: the maker opened it in this descriptor table and left it to whoever asks.
            number @ 0.. => unsafe { OwnedFd::from_raw_fd(number) },
            negative => return Err(io::Error::from_raw_os_error(-negative)),
        };
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        self.reap()?;
        Ok(namespace)
    }

    fn reap(&mut self) -> io::Result<()> {
        let Some(maker) = self.maker.take() else {
            return Ok(());
        };
        loop {
            match process::wait(maker.as_raw_nonzero().get(), true) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(_) => return Ok(()),
            }
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.reap();
    }
}

/// Whether the processors had more to do than they could, on average over the last minute.
fn is_busy() -> bool {
    // Fixed point, with 16 bits behind it (`sysinfo(2)`).
    let waiting = rustix::system::sysinfo().loads[0] >> 16;
    let processors = rustix::thread::sched_getaffinity(None);
    processors.is_ok_and(|processors| waiting >= u64::from(processors.count()))
}

fn make_here() -> rustix::io::Result<()> {
    // SAFETY: no descriptor is taken back by a network namespace.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?;
    interface::loopback_up()
}

/// The maker's stack: a few calls deep.
const STACK_SIZE: usize = 64 << 10;

/// As the maker.
extern "C" fn make(shared: *mut libc::c_void) -> libc::c_int {
    // SAFETY: it is the one that `begin` passed, which outlives this process.
    let shared = unsafe { &*shared.cast::<Shared>() };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened =
        make_here().and_then(|()| openat(&shared.proc, c"self/ns/net", flags, Mode::empty()));
    let outcome = opened.map_or_else(|errno| -errno.raw_os_error(), IntoRawFd::into_raw_fd);
    shared.outcome.store(outcome, Ordering::Release);
    shared.done.store(1, Ordering::Release);
    let _ = futex::wake(&shared.done, futex::Flags::PRIVATE, 1);
    0
}
