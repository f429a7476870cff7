//! What a mediator was moving when it was killed, under the private name that it had at that moment.
//!
//! The next run that looks for a name to move in the directory, or moves something to a name that is
//! guarded, gives it its old name back, as if the move had not begun. The old name is judged like
//! that of any move: a file of such a name may have come from anywhere.

use std::ffi::CString;
use std::rc::Rc;

use rustix::fs::{Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::process::test_kill_process;
use stockade_rules::Kind;

use super::Identity;
use super::pin::{kind_of, parse_move_name};
use crate::mediator::caller::Caller;
use crate::mediator::names::look_at;
use crate::mediator::place::{Directory, Name, named};
use crate::mediator::{Worker, locked};

impl Worker<'_, '_> {
    /// Gives what dead mediators were moving in a directory its old name back. Once for each
    /// directory of a run.
    pub(in crate::mediator) fn restore_leftovers(
        &mut self,
        caller: &Caller,
        directory: &Rc<Directory>,
    ) {
        if !self.in_reach(&directory.path) {
            return;
        }
        let Some(identity) = Identity::of(directory, c"") else {
            return;
        };
        if !locked(&self.shared.memory.restored).insert(identity) {
            return;
        }
        for name in list(directory).unwrap_or_default() {
            // What can't go back stays for a person to look at.
            let _ = self.restore(caller, directory, &name);
        }
    }

    fn restore(
        &mut self,
        caller: &Caller,
        directory: &Rc<Directory>,
        private: &CString,
    ) -> Result<(), Errno> {
        let Some((process, old)) = parse_move_name(private.as_bytes()) else {
            return Ok(());
        };
        if test_kill_process(process) != Err(Errno::SRCH) {
            return Ok(());
        }
        let from = named(Rc::clone(directory), private.as_bytes(), false)?;
        let to = named(Rc::clone(directory), old, false)?;
        let moved = look_at(&from)?;
        if !self.may_restore(&from, &to, kind_of(&moved)) {
            return Err(Errno::ACCESS);
        }
        if self.place_renamed(caller, &from, &to, &moved)?.is_some() {
            return Ok(());
        }
        self.move_guarded(caller, [&from, &to], &moved, RenameFlags::NOREPLACE)
    }

    /// Whether the policy's rules have nothing against a move.
    fn may_restore(&self, from: &Name, to: &Name, kind: FileType) -> bool {
        let rules = &self.shared.plan.rules;
        let is_broken = match kind {
            FileType::Directory => rules.broken_by_move(&from.path, &to.path).is_some(),
            FileType::Symlink => rules.redirected_by_link(&to.path).is_some(),
            _ => false,
        };
        let is_free = matches!(look_at(to), Err(Errno::NOENT));
        is_free && !is_broken && self.shared.rules.decide(Kind::Write, &to.path).allowed
    }
}

/// The private names of moves in a directory.
fn list(directory: &Directory) -> Result<Vec<CString>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let entries = Dir::read_from(rustix::fs::openat(directory, c".", flags, Mode::empty())?)?;
    let names = entries.flatten().map(|entry| entry.file_name().to_owned());
    Ok(names
        .filter(|name| parse_move_name(name.as_bytes()).is_some())
        .collect())
}
