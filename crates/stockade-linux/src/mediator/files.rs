//! Opening and truncating files.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use stockade_rules::Kind;

use super::attributes::SET_ID;
use super::caller::{CWD, Caller, low_word};
use super::names::identity;
use super::ordinary::Written;
use super::place::{Landing, Last, Name, Object, Place};
use super::record::Operation;
use super::{Answer, Mediator, Worker};
use crate::seccomp::Inherit;

/// `/dev/tty`: whoever opens it gets their own terminal.
const TERMINAL_DEVICE: u64 = 5 << 8;

/// `/dev/null`, the same for everybody.
const NULL_DEVICE: u64 = (1 << 8) | 3;

/// `O_LARGEFILE` as the kernel has it; that of glibc is 0.
#[cfg(target_arch = "x86_64")]
const LARGE_FILE: i32 = 0o100_000;
#[cfg(not(target_arch = "x86_64"))]
const LARGE_FILE: i32 = 0o400_000;

/// The flags that the kernel knows.
const KNOWN_FLAGS: i32 = libc::O_ACCMODE
    | libc::O_CREAT
    | libc::O_EXCL
    | libc::O_NOCTTY
    | libc::O_TRUNC
    | libc::O_APPEND
    | libc::O_NONBLOCK
    | libc::O_SYNC
    | libc::O_ASYNC
    | libc::O_DIRECT
    | LARGE_FILE
    | libc::O_NOFOLLOW
    | libc::O_NOATIME
    | libc::O_CLOEXEC
    | libc::O_PATH
    | libc::O_TMPFILE;

/// How a file is to be opened.
#[derive(Clone, Copy)]
pub(super) struct Opening {
    pub(super) flags: OFlags,
    pub(super) mode: Mode,
    pub(super) inherit: Inherit,
}

impl Opening {
    fn new(flags: u64, mode: u64) -> Result<Self, Errno> {
        let flags = open_flags(flags)?;
        // No set-id program is made, whoever may run it later.
        // Nor does the kernel look at more than these bits; Java gives it a kind as well.
        let mode = Mode::from_raw_mode(low_word(mode).cast_unsigned() & 0o7777 & !SET_ID);
        let inherit = if flags.contains(OFlags::CLOEXEC) {
            Inherit::CloseOnExec
        } else {
            Inherit::Keep
        };
        Ok(Self {
            flags,
            mode,
            inherit,
        })
    }

    pub(super) fn writes(self) -> bool {
        let writes = OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC;
        self.flags.intersects(writes)
    }

    pub(super) fn creates(self) -> bool {
        self.flags.contains(OFlags::CREATE)
    }

    pub(super) fn is_exclusive(self) -> bool {
        self.flags.contains(OFlags::CREATE | OFlags::EXCL)
    }
}

impl Worker<'_, '_> {
    pub(super) fn open(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        flags: u64,
        mode: u64,
    ) -> Result<Answer, Errno> {
        let opening = Opening::new(flags, mode)?;
        let text = caller.text(path)?;
        let written = Written::new(directory, &text);
        if let Some(answer) = self.open_ordinary(caller, written, opening)? {
            return Ok(answer);
        }
        let place = self.place(caller, directory, &text);
        if matches!(place, Ok(Place::Whole { .. })) && opening.creates() {
            let name = self.name(caller, directory, &text)?;
            return Err(name.cannot_be_a_file(opening.is_exclusive()));
        }
        if let Ok(Place::Name(name)) = &place
            && let Some(answer) = self.open_name(caller, name, opening)?
        {
            return Ok(answer);
        }
        let last = if opening.is_exclusive() || opening.flags.contains(OFlags::NOFOLLOW) {
            Last::Keep
        } else {
            Last::Follow
        };
        match place.and_then(|place| self.land_at(caller, place, last)) {
            Err(Errno::ACCESS) => Err(self.refused_on_the_way(caller, directory, &text)),
            Err(error) => Err(error),
            Ok(Landing::Object(object)) => self.open_object(caller, &object, opening),
            Ok(Landing::Free(_)) if !opening.creates() => Err(Errno::NOENT),
            Ok(Landing::Free(name)) => self.create(caller, &name, opening),
        }
    }

