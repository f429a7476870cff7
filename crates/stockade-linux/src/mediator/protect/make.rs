//! Names that are made while others change names at the same time.
//!
//! Calls of this run that could disturb each other wait for one lock: they make a name that can be
//! part of a protected one, or move a directory. Between runs there is no lock, because whatever
//! two mediators can lock, a program inside can hold for ever. Instead each call judges, acts, and
//! then judges again what the file system has become. Of two runs whose calls break the rule
//! together, the one that acts second sees what the other did, and takes its own part back.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use stockade_rules::protected::{
    Anchor, Guard, Judge, ProtectedName, completes_git_directory, is_same_name,
};

use super::NamesLock;
use super::facts::{self, Relation};
use super::pin::{Pinned, kind_of, put_back};
use crate::mediator::caller::Caller;
use crate::mediator::files::{Opening, open_at, without_waiting};
use crate::mediator::names::{identity, look_at};
use crate::mediator::place::{Directory, Name};
use crate::mediator::record::Operation;
use crate::mediator::{Answer, Worker, locked};

/// What is made under a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::mediator) enum Making {
    /// An empty directory: it has an effect only where it completes a git directory.
    Directory,
    File,
    SymbolicLink(SymbolicLink),
}

/// What is known about a symbolic link.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::mediator) enum SymbolicLink {
    Any,
    /// Git tries whether the file system has links.
    Probe,
}

/// A directory on its way to another name.
struct Moving {
    directory: Rc<Directory>,
    /// It was a git directory before, so what it holds was judged.
    was_git: bool,
}

