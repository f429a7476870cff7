//! The process whose call is being answered: its memory, descriptors, directory and umask.
//!
//! The mediator is outside the callers' pid namespace: it knows them by their numbers outside, and
//! looks at them in the host's `/proc`.

use std::cell::{Cell, OnceCell};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::seccomp::Notification;
use crate::sys;

/// As a directory argument: the caller's own.
pub(super) const CWD: u64 = (libc::AT_FDCWD as i64).cast_unsigned();

/// The kernel refuses names as long as this, the byte at their end included.
const PATH_MAX: usize = libc::PATH_MAX as usize;

/// As long as most texts are.
const SHORT: usize = 256;

/// One waiting call and who makes it.
pub(super) struct Caller {
    pub(super) id: u64,
    /// The calling thread, by its number outside the sandbox.
    pub(super) thread: Pid,
    number: i64,
    arguments: [u64; 6],
    /// The thread, once it was needed.
    pidfd: OnceCell<OwnedFd>,
    /// Whether that has been seen to be the thread that calls now, and none that had its number
    /// before.
    is_current: Cell<bool>,
    /// Whether it was one that had the number before.
    is_stale: Cell<bool>,
    umask: Cell<Option<KnownUmask>>,
}

/// What is kept of a thread until it calls again. Its number may be another's by then; the
/// descriptor tells, which refers to the first one for good.
pub(super) struct Acquaintance {
    thread: Pid,
    pidfd: OwnedFd,
    umask: Option<KnownUmask>,
}

/// A umask, and the state of all umasks that it was read in.
#[derive(Clone, Copy)]
pub(super) struct KnownUmask {
    pub(super) umask: Mode,
    pub(super) epoch: u64,
}

