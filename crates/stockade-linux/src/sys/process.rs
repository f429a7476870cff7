//! Making, replacing and ending processes in the helper, which is single-threaded, as a launcher
//! is that copies itself.

use std::convert::Infallible;
use std::ffi::CStr;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::AtomicI32;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::UnshareFlags;

use super::checked;
use crate::plan::Text;

/// Which side of a fork this is.
pub(crate) enum Fork {
    Child,
    Parent(Pid),
}

/// Forks; the child has its own copy of the descriptor table.
///
/// # Errors
/// EINVAL if the process has more than one thread: the child of such a process may call only
/// async-signal-safe functions, and what follows a fork here allocates.
pub(crate) fn fork() -> io::Result<Fork> {
    fork_into(UnshareFlags::empty())
}

/// Forks; the child is in new namespaces of these kinds.
///
/// # Errors
/// As for [`fork`], and if the kernel refuses the namespaces.
pub(crate) fn fork_into(namespaces: UnshareFlags) -> io::Result<Fork> {
    require_single_thread()?;
    let flags = libc::c_long::from(namespaces.bits().cast_signed() | libc::SIGCHLD);
    // SAFETY: no pointers are passed; the process is single-threaded, as was just seen.
    side(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })
}

/// Runs `child` in a new process, and stands still until that has executed a program or ended.
/// They share memory and descriptor table until then: nothing is copied, and what the child
/// leaves behind in memory is here for the parent to read. Other threads go on meanwhile, so none
/// of them may hold a lock that the child could want: the caller starts its threads such that they
/// wait for it.
pub(crate) fn run_until_execution<F: FnMut() -> i32>(child: F) -> io::Result<Pid> {
    run_in_shared_memory(libc::CLONE_FILES, None, child)
}

/// As [`run_until_execution`], with a copy of the descriptor table. The kernel writes the child's
/// process id to `pid` before the child runs (`CLONE_PARENT_SETTID`, `clone(2)`).
///
/// Other threads hold locks at any moment, and a process that can name the child may kill it: the
/// child neither allocates memory nor takes a lock.
pub(crate) fn run_apart_until_execution<F: FnMut() -> i32>(
    pid: &AtomicI32,
    child: F,
) -> io::Result<Pid> {
    run_in_shared_memory(libc::CLONE_PARENT_SETTID, Some(pid), child)
}

fn run_in_shared_memory<F: FnMut() -> i32>(
    flags: i32,
    pid: Option<&AtomicI32>,
    mut child: F,
) -> io::Result<Pid> {
    extern "C" fn begin<F: FnMut() -> i32>(child: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the pointer is to the closure below, whose owner stands still meanwhile.
        let child = unsafe { &mut *child.cast::<F>() };
        child()
    }
    // A stack of its own, or the child's calls would overwrite the frames that the parent
    // returns to.
    let mut stack: Vec<u128> = Vec::with_capacity(STACK_SIZE / size_of::<u128>());
    let top = stack.spare_capacity_mut().as_mut_ptr_range().end;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | flags | libc::SIGCHLD;
    let pid = pid.map_or(ptr::null_mut(), AtomicI32::as_ptr);
    // SAFETY: the stack is aligned, grows down from its end, and lives until this returns, which
    // by CLONE_VFORK is after the child has left it; so does the closure. This thread, whose
    // thread-local storage the child uses, stands still. The kernel writes to `pid` only by
    // CLONE_PARENT_SETTID, with which it is a number that outlives the call.
    let pid = unsafe { libc::clone(begin::<F>, top.cast(), flags, (&raw mut child).cast(), pid) };
    checked(pid.into())?;
    Pid::from_raw(pid).ok_or_else(|| io::Error::other("clone gave no process id"))
}

/// What the child needs until it executes: a few calls deep, with paths on the stack.
const STACK_SIZE: usize = 256 << 10;