impl<'env> Worker<'_, 'env> {
    /// Makes something. A name that can be part of a protected one is judged before and after.
    pub(in crate::mediator) fn make<T>(
        &mut self,
        caller: &Caller,
        operation: Operation,
        name: &Name,
        making: Making,
        act: impl FnOnce(&mut Self) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        self.make_holding(None, caller, operation, name, making, act)
    }

    /// As [`Worker::make`], where names may be locked already.
    pub(in crate::mediator) fn make_holding<T>(
        &mut self,
        lock: Option<NamesLock<'env>>,
        caller: &Caller,
        operation: Operation,
        name: &Name,
        making: Making,
        act: impl FnOnce(&mut Self) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        if !self.needs_guard_as(&name.path, making) {
            return act(self);
        }
        self.mark_objects(&name.path)?;
        let _lock = lock.unwrap_or_else(|| locked(&self.shared.names));
        self.check_entry(caller, operation, name, making)?;
        self.check_completion(caller, operation, name, facts::would_complete)?;
        let result = act(self)?;
        let made = look_at(name);
        let still = self
            .check_entry(caller, operation, name, making)
            .and_then(|()| self.check_completion(caller, operation, name, completed));
        if let Err(error) = still {
            take_back(name, making, made.as_ref());
            return Err(error);
        }
        Ok(result)
    }

    /// Moves what was judged otherwise, and no file to a name that judges content.
    pub(in crate::mediator) fn move_guarded(
        &mut self,
        caller: &Caller,
        [from, to]: [&Name; 2],
        moved: &Stat,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        let making = match kind_of(moved) {
            FileType::Directory => Making::Directory,
            FileType::Symlink => Making::SymbolicLink(SymbolicLink::Any),
            _ => Making::File,
        };
        let is_directory = making == Making::Directory;
        let is_link = matches!(making, Making::SymbolicLink(_));
        let guarded = self.needs_guard(&to.path)
            || is_link
                && self
                    .refusing_git_link(&to.path, Some(&to.directory))
                    .is_some();
        let go = |at: &Directory, last: &CStr| {
            rustix::fs::renameat_with(at, last, &to.directory, to.written(), flags)
        };
        let undo = || {
            let (here, there) = (to.directory.as_fd(), from.directory.as_fd());
            // Whoever is in the way has removed it already.
            let _ = put_back((here, &to.last), (there, &from.last));
        };
        if !(guarded || is_directory && self.in_reach(&to.path)) {
            go(&from.directory, &from.written())?;
            // Rules were asked about what was seen there, and that may have been replaced.
            if look_at(to).is_ok_and(|there| kind_of(&there) != kind_of(moved)) {
                undo();
                return Err(Errno::BUSY);
            }
            // The directory may have become one of git's meanwhile.
            let still = if is_link {
                self.check_entry(caller, Operation::Rename, to, making)
            } else {
                Ok(())
            };
            if still.is_err() {
                undo();
            }
            return still;
        }
        let operation = Operation::Rename;
        self.mark_objects(&to.path)?;
        let _lock = locked(&self.shared.names);
        // Beside its old name, which a later run may have to give back. Only where names are
        // protected, no caller can use a private one.
        let beside = if self.in_reach(&from.path) { from } else { to };
        let pinned = guarded
            .then(|| Pinned::new(from, &beside.directory, moved))
            .transpose()?;
        let (at, last) = match &pinned {
            Some(pinned) => (pinned.directory, &pinned.last),
            None => (&*from.directory, &from.last),
        };
        let moving = is_directory.then(|| Moving::new(at, last, from));
        let check = |worker: &mut Self, completion: fn(&Name) -> bool| {
            match &moving {
                Some(Ok(moving)) => worker.check_directory(caller, moving, to)?,
                Some(Err(error)) => return Err(*error),
                None => worker.check_entry(caller, operation, to, making)?,
            }
            worker.check_completion(caller, operation, to, completion)
        };
        let gone = check(self, facts::would_complete).and_then(|()| go(at, last));
        if let (Err(_), Some(pinned)) = (gone, &pinned) {
            pinned.put_back();
        }
        gone?;
        let still = match &moving {
            // Another directory was moved than the one that was judged.
            Some(Ok(moving)) if !moving.is_at(to) => Err(Errno::BUSY),
            _ => check(self, completed),
        };
        if still.is_err() {
            undo();
        }
        still
    }

    /// Exchanges what two names mean. Neither of the two can be judged and put in place in one step:
    /// so no such name may be protected, or on the way to one that is.
    pub(in crate::mediator) fn exchange_guarded(
        &mut self,
        caller: &Caller,
        names: [&Name; 2],
    ) -> Result<(), Errno> {
        let exchange = || {
            let [(first, a), (second, b)] = names.map(|name| (&name.directory, name.written()));
            rustix::fs::renameat_with(first, a, second, b, RenameFlags::EXCHANGE)
        };
        let _lock = locked(&self.shared.names);
        self.check_exchange(caller, names)?;
        exchange()?;
        let still = self.check_exchange(caller, names);
        if still.is_err() {
            let _ = exchange();
        }
        still
    }

    fn check_exchange(&self, caller: &Caller, names: [&Name; 2]) -> Result<(), Errno> {
        for name in names {
            let path = name.current_path()?;
            let storage = || facts::is_git_storage(&path).then_some(&facts::GIT_STORAGE);
            let objects = || {
                self.is_object_directory(&path)
                    .then_some(&facts::OWN_REPOSITORY)
            };
            if !self.in_reach(&path) {
                continue;
            }
            let link = self.refusing_link(&path, SymbolicLink::Any, None);
            if let Some(row) = link.or_else(storage).or_else(objects) {
                return Err(self.refuse(caller, Operation::Rename, &path, row));
            }
            if self.needs_guard(&path) {
                return Err(Errno::INVAL);
            }
        }
        Ok(())
    }

    /// Makes a file whose name has to be looked at here; none if nothing is against it.
    pub(in crate::mediator) fn create_guarded(
        &mut self,
        caller: &Caller,
        name: &Name,
        opening: Opening,
    ) -> Result<Option<Answer>, Errno> {
        if !self.needs_guard(&name.path) {
            return Ok(None);
        }
        if let Some(protected) = self.protected(&name.path) {
            let row = protected.row;
            let compared = opening.is_exclusive()
                && opening.writes()
                && self.may_write_old(caller, &name.path, row);
            if row.judge == Judge::Never && !compared {
                return Err(self.refuse(caller, Operation::Create, &name.path, row));
            }
            return self.create_judged(caller, name, row, opening).map(Some);
        }
        let answer = self.make(caller, Operation::Create, name, Making::File, |worker| {
            let (flags, mode) = (opening.flags, opening.mode);
            // Not even for a FIFO that somebody made meanwhile: others wait for the lock.
            let open = |flags| open_at(name, flags, mode);
            let fd = worker.with_umask_of(caller, |_| without_waiting(flags, open))?;
            Ok(Answer::Descriptor(fd, opening.inherit))
        });
        answer.map(Some)
    }

    /// Why a symbolic link of this name could lead a program to another file than the judged one.
    pub(super) fn refusing_link(
        &self,
        path: &Path,
        link: SymbolicLink,
        held: Option<&Directory>,
    ) -> Option<&'static ProtectedName> {
        let found = self
            .protected(path)
            .or_else(|| self.protected_below(path).next());
        let row = found.map(|protected| protected.row);
        let mut targets = self.shared.memory.link_targets.below(path);
        let row = row.or_else(|| targets.next().map(|(_, row)| row));
        let row = row.or_else(|| self.hooks_brought(path, None));
        let row = row.or_else(|| self.is_above_anchor(path).then_some(&facts::PROJECT));
        row.or_else(|| match link {
            SymbolicLink::Any => self.refusing_git_link(path, held),
            SymbolicLink::Probe => None,
        })
    }

    /// Whether making something under a name has to be looked at here.
    fn needs_guard_as(&self, path: &Path, making: Making) -> bool {
        let is_link = matches!(making, Making::SymbolicLink(_));
        is_link && self.in_reach(path) || self.needs_guard(path)
    }

    /// Refuses an entry whose name is protected where its directory is now.
    fn check_entry(
        &self,
        caller: &Caller,
        operation: Operation,
        name: &Name,
        making: Making,
    ) -> Result<(), Errno> {
        let path = name.current_path()?;
        let row = match making {
            Making::Directory => None,
            Making::File => self.protected(&path).map(|protected| protected.row),
            Making::SymbolicLink(link) => self.refusing_link(&path, link, Some(&*name.directory)),
        };
        match row {
            Some(row) => Err(self.refuse(caller, operation, &path, row)),
            None => Ok(()),
        }
    }

    /// Refuses to complete a git directory that was not judged.
    fn check_completion(
        &mut self,
        caller: &Caller,
        operation: Operation,
        name: &Name,
        completes: fn(&Name) -> bool,
    ) -> Result<(), Errno> {
        let last = OsStr::from_bytes(name.last.as_bytes());
        if !completes_git_directory(last) || !completes(name) {
            return Ok(());
        }
        let path = name.current_path()?;
        match path.parent() {
            Some(directory) if facts::is_called_git(directory) => Ok(()),
            _ => self.require_clean(caller, operation, &name.directory),
        }
    }

    /// A directory that moves brings what is in it to another name.
    fn check_directory(
        &mut self,
        caller: &Caller,
        moving: &Moving,
        to: &Name,
    ) -> Result<(), Errno> {
        let path = to.current_path()?;
        let refused = match self.protected_directory(&path) {
            // A directory that is called `.git` from now on.
            Some(protected) if protected.row.guard == Guard::GitRedirect => {
                if !moving.was_git {
                    self.require_clean(caller, Operation::Rename, &moving.directory)?;
                }
                None
            }
            // An empty one too: somebody may be about to make a file in it.
            Some(protected) => Some(protected.row),
            None => None,
        };
        self.require_no_links_at(caller, &moving.directory, &path)?;
        let mut below = self.protected_below(&path);
        let is_in_git = facts::is_in_git(&path);
        let brought = below.find(|protected| match protected.relation {
            // Whether or not it is there: a call that takes no lock may be about to make it.
            Relation::Above(_) if protected.row.anchor == Anchor::Root || is_in_git => true,
            Relation::Above(rest) => facts::is_there(&moving.directory, rest),
            Relation::Exact | Relation::Below => true,
        });
        let brought = brought.map(|protected| protected.row);
        let mut targets = self.shared.memory.link_targets.below(&path);
        let linked = targets.find(|(way, _)| facts::is_there(&moving.directory, *way));
        let brought = brought
            .or(linked.map(|(_, row)| row))
            .or_else(|| self.hooks_brought(&path, Some(&moving.directory)));
        let was_judged = moving.was_git || facts::is_git_storage(&moving.directory.path);
        let place = if self.is_above_anchor(&path) {
            Some(&facts::PROJECT)
        } else if facts::is_git_storage(&path) && !was_judged {
            Some(&facts::GIT_STORAGE)
        } else {
            let holds_objects = self.is_object_directory(&path);
            holds_objects.then_some(&facts::OWN_REPOSITORY)
        };
        match refused.or(brought).or(place) {
            Some(row) => Err(self.refuse(caller, Operation::Rename, &path, row)),
            None => Ok(()),
        }
    }
}