/// A caller's numbers as it knows them itself.
#[derive(Clone, Copy)]
pub(super) struct InnerIds {
    pub(super) process: i32,
    pub(super) thread: i32,
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
            pidfd: OnceCell::new(),
            is_current: Cell::new(false),
            is_stale: Cell::new(false),
            umask: Cell::new(None),
        })
    }

    /// The same call, for another thread to answer.
    pub(super) fn again(&self) -> Self {
        Self {
            id: self.id,
            thread: self.thread,
            number: self.number,
            arguments: self.arguments,
            pidfd: OnceCell::new(),
            is_current: Cell::new(false),
            is_stale: Cell::new(false),
            umask: Cell::new(None),
        }
    }

    /// Takes over what was kept of a thread with this number.
    pub(super) fn recall(&mut self, known: Acquaintance) {
        if known.thread == self.thread {
            self.umask.set(known.umask);
            self.pidfd = OnceCell::from(known.pidfd);
        }
    }

    /// What may be kept of the calling thread.
    pub(super) fn into_acquaintance(self) -> Option<Acquaintance> {
        let umask = self.umask.get();
        let pidfd = self.pidfd.into_inner()?;
        (!self.is_stale.get()).then_some(Acquaintance {
            thread: self.thread,
            pidfd,
            umask,
        })
    }

    pub(super) fn number(&self) -> i64 {
        self.number
    }

    pub(super) fn arguments(&self) -> [u64; 6] {
        self.arguments
    }

    /// The text at an address, shorter than a path may be.
    pub(super) fn text(&self, address: u64) -> Result<CString, Errno> {
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < PATH_MAX {
            // Up to the end of a page: the next one may not be mapped. Most texts are short.
            let room = room_in_page(at);
            let room = if text.is_empty() {
                room.min(SHORT)
            } else {
                room
            };
            let room = room.min(PATH_MAX - text.len());
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

    /// Two texts, as [`Caller::text`].
    pub(super) fn texts(&self, [first, second]: [u64; 2]) -> Result<[CString; 2], Errno> {
        // Both at once where they are short and nothing is in the way.
        let mut text = [[0; SHORT]; 2];
        let [a, b] = &mut text;
        let rooms = [first, second].map(|at| room_in_page(at).min(SHORT));
        let parts = [(first, &mut a[..rooms[0]]), (second, &mut b[..rooms[1]])];
        if sys::memory::read_two(self.thread, parts).is_ok_and(|got| got == rooms[0] + rooms[1])
            && let [Ok(a), Ok(b)] = text.each_ref().map(|text| CStr::from_bytes_until_nul(text))
            && a.count_bytes() < rooms[0]
            && b.count_bytes() < rooms[1]
        {
            return Ok([a.to_owned(), b.to_owned()]);
        }
        Ok([self.text(first)?, self.text(second)?])
    }

    /// As many bytes as the buffer holds.
    pub(super) fn bytes(&self, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        if buffer.is_empty() {
            return Ok(());
        }
        let got = sys::memory::read(self.thread, address, buffer).map_err(|error| errno(&error))?;
        if got == buffer.len() {
            Ok(())
        } else {
            Err(Errno::FAULT)
        }
    }

    /// The directory that a relative path of the caller starts from.
    pub(super) fn directory(&self, proc: BorrowedFd<'_>, fd: u64) -> Result<OwnedFd, Errno> {
        if low_word(fd) != libc::AT_FDCWD {
            return self.handle(proc, fd);
        }
        let link = format!("{}/cwd", self.thread.as_raw_nonzero());
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        rustix::fs::openat(proc, link, flags, Mode::empty())
    }

    /// A descriptor of the caller, for looking at what it refers to.
    pub(super) fn handle(&self, proc: BorrowedFd<'_>, fd: u64) -> Result<OwnedFd, Errno> {
        match self.descriptor(proc, fd) {
            // A container engine's filter may forbid pidfd_getfd(2), as Docker's does.
            Err(Errno::PERM) => {
                let number = low_word(fd);
                let link = format!("{}/fd/{number}", self.thread.as_raw_nonzero());
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                match rustix::fs::openat(proc, link, flags, Mode::empty()) {
                    Err(Errno::NOENT) => Err(Errno::BADF),
                    other => other,
                }
            }
            other => other,
        }
    }

    /// A copy of one of the caller's descriptors.
    pub(super) fn descriptor(&self, proc: BorrowedFd<'_>, fd: u64) -> Result<OwnedFd, Errno> {
        let number = low_word(fd);
        if number < 0 {
            return Err(Errno::BADF);
        }
        let pidfd = self.pidfd(proc)?;
        match pidfd_getfd(pidfd, number, PidfdGetfdFlags::empty()) {
            // That was another thread, which had this number before.
            Err(Errno::SRCH) => {
                self.is_stale.set(true);
                pidfd_getfd(self.new_pidfd(proc)?, number, PidfdGetfdFlags::empty())
            }
            other => {
                self.is_current.set(other.is_ok());
                other
            }
        }
    }

    /// The thread. Before Linux 6.9 only a process can be named, by its first thread
    /// (`pidfd_open(2)`); the others share its descriptors.
    pub(super) fn new_pidfd(&self, proc: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
        let thread = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());
        let named = pidfd_open(self.thread, thread);
        let named = named.or_else(|_| pidfd_open(self.thread, PidfdFlags::empty()));
        named.or_else(|_| {
            let process = pidfd_open(self.process(proc)?, PidfdFlags::empty());
            // Not kept: it can outlive the thread, whose number may be another's by then.
            self.is_stale.set(true);
            process
        })
    }

    /// The process of the thread, by its number outside the sandbox.
    fn process(&self, proc: BorrowedFd<'_>) -> Result<Pid, Errno> {
        let status = self.read(proc, "status")?;
        let number = field(&status, "Tgid:").and_then(|text| text.parse().ok());
        number.and_then(Pid::from_raw).ok_or(Errno::SRCH)
    }

    /// As [`Caller::new_pidfd`], or what was kept: that may be a thread that has ended.
    fn pidfd(&self, proc: BorrowedFd<'_>) -> Result<BorrowedFd<'_>, Errno> {
        if let Some(known) = self.pidfd.get() {
            return Ok(known.as_fd());
        }
        let pidfd = self.new_pidfd(proc)?;
        Ok(self.pidfd.get_or_init(|| pidfd).as_fd())
    }

    /// The umask that was kept, if it is this thread's and nobody changed any since.
    pub(super) fn known_umask(&self, epoch: u64) -> Option<Mode> {
        let known = self.umask.get().filter(|known| known.epoch == epoch)?;
        let pidfd = self.pidfd.get()?;
        if !self.is_current.get() && has_ended(pidfd) {
            self.is_stale.set(true);
            return None;
        }
        Some(known.umask)
    }

    /// Keeps a umask for the next call of this thread.
    pub(super) fn keep_umask(&self, proc: BorrowedFd<'_>, known: KnownUmask) {
        // A descriptor that was kept may be another thread's.
        let is_known = self
            .pidfd(proc)
            .is_ok_and(|pidfd| self.is_current.get() || !has_ended(pidfd));
        self.is_stale.set(self.is_stale.get() || !is_known);
        self.umask.set(is_known.then_some(known));
    }

    /// The caller's umask.
    pub(super) fn umask(&self, proc: BorrowedFd<'_>) -> Result<Mode, Errno> {
        let status = self.read(proc, "status")?;
        let umask = field(&status, "Umask:").ok_or(Errno::PERM)?;
        u32::from_str_radix(umask, 8)
            .map(Mode::from)
            .map_err(|_| Errno::PERM)
    }

    /// The ids that the caller has in the sandbox's `/proc`: the second of each list, one level below
    /// the mediator (`proc_pid_status(5)`). A caller in a pid namespace of its own has more.
    pub(super) fn inner_ids(&self, proc: BorrowedFd<'_>) -> Result<InnerIds, Errno> {
        let status = self.read(proc, "status")?;
        let inside = |name| {
            let numbers = field(&status, name)?;
            let numbers = numbers.split_ascii_whitespace().take(2);
            numbers.last()?.parse().ok()
        };
        let process = inside("NStgid:").ok_or(Errno::SRCH)?;
        let thread = inside("NSpid:").ok_or(Errno::SRCH)?;
        Ok(InnerIds { process, thread })
    }

    /// Whether a signal waits that the caller would handle or die of, were its call the kernel's.
    pub(super) fn has_signal(&self, proc: BorrowedFd<'_>) -> bool {
        let Ok(status) = self.read(proc, "status") else {
            return false;
        };
        let set = |name| field(&status, name).and_then(|text| u64::from_str_radix(text, 16).ok());
        let pending = set("SigPnd:").unwrap_or(0) | set("ShdPnd:").unwrap_or(0);
        let unheard = set("SigBlk:").unwrap_or(0) | set("SigIgn:").unwrap_or(0);
        pending & !unheard != 0
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

    fn read(&self, proc: BorrowedFd<'_>, file: &str) -> Result<String, Errno> {
        read(self.thread, proc, file)
    }
}

/// How many bytes from an address to the end of its page.
fn room_in_page(address: u64) -> usize {
    4096 - usize::try_from(address % 4096).unwrap_or(0)
}

/// A thread that has ended is readable (`pidfd_open(2)`), also before anybody reaps it.
fn has_ended(pidfd: impl AsFd) -> bool {
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&at_once)) != Ok(0)
}

/// What follows a name on its line, without white space around it.
fn field<'t>(status: &'t str, name: &str) -> Option<&'t str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim())
}

/// A file about a thread in `/proc`.
pub(super) fn read(thread: Pid, proc: BorrowedFd<'_>, file: &str) -> Result<String, Errno> {
    let path = format!("{}/{file}", thread.as_raw_nonzero());
    let fd = rustix::fs::openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = [0; 4096];
    let length = rustix::io::read(&fd, &mut text)?;
    Ok(String::from_utf8_lossy(&text[..length]).into_owned())
}

/// A descriptor for looking things up in a directory.
pub(super) fn open_directory(at: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(at, path, flags, Mode::empty())
}

/// An `int` argument: the kernel ignores the upper half of the register.
pub(super) fn low_word(argument: u64) -> i32 {
    let [a, b, c, d, ..] = argument.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

pub(super) fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