/// The child of a process with threads may call only async-signal-safe functions, and what
/// follows a fork here allocates.
fn require_single_thread() -> io::Result<()> {
    // The kernel refuses this one if there is a second thread, and otherwise it does nothing
    // (unshare(2), CLONE_THREAD).
    // SAFETY: no pointers are passed and nothing is taken back.
    match checked(unsafe { libc::syscall(libc::SYS_unshare, libc::CLONE_THREAD) }) {
        Ok(_) => {}
        // The filter of a container refuses the call whatever its flags.
        Err(error) if error.raw_os_error() != Some(libc::EINVAL) && is_single_threaded()? => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

fn is_single_threaded() -> io::Result<bool> {
    Ok(std::fs::read_dir("/proc/self/task")?.count() == 1)
}

fn side(result: libc::c_long) -> io::Result<Fork> {
    let raw = i32::try_from(checked(result)?).map_err(io::Error::other)?;
    Ok(Pid::from_raw(raw).map_or(Fork::Child, Fork::Parent))
}

/// Ends the process at once: no destructors, no flushing of buffers shared with the parent.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit(2) takes no pointers and does not return.
    unsafe { libc::_exit(code) }
}

/// Arguments or environment entries as `execve(2)` takes them.
pub(crate) struct Words<'a> {
    /// Ends with a null pointer.
    pointers: Vec<*const libc::c_char>,
    texts: PhantomData<&'a [Text]>,
}

impl<'a> Words<'a> {
    pub(crate) fn new(texts: &'a [Text]) -> Self {
        let pointers = texts.iter().map(|text| text.as_c_str().as_ptr());
        Self {
            pointers: pointers.chain([ptr::null()]).collect(),
            texts: PhantomData,
        }
    }
}

/// Replaces the process image; returns only on failure. Allocates nothing.
pub(crate) fn execute(path: &CStr, argv: &Words<'_>, env: &Words<'_>) -> io::Result<Infallible> {
    // SAFETY: all strings are NUL-terminated, both arrays end with a null pointer, and all of it
    // outlives the call.
    unsafe { libc::execve(path.as_ptr(), argv.pointers.as_ptr(), env.pointers.as_ptr()) };
    Err(io::Error::last_os_error())
}

/// Moves the calling process into new namespaces.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: the calls made here ask for namespaces or for an own descriptor table; none of
    // them takes back a descriptor that safe code still owns.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(io::Error::from)
}

/// Puts each descriptor at its number, in a process that has just been forked: whatever owned
/// those numbers belongs to code that will not go on here.
pub(crate) fn place_descriptors(descriptors: &[(BorrowedFd<'_>, i32)]) -> io::Result<()> {
    // First out of the way of each other, as for a program that is spawned.
    let highest = descriptors.iter().map(|(_, number)| *number).max();
    let clear = 1 + highest.unwrap_or(0);
    let mut aside = Vec::with_capacity(descriptors.len());
    for (fd, _) in descriptors {
        // SAFETY: F_DUPFD_CLOEXEC takes integers.
        let copy = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, clear) };
        checked(copy.into())?;
        aside.push(copy);
    }
    for (copy, (_, number)) in aside.into_iter().zip(descriptors) {
        // SAFETY: dup2(2) takes integers; that nobody uses the number is the caller's contract.
        checked(unsafe { libc::dup2(copy, *number) }.into())?;
    }
    Ok(())
}

/// Takes over the descriptors that this process was started with: `own` are returned, `keep` and
/// the standard three stay, everything else is closed.
///
/// To be called once, first thing in the program or copy: nothing that goes on may own a
/// descriptor yet.
pub(crate) fn adopt_descriptors<const N: usize>(
    own: [i32; N],
    keep: &[i32],
) -> io::Result<[OwnedFd; N]> {
    let mut stay: Vec<u32> = own
        .iter()
        .chain(keep)
        .filter_map(|number| u32::try_from(*number).ok())
        .collect();
    stay.sort_unstable();
    let mut from = 3;
    for number in stay {
        if number > from {
            close_range(from, number - 1)?;
        }
        from = from.max(number + 1);
    }
    close_range(from, u32::MAX)?;
    for number in own {
        // SAFETY: F_SETFD takes an integer.
        checked(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) }.into())?;
    }
    // SAFETY: each is open, as was just seen, and the launcher passed it for this program to own.
    Ok(own.map(|number| unsafe { OwnedFd::from_raw_fd(number) }))
}