    /// Makes or opens what has this name, in the fewest steps. None if it has to be looked at more
    /// closely: a link, what may block or belongs to somebody in particular, what the policy is
    /// about.
    fn open_name(
        &mut self,
        caller: &Caller,
        name: &Name,
        opening: Opening,
    ) -> Result<Option<Answer>, Errno> {
        let changes = opening.writes() || opening.creates();
        let kind = if changes { Kind::Write } else { Kind::Read };
        if !self.shared.rules.decide(kind, &name.path).allowed {
            return Ok(None);
        }
        if changes && self.needs_guard(&name.path) {
            return Ok(None);
        }
        if opening.creates() {
            // Without looking first whether it is there: making it tells.
            let flags = opening.flags | OFlags::EXCL;
            match self.with_umask_of(caller, |_| open_at(name, flags, opening.mode)) {
                Ok(fd) => return Ok(Some(Answer::Made(fd, opening.inherit, name.clone()))),
                Err(error) if opening.is_exclusive() => return Err(error),
                Err(_) => {}
            }
        }
        let stat = rustix::fs::statat(&name.directory, &name.last, AtFlags::SYMLINK_NOFOLLOW);
        if !stat.is_ok_and(|stat| is_plain(&stat)) {
            return Ok(None);
        }
        let flags = opening.flags & !OFlags::CREATE;
        match without_waiting(flags, |flags| open_at(name, flags, Mode::empty())) {
            // Somebody has a lease on it.
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error),
            Ok(fd) => Ok(Some(Answer::Descriptor(fd, opening.inherit))),
        }
    }

    fn open_object(
        &mut self,
        caller: &Caller,
        object: &Object,
        opening: Opening,
    ) -> Result<Answer, Errno> {
        if opening.is_exclusive() {
            return Err(Errno::EXIST);
        }
        if opening.creates() && object.kind().is_dir() {
            return Err(Errno::ISDIR);
        }
        let writes = opening.writes() || opening.flags.contains(OFlags::TMPFILE);
        if is_elsewhere(object) {
            return self.open_held(caller, object, opening);
        }
        if let Err(error) = self.judge_object(caller, object, writes) {
            return match held_already(object, opening.flags)? {
                Some(fd) => Ok(Answer::Descriptor(fd, opening.inherit)),
                None => Err(error),
            };
        }
        if writes
            && let Some(path) = &object.path
            && object.kind().is_file()
            && self.needs_guard(path)
        {
            return self.open_guarded_object(caller, object, opening);
        }
        self.reopen(caller, object, opening)
    }

    /// Opens a file that no path in the view leads to, and that a process holds open: nobody gets
    /// more of it than the caller has already. A file without a name is opened anew.
    fn open_held(
        &mut self,
        caller: &Caller,
        object: &Object,
        opening: Opening,
    ) -> Result<Answer, Errno> {
        let held = held_already(object, opening.flags)?;
        match held {
            Some(_) if object.path.is_none() => self.reopen(caller, object, opening),
            Some(fd) => Ok(Answer::Descriptor(fd, opening.inherit)),
            None => Err(Errno::ACCESS),
        }
    }

    /// A hidden directory in the path: the refusal is the policy's, and is recorded as such.
    fn refused_on_the_way(&mut self, caller: &Caller, directory: u64, text: &CStr) -> Errno {
        let path = self.lexical_path(caller, directory, text);
        let Some(path) = path else {
            return Errno::ACCESS;
        };
        let decision = self.shared.rules.decide(Kind::Read, path.as_path());
        if decision.allowed {
            return Errno::ACCESS;
        }
        let (path, rule) = (path.as_path(), decision.rule);
        self.shared.deny(caller, Operation::Read, path, rule)
    }

    /// `openat2(2)`: flags and mode lie behind a pointer.
    pub(super) fn open_with(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        how: u64,
        size: u64,
    ) -> Result<Answer, Errno> {
        let mut fields = [[0; 8]; 3];
        if size < 24 {
            return Err(Errno::INVAL);
        }
        caller.bytes(how, fields.as_flattened_mut())?;
        let [flags, mode, resolve] = fields.map(u64::from_ne_bytes);
        let makes =
            u64::from((OFlags::CREATE | OFlags::TMPFILE).bits() & !OFlags::DIRECTORY.bits());
        if flags & !u64::from(KNOWN_FLAGS.cast_unsigned()) != 0
            || mode & !0o7777 != 0
            || mode != 0 && flags & makes == 0
        {
            return Err(Errno::INVAL);
        }
        // Callers that ask for restricted resolution, or for a handle that no listener can give
        // (a descriptor with O_PATH), know how to do without: the call is young, and its users
        // fall back to openat(2).
        if resolve != 0 || size > 24 || flags & u64::from(OFlags::PATH.bits()) != 0 {
            return Err(Errno::NOSYS);
        }
        self.open(caller, directory, path, flags, mode)
    }

    pub(super) fn truncate(
        &mut self,
        caller: &Caller,
        path: u64,
        length: u64,
    ) -> Result<Answer, Errno> {
        let text = caller.text(path)?;
        if length.cast_signed() < 0 {
            return Err(Errno::INVAL);
        }
        let Landing::Object(object) = self.land(caller, CWD, &text, Last::Follow)? else {
            return Err(Errno::NOENT);
        };
        if object.kind().is_dir() {
            return Err(Errno::ISDIR);
        }
        if !object.kind().is_file() {
            return Err(Errno::INVAL);
        }
        if is_elsewhere(&object) && held_already(&object, OFlags::WRONLY)?.is_none() {
            return Err(Errno::ACCESS);
        }
        self.judge_object(caller, &object, true)?;
        let _lock = self.guard_object(caller, Operation::Open, &object)?;
        let cut = move |mediator: &Mediator<'_>, fd: &OwnedFd, flags| {
            let file = open_own(mediator, fd, flags, Mode::empty())?;
            rustix::fs::ftruncate(file, length)?;
            Ok(Answer::Value(0))
        };
        match cut(self.shared, &object.fd, OFlags::WRONLY | OFlags::NONBLOCK) {
            Err(Errno::AGAIN) => {
                let fd = object.fd;
                self.block(caller, move |mediator| cut(mediator, &fd, OFlags::WRONLY))
            }
            other => other,
        }
    }

    fn judge_object(&self, caller: &Caller, object: &Object, writes: bool) -> Result<(), Errno> {
        // What has no name can't be named by a rule: a pipe, an unlinked file.
        let Some(path) = &object.path else {
            return Ok(());
        };
        let (operation, kind) = if writes {
            (Operation::Open, Kind::Write)
        } else {
            (Operation::Read, Kind::Read)
        };
        let decision = self.shared.rules.decide(kind, path);
        if decision.allowed {
            return Ok(());
        }
        // It opens as what the caller holds already, or the caller hears of it.
        if object.held && !matches!(object.kind(), FileType::Fifo | FileType::Socket) {
            return Err(Errno::ACCESS);
        }
        if object.held {
            return Ok(());
        }
        Err(self.shared.deny(caller, operation, path, decision.rule))
    }

    /// Opens what was judged.
    pub(super) fn reopen(
        &mut self,
        caller: &Caller,
        object: &Object,
        opening: Opening,
    ) -> Result<Answer, Errno> {
        let flags = opening.flags & !(OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW);
        let answer = move |fd| Answer::Descriptor(fd, opening.inherit);
        match object.kind() {
            FileType::Symlink if flags.contains(OFlags::DIRECTORY) => return Err(Errno::NOTDIR),
            FileType::Symlink => return Err(Errno::LOOP),
            FileType::CharacterDevice if object.stat.st_rdev == TERMINAL_DEVICE => {
                let terminal = caller.terminal(self.shared.proc.as_fd())?;
                let path = format!("/dev/pts/{terminal}");
                let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
                return rustix::fs::open(path, flags, Mode::empty()).map(answer);
            }
            FileType::Fifo if !flags.intersects(OFlags::NONBLOCK | OFlags::RDWR) => {}
            _ if flags.contains(OFlags::TMPFILE) => {
                return self.with_umask_of(caller, |worker| {
                    open_own(worker.shared, &object.fd, flags, opening.mode).map(answer)
                });
            }
            FileType::RegularFile => {
                let open = |flags| open_own(self.shared, &object.fd, flags, Mode::empty());
                match without_waiting(flags, open) {
                    Err(Errno::AGAIN) => {}
                    other => return other.map(answer),
                }
            }
            _ => return open_own(self.shared, &object.fd, flags, Mode::empty()).map(answer),
        }
        let fd = rustix::io::fcntl_dupfd_cloexec(&object.fd, 0)?;
        self.block(caller, move |mediator| {
            open_own(mediator, &fd, flags, Mode::empty()).map(answer)
        })
    }

    fn create(&mut self, caller: &Caller, name: &Name, opening: Opening) -> Result<Answer, Errno> {
        if name.slash {
            return Err(Errno::ISDIR);
        }
        self.judge(caller, Operation::Create, Kind::Write, &name.path)?;
        if let Some(answer) = self.create_guarded(caller, name, opening)? {
            return Ok(answer);
        }
        let flags = opening.flags;
        let fd = self.with_umask_of(caller, |_| open_at(name, flags, opening.mode))?;
        Ok(Answer::Made(fd, opening.inherit, name.clone()))
    }
}

