//! Making, moving and removing names.
//!
//! Errors come in the kernel's order: what exists, what is missing and what lies on another mount
//! is found out before anything is refused.

use std::ffi::{CStr, CString};
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Mode, RenameFlags, Stat, StatxFlags};
use rustix::io::Errno;
use stockade_rules::Kind;
use stockade_rules::protected::git::link::is_probe;

use super::attributes::SET_ID;
use super::caller::{Caller, low_word};
use super::ordinary::Written;
use super::place::{Landing, Last, Name, Object};
use super::protect::{Making, SymbolicLink};
use super::record::Operation;
use super::{Answer, Worker, locked};

impl Worker<'_, '_> {
    pub(super) fn make_directory(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        mode: u64,
    ) -> Result<Answer, Errno> {
        let text = caller.text(path)?;
        let mode = Mode::from_bits_truncate(low_word(mode).cast_unsigned());
        let written = Written::new(directory, &text);
        let done = self.act_on_ordinary(caller, written, |worker, at, last| {
            worker.with_umask_of(caller, |_| rustix::fs::mkdirat(at, last, mode))?;
            Ok(Some(Answer::Value(0)))
        });
        if let Some(answer) = done? {
            return Ok(answer);
        }
        let name = self.name(caller, directory, &text)?;
        self.judge_new(caller, Operation::MakeDirectory, &name)?;
        let making = Making::Directory;
        self.make(caller, Operation::MakeDirectory, &name, making, |worker| {
            worker.with_umask_of(caller, |_| {
                rustix::fs::mkdirat(&name.directory, &name.last, mode)
            })
        })?;
        Ok(Answer::Value(0))
    }

    pub(super) fn make_node(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        mode: u64,
        device: u64,
    ) -> Result<Answer, Errno> {
        let name = self.name(caller, directory, &caller.text(path)?)?;
        self.judge_new(caller, Operation::MakeNode, &name)?;
        self.guard_new(caller, Operation::MakeNode, &name)?;
        let mode = low_word(mode).cast_unsigned() & !SET_ID;
        let kind = match FileType::from_raw_mode(mode) {
            // A mode without a kind means a regular file (mknod(2)).
            FileType::Unknown if mode & libc::S_IFMT == 0 => FileType::RegularFile,
            kind => kind,
        };
        let mode = Mode::from_bits_truncate(mode);
        self.make(caller, Operation::MakeNode, &name, Making::File, |worker| {
            worker.with_umask_of(caller, |_| {
                rustix::fs::mknodat(&name.directory, name.written(), kind, mode, device)
            })
        })?;
        Ok(Answer::Value(0))
    }

    pub(super) fn remove(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        flags: u64,
    ) -> Result<Answer, Errno> {
        let flags = AtFlags::from_bits_retain(low_word(flags).cast_unsigned());
        if !(flags & !AtFlags::REMOVEDIR).is_empty() {
            return Err(Errno::INVAL);
        }
        let text = caller.text(path)?;
        if !self.has_bound() {
            let written = Written::new(directory, &text);
            let gone = self.act_on_ordinary(caller, written, |_, at, last| {
                rustix::fs::unlinkat(at, last, flags)?;
                Ok(Some(Answer::Value(0)))
            });
            if let Some(answer) = gone? {
                return Ok(answer);
            }
        }
        let name = self.name(caller, directory, &text)?;
        if !name.is_dots() {
            self.judge_old(caller, Operation::Remove, &name)?;
            self.guard_removal(caller, Operation::Remove, &name)?;
        }
        let socket = self.bound_at(&name);
        rustix::fs::unlinkat(&name.directory, name.written(), flags)?;
        if let Some(socket) = socket {
            locked(&self.shared.bound).forget(socket);
        }
        Ok(Answer::Value(0))
    }

    pub(super) fn make_symlink(
        &mut self,
        caller: &Caller,
        target: u64,
        directory: u64,
        path: u64,
    ) -> Result<Answer, Errno> {
        let [target, text] = caller.texts([target, path])?;
        if target.is_empty() {
            // Whatever is wrong with the name (symlink(2)).
            return Err(Errno::NOENT);
        }
        let name = self.name(caller, directory, &text)?;
        self.judge_new(caller, Operation::MakeLink, &name)?;
        self.refuse_redirection(caller, &name)?;
        let link = if is_probe(name.last.as_bytes(), target.as_bytes()) {
            SymbolicLink::Probe
        } else {
            SymbolicLink::Any
        };
        self.guard_link(caller, &name, link)?;
        let making = Making::SymbolicLink(link);
        self.make(caller, Operation::MakeLink, &name, making, |_| {
            rustix::fs::symlinkat(&target, &name.directory, name.written())
        })?;
        Ok(Answer::Value(0))
    }

