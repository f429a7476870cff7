//! Opening and truncating files.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use stockade_rules::Kind;

use super::attributes::SET_ID;
use super::caller::{CWD, Caller, low_word};
use super::place::{Landing, Last, Name, Object, Place};
use super::record::Operation;
use super::redirects::redirects;
use super::{Answer, Mediator};
use crate::seccomp::Inherit;
use crate::sys::process::{Fork, exit_now, fork};

/// `/dev/tty`: whoever opens it gets their own terminal.
const TERMINAL_DEVICE: u64 = 5 << 8;

/// `/dev/null`, the same for everybody.
const NULL_DEVICE: u64 = (1 << 8) | 3;

/// `O_LARGEFILE` as the kernel has it; that of glibc is 0.
#[cfg(target_arch = "x86_64")]
const LARGE_FILE: i32 = 0o100_000;
#[cfg(not(target_arch = "x86_64"))]
const LARGE_FILE: i32 = 0o400_000;

impl Mediator<'_> {
    pub(super) fn open(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        flags: u64,
        mode: u64,
    ) -> Result<Answer, Errno> {
        let flags = open_flags(flags)?;
        // No set-id program is made, whoever may run it later.
        // Nor does the kernel look at more than these bits; Java gives it a kind as well.
        let mode = Mode::from_raw_mode(low_word(mode).cast_unsigned() & 0o7777 & !SET_ID);
        let inherit = if flags.contains(OFlags::CLOEXEC) {
            Inherit::CloseOnExec
        } else {
            Inherit::Keep
        };
        let text = caller.text(path)?;
        let exclusive = flags.contains(OFlags::CREATE | OFlags::EXCL);
        let last = if exclusive || flags.contains(OFlags::NOFOLLOW) {
            Last::Keep
        } else {
            Last::Follow
        };
        let place = self.place(caller, directory, &text);
        if matches!(place, Ok(Place::Whole { .. })) && flags.contains(OFlags::CREATE) {
            let name = self.name(caller, directory, &text)?;
            return Err(name.cannot_be_a_file(exclusive));
        }
        if let Ok(Place::Name(name)) = &place {
            if flags.contains(OFlags::CREATE) {
                match self.create_at_once(caller, name, flags, mode) {
                    Some(Ok(fd)) => return Ok(descriptor(fd, inherit, flags, mode)),
                    Some(Err(error)) if exclusive => return Err(error),
                    _ => {}
                }
            }
            if !exclusive && let Some((fd, mode)) = self.open_at_once(name, flags)? {
                return Ok(descriptor(fd, inherit, flags, mode));
            }
        }
        let landing = match place.and_then(|place| self.land_at(caller, place, last)) {
            Err(Errno::ACCESS) => return Err(self.refused_on_the_way(caller, directory, &text)),
            other => other?,
        };
        match landing {
            Landing::Object(_) if exclusive => Err(Errno::EXIST),
            Landing::Object(object) if flags.contains(OFlags::CREATE) && object.kind().is_dir() => {
                Err(Errno::ISDIR)
            }
            Landing::Object(object) => {
                let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC);
                if let Some(fd) = self.inherited(caller, &object, flags)? {
                    return Ok(Answer::SoleDescriptor(fd, inherit));
                }
                self.judge_object(caller, &object, writes || flags.contains(OFlags::TMPFILE))?;
                match self.reopen(caller, &object, flags, mode, inherit)? {
                    Some(fd) if object.kind().is_file() => {
                        let mode = Mode::from_raw_mode(object.stat.st_mode);
                        Ok(descriptor(fd, inherit, flags, mode))
                    }
                    Some(fd) => Ok(Answer::SoleDescriptor(fd, inherit)),
                    None => Ok(Answer::Later),
                }
            }
            Landing::Free(_) if !flags.contains(OFlags::CREATE) => Err(Errno::NOENT),
            Landing::Free(name) => {
                let fd = self.create(caller, &name, flags, mode)?;
                Ok(descriptor(fd, inherit, flags, mode))
            }
        }
    }

    /// Makes a file, without looking first whether it is there: making it tells. None if the
    /// policy has something to say about the name.
    fn create_at_once(
        &mut self,
        caller: &Caller,
        name: &Name,
        flags: OFlags,
        mode: Mode,
    ) -> Option<Result<OwnedFd, Errno>> {
        let allowed = self.rules.decide(Kind::Write, &name.path).allowed;
        allowed.then(|| self.make(caller, name, flags | OFlags::EXCL, mode))
    }

    /// Opens what has this name, and says its mode. None if it has to be looked at more closely:
    /// a link, what may block or belongs to somebody in particular, what the policy is about.
    fn open_at_once(
        &mut self,
        name: &Name,
        flags: OFlags,
    ) -> Result<Option<(OwnedFd, Mode)>, Errno> {
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC);
        let kind = if writes { Kind::Write } else { Kind::Read };
        if redirects(&name.path) || !self.rules.decide(kind, &name.path).allowed {
            return Ok(None);
        }
        let stat = rustix::fs::statat(&name.directory, &name.last, AtFlags::SYMLINK_NOFOLLOW);
        let Ok(stat) = stat else {
            return Ok(None);
        };
        let is_plain = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => true,
            FileType::CharacterDevice => stat.st_rdev == NULL_DEVICE,
            _ => false,
        };
        if !is_plain {
            return Ok(None);
        }
        let fd = open_name(name, flags & !OFlags::CREATE, Mode::empty())?;
        Ok(Some((fd, Mode::from_raw_mode(stat.st_mode))))
    }

    /// `/dev/stderr` and its like: what the caller holds open already, if the policy would not
    /// let it be opened by its name. It gets no more than it has.
    fn inherited(
        &self,
        caller: &Caller,
        object: &Object,
        flags: OFlags,
    ) -> Result<Option<OwnedFd>, Errno> {
        let Some(number) = object.descriptor else {
            return Ok(None);
        };
        let openable = object.path.as_ref().is_some_and(|path| {
            // The name may be one of the host's that means something else here.
            let here = rustix::fs::stat(path);
            here.is_ok_and(|here| {
                (here.st_dev, here.st_ino) == (object.stat.st_dev, object.stat.st_ino)
            }) && self.rules.decide(Kind::Write, path).allowed
        });
        if openable {
            return Ok(None);
        }
        if matches!(object.kind(), FileType::Fifo | FileType::Socket) {
            return Ok(None);
        }
        let held = caller.descriptor(number.into())?;
        let has = rustix::fs::fcntl_getfl(&held)? & OFlags::ACCMODE;
        let wants = flags & OFlags::ACCMODE;
        Ok((has == wants || has == OFlags::RDWR).then_some(held))
    }

    /// A hidden directory in the path: the refusal is the policy's, and is recorded as such.
    fn refused_on_the_way(&mut self, caller: &Caller, directory: u64, text: &CStr) -> Errno {
        let path = self.lexical_path(caller, directory, text);
        let Some(path) = path else {
            return Errno::ACCESS;
        };
        let decision = self.rules.decide(Kind::Read, path.as_path());
        if decision.allowed {
            return Errno::ACCESS;
        }
        self.records
            .deny(caller, Operation::Read, path.as_path(), decision.rule)
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
        if resolve != 0 {
            // Callers that ask for restricted resolution know how to do without it: the call
            // is young, and its users fall back to openat(2).
            return Err(Errno::NOSYS);
        }
        if flags & u64::from(OFlags::PATH.bits()) != 0 {
            let text = caller.text(path)?;
            let keep = flags & u64::from(OFlags::NOFOLLOW.bits()) != 0;
            let last = if keep { Last::Keep } else { Last::Follow };
            let Landing::Object(object) = self.land(caller, directory, &text, last)? else {
                return Err(Errno::NOENT);
            };
            return Ok(Answer::Descriptor(object.fd, Inherit::CloseOnExec));
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
        let Landing::Object(object) = self.land(caller, CWD, &text, Last::Follow)? else {
            return Err(Errno::NOENT);
        };
        if object.kind().is_dir() {
            return Err(Errno::ISDIR);
        }
        if !object.kind().is_file() {
            return Err(Errno::INVAL);
        }
        self.judge_object(caller, &object, true)?;
        let file = open_object(&object, OFlags::WRONLY, Mode::empty())?;
        rustix::fs::ftruncate(file, length)?;
        Ok(Answer::Value(0))
    }

    fn judge_object(
        &mut self,
        caller: &Caller,
        object: &Object,
        writes: bool,
    ) -> Result<(), Errno> {
        // What has no name can't be named by a rule: a pipe, an unlinked file.
        let Some(path) = &object.path else {
            return Ok(());
        };
        if writes {
            self.refuse_redirect(caller, Operation::Open, path, &object.stat)?;
        }
        let (operation, kind) = if writes {
            (Operation::Open, Kind::Write)
        } else {
            (Operation::Read, Kind::Read)
        };
        self.judge(caller, operation, kind, path)
    }

    /// Opens what was judged; none if a helper answers once it is open.
    fn reopen(
        &mut self,
        caller: &Caller,
        object: &Object,
        flags: OFlags,
        mode: Mode,
        inherit: Inherit,
    ) -> Result<Option<OwnedFd>, Errno> {
        let flags = flags & !(OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW);
        match object.kind() {
            FileType::Symlink if flags.contains(OFlags::DIRECTORY) => return Err(Errno::NOTDIR),
            FileType::Symlink => return Err(Errno::LOOP),
            FileType::CharacterDevice if object.stat.st_rdev == TERMINAL_DEVICE => {
                let terminal = caller.terminal(self.proc.as_fd())?;
                let path = format!("/dev/pts/{terminal}");
                let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
                return rustix::fs::open(path, flags, Mode::empty()).map(Some);
            }
            FileType::Fifo if !flags.intersects(OFlags::NONBLOCK | OFlags::RDWR) => {
                return self.open_blocking(caller, object, flags, inherit);
            }
            _ => {}
        }
        if flags.contains(OFlags::TMPFILE) {
            return self.with_umask_of(caller, |_| open_object(object, flags, mode).map(Some));
        }
        open_object(object, flags, mode).map(Some)
    }

    /// A FIFO opens when somebody opens its other end, who may need the mediator to do so: a
    /// process of its own waits for that.
    fn open_blocking(
        &self,
        caller: &Caller,
        object: &Object,
        flags: OFlags,
        inherit: Inherit,
    ) -> Result<Option<OwnedFd>, Errno> {
        match fork().map_err(|_| Errno::AGAIN)? {
            Fork::Parent(_) => Ok(None),
            Fork::Child => {
                let answer = open_object(object, flags, Mode::empty())
                    .map(|fd| Answer::SoleDescriptor(fd, inherit));
                exit_now(i32::from(self.send(caller.id, answer).is_err()))
            }
        }
    }

    fn create(
        &mut self,
        caller: &Caller,
        name: &Name,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Errno> {
        if name.slash {
            return Err(Errno::ISDIR);
        }
        if let Some(fd) = self.create_empty_git_config(caller, name)? {
            return Ok(fd);
        }
        self.judge(caller, Operation::Create, Kind::Write, &name.path)?;
        self.make(caller, name, flags, mode)
    }

    fn make(
        &mut self,
        caller: &Caller,
        name: &Name,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Errno> {
        let fd = self.with_umask_of(caller, |_| open_name(name, flags, mode))?;
        self.note_made(&name.path, fd.as_fd())?;
        Ok(fd)
    }

    /// Does something that makes a file, with the caller's umask.
    pub(super) fn with_umask_of<T>(
        &mut self,
        caller: &Caller,
        make: impl FnOnce(&mut Self) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let umask = self.callers.umask(caller, self.proc.as_fd())?;
        self.set_umask(umask);
        make(self)
    }

    pub(super) fn set_umask(&mut self, umask: Mode) {
        if self.umask != Some(umask) {
            rustix::process::umask(umask);
            self.umask = Some(umask);
        }
    }
}

/// How a regular file is handed over. One that somebody has open for writing can't be executed
/// (`ETXTBSY`), and the caller may be about to, so the mediator's own descriptor must be gone
/// before. But where nobody may execute the file, somebody must first ask the mediator to change
/// its mode, and by then it is. What is left: a lock (flock(2)) that the caller leaves to the end
/// of its descriptor lasts until the mediator's has ended too, a moment longer. Whoever opens the
/// file to write it or to make it asks the mediator and never sees that.
fn descriptor(fd: OwnedFd, inherit: Inherit, flags: OFlags, mode: Mode) -> Answer {
    let executable = mode.intersects(Mode::XUSR | Mode::XGRP | Mode::XOTH);
    if executable && flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
        Answer::SoleDescriptor(fd, inherit)
    } else {
        Answer::Descriptor(fd, inherit)
    }
}

/// Opens what has this name, and no link. Not by `O_NOFOLLOW`, which the caller would find among
/// the flags of its descriptor.
fn open_name(name: &Name, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    // NOCTTY: a terminal opened here must not become the mediator's.
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
    let resolve = ResolveFlags::NO_SYMLINKS;
    rustix::fs::openat2(&name.directory, &name.last, flags, mode, resolve)
}

/// The flags that the kernel knows of those in a register, which ignores all others; an error where
/// they don't go together. That comes before any path is looked at (open(2)).
fn open_flags(flags: u64) -> Result<OFlags, Errno> {
    const KNOWN: i32 = libc::O_ACCMODE
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
    let flags = OFlags::from_bits_retain((low_word(flags) & KNOWN).cast_unsigned());
    let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
    let nameless = flags.contains(OFlags::TMPFILE);
    if flags.contains(OFlags::CREATE | OFlags::DIRECTORY) || nameless && !writes {
        return Err(Errno::INVAL);
    }
    Ok(flags)
}

/// Opens the very object that was judged.
fn open_object(object: &Object, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    // By `self` and not by a directory opened before: this also runs in a forked child.
    let path = object.own_path();
    // NOCTTY: a terminal opened here must not become the mediator's.
    let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
    rustix::fs::open(path, flags, mode)
}
