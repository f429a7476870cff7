//! Names that make code run on the host later: git's hooks, configuration and redirects, the files
//! of editors, agents and shells.
//!
//! Which names these are, and how content is judged, says the table in
//! [`stockade_rules::protected`]; here is what only the file system can tell, and what is done
//! about it.
//!
//! One thing holds in everything that may be written, whatever the order of calls: a directory
//! that git would take hooks and configuration from (it has `objects` and `refs`, or is called
//! `.git`) has none but those that were there before, and those that were judged. So a redirect to
//! such a directory brings nothing that would not have run otherwise. [`make`] keeps this true
//! while other calls of this run, and other runs, change names at the same time.

mod copy;
mod facts;
mod git_links;
mod history;
mod hooks_path;
mod leftovers;
mod links;
mod make;
mod pin;
mod place;
mod publish;

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use rustix::fs::{AtFlags, CWD, FileType, Mode, StatxFlags};
use rustix::io::Errno;
use stockade_rules::protected::{
    Guard, Judge, ProtectedName, completes_git_directory, is_hook, is_interesting,
};

use self::facts::Relation;
use self::links::LinkTargets;
use super::caller::Caller;
use super::files::Opening;
use super::names::look_at;
use super::place::{Name, Object};
use super::record::Operation;
use super::{Answer, Worker, locked};
use crate::plan::Protection;

pub(super) use self::history::History;
pub(super) use self::make::{Making, SymbolicLink};
pub(super) use self::pin::put_back;
pub(super) use self::publish::Publications;

/// What the mediator remembers about protected names in this run.
pub(super) struct Memory {
    link_targets: LinkTargets,
    /// Directories that were the root of a repository until its `.git` was removed.
    former_roots: Mutex<HashSet<Identity>>,
    /// Directories without copies that an earlier mediator left.
    cleaned: Mutex<HashSet<Identity>>,
    /// Directories in which nothing has a private name that an earlier mediator gave it.
    restored: Mutex<HashSet<Identity>>,
}

/// A directory, whatever its name. Its birth tells it from a later one with the same inode.
#[derive(PartialEq, Eq, Hash)]
struct Identity {
    device: (u32, u32),
    inode: u64,
    born: (i64, u32),
}

/// While it is held, no call of this run judges a name or moves a directory.
pub(super) type NamesLock<'a> = MutexGuard<'a, ()>;

/// A protected name that a path is, or lies below.
#[derive(Clone, Copy)]
struct Protected {
    row: &'static ProtectedName,
    relation: Relation,
}