/// Whether opening it neither waits nor depends on who does it.
pub(super) fn is_plain(stat: &Stat) -> bool {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => true,
        FileType::CharacterDevice => stat.st_rdev == NULL_DEVICE,
        _ => false,
    }
}

/// `/dev/stderr` and its like: what the caller holds open already, if the policy would not
/// let it be opened by its name. The caller gets no more than it has.
fn held_already(object: &Object, flags: OFlags) -> Result<Option<OwnedFd>, Errno> {
    if !object.held {
        return Ok(None);
    }
    let has = fcntl_getfl(&object.fd)? & OFlags::ACCMODE;
    let wants = flags & OFlags::ACCMODE;
    let truncates = flags.contains(OFlags::TRUNC) && has == OFlags::RDONLY;
    if truncates || has != wants && has != OFlags::RDWR {
        return Ok(None);
    }
    let copy = rustix::io::fcntl_dupfd_cloexec(&object.fd, 0)?;
    Ok(Some(copy))
}

/// Whether a file that a link of `/proc` led to has no name in this view, or one that means
/// something else here.
pub(super) fn is_elsewhere(object: &Object) -> bool {
    if !object.by_link || !object.kind().is_file() {
        return false;
    }
    let Some(path) = &object.path else {
        return true;
    };
    let here = rustix::fs::lstat(path);
    here.map_or(true, |here| identity(&here) != identity(&object.stat))
}