/// A copy of a descriptor that this program was started with.
pub(crate) fn inherited_descriptor(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: F_DUPFD_CLOEXEC takes integers and gives a fresh descriptor or an error.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    checked(copy.into())?;
    // SAFETY: the descriptor was just made and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// Has programs that this process executes from now on get none of the descriptors above 2. Linux
/// 5.11.
pub(crate) fn keep_descriptors_to_oneself() -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: no pointers are passed, and with this flag nothing is closed.
    checked(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, flags) }).map(drop)
}

/// Puts these at the numbers 0 to 2 and closes everything else, in a process that has a copy of
/// its parent's descriptor table and is about to execute a program.
pub(crate) fn keep_standard_only(standard: [BorrowedFd<'_>; 3]) -> io::Result<()> {
    for (fd, number) in standard.iter().zip(0..) {
        // SAFETY: dup2(2) takes integers; nothing in this process uses the number.
        checked(unsafe { libc::dup2(fd.as_raw_fd(), number) }.into())?;
    }
    close_range(3, u32::MAX)
}

fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: no pointers are passed; that nobody owns these is the caller's contract.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
}

/// What a finished child used, with its wait status.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reaped {
    pub(crate) status: i32,
    pub(crate) user_micros: u64,
    pub(crate) system_micros: u64,
    pub(crate) peak_kib: u64,
}

/// `wait4(2)`: waits for `pid` (-1 for any child) to end or stop; none if nothing has and `block`
/// is off.
pub(crate) fn wait(pid: i32, block: bool) -> io::Result<Option<Reaped>> {
    let mut status = 0;
    // SAFETY: `rusage` is plain integers, for which all-zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let flags = if block {
        0
    } else {
        libc::WNOHANG | libc::WUNTRACED
    };
    // SAFETY: both out-pointers are valid for the duration of the call.
    let got = unsafe { libc::wait4(pid, &raw mut status, flags, &raw mut usage) };
    if checked(got.into())? == 0 {
        return Ok(None);
    }
    let micros = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000
            + u64::try_from(time.tv_usec).unwrap_or(0)
    };
    Ok(Some(Reaped {
        status,
        user_micros: micros(usage.ru_utime),
        system_micros: micros(usage.ru_stime),
        peak_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
    }))
}

/// `waitid(2)`: the child that has ended or stopped and that [`wait`] would collect next; none if
/// there is no such now. It can still be asked about.
pub(crate) fn next_to_reap() -> io::Result<Option<Pid>> {
    // SAFETY: `siginfo_t` is plain data, for which all-zero is a valid value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the out-pointer is valid for the duration of the call.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, flags) };
    checked(result.into())?;
    // SAFETY: `waitid` fills this field, or leaves it 0 if there was nobody.
    Ok(Pid::from_raw(unsafe { info.si_pid() }))
}

/// What the kernel compares with `RLIMIT_CPU`: user and system time of this process without its
/// children, ended or not, as long as it was not reaped.
///
/// It is the clock `CPUCLOCK_PROF` (0) of the process (`include/linux/posix-timers_types.h`), as
/// `check_process_timers` in `kernel/time/posix-cpu-timers.c` reads it: by ticks. The times of
/// `getrusage(2)` are scaled to what the scheduler measured, and may be less when the limit has
/// been reached; those of a reaped child have its own children in them.
pub(crate) fn limited_cpu_time(pid: Pid) -> io::Result<Duration> {
    let clock = !pid.as_raw_nonzero().get() << 3;
    // SAFETY: `timespec` is plain integers, for which all-zero is a valid value.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the out-pointer is valid for the duration of the call.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    checked(result.into())?;
    let part = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
    Ok(Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec)))
}

impl Reaped {
    /// The child has not ended, a signal stopped it.
    pub(crate) fn is_stopped(&self) -> bool {
        libc::WIFSTOPPED(self.status)
    }

    /// `SIGKILL` ended it.
    pub(crate) fn is_killed(&self) -> bool {
        libc::WIFSIGNALED(self.status) && libc::WTERMSIG(self.status) == libc::SIGKILL
    }
}

/// Makes the terminal `fd` the controlling terminal of this session.
pub(crate) fn take_terminal(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: TIOCSCTTY takes an integer argument.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCSCTTY, 0) };
    checked(result.into()).map(drop)
}