impl<'env> Worker<'_, 'env> {
    /// Whether a change of this name has to be looked at here.
    pub(super) fn needs_guard(&self, path: &Path) -> bool {
        let last = path.file_name();
        // A name that is part of a protected one counts too: the directory may be renamed meanwhile.
        self.in_reach(path)
            && (last.is_some_and(|last| {
                completes_git_directory(last) || is_interesting(last) || is_hook(last)
            }) || self.may_be_protected(path)
                || self.is_unmarked_object(path))
    }

    /// Whether anything here is about a name of something that is no symbolic link, whatever is
    /// done with it. What this says no to takes the short way ([`super::ordinary`]), which asks
    /// nothing else: whatever `keeps` or another guard refuses must be among these.
    pub(super) fn concerns(&self, path: &Path) -> bool {
        self.needs_guard(path)
            || self.in_reach(path)
                && (facts::is_candidate(path)
                    || self.is_above_anchor(path)
                    || self.is_above_own(path)
                    || self.is_record(path))
    }

    /// Refuses to give a protected name to something that has no content: a FIFO, a socket.
    pub(super) fn guard_new(
        &mut self,
        caller: &Caller,
        operation: Operation,
        name: &Name,
    ) -> Result<(), Errno> {
        match self.protected(&name.path) {
            Some(protected) => Err(self.refuse(caller, operation, &name.path, protected.row)),
            None => Ok(()),
        }
    }

    /// Refuses a symbolic link in the way to a protected name, or to what git writes.
    pub(super) fn guard_link(
        &mut self,
        caller: &Caller,
        name: &Name,
        link: SymbolicLink,
    ) -> Result<(), Errno> {
        match self.refusing_link(&name.path, link, Some(&name.directory)) {
            Some(row) => Err(self.refuse(caller, Operation::MakeLink, &name.path, row)),
            None => Ok(()),
        }
    }

    /// Refuses to change a protected file in place, or to give it a second name. While the result
    /// is held, no directory of this run moves, so the file stays what it was found to be.
    pub(super) fn guard_object(
        &mut self,
        caller: &Caller,
        operation: Operation,
        object: &Object,
    ) -> Result<Option<NamesLock<'env>>, Errno> {
        let Some(lock) = self.lock_for(object) else {
            return Ok(None);
        };
        match self.protected_object(object)? {
            Some((path, protected)) => Err(self.refuse(caller, operation, &path, protected.row)),
            None => Ok(Some(lock)),
        }
    }

    /// As [`Worker::guard_object`], for a mode: making a program of a hook is as good as writing it.
    pub(super) fn guard_mode(
        &mut self,
        caller: &Caller,
        object: &Object,
        mode: Mode,
    ) -> Result<Option<NamesLock<'env>>, Errno> {
        let executable = mode.intersects(Mode::XUSR | Mode::XGRP | Mode::XOTH);
        if !executable || !object.kind().is_file() {
            return Ok(None);
        }
        let Some(lock) = self.lock_for(object) else {
            return Ok(None);
        };
        match self.protected_object(object)? {
            Some((path, protected)) if protected.row.guard == Guard::GitHooks => {
                let operation = Operation::ChangeAttribute;
                Err(self.refuse(caller, operation, &path, protected.row))
            }
            _ => Ok(Some(lock)),
        }
    }

    /// The lock on names, if the name of an object can be part of a protected one.
    fn lock_for(&self, object: &Object) -> Option<NamesLock<'env>> {
        let path = object.path.as_ref()?;
        self.needs_guard(path).then(|| locked(&self.shared.names))
    }

    /// Where an object is by now, if its name there is protected.
    fn protected_object(&self, object: &Object) -> Result<Option<(PathBuf, Protected)>, Errno> {
        let path = self.named_path(object.fd.as_fd())?;
        Ok(path.and_then(|path| {
            let protected = self.protected(&path)?;
            Some((path, protected))
        }))
    }

    /// Refuses to take hooks and configuration away from the workspace's own repository. Those of
    /// other repositories, and whatever was made in this run, may go.
    pub(super) fn guard_removal(
        &mut self,
        caller: &Caller,
        operation: Operation,
        name: &Name,
    ) -> Result<(), Errno> {
        if !self.in_reach(&name.path) {
            return Ok(());
        }
        if let Some(row) = self.keeps(name, operation) {
            return Err(self.refuse(caller, operation, &name.path, row));
        }
        self.remember_root(name, operation);
        if self.may_be_protected(&name.path) {
            self.keep_removed(name);
        }
        Ok(())
    }

    /// As [`Worker::guard_removal`], for what a rename replaces: judged content may take the place
    /// of judged content.
    pub(super) fn guard_replacement(&mut self, caller: &Caller, to: &Name) -> Result<(), Errno> {
        match self.protected(&to.path) {
            Some(protected) if protected.row.judge != Judge::Never => Ok(()),
            _ => self.guard_removal(caller, Operation::Rename, to),
        }
    }

    /// Opens a file for writing whose name has to be looked at here.
    pub(super) fn open_guarded_object(
        &mut self,
        caller: &Caller,
        object: &Object,
        opening: Opening,
    ) -> Result<Answer, Errno> {
        let lock = locked(&self.shared.names);
        if let Some((path, protected)) = self.protected_object(object)? {
            drop(lock);
            let row = protected.row;
            if row.judge == Judge::Never {
                return Err(self.refuse(caller, Operation::Open, &path, row));
            }
            return self.change_judged(caller, object, &path, row, opening);
        }
        let answer = self.reopen(caller, object, opening)?;
        // Another run has a lock of its own.
        match self.protected_object(object)? {
            Some((path, protected)) => {
                Err(self.refuse(caller, Operation::Open, &path, protected.row))
            }
            None => Ok(answer),
        }
    }

    /// Keeps in mind that a directory was the root of a repository, before it loses its `.git`.
    fn remember_root(&self, name: &Name, operation: Operation) {
        if operation == Operation::Remove
            && facts::is_called_git(&name.path)
            && self.is_old(&name.directory, &*name.last)
            && let Some(root) = Identity::of(&name.directory, c"")
        {
            locked(&self.shared.memory.former_roots).insert(root);
        }
    }

    /// Records a refusal and gives the error for it.
    fn refuse(
        &self,
        caller: &Caller,
        operation: Operation,
        path: &Path,
        row: &'static ProtectedName,
    ) -> Errno {
        let mut records = self.shared.records();
        records.deny_protected(caller, &self.shared.proc, operation, path, row)
    }

    /// Why a name must stay, if it must. [`Worker::concerns`] has to know of every such name.
    fn keeps(&self, name: &Name, operation: Operation) -> Option<&'static ProtectedName> {
        if self.is_above_own(&name.path) {
            return Some(&facts::OWN_REPOSITORY);
        }
        if self.is_record(&name.path) {
            return Some(&facts::RECORD);
        }
        if operation == Operation::Rename {
            if self.is_above_anchor(&name.path) {
                return Some(&facts::PROJECT);
            }
            if self.is_object_directory(&name.path) && is_directory(name) {
                return Some(&facts::OWN_REPOSITORY);
            }
            // Without its `.git` a directory is no project, and its editor files are ordinary.
            if facts::is_called_git(&name.path) && self.is_old(&name.directory, &*name.last) {
                return Some(&facts::OLD_REPOSITORY);
            }
        }
        if !self.is_own(&name.path) {
            return None;
        }
        let stat = look_at(name).ok()?;
        let is_directory = FileType::from_raw_mode(stat.st_mode).is_dir();
        if is_directory {
            let keeps = operation == Operation::Rename
                && (facts::holds_repositories(&name.path) || facts::is_git_directory(&name.path))
                && self.was_there(&name.path);
            return keeps.then_some(&facts::OWN_REPOSITORY);
        }
        let protected = self.protected(&name.path)?;
        let guard = protected.row.guard;
        let kept = matches!(
            guard,
            Guard::GitHooks | Guard::GitConfig | Guard::GitRedirect
        );
        (kept && self.was_there(&name.path)).then_some(protected.row)
    }
}

impl Memory {
    /// Links are followed before the command runs.
    pub(super) fn new(protection: Option<&Protection>) -> Self {
        Self {
            link_targets: LinkTargets::find(protection),
            former_roots: Mutex::default(),
            cleaned: Mutex::default(),
            restored: Mutex::default(),
        }
    }

    /// Whether a repository had its root here when this run began, and lost its `.git` since.
    fn was_root(&self, directory: &Path) -> bool {
        let roots = locked(&self.former_roots);
        !roots.is_empty()
            && Identity::of(CWD, directory).is_some_and(|identity| roots.contains(&identity))
    }
}

impl Identity {
    fn of(directory: impl AsFd, path: impl rustix::path::Arg) -> Option<Self> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
        let wanted = StatxFlags::INO | StatxFlags::BTIME;
        let stat = rustix::fs::statx(directory, path, flags, wanted).ok()?;
        Some(Self {
            device: (stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            born: (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec),
        })
    }
}

fn is_directory(name: &Name) -> bool {
    look_at(name).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir())
}
