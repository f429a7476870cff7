//! Mode, owner and extended attributes of files.
//!
//! A protected name keeps its mode: making a hook executable is as good as writing it. And no
//! program with a set-user-id or set-group-id bit is left behind for somebody outside to run.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, StatxFlags, Uid, XattrFlags};
use rustix::io::Errno;
use stockade_rules::Kind;

use super::caller::{CWD, Caller, low_word};
use super::files::is_elsewhere;
use super::place::{Landing, Last, Object};
use super::record::Operation;
use super::{Answer, Worker};

/// How a call names its file.
#[derive(Clone, Copy)]
pub(super) enum Named {
    Descriptor(u64),
    /// An address, and flags as of `fchmodat2(2)`.
    Path(u64, u64),
}

/// `S_ISUID | S_ISGID`.
pub(super) const SET_ID: u32 = 0o6000;

/// The right to execute, of anybody.
const EXECUTE: u32 = 0o111;

/// As the kernel allows (`xattr(7)`).
const MAX_VALUE: u64 = 64 * 1024;

impl Worker<'_, '_> {
    pub(super) fn change_mode(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        mode: u64,
        flags: u64,
    ) -> Result<Answer, Errno> {
        let known = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
        let others = AtFlags::from_bits_retain(low_word(flags).cast_unsigned()) & !known;
        if !others.is_empty() {
            return Err(Errno::INVAL);
        }
        let object = self.object_at(caller, directory, path, flags)?;
        if object.kind().is_symlink() {
            return Err(Errno::OPNOTSUPP);
        }
        self.set_mode(caller, &object, mode)
    }

    pub(super) fn change_mode_of(
        &mut self,
        caller: &Caller,
        fd: u64,
        mode: u64,
    ) -> Result<Answer, Errno> {
        let held = caller.handle(self.shared.proc.as_fd(), fd)?;
        let bits = low_word(mode).cast_unsigned() & 0o7777;
        if bits & (SET_ID | EXECUTE) == 0 && self.was_opened_to_write(&held)? {
            rustix::fs::fchmod(&held, Mode::from_raw_mode(bits))?;
            return Ok(Answer::Value(0));
        }
        let object = self.object_held(held)?;
        self.set_mode(caller, &object, mode)
    }