    pub(super) fn make_link(
        &mut self,
        caller: &Caller,
        [from_directory, from_path]: [u64; 2],
        [to_directory, to_path]: [u64; 2],
        flags: u64,
    ) -> Result<Answer, Errno> {
        let flags = AtFlags::from_bits_retain(low_word(flags).cast_unsigned());
        if !(flags & !(AtFlags::EMPTY_PATH | AtFlags::SYMLINK_FOLLOW)).is_empty() {
            return Err(Errno::INVAL);
        }
        let [from, to] = caller.texts([from_path, to_path])?;
        if flags.is_empty() {
            let written = [
                Written::new(from_directory, &from),
                Written::new(to_directory, &to),
            ];
            if let Some(answer) = self.link_ordinary(caller, written)? {
                return Ok(answer);
            }
        }
        let object = self.link_source(caller, from_directory, &from, flags)?;
        let name = self.name(caller, to_directory, &to)?;
        if name.is_dots() || exists(&name) {
            return Err(Errno::EXIST);
        }
        if mount_of(&object.fd)? != mount_of(name.directory.as_fd())? {
            return Err(Errno::XDEV);
        }
        if name.slash {
            return Err(Errno::NOENT);
        }
        if object.kind().is_dir() {
            return Err(Errno::PERM);
        }
        // A second name gives whoever may write it the file itself, so the first one must be
        // writable as well, and not protected. A file without a name (O_TMPFILE) is the caller's
        // own.
        if let Some(path) = &object.path {
            self.judge(caller, Operation::MakeLink, Kind::Write, path)?;
        }
        let lock = self.guard_object(caller, Operation::MakeLink, &object)?;
        self.judge(caller, Operation::MakeLink, Kind::Write, &name.path)?;
        let mut making = Making::File;
        if object.kind().is_symlink() {
            making = Making::SymbolicLink(SymbolicLink::Any);
            self.refuse_redirection(caller, &name)?;
            self.guard_link(caller, &name, SymbolicLink::Any)?;
        } else if let Some(answer) = self.place_object(caller, &object, &name)? {
            return Ok(answer);
        }
        self.guard_new(caller, Operation::MakeLink, &name)?;
        let what = Operation::MakeLink;
        self.make_holding(lock, caller, what, &name, making, |worker| {
            rustix::fs::linkat(
                &worker.shared.own_descriptors,
                object.number(),
                &name.directory,
                name.written(),
                AtFlags::SYMLINK_FOLLOW,
            )
        })?;
        // In an overlay the first link of a host's file makes a copy with another inode number.
        // Programs that compare the two (git clone) fail then, and copy after EXDEV.
        let made = look_at(&name)?;
        if made.st_ino != object.stat.st_ino {
            rustix::fs::unlinkat(&name.directory, name.written(), AtFlags::empty())?;
            return Err(Errno::XDEV);
        }
        Ok(Answer::Value(0))
    }

    fn link_source(
        &mut self,
        caller: &Caller,
        directory: u64,
        text: &CStr,
        flags: AtFlags,
    ) -> Result<Object, Errno> {
        if flags.contains(AtFlags::EMPTY_PATH) && text.is_empty() {
            let fd = caller.directory(self.shared.proc.as_fd(), directory)?;
            return self.object(fd);
        }
        let last = if flags.contains(AtFlags::SYMLINK_FOLLOW) {
            Last::Follow
        } else {
            Last::Keep
        };
        match self.land(caller, directory, text, last)? {
            Landing::Object(object) => Ok(object),
            Landing::Free(_) => Err(Errno::NOENT),
        }
    }

