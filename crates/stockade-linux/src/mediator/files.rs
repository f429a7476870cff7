//! Opening and truncating files.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use stockade_rules::Kind;

use super::caller::{Caller, low_word};
use super::place::{Landing, Last, Name, Object};
use super::record::Operation;
use super::{Answer, Mediator};
use crate::seccomp::Inherit;
use crate::sys::process::{Fork, exit_now, fork};

/// `/dev/tty`: whoever opens it gets their own terminal.
const TERMINAL_DEVICE: u64 = 5 << 8;

impl Mediator<'_> {
    pub(super) fn open(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        flags: u64,
        mode: u64,
    ) -> Result<Answer, Errno> {
        let flags = OFlags::from_bits_retain(low_word(flags).cast_unsigned());
        let mode = Mode::from_bits_truncate(low_word(mode).cast_unsigned());
        let text = caller.text(path)?;
        let exclusive = flags.contains(OFlags::CREATE | OFlags::EXCL);
        let last = if exclusive || flags.contains(OFlags::NOFOLLOW) {
            Last::Keep
        } else {
            Last::Follow
        };
        let fd = match self.land(caller, directory, &text, last)? {
            Landing::Object(_) if exclusive => return Err(Errno::EXIST),
            Landing::Object(object) => {
                let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::TRUNC);
                self.judge_object(caller, &object, writes || flags.contains(OFlags::TMPFILE))?;
                match self.reopen(caller, &object, flags, mode)? {
                    Some(fd) => fd,
                    None => return Ok(Answer::Later),
                }
            }
            Landing::Free(name) => {
                if !flags.contains(OFlags::CREATE) {
                    return Err(Errno::NOENT);
                }
                self.create(caller, &name, flags, mode)?
            }
        };
        let inherit = if flags.contains(OFlags::CLOEXEC) {
            Inherit::CloseOnExec
        } else {
            Inherit::Keep
        };
        Ok(Answer::Descriptor(fd, inherit))
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
        let cwd = libc::AT_FDCWD as u64;
        let Landing::Object(object) = self.land(caller, cwd, &text, Last::Follow)? else {
            return Err(Errno::NOENT);
        };
        if object.kind().is_dir() {
            return Err(Errno::ISDIR);
        }
        if !object.kind().is_file() {
            return Err(Errno::INVAL);
        }
        self.judge_object(caller, &object, true)?;
        let file = self.open_object(&object, OFlags::WRONLY, Mode::empty())?;
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
        let kind = if writes { Kind::Write } else { Kind::Read };
        self.judge(caller, Operation::Open, kind, path)
    }

    /// Opens what was judged; none if a helper answers once it is open.
    fn reopen(
        &mut self,
        caller: &Caller,
        object: &Object,
        flags: OFlags,
        mode: Mode,
    ) -> Result<Option<OwnedFd>, Errno> {
        let flags = flags & !(OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW);
        match object.kind() {
            FileType::Symlink => return Err(Errno::LOOP),
            FileType::CharacterDevice if object.stat.st_rdev == TERMINAL_DEVICE => {
                let terminal = caller.terminal(self.proc.as_fd())?;
                let path = format!("/dev/pts/{terminal}");
                let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
                return rustix::fs::open(path, flags, Mode::empty()).map(Some);
            }
            FileType::Fifo if !flags.intersects(OFlags::NONBLOCK | OFlags::RDWR) => {
                return self.open_blocking(caller, object, flags);
            }
            _ => {}
        }
        self.open_object(object, flags, mode).map(Some)
    }

    fn open_object(&self, object: &Object, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let number = object.fd.as_raw_fd().to_string();
        // NOCTTY: a terminal opened here must not become the mediator's.
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
        rustix::fs::openat(&self.own_descriptors, number, flags, mode)
    }

    /// A FIFO opens when somebody opens its other end, who may need the mediator to do so: a
    /// process of its own waits for that.
    fn open_blocking(
        &self,
        caller: &Caller,
        object: &Object,
        flags: OFlags,
    ) -> Result<Option<OwnedFd>, Errno> {
        match fork().map_err(|_| Errno::AGAIN)? {
            Fork::Parent(_) => Ok(None),
            Fork::Child => {
                let inherit = if flags.contains(OFlags::CLOEXEC) {
                    Inherit::CloseOnExec
                } else {
                    Inherit::Keep
                };
                let answer = self
                    .open_object(object, flags, Mode::empty())
                    .map(|fd| Answer::Descriptor(fd, inherit));
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
        self.judge(caller, Operation::Create, Kind::Write, &name.path)?;
        self.with_umask_of(caller, |_| {
            let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
            rustix::fs::openat(&name.directory, &name.name, flags, mode)
        })
    }

    /// Does something that makes a file, with the caller's umask.
    pub(super) fn with_umask_of<T>(
        &mut self,
        caller: &Caller,
        make: impl FnOnce(&mut Self) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let umask = caller.umask(self.proc.as_fd())?;
        rustix::process::umask(umask);
        make(self)
    }
}
