//! Content that is put in place: read once, judged, and written to a copy that nobody else has
//! open or can name.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use stockade_rules::AbsPath;
use stockade_rules::protected::git::{ConfigContext, redirect};
use stockade_rules::protected::jujutsu::is_repository;
use stockade_rules::protected::mercurial::is_shared_store;
use stockade_rules::protected::{Anchor, Guard, Judge, Outcome, ProtectedName};

use super::copy::Metadata;
use super::facts::{self, is_called_git};
use super::publish::name_at;
use crate::mediator::caller::{Caller, errno};
use crate::mediator::files::{open_at, open_own};
use crate::mediator::names::look_at;
use crate::mediator::place::{Directory, Name, Object, named, path_of};
use crate::mediator::record::Operation;
use crate::mediator::{Answer, Worker};

impl Worker<'_, '_> {
    /// If a file gets a name by which its content is judged, judges it and puts a copy in place.
    pub(in crate::mediator) fn place_renamed(
        &mut self,
        caller: &Caller,
        from: &Name,
        to: &Name,
        moved: &Stat,
    ) -> Result<Option<Answer>, Errno> {
        let Some(row) = self.judging(to, moved) else {
            return Ok(None);
        };
        let file = open_at(from, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
        self.judge_and_publish(caller, Operation::Rename, file, to, row)?;
        rustix::fs::unlinkat(&from.directory, &from.last, AtFlags::empty())?;
        Ok(Some(Answer::Value(0)))
    }

    /// As [`Worker::place_renamed`], for a second name of a file.
    pub(in crate::mediator) fn place_object(
        &mut self,
        caller: &Caller,
        object: &Object,
        to: &Name,
    ) -> Result<Option<Answer>, Errno> {
        let Some(row) = self.judging(to, &object.stat) else {
            return Ok(None);
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = open_own(self.shared, &object.fd, flags, Mode::empty())?;
        self.judge_and_publish(caller, Operation::MakeLink, file, to, row)?;
        Ok(Some(Answer::Value(0)))
    }

    /// The row by which a file of this name is judged.
    fn judging(&self, to: &Name, moved: &Stat) -> Option<&'static ProtectedName> {
        if !FileType::from_raw_mode(moved.st_mode).is_file() {
            return None;
        }
        Some(self.protected(&to.path)?.row)
    }

    fn judge_and_publish(
        &mut self,
        caller: &Caller,
        operation: Operation,
        file: OwnedFd,
        to: &Name,
        row: &'static ProtectedName,
    ) -> Result<(), Errno> {
        let metadata = Metadata::of(&file)?;
        self.let_read(to);
        let new = match read_all(file, row.judge) {
            Err(_) if row.judge == Judge::Never => {
                return Err(self.refuse(caller, operation, &to.path, row));
            }
            other => other?,
        };
        let old = match open_at(to, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()) {
            Ok(file) => read_all(file, row.judge)?,
            Err(Errno::NOENT) => Vec::new(),
            Err(error) => return Err(error),
        };
        if !self.passes(&to.path, row, &old, &new) {
            let operation = operation_of(row).unwrap_or(operation);
            return Err(self.refuse(caller, operation, &to.path, row));
        }
        self.shared.publish(to, &new, &metadata)
    }

    /// Whether content may be put at a protected path.
    pub(super) fn passes(&self, path: &Path, row: &ProtectedName, old: &[u8], new: &[u8]) -> bool {
        if row.judge == Judge::Never {
            return self.is_old_content(path, row, new);
        }
        // git sets `core.worktree` where the git directory is not in the working tree.
        let apart = path.parent().is_some_and(|parent| !is_called_git(parent));
        let stays = |value: &[u8]| {
            apart && resolved(path, value).is_some_and(|place| self.in_reach(&place))
        };
        if self.is_own(path) && row.judge == Judge::Config && !old.is_empty() && new.is_empty() {
            // As good as removing it.
            return false;
        }
        let leads = matches!(row.judge, Judge::Redirect | Judge::CommonDirectory);
        if leads && !old.is_empty() && old != new && self.was_there(path) {
            // What redirected git before this run keeps doing so.
            return false;
        }
        let context = ConfigContext::new().with_worktree(&stays);
        match row.judge.content(old, new, &context) {
            Ok(Outcome::LeadsTo(target)) => {
                let Some(place) = resolved(path, target) else {
                    return false;
                };
                match row.judge {
                    // `REPOSITORY/worktrees/NAME/commondir` (gitrepository-layout(5)).
                    Judge::CommonDirectory => {
                        let mut above = path.ancestors().skip(2);
                        above
                            .next()
                            .is_some_and(|above| above.ends_with("worktrees"))
                            && above.next() == Some(&place)
                    }
                    Judge::JujutsuRepository => is_repository(&place) && self.in_reach(&place),
                    Judge::MercurialShare => is_shared_store(&place) && self.in_reach(&place),
                    _ => self.is_safe_target(&place),
                }
            }
            Ok(_) => true,
            Err(_) => false,
        }
    }

    /// Whether git may be sent to a git directory: it is the workspace's own, or the sandbox can
    /// write it and it holds nothing that runs code. One that was there before may hold such
    /// things, and they would run in another working tree than they were meant for.
    fn is_safe_target(&self, directory: &Path) -> bool {
        let common = match read_at_once(&directory.join("commondir"), Judge::CommonDirectory) {
            Ok(text) => redirect::path_line(&text)
                .and_then(|target| resolved(&directory.join("commondir"), target)),
            // It is being written: only the repository around will pass there.
            Err(Errno::AGAIN) => directory.ancestors().nth(2).map(Path::to_owned),
            Err(_) => None,
        };
        let common = common.as_deref().unwrap_or(directory);
        if self.is_own(common) {
            return true;
        }
        self.in_reach(directory)
            && self.in_reach(common)
            && git_rows().all(|row| self.is_clean(common, row))
    }

    /// Whether a git directory has nothing at a protected name that would not have been judged
    /// harmless.
    fn is_clean(&self, directory: &Path, row: &'static ProtectedName) -> bool {
        let path = directory.join(row.name);
        if !facts::is_there(CWD, &path) {
            return true;
        }
        let is_file = path.symlink_metadata().is_ok_and(|stat| stat.is_file());
        if is_file && row.judge != Judge::Never {
            match read_at_once(&path, row.judge) {
                Ok(content) => self.passes(&path, row, &[], &content),
                // It is being made, and judged before anybody reads it. What a file holds that is
                // being changed was not judged.
                Err(error) => error == Errno::AGAIN && is_empty(&path),
            }
        } else {
            name_at(&path).is_ok_and(|name| facts::has_only_excepted(&name, row))
        }
    }

    /// Refuses to make a git directory of one whose hooks or configuration were not judged. Its
    /// configuration is judged now, and replaced by a copy that nobody has open.
    pub(super) fn require_clean(
        &mut self,
        caller: &Caller,
        operation: Operation,
        directory: &Rc<Directory>,
    ) -> Result<(), Errno> {
        self.require_no_links_in(caller, directory)?;
        for row in git_rows() {
            let name = named(Rc::clone(directory), row.name.as_bytes(), false)?;
            let is_file = match look_at(&name) {
                Err(Errno::NOENT) => continue,
                stat => stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file()),
            };
            let clean = if is_file && row.judge != Judge::Never {
                self.adopt(&name, row)?
            } else {
                facts::has_only_excepted(&name, row)
            };
            if !clean {
                return Err(self.refuse(caller, operation, &name.path, row));
            }
        }
        Ok(())
    }

