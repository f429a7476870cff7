//! The process whose call is being answered: its memory, descriptors, directory and umask.

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::seccomp::Notification;
use crate::sys;

/// As a directory argument: the caller's own.
pub(super) const CWD: u64 = (libc::AT_FDCWD as i64).cast_unsigned();

/// Longer names than this the kernel refuses as well.
const PATH_MAX: usize = libc::PATH_MAX as usize;

/// One waiting call and who makes it.
pub(super) struct Caller {
    pub(super) id: u64,
    pub(super) thread: Pid,
    number: i64,
    arguments: [u64; 6],
}

impl Caller {
    /// None if the caller has no id in this pid namespace.
    pub(super) fn new(notification: &Notification) -> Option<Self> {
        let thread = i32::try_from(notification.thread)
            .ok()
            .and_then(Pid::from_raw)?;
        Some(Self {
            id: notification.id,
            thread,
            number: notification.call.number.into(),
            arguments: notification.call.args,
        })
    }

    pub(super) fn number(&self) -> i64 {
        self.number
    }

    pub(super) fn arguments(&self) -> [u64; 6] {
        self.arguments
    }

    /// The text at an address.
    pub(super) fn text(&self, address: u64) -> Result<CString, Errno> {
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < PATH_MAX {
            // Up to the end of a page: the next one may not be mapped. Most texts are short.
            let room = 4096 - usize::try_from(at % 4096).unwrap_or(0);
            let room = if text.is_empty() { room.min(256) } else { room };
            let start = text.len();
            text.resize(start + room, 0);
            let got = sys::memory::read(self.thread, at, &mut text[start..])
                .map_err(|error| errno(&error))?;
            text.truncate(start + got);
            if let Some(end) = text[start..].iter().position(|byte| *byte == 0) {
                text.truncate(start + end);
                return CString::new(text).map_err(|_| Errno::INVAL);
            }
            if got < room {
                return Err(Errno::FAULT);
            }
            at += room as u64;
        }
        Err(Errno::NAMETOOLONG)
    }

    /// As many bytes as the buffer holds.
    pub(super) fn bytes(&self, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let got = sys::memory::read(self.thread, address, buffer).map_err(|error| errno(&error))?;
        if got == buffer.len() {
            Ok(())
        } else {
            Err(Errno::FAULT)
        }
    }

    /// The directory that a relative path of the caller starts from.
    pub(super) fn directory(&self, proc: BorrowedFd<'_>, fd: u64) -> Result<OwnedFd, Errno> {
        let link = link_to(fd)?;
        let link = format!(
            "{}/{}",
            self.thread.as_raw_nonzero(),
            link.to_string_lossy()
        );
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match rustix::fs::openat(proc, link, flags, Mode::empty()) {
            Err(Errno::NOENT) => Err(Errno::BADF),
            other => other,
        }
    }

    /// A copy of one of the caller's descriptors.
    pub(super) fn descriptor(&self, fd: u64) -> Result<OwnedFd, Errno> {
        pidfd_getfd(self.pidfd()?, low_word(fd), PidfdGetfdFlags::empty())
    }

    /// The thread; before Linux 6.9 only a process can be named.
    pub(super) fn pidfd(&self) -> Result<OwnedFd, Errno> {
        let thread = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());
        pidfd_open(self.thread, thread).or_else(|_| pidfd_open(self.thread, PidfdFlags::empty()))
    }

    /// The caller's umask.
    pub(super) fn umask(&self, proc: BorrowedFd<'_>) -> Result<Mode, Errno> {
        let umask = self.status_field(proc, "Umask:")?;
        u32::from_str_radix(&umask, 8)
            .map(Mode::from)
            .map_err(|_| Errno::PERM)
    }

    /// Whether the caller is its process's only thread. `/proc/THREAD/task` has a link for each, and
    /// two of its own.
    pub(super) fn is_alone(&self, proc: BorrowedFd<'_>) -> bool {
        let path = format!("{}/task", self.thread.as_raw_nonzero());
        let flags = AtFlags::STATX_DONT_SYNC;
        let links = rustix::fs::statx(proc, path, flags, StatxFlags::NLINK);
        links.is_ok_and(|stat| stat.stx_nlink == 3)
    }

    /// The id of the caller's process.
    pub(super) fn process(&self, proc: BorrowedFd<'_>) -> Result<String, Errno> {
        self.status_field(proc, "Tgid:")
    }

    /// The number of the caller's controlling terminal below `/dev/pts`.
    pub(super) fn terminal(&self, proc: BorrowedFd<'_>) -> Result<u32, Errno> {
        const UNIX98_TERMINALS: std::ops::RangeInclusive<u32> = 136..=143;
        let stat = self.read(proc, "stat")?;
        // The name in parentheses may contain anything; the fields follow the last one.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        // tty_nr is the seventh field of proc_pid_stat(5); pid and name are gone.
        let device: u32 = fields
            .split_ascii_whitespace()
            .nth(4)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        let (major, minor) = (
            (device >> 8) & 0xfff,
            (device & 0xff) | ((device >> 12) & 0xfff00),
        );
        if UNIX98_TERMINALS.contains(&major) {
            Ok(minor + (major - UNIX98_TERMINALS.start()) * 256)
        } else {
            Err(Errno::NXIO)
        }
    }

    /// What the program called itself, for records.
    pub(super) fn program(&self, proc: BorrowedFd<'_>) -> Vec<u8> {
        let command_line = self.read(proc, "cmdline").unwrap_or_default();
        command_line
            .split('\0')
            .next()
            .unwrap_or_default()
            .as_bytes()
            .to_vec()
    }

    fn status_field(&self, proc: BorrowedFd<'_>, name: &str) -> Result<String, Errno> {
        let status = self.read(proc, "status")?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned()).ok_or(Errno::PERM)
    }

    fn read(&self, proc: BorrowedFd<'_>, file: &str) -> Result<String, Errno> {
        read(self.thread, proc, file)
    }
}

/// The directory of an argument, in the caller's entry in `/proc`.
pub(super) fn link_to(directory: u64) -> Result<Cow<'static, CStr>, Errno> {
    // Descriptors are ints: only the low word of the register counts.
    match low_word(directory) {
        libc::AT_FDCWD => Ok(Cow::Borrowed(c"cwd")),
        number @ 0.. => CString::new(format!("fd/{number}"))
            .map(Cow::Owned)
            .map_err(|_| Errno::BADF),
        _ => Err(Errno::BADF),
    }
}

/// What `/proc` says about a thread.
pub(super) fn read(thread: Pid, proc: BorrowedFd<'_>, file: &str) -> Result<String, Errno> {
    let path = format!("{}/{file}", thread.as_raw_nonzero());
    let fd = rustix::fs::openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = [0; 4096];
    let length = rustix::io::read(&fd, &mut text)?;
    Ok(String::from_utf8_lossy(&text[..length]).into_owned())
}

/// A descriptor for looking things up in a directory.
pub(super) fn open_directory(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// An `int` argument: the kernel ignores the upper half of the register.
pub(super) fn low_word(argument: u64) -> i32 {
    let [a, b, c, d, ..] = argument.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

pub(super) fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
