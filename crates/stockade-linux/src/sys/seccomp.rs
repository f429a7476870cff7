//! seccomp(2): installing a filter, and the listener's side of `SECCOMP_RET_USER_NOTIF`.

use std::io;
use std::ops::BitOr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use super::checked;
use crate::seccomp::{Action, Instruction, Program, SyscallData};

#[cfg(test)]
mod tests;

/// How a filter is installed (`SECCOMP_FILTER_FLAG_*`); combine with `|`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstallFlags(libc::c_ulong);

impl InstallFlags {
    /// On the calling thread alone, without a listener.
    pub const NONE: Self = Self(0);
    /// On all threads of the process, or none of them.
    pub const ALL_THREADS: Self = Self(libc::SECCOMP_FILTER_FLAG_TSYNC);
    /// With a listener that answers the calls of [`Action::Notify`] (Linux 5.0).
    pub const LISTENER: Self = Self(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
    /// With every refusal in the kernel's log.
    pub const LOG: Self = Self(libc::SECCOMP_FILTER_FLAG_LOG);
    /// With a caller that only a deadly signal interrupts once the listener has its call (Linux
    /// 5.19). Without it, a signal makes the kernel repeat the call and the listener do it twice.
    pub const WAIT_KILLABLE: Self = Self(libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);

    fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for InstallFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

// The kernel reads `Instruction`s as `sock_filter`s.
const _: () = {
    assert!(size_of::<Instruction>() == size_of::<libc::sock_filter>());
    assert!(align_of::<Instruction>() == align_of::<libc::sock_filter>());
};

/// Installs a filter on the calling thread, for good. Gives the listener's descriptor where one
/// was asked for; it is close-on-exec.
///
/// The thread must have `no_new_privs` or `CAP_SYS_ADMIN` in its user namespace, else `EACCES`.
/// `EBUSY` means that another listener watches this process already.
pub fn install(program: &Program, flags: InstallFlags) -> io::Result<Option<OwnedFd>> {
    let listener = flags.contains(InstallFlags::LISTENER);
    let mut bits = flags.0;
    if listener && flags.contains(InstallFlags::ALL_THREADS) {
        // The result can't be both a descriptor and the thread that is in the way.
        bits |= libc::SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    }
    let instructions = program.instructions();
    let too_long = |_| io::Error::from_raw_os_error(libc::EINVAL);
    let fprog = libc::sock_fprog {
        len: instructions.len().try_into().map_err(too_long)?,
        filter: instructions.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    // SAFETY: `fprog` describes `instructions`, which outlives the call; layout and alignment of
    // an instruction are asserted above. The kernel copies the program and writes nothing.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            bits,
            &raw const fprog,
        )
    };
    let result = RawFd::try_from(checked(result)?).map_err(io::Error::other)?;
    if listener {
        // SAFETY: with NEW_LISTENER the kernel returned a fresh descriptor that nobody else owns.
        return Ok(Some(unsafe { OwnedFd::from_raw_fd(result) }));
    }
    if result > 0 {
        return Err(io::Error::other(format!(
            "thread {result} has a system call filter of its own, so not all threads can share one"
        )));
    }
    Ok(None)
}

/// Whether the kernel knows an action (`SECCOMP_GET_ACTION_AVAIL`, Linux 4.14). Knowing
/// [`Action::Notify`] is necessary for a listener, not sufficient: only installing one tells.
pub fn is_available(action: Action) -> io::Result<bool> {
    let raw = match action {
        Action::Errno(_) => libc::SECCOMP_RET_ERRNO,
        _ => action.to_raw(),
    };
    // SAFETY: the kernel reads one u32 behind the pointer, which is valid for the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0 as libc::c_ulong,
            &raw const raw,
        )
    };
    match checked(result) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The supervisor's end of a filter with [`InstallFlags::LISTENER`].
///
/// Errors of the kind `NotFound` (`ENOENT`) mean that the caller is gone, by signal or by exit:
/// not the supervisor's failure, and the call never happened. Memory of the caller that was read
/// before [`is_valid`](Self::is_valid) said yes may have been another process's.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// A call that waits for an answer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Notification {
    /// What answers refer to.
    pub id: u64,
    /// The calling *thread*, in the pid namespace of the listener; 0 if it has no pid there.
    pub thread: u32,
    /// The call. Pointers among the arguments are addresses in the caller.
    pub call: SyscallData,
}

