//! Pid 1 of the sandbox: the first process of its pid namespace. It reaps orphans, and nothing
//! else; when it ends, the kernel kills every other process in the namespace
//! (`pid_namespaces(7)`).
//!
//! Its maker stays outside the pid namespace, so that nothing inside can name it. But a new
//! `/proc` belongs to the pid namespace of the process that calls `fsopen(2)`, so init opens the
//! file system and its maker mounts it.
//!
//! Init shares its maker's memory and, at first, descriptor table: nothing is copied. It may
//! therefore neither allocate nor use thread-local storage: it makes system calls, all without
//! the C library, and writes atomic numbers.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mount::{FsOpenFlags, fsopen};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open,
    set_parent_process_death_signal,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, LinkNameSpaceType, futex, move_into_link_name_space,
    set_capabilities,
};

use super::process::wait;
use super::{checked, signal};

/// Init, as its maker sees it.
pub(crate) struct Init {
    pid: Pid,
    shared: &'static Shared,
}

struct Shared {
    /// How far init has come; a futex.
    progress: AtomicU32,
    /// How far its maker has come; a futex.
    permission: AtomicU32,
    /// The descriptor of the opened `proc` file system, or a negated errno.
    proc: AtomicI32,
    /// The network namespace to enter, or -1.
    network: AtomicI32,
    /// A negated errno if init could not settle.
    failure: AtomicI32,
    /// The maker, to see whether it still lives.
    maker: OwnedFd,
    /// Reads init's own `SIGCHLD`.
    child_signals: OwnedFd,
}

const PROC_OPENED: u32 = 1;
const SETTLED: u32 = 2;

