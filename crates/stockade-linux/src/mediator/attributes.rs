//! Mode, owner and extended attributes of files.
//!
//! A protected name keeps its mode: making a hook executable is as good as writing it. And no
//! program with a set-user-id or set-group-id bit is left behind for somebody outside to run.

use std::ffi::CString;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, XattrFlags};
use rustix::io::Errno;
use stockade_rules::Kind;

use super::caller::{CWD, Caller, low_word};
use super::place::{Landing, Last, Object};
use super::record::Operation;
use super::{Answer, Mediator};

/// How a call names its file.
#[derive(Clone, Copy)]
pub(super) enum Named {
    Descriptor(u64),
    Path(u64),
}

/// `S_ISUID | S_ISGID`.
pub(super) const SET_ID: u32 = 0o6000;

/// As the kernel allows (`xattr(7)`).
const MAX_VALUE: u64 = 64 * 1024;

impl Mediator<'_> {
    pub(super) fn change_mode(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        mode: u64,
        flags: u64,
    ) -> Result<Answer, Errno> {
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
        let object = self.object_behind(caller, fd)?;
        self.set_mode(caller, &object, mode)
    }

    fn set_mode(&mut self, caller: &Caller, object: &Object, mode: u64) -> Result<Answer, Errno> {
        let mode = Mode::from_bits_truncate(low_word(mode).cast_unsigned());
        self.judge_attribute(caller, object)?;
        if mode.bits() & SET_ID != 0 && !object.kind().is_dir() {
            return Err(Errno::PERM);
        }
        rustix::fs::chmod(object.own_path(), mode)?;
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
        rustix::fs::chownat(
            &object.fd,
            c"",
            id(user).map(Uid::from_raw),
            id(group).map(Gid::from_raw),
            AtFlags::EMPTY_PATH,
        )?;
        Ok(Answer::Value(0))
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
        rustix::fs::setxattr(object.own_path(), &name, &value, flags)?;
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
        rustix::fs::removexattr(object.own_path(), &name)?;
        Ok(Answer::Value(0))
    }

    pub(super) fn judge_attribute(
        &mut self,
        caller: &Caller,
        object: &Object,
    ) -> Result<(), Errno> {
        if object.kind().is_dir() {
            self.directories.forget();
        }
        // A device may be the host's own node, whoever is let write to it.
        if matches!(
            object.kind(),
            FileType::BlockDevice | FileType::CharacterDevice
        ) {
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
            Named::Path(path) => self.object_at(caller, CWD, path, 0),
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
            let fd = caller.directory(self.proc.as_fd(), directory)?;
            return self.object(fd);
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
        let held = match caller.descriptor(fd) {
            // A container engine's filter may forbid pidfd_getfd(2), as Docker's does.
            Err(Errno::PERM) => return self.object(caller.directory(self.proc.as_fd(), fd)?),
            held => held?,
        };
        // A handle that can neither read nor write changes nothing either (open(2), O_PATH).
        if rustix::fs::fcntl_getfl(&held)?.contains(OFlags::PATH) {
            return Err(Errno::BADF);
        }
        self.object(held)
    }
}