impl Listener {
    /// Takes over a descriptor that [`install`] gave. Fails where this kernel's notifications
    /// are larger than this program knows.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let mut sizes = libc::seccomp_notif_sizes {
            seccomp_notif: 0,
            seccomp_notif_resp: 0,
            seccomp_data: 0,
        };
        // SAFETY: the kernel writes one `seccomp_notif_sizes` through the pointer, which is
        // valid and exclusive for the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_GET_NOTIF_SIZES,
                0 as libc::c_ulong,
                &raw mut sizes,
            )
        };
        checked(result)?;
        let fits = usize::from(sizes.seccomp_notif) <= size_of::<libc::seccomp_notif>()
            && usize::from(sizes.seccomp_notif_resp) <= size_of::<libc::seccomp_notif_resp>();
        if !fits {
            return Err(io::Error::other(
                "the kernel's seccomp notifications have an unknown size",
            ));
        }
        Ok(Self(fd))
    }

    /// Makes the kernel run listener and caller in turn on one core (Linux 6.6): one answer then
    /// costs a few microseconds instead of tens.
    pub fn wake_synchronously(&self) -> io::Result<()> {
        const SYNC_WAKE_UP: libc::c_ulong = 1;
        // SAFETY: this request takes its argument by value; no memory is involved.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS,
                SYNC_WAKE_UP,
            )
        };
        checked(result.into()).map(drop)
    }

    /// Waits for a call. `ENOENT`: the caller died before its call could be handed over; wait on.
    pub fn receive(&self) -> io::Result<Notification> {
        // The kernel insists on zeroes.
        let mut notification = libc::seccomp_notif {
            id: 0,
            pid: 0,
            flags: 0,
            data: libc::seccomp_data {
                nr: 0,
                arch: 0,
                instruction_pointer: 0,
                args: [0; 6],
            },
        };
        // SAFETY: the kernel writes one `seccomp_notif` (the request encodes its size, `new`
        // compared it) through a pointer that is valid and exclusive for the call.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &raw mut notification,
            )
        };
        checked(result.into())?;
        let libc::seccomp_data { nr, arch, args, .. } = notification.data;
        Ok(Notification {
            id: notification.id,
            thread: notification.pid,
            call: SyscallData {
                number: nr.cast_unsigned(),
                arch,
                args,
            },
        })
    }

    /// Whether the caller still waits for this answer.
    pub fn is_valid(&self, id: u64) -> io::Result<bool> {
        // SAFETY: the kernel reads one u64 behind the pointer, which is valid for the call.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
                &raw const id,
            )
        };
        match checked(result.into()) {
            Ok(_) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Lets the call return a value.
    pub fn answer(&self, id: u64, value: i64) -> io::Result<()> {
        self.respond(libc::seccomp_notif_resp {
            id,
            val: value,
            error: 0,
            flags: 0,
        })
    }

    /// Lets the call fail with an errno.
    pub fn refuse(&self, id: u64, errno: i32) -> io::Result<()> {
        self.respond(libc::seccomp_notif_resp {
            id,
            val: 0,
            error: -errno.abs(),
            flags: 0,
        })
    }

    /// Lets the kernel do the call after all. For watching only: what lies behind a pointer may
    /// have changed since it was read, so no decision may depend on it (`seccomp_unotify(2)`).
    pub fn danger_continue(&self, id: u64) -> io::Result<()> {
        const CONTINUE: u32 = 1;
        self.respond(libc::seccomp_notif_resp {
            id,
            val: 0,
            error: 0,
            flags: CONTINUE,
        })
    }

    /// Puts a copy of a descriptor into the caller (Linux 5.9) and gives its number there. The
    /// call still waits for its answer.
    pub fn add_fd(&self, id: u64, fd: BorrowedFd<'_>, inherit: Inherit) -> io::Result<RawFd> {
        self.inject(id, fd, inherit, 0)
    }

    /// Puts a copy of a descriptor into the caller and answers its call with the number, in one
    /// step (Linux 5.14): there is no moment in which a signal could leave a stray descriptor.
    pub fn answer_fd(&self, id: u64, fd: BorrowedFd<'_>, inherit: Inherit) -> io::Result<RawFd> {
        const SEND: u32 = 2;
        self.inject(id, fd, inherit, SEND)
    }

    fn inject(
        &self,
        id: u64,
        fd: BorrowedFd<'_>,
        inherit: Inherit,
        flags: u32,
    ) -> io::Result<RawFd> {
        let newfd_flags = match inherit {
            Inherit::CloseOnExec => libc::O_CLOEXEC.cast_unsigned(),
            Inherit::Keep => 0,
        };
        let srcfd = fd.as_raw_fd().cast_unsigned();
        let request = libc::seccomp_notif_addfd {
            id,
            flags,
            srcfd,
            newfd: 0,
            newfd_flags,
        };
        // SAFETY: the kernel reads one `seccomp_notif_addfd` behind the pointer, which is valid
        // for the call; `srcfd` is open, being borrowed.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ADDFD,
                ptr::from_ref(&request),
            )
        };
        checked(result.into())?;
        Ok(result)
    }

    fn respond(&self, mut response: libc::seccomp_notif_resp) -> io::Result<()> {
        // SAFETY: the kernel reads one `seccomp_notif_resp` (the request encodes its size) behind
        // a pointer that is valid and exclusive for the call.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw mut response,
            )
        };
        checked(result.into()).map(drop)
    }
}

/// Whether programs that the receiver of a descriptor executes get it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a flag with names")]
pub enum Inherit {
    /// The caller opened with `O_CLOEXEC`.
    CloseOnExec,
    /// The caller did not.
    Keep,
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
