//! Making, moving and removing names.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Mode, RenameFlags};
use rustix::io::Errno;
use stockade_rules::{Access, Kind, Rank};

use super::attributes::SET_ID;
use super::caller::{Caller, low_word};
use super::place::{Landing, Last, Name};
use super::record::Operation;
use super::redirects::redirects;
use super::{Answer, Mediator};

impl Mediator<'_> {
    pub(super) fn make_directory(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        mode: u64,
    ) -> Result<Answer, Errno> {
        let name = self.name(caller, directory, &caller.text(path)?)?;
        if !self.is_harmless_directory(&name) {
            self.judge(caller, Operation::MakeDirectory, Kind::Write, &name.path)?;
        }
        let mode = Mode::from_bits_truncate(low_word(mode).cast_unsigned());
        self.with_umask_of(caller, |_| {
            rustix::fs::mkdirat(&name.directory, &name.last, mode)
        })?;
        Ok(Answer::Value(0))
    }

    /// `git init` makes an empty `hooks`: it holds nothing, and nothing but samples can be put
    /// in it.
    fn is_harmless_directory(&self, name: &Name) -> bool {
        if name.last.as_bytes() != b"hooks" {
            return false;
        }
        let decision = self.rules.decide(Kind::Write, &name.path);
        let built_in = decision
            .rule
            .is_some_and(|rule| rule.rank == Rank::Default && rule.access == Access::DenyWrite);
        let inside = || {
            let parent = name.path.parent();
            parent.is_some_and(|parent| self.rules.decide(Kind::Write, parent).allowed)
        };
        built_in && decision.names(&name.path) && inside()
    }

    pub(super) fn make_node(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        mode: u64,
        device: u64,
    ) -> Result<Answer, Errno> {
        let name = self.judged_name(caller, directory, path, Operation::MakeNode)?;
        let mode = low_word(mode).cast_unsigned() & !SET_ID;
        let kind = match FileType::from_raw_mode(mode) {
            // A mode without a kind means a regular file (mknod(2)).
            FileType::Unknown if mode & libc::S_IFMT == 0 => FileType::RegularFile,
            kind => kind,
        };
        let mode = Mode::from_bits_truncate(mode);
        self.with_umask_of(caller, |_| {
            rustix::fs::mknodat(&name.directory, name.written(), kind, mode, device)
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
        let name = self.judged_name(caller, directory, path, Operation::Remove)?;
        let flags = AtFlags::from_bits_retain(low_word(flags).cast_unsigned());
        self.refuse_redirect_at(caller, Operation::Remove, &name)?;
        rustix::fs::unlinkat(&name.directory, name.written(), flags)?;
        Ok(Answer::Value(0))
    }

    pub(super) fn make_symlink(
        &mut self,
        caller: &Caller,
        target: u64,
        directory: u64,
        path: u64,
    ) -> Result<Answer, Errno> {
        let target = caller.text(target)?;
        if target.is_empty() {
            // Whatever is wrong with the name (symlink(2)).
            return Err(Errno::NOENT);
        }
        let name = self.judged_name(caller, directory, path, Operation::MakeLink)?;
        self.refuse_redirection(caller, &name)?;
        rustix::fs::symlinkat(&target, &name.directory, name.written())?;
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
        let text = caller.text(from_path)?;
        let object = if flags.contains(AtFlags::EMPTY_PATH) && text.is_empty() {
            let fd = caller.directory(self.proc.as_fd(), from_directory)?;
            self.object(fd)?
        } else {
            let last = if flags.contains(AtFlags::SYMLINK_FOLLOW) {
                Last::Follow
            } else {
                Last::Keep
            };
            match self.land(caller, from_directory, &text, last)? {
                Landing::Object(object) => object,
                Landing::Free(_) => return Err(Errno::NOENT),
            }
        };
        // A second name gives whoever may write it the file itself, so the first one must be
        // writable as well. A file without a name (O_TMPFILE) is the caller's own.
        if let Some(path) = &object.path {
            self.judge(caller, Operation::MakeLink, Kind::Write, path)?;
        }
        let name = self.judged_name(caller, to_directory, to_path, Operation::MakeLink)?;
        if object.kind().is_symlink() {
            self.refuse_redirection(caller, &name)?;
        }
        self.refuse_redirect_at(caller, Operation::MakeLink, &name)?;
        let number = object.number();
        rustix::fs::linkat(
            &self.own_descriptors,
            number,
            &name.directory,
            name.written(),
            AtFlags::SYMLINK_FOLLOW,
        )?;
        self.note_named(&name.path, &object.stat);
        Ok(Answer::Value(0))
    }

    pub(super) fn rename(
        &mut self,
        caller: &Caller,
        [from_directory, from_path]: [u64; 2],
        [to_directory, to_path]: [u64; 2],
        flags: u64,
    ) -> Result<Answer, Errno> {
        let flags = RenameFlags::from_bits_retain(low_word(flags).cast_unsigned());
        if !(flags & !(RenameFlags::NOREPLACE | RenameFlags::EXCHANGE)).is_empty() {
            return Err(Errno::INVAL);
        }
        let from = self.name(caller, from_directory, &caller.text(from_path)?)?;
        let to = self.name(caller, to_directory, &caller.text(to_path)?)?;
        if from.is_dots() {
            return Err(Errno::BUSY);
        }
        if to.is_dots() {
            let is_there = flags.contains(RenameFlags::NOREPLACE);
            return Err(if is_there { Errno::EXIST } else { Errno::BUSY });
        }
        self.judge(caller, Operation::Rename, Kind::Write, &from.path)?;
        if let Some(answer) = self.place_git_config(caller, &from, &to, flags)? {
            return Ok(answer);
        }
        self.judge(caller, Operation::Rename, Kind::Write, &to.path)?;
        self.refuse_redirect_at(caller, Operation::Rename, &from)?;
        self.refuse_redirect_at(caller, Operation::Rename, &to)?;
        self.refuse_unsafe_move(caller, &from, &to)?;
        if flags.contains(RenameFlags::EXCHANGE) {
            self.refuse_unsafe_move(caller, &to, &from)?;
        }
        let moved = rustix::fs::statat(&from.directory, &from.last, AtFlags::SYMLINK_NOFOLLOW)?;
        rustix::fs::renameat_with(
            &from.directory,
            from.written(),
            &to.directory,
            to.written(),
            flags,
        )?;
        self.note_named(&to.path, &moved);
        Ok(Answer::Value(0))
    }

    /// What moves must not free, fill or redirect a protected name.
    fn refuse_unsafe_move(&mut self, caller: &Caller, from: &Name, to: &Name) -> Result<(), Errno> {
        let stat = rustix::fs::statat(&from.directory, &from.last, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => match self.plan.rules.broken_by_move(&from.path, &to.path) {
                Some(rule) => {
                    Err(self
                        .records
                        .deny(caller, Operation::Rename, &from.path, Some(rule)))
                }
                None => Ok(()),
            },
            FileType::Symlink => self.refuse_redirection(caller, to),
            _ => Ok(()),
        }
    }

    fn refuse_redirect_at(
        &mut self,
        caller: &Caller,
        operation: Operation,
        name: &Name,
    ) -> Result<(), Errno> {
        if !redirects(&name.path) {
            return Ok(());
        }
        match rustix::fs::statat(&name.directory, &name.last, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => self.refuse_redirect(caller, operation, &name.path, &stat),
            // What does not exist redirects nothing.
            Err(_) => Ok(()),
        }
    }

    fn refuse_redirection(&mut self, caller: &Caller, name: &Name) -> Result<(), Errno> {
        match self.plan.rules.redirected_by_link(&name.path) {
            Some(rule) => {
                Err(self
                    .records
                    .deny(caller, Operation::MakeLink, &name.path, Some(rule)))
            }
            None => Ok(()),
        }
    }

    fn judged_name(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        operation: Operation,
    ) -> Result<Name, Errno> {
        let name = self.name(caller, directory, &caller.text(path)?)?;
        self.judge(caller, operation, Kind::Write, &name.path)?;
        Ok(name)
    }
}