impl Init {
    /// Starts init in a new pid namespace, which needs `CAP_SYS_ADMIN` in the caller's user
    /// namespace. `SIGCHLD` stays blocked in the calling thread.
    pub(crate) fn start() -> io::Result<Self> {
        // Never freed: init uses it as long as it lives, and its maker lives as long.
        let shared: &'static Shared = Box::leak(Box::new(Shared {
            progress: AtomicU32::new(0),
            permission: AtomicU32::new(0),
            proc: AtomicI32::new(-libc::ECHILD),
            network: AtomicI32::new(-1),
            failure: AtomicI32::new(0),
            maker: pidfd_open(getpid(), PidfdFlags::empty())?,
            child_signals: signal::read_blocking(&[libc::SIGCHLD])?,
        }));
        let stack: &'static mut [u128] =
            Box::leak(vec![0; STACK_BYTES / size_of::<u128>()].into_boxed_slice());
        let top = stack.as_mut_ptr_range().end;
        let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_NEWPID | libc::SIGCHLD;
        let argument = std::ptr::from_ref(shared).cast_mut().cast();
        // SAFETY: the stack is aligned, grows down from its end and is never freed, nor is what
        // is shared. What init does in this memory is said above.
        let pid = unsafe { libc::clone(run, top.cast(), flags, argument) };
        checked(pid.into())?;
        let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("clone gave no process id"))?;
        Ok(Self { pid, shared })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits for the `proc` file system of the new pid namespace, opened but not configured.
    pub(crate) fn take_proc(&self) -> io::Result<OwnedFd> {
        self.await_progress(PROC_OPENED)?;
        match self.shared.proc.swap(-libc::EBADF, Ordering::AcqRel) {
            // SAFETY: init opened it in this descriptor table and left it to its maker.
            number @ 0.. => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
            negative => Err(io::Error::from_raw_os_error(-negative)),
        }
    }

    /// Lets init enter the network namespace, give up every capability and descriptor, and reap.
    pub(crate) fn settle(&self, network: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let number = network.map_or(-1, |network| network.as_raw_fd());
        self.shared.network.store(number, Ordering::Release);
        set_and_wake(&self.shared.permission, 1);
        self.await_progress(SETTLED)?;
        match self.shared.failure.load(Ordering::Acquire) {
            0 => Ok(()),
            negative => Err(io::Error::from_raw_os_error(-negative)),
        }
    }

    /// Kills init, and with it everything in its pid namespace; all of it is gone on return.
    ///
    /// Every child of the caller is reaped: init ends when the last process of its namespace has
    /// been reaped, and those that the caller started there are the caller's to reap.
    pub(crate) fn end(&self) -> io::Result<()> {
        match kill_process(self.pid, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(errno) => return Err(errno.into()),
        }
        loop {
            match wait(-1, true) {
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(()),
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn await_progress(&self, wanted: u32) -> io::Result<()> {
        loop {
            let now = self.shared.progress.load(Ordering::Acquire);
            if now >= wanted {
                return Ok(());
            }
            let patience = Timespec {
                tv_sec: 0,
                tv_nsec: 50_000_000,
            };
            // Whatever the reason for waking up, the loop looks again.
            let _ = futex::wait(
                &self.shared.progress,
                futex::Flags::empty(),
                now,
                Some(&patience),
            );
            if let Ok(Some(_)) = wait(self.pid.as_raw_nonzero().get(), false) {
                return Err(io::Error::from_raw_os_error(libc::ECHILD));
            }
        }
    }
}

/// A few calls deep.
const STACK_BYTES: usize = 64 << 10;

fn set_and_wake(number: &AtomicU32, value: u32) {
    number.store(value, Ordering::Release);
    let _ = futex::wake(number, futex::Flags::empty(), 1);
}

/// As init.
extern "C" fn run(shared: *mut libc::c_void) -> libc::c_int {
    // SAFETY: it is the one that `start` passed, which is never freed.
    let shared = unsafe { &*shared.cast::<Shared>() };
    // Whether or not the maker died before this was set is seen by its descriptor: its id reads 0
    // in this namespace.
    let tied = set_parent_process_death_signal(Some(Signal::KILL));
    if tied.is_err() || has_ended(&shared.maker) {
        return 1;
    }
    let opened = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC);
    let outcome = opened.map_or_else(|errno| -errno.raw_os_error(), IntoRawFd::into_raw_fd);
    shared.proc.store(outcome, Ordering::Release);
    set_and_wake(&shared.progress, PROC_OPENED);
    while shared.permission.load(Ordering::Acquire) == 0 {
        let _ = futex::wait(&shared.permission, futex::Flags::empty(), 0, None);
    }
    // Programs inside that look for a name, as pkill(1) does, find none of the launcher's.
    let _ = rustix::thread::set_name(c"init");
    let settled = settle(shared);
    if let Err(errno) = settled {
        shared
            .failure
            .store(-errno.raw_os_error(), Ordering::Release);
    }
    set_and_wake(&shared.progress, SETTLED);
    if settled.is_err() {
        return 1;
    }
    reap(shared.child_signals.as_fd())
}

fn settle(shared: &Shared) -> Result<(), Errno> {
    let network = shared.network.load(Ordering::Acquire);
    if network >= 0 {
        // SAFETY: the maker keeps it open until init has settled.
        let network = unsafe { BorrowedFd::borrow_raw(network) };
        move_into_link_name_space(network, Some(LinkNameSpaceType::Network))?;
    }
    // Not where the maker was: that would keep the host's mounts from being unmounted.
    rustix::process::chdir(c"/")?;
    keep_only(shared.child_signals.as_raw_fd())?;
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
}

/// Leaves the shared descriptor table and closes everything in the own one but `number`.
fn keep_only(number: i32) -> Result<(), Errno> {
    let number = u32::try_from(number).map_err(|_| Errno::BADF)?;
    let ranges = [(0, number.checked_sub(1)), (number + 1, Some(u32::MAX))];
    for (first, last) in ranges {
        let Some(last) = last else { continue };
        // SAFETY: no pointers are passed; the table is this process's own from the first call on,
        // and nothing in this process uses what is closed.
        let result = unsafe {
            libc::syscall(
                libc::SYS_close_range,
                first,
                last,
                libc::CLOSE_RANGE_UNSHARE,
            )
        };
        if result != 0 {
            return Err(Errno::INVAL);
        }
    }
    Ok(())
}

fn has_ended(process: &OwnedFd) -> bool {
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&at_once)) != Ok(0)
}

/// Collects every orphan that ended, for as long as the namespace exists.
fn reap(child_signals: BorrowedFd<'_>) -> ! {
    let mut signal = [0; 128];
    loop {
        // Waits; that something was read is all that matters.
        let _ = rustix::io::read(child_signals, &mut signal);
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
    }
}