    /// Judges a file that gets its meaning now, and takes it from whoever has it open.
    fn adopt(&mut self, name: &Name, row: &'static ProtectedName) -> Result<bool, Errno> {
        let file = open_at(name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
        let metadata = Metadata::of(&file)?;
        let content = read_all(file, row.judge)?;
        if !self.passes(&name.path, row, &[], &content) {
            return Ok(false);
        }
        self.shared.publish(name, &content, &metadata)?;
        Ok(true)
    }
}

/// What git takes from a git directory.
fn git_rows() -> impl Iterator<Item = &'static ProtectedName> {
    let rows = stockade_rules::protected::PROTECTED.iter();
    rows.filter(|row| row.anchor == Anchor::GitDirectory)
}

/// The operation that a refusal is recorded as, where the row has one of its own.
pub(super) fn operation_of(row: &ProtectedName) -> Option<Operation> {
    match row.guard {
        Guard::GitConfig => Some(Operation::GitConfig),
        Guard::GitRedirect => Some(Operation::GitRedirect),
        _ => None,
    }
}

pub(super) fn read_all(file: OwnedFd, judge: Judge) -> Result<Vec<u8>, Errno> {
    let max_bytes = judge.max_bytes();
    let mut content = Vec::new();
    File::from(file)
        .take(max_bytes + 1)
        .read_to_end(&mut content)
        .map_err(|error| errno(&error))?;
    if content.len() as u64 > max_bytes {
        Err(Errno::FBIG)
    } else {
        Ok(content)
    }
}

/// Whether a file is empty, asked without opening it.
pub(super) fn is_empty(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|stat| stat.len() == 0)
}

/// Reads a file; `EAGAIN` if it has a lease, which may be this process's own.
pub(super) fn read_at_once(path: &Path, judge: Judge) -> Result<Vec<u8>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    read_all(rustix::fs::open(path, flags, Mode::empty())?, judge)
}

/// Where a path in a file leads: links resolved as far as it exists.
pub(super) fn resolved(file: &Path, target: &[u8]) -> Option<PathBuf> {
    let path = file.parent()?.join(OsStr::from_bytes(target));
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&path, flags, Mode::empty());
    if let Ok(directory) = opened
        && let Ok(real) = path_of(directory.as_fd())
    {
        return Some(real);
    }
    // What does not exist, or is no directory, is taken by its words.
    Some(AbsPath::new(&path).ok()?.into_path_buf())
}