    pub(super) fn rename(
        &mut self,
        caller: &Caller,
        [from_directory, from_path]: [u64; 2],
        [to_directory, to_path]: [u64; 2],
        flags: u64,
    ) -> Result<Answer, Errno> {
        let flags = rename_flags(flags)?;
        let [from, to] = caller.texts([from_path, to_path])?;
        let written = [
            Written::new(from_directory, &from),
            Written::new(to_directory, &to),
        ];
        if let Some(answer) = self.rename_ordinary(caller, written, flags)? {
            return Ok(answer);
        }
        let from = self.name(caller, from_directory, &from)?;
        let to = self.name(caller, to_directory, &to)?;
        if mount_of(from.directory.as_fd())? != mount_of(to.directory.as_fd())? {
            return Err(Errno::XDEV);
        }
        if from.is_dots() {
            return Err(Errno::BUSY);
        }
        if to.is_dots() {
            let is_there = flags.contains(RenameFlags::NOREPLACE);
            return Err(if is_there { Errno::EXIST } else { Errno::BUSY });
        }
        let mut moved = look_at(&from);
        if moved.is_err() || self.needs_guard(&to.path) {
            self.restore_leftovers(caller, &from.directory);
            self.restore_leftovers(caller, &to.directory);
            moved = look_at(&from);
        }
        let moved = moved?;
        let replaced = match look_at(&to) {
            Ok(_) if flags.contains(RenameFlags::NOREPLACE) => return Err(Errno::EXIST),
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) if !flags.contains(RenameFlags::EXCHANGE) => None,
            Err(error) => return Err(error),
        };
        let is_directory = |stat: &Stat| FileType::from_raw_mode(stat.st_mode).is_dir();
        let exchanged = replaced.filter(|_| flags.contains(RenameFlags::EXCHANGE));
        if from.slash && !is_directory(&moved)
            || to.slash && !is_directory(exchanged.as_ref().unwrap_or(&moved))
        {
            return Err(Errno::NOTDIR);
        }
        let same = replaced.is_some_and(|replaced| identity(&replaced) == identity(&moved));
        self.judge(caller, Operation::Rename, Kind::Write, &from.path)?;
        self.judge(caller, Operation::Rename, Kind::Write, &to.path)?;
        if exchanged.is_some() {
            // Whatever they are: each may be another thing by the time.
            for [from, to] in [[&from, &to], [&to, &from]] {
                self.refuse_breaking_move(caller, from, to)?;
                self.refuse_redirection(caller, to)?;
            }
        } else if is_directory(&moved) {
            self.refuse_breaking_move(caller, &from, &to)?;
        } else if FileType::from_raw_mode(moved.st_mode).is_symlink() {
            self.refuse_redirection(caller, &to)?;
        }
        // Two names of one file: the kernel leaves both (rename(2)).
        if same {
            return Ok(Answer::Value(0));
        }
        self.guard_removal(caller, Operation::Rename, &from)?;
        if exchanged.is_some() {
            self.guard_removal(caller, Operation::Rename, &to)?;
            self.exchange_guarded(caller, [&from, &to])?;
            return Ok(Answer::Value(0));
        }
        if replaced.is_some() {
            self.guard_replacement(caller, &to)?;
        }
        if let Some(answer) = self.place_renamed(caller, &from, &to, &moved)? {
            return Ok(answer);
        }
        self.move_guarded(caller, [&from, &to], &moved, flags)?;
        Ok(Answer::Value(0))
    }

    /// A directory that moves must not free or fill a name that a rule protects.
    fn refuse_breaking_move(
        &mut self,
        caller: &Caller,
        from: &Name,
        to: &Name,
    ) -> Result<(), Errno> {
        match self.shared.plan.rules.broken_by_move(&from.path, &to.path) {
            Some(rule) => {
                let (what, path) = (Operation::Rename, &from.path);
                Err(self.shared.deny(caller, what, path, Some(rule)))
            }
            None => Ok(()),
        }
    }

    /// A symbolic link must not lead the way to a name that a rule protects elsewhere.
    fn refuse_redirection(&mut self, caller: &Caller, name: &Name) -> Result<(), Errno> {
        match self.shared.plan.rules.redirected_by_link(&name.path) {
            Some(rule) => {
                let (what, path) = (Operation::MakeLink, &name.path);
                Err(self.shared.deny(caller, what, path, Some(rule)))
            }
            None => Ok(()),
        }
    }

    /// Judges a name that is to be made: what has it already is the kernel's first concern.
    fn judge_new(
        &mut self,
        caller: &Caller,
        operation: Operation,
        name: &Name,
    ) -> Result<(), Errno> {
        let decision = self.shared.rules.decide(Kind::Write, &name.path);
        if decision.allowed {
            return Ok(());
        }
        if name.is_dots() || exists(name) {
            return Err(Errno::EXIST);
        }
        let (path, rule) = (&name.path, decision.rule);
        Err(self.shared.deny(caller, operation, path, rule))
    }

    /// Judges a name that is to go: what is missing is the kernel's first concern.
    fn judge_old(
        &mut self,
        caller: &Caller,
        operation: Operation,
        name: &Name,
    ) -> Result<(), Errno> {
        let decision = self.shared.rules.decide(Kind::Write, &name.path);
        if decision.allowed {
            return Ok(());
        }
        look_at(name)?;
        let (path, rule) = (&name.path, decision.rule);
        Err(self.shared.deny(caller, operation, path, rule))
    }
}

/// What has a name, links not followed.
pub(super) fn look_at(name: &Name) -> Result<Stat, Errno> {
    rustix::fs::statat(&name.directory, &name.last, AtFlags::SYMLINK_NOFOLLOW)
}

pub(super) fn exists(name: &Name) -> bool {
    look_at(name).is_ok()
}

pub(super) fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// The mount that a directory or file was reached through.
pub(super) fn mount_of(fd: impl AsFd) -> Result<u64, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let stat = rustix::fs::statx(fd, CString::default(), flags, StatxFlags::MNT_ID)?;
    Ok(stat.stx_mnt_id)
}

/// As `fs/namei.c` checks them, before it looks at any path.
fn rename_flags(flags: u64) -> Result<RenameFlags, Errno> {
    let flags = RenameFlags::from_bits_retain(low_word(flags).cast_unsigned());
    let other = flags & !(RenameFlags::NOREPLACE | RenameFlags::EXCHANGE);
    // Whiteouts are overlayfs's own, and need a capability.
    if !other.is_empty() || flags == RenameFlags::NOREPLACE | RenameFlags::EXCHANGE {
        return Err(Errno::INVAL);
    }
    Ok(flags)
}