/// Opens what has this name, and no link. Not by `O_NOFOLLOW`, which the caller would find among
/// the flags of its descriptor.
pub(super) fn open_at(name: &Name, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    // NOCTTY: a terminal opened here must not become the mediator's.
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
    let resolve = ResolveFlags::NO_SYMLINKS;
    rustix::fs::openat2(&name.directory, &name.last, flags, mode, resolve)
}

/// Opens a file without waiting for whoever has a lease on it (`fcntl(2)`): `EAGAIN` then.
pub(super) fn without_waiting(
    flags: OFlags,
    open: impl FnOnce(OFlags) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    let fd = open(flags | OFlags::NONBLOCK)?;
    if !flags.contains(OFlags::NONBLOCK) {
        let kept = OFlags::APPEND | OFlags::DIRECT | OFlags::NOATIME;
        fcntl_setfl(&fd, flags & kept)?;
    }
    Ok(fd)
}

/// Opens the very object that a descriptor of the mediator refers to, anew.
pub(super) fn open_own(
    mediator: &Mediator<'_>,
    fd: &OwnedFd,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    // NOCTTY: a terminal opened here must not become the mediator's.
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
    let number = fd.as_raw_fd().to_string();
    rustix::fs::openat(&mediator.own_descriptors, number, flags, mode)
}

/// The flags that the kernel knows of those in a register, which ignores all others; an error where
/// they don't go together. That comes before any path is looked at (open(2)).
fn open_flags(flags: u64) -> Result<OFlags, Errno> {
    let flags = OFlags::from_bits_retain((low_word(flags) & KNOWN_FLAGS).cast_unsigned());
    let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
    let nameless = flags.contains(OFlags::TMPFILE);
    if flags.contains(OFlags::CREATE | OFlags::DIRECTORY) || nameless && !writes {
        return Err(Errno::INVAL);
    }
    Ok(flags)
}