impl Moving {
    /// The directory that has the name `last` at `at`, on its way from `from`.
    fn new(at: &Directory, last: &CStr, from: &Name) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd: OwnedFd = rustix::fs::openat(at, last, flags, Mode::empty())?;
        let has = |name| rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let was_git = is_same_name(".git", from.last.as_bytes()) || has("objects") && has("refs");
        // Not by going there: a directory that can't be searched may be moved all the same.
        let directory = Rc::new(Directory::at(fd, from.path.clone()));
        Ok(Self { directory, was_git })
    }

    /// Whether nothing else has the name that the directory was moved to.
    fn is_at(&self, name: &Name) -> bool {
        match (look_at(name), rustix::fs::fstat(&self.directory)) {
            (Err(Errno::NOENT), _) => true,
            (Ok(there), Ok(moved)) => identity(&there) == identity(&moved),
            _ => false,
        }
    }
}

fn completed(name: &Name) -> bool {
    facts::is_git_directory_at(&name.directory)
}

/// Removes what a call made, unless something else has the name by now.
fn take_back(name: &Name, making: Making, made: Result<&Stat, &Errno>) {
    let there = look_at(name);
    let same = made.is_ok_and(|made| there.is_ok_and(|there| identity(made) == identity(&there)));
    if same {
        let flags = match making {
            Making::Directory => AtFlags::REMOVEDIR,
            Making::File | Making::SymbolicLink(_) => AtFlags::empty(),
        };
        // Who is in the way has removed it, or made it something else.
        let _ = rustix::fs::unlinkat(&name.directory, &name.last, flags);
    }
}