    /// Whether a descriptor is of a file in a directory that may be written, and for writing: then
    /// it was opened inside, and judged by that. Descriptors that the command was started with
    /// come from other mounts.
    fn was_opened_to_write(&self, held: &OwnedFd) -> Result<bool, Errno> {
        let flags = rustix::fs::fcntl_getfl(held)?;
        if !flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
            return Ok(false);
        }
        let look = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let stat = rustix::fs::statx(held, c"", look, StatxFlags::TYPE | StatxFlags::MNT_ID)?;
        let is_file = FileType::from_raw_mode(stat.stx_mode.into()).is_file();
        Ok(is_file && self.shared.is_own_mount(stat.stx_mnt_id))
    }

    fn set_mode(&mut self, caller: &Caller, object: &Object, mode: u64) -> Result<Answer, Errno> {
        let mode = Mode::from_bits_truncate(low_word(mode).cast_unsigned());
        self.judge_attribute(caller, object)?;
        if mode.bits() & SET_ID != 0 && !object.kind().is_dir() {
            return Err(Errno::PERM);
        }
        let _lock = self.guard_mode(caller, object, mode)?;
        let number = object.number();
        rustix::fs::chmodat(&self.shared.own_descriptors, number, mode, AtFlags::empty())?;
        Ok(Answer::Value(0))
    }

    pub(super) fn change_owner(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        owner: [u64; 2],
        flags: u64,
    ) -> Result<Answer, Errno> {
        let object = self.object_at(caller, directory, path, flags)?;
        self.set_owner(caller, &object, owner)
    }

    pub(super) fn change_owner_of(
        &mut self,
        caller: &Caller,
        fd: u64,
        owner: [u64; 2],
    ) -> Result<Answer, Errno> {
        let object = self.object_behind(caller, fd)?;
        self.set_owner(caller, &object, owner)
    }

    fn set_owner(
        &mut self,
        caller: &Caller,
        object: &Object,
        [user, group]: [u64; 2],
    ) -> Result<Answer, Errno> {
        self.judge_attribute(caller, object)?;
        // -1 leaves the one or the other as it is (chown(2)).
        let id = |number: u64| {
            let number = low_word(number).cast_unsigned();
            (number != u32::MAX).then_some(number)
        };
        let changed = rustix::fs::chownat(
            &object.fd,
            c"",
            id(user).map(Uid::from_raw),
            id(group).map(Gid::from_raw),
            AtFlags::EMPTY_PATH,
        );
        match changed {
            // An id that the user namespace does not have: without one it would be somebody
            // else's, which only a privileged process may name (chown(2)).
            Err(Errno::INVAL) => Err(Errno::PERM),
            other => other.map(|()| Answer::Value(0)),
        }
    }

    pub(super) fn set_attribute(
        &mut self,
        caller: &Caller,
        file: Named,
        arguments: &[u64; 6],
    ) -> Result<Answer, Errno> {
        let object = self.object_named(caller, file)?;
        self.judge_attribute(caller, &object)?;
        let name = caller.text(arguments[1])?;
        if arguments[3] > MAX_VALUE {
            return Err(Errno::TOOBIG);
        }
        let mut value = vec![0; usize::try_from(arguments[3]).map_err(|_| Errno::TOOBIG)?];
        caller.bytes(arguments[2], &mut value)?;
        let flags = XattrFlags::from_bits_retain(low_word(arguments[4]).cast_unsigned());
        let file = self.own_name(&object)?;
        rustix::fs::setxattr(file, &name, &value, flags)?;
        Ok(Answer::Value(0))
    }

    pub(super) fn remove_attribute(
        &mut self,
        caller: &Caller,
        file: Named,
        name: u64,
    ) -> Result<Answer, Errno> {
        let object = self.object_named(caller, file)?;
        self.judge_attribute(caller, &object)?;
        let name: CString = caller.text(name)?;
        let file = self.own_name(&object)?;
        rustix::fs::removexattr(file, &name)?;
        Ok(Answer::Value(0))
    }

    pub(super) fn judge_attribute(
        &mut self,
        caller: &Caller,
        object: &Object,
    ) -> Result<(), Errno> {
        // A device may be the host's own node, whoever is let write to it.
        if matches!(
            object.kind(),
            FileType::BlockDevice | FileType::CharacterDevice
        ) {
            return Err(Errno::PERM);
        }
        if object.path.is_some() && is_elsewhere(object) {
            return Err(Errno::PERM);
        }
        match object.path.clone() {
            Some(path) => self.judge(caller, Operation::ChangeAttribute, Kind::Write, &path),
            None => Ok(()),
        }
    }

    fn object_named(&mut self, caller: &Caller, file: Named) -> Result<Object, Errno> {
        match file {
            Named::Descriptor(fd) => self.object_behind(caller, fd),
            Named::Path(path, flags) => self.object_at(caller, CWD, path, flags),
        }
    }

    pub(super) fn object_at(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        flags: u64,
    ) -> Result<Object, Errno> {
        let flags = AtFlags::from_bits_retain(low_word(flags).cast_unsigned());
        let text = caller.text(path)?;
        if text.is_empty() && flags.contains(AtFlags::EMPTY_PATH) {
            let fd = caller.directory(self.shared.proc.as_fd(), directory)?;
            let by_link = true;
            let object = self.object(fd)?;
            return Ok(Object { by_link, ..object });
        }
        let keep = flags.contains(AtFlags::SYMLINK_NOFOLLOW);
        let last = if keep { Last::Keep } else { Last::Follow };
        match self.land(caller, directory, &text, last)? {
            Landing::Object(object) => Ok(object),
            Landing::Free(_) => Err(Errno::NOENT),
        }
    }

    /// What a descriptor of the caller refers to.
    pub(super) fn object_behind(&self, caller: &Caller, fd: u64) -> Result<Object, Errno> {
        self.object_held(caller.handle(self.shared.proc.as_fd(), fd)?)
    }

    fn object_held(&self, held: OwnedFd) -> Result<Object, Errno> {
        // A handle that can neither read nor write changes nothing either (open(2), O_PATH).
        if rustix::fs::fcntl_getfl(&held)?.contains(OFlags::PATH) {
            return Err(Errno::BADF);
        }
        let by_link = true;
        let object = self.object(held)?;
        Ok(Object { by_link, ..object })
    }

    /// A relative name by which the worker can act on this very object, for calls that take no
    /// descriptor. The worker is in its own `/proc/self/fd` then.
    fn own_name(&self, object: &Object) -> Result<String, Errno> {
        if object.kind().is_symlink() {
            // Links have no attributes that a program could set (xattr(7)).
            return Err(Errno::PERM);
        }
        rustix::process::fchdir(&self.shared.own_descriptors)?;
        Ok(object.number())
    }
}
