//! What a commit does to one root: a list of steps, each of which can be undone.
//!
//! The layer is compared with the host as it is and as it was (three ways). A file that only the
//! layer changed becomes a step; one that both changed is a conflict; one that the guard does not
//! let pass is kept back. A directory that only the layer has is one step, whatever is in it.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};

use super::base::Base;
use super::commit::Resolve;
use super::journal::Merged;
use super::layer::{self, Said, is_same_content, stat_if_any};
use super::step::{Attributes, From, InodeId, Step};
use crate::error::{Error, Trying};
use crate::files::{self, Stat};
use crate::guard::{CommitGuard, FileFacts, FileTree, ProposedChange, ProposedKind, Verdict};

/// What is asked for.
pub(super) struct Request<'a> {
    pub(super) base: &'a Base,
    pub(super) guard: &'a dyn CommitGuard,
    pub(super) resolve: Resolve,
    /// Whole paths; everything if there are none.
    pub(super) paths: &'a [PathBuf],
    pub(super) before: &'a dyn FileTree,
    pub(super) after: &'a dyn FileTree,
}

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct RootPlan {
    pub(super) steps: Vec<Step>,
    /// Attributes of directories, set when all steps are done, the deepest first.
    pub(super) directories: Vec<Step>,
    /// Paths that the guard did not let pass, and why.
    pub(super) kept: Vec<(Vec<u8>, String)>,
    /// Where the host changed what the layer changed.
    pub(super) conflicts: Vec<Vec<u8>>,
    /// Entries of the layer that are settled: applied, the same already, or given up.
    pub(super) settled: Vec<Vec<u8>>,
    /// Directories that both have, and whether nothing that they hide is left.
    pub(super) merged: Vec<Merged>,
    /// Directories that were made because something in them was chosen.
    pub(super) made: Vec<Vec<u8>>,
    /// What overlayfs left in trees that are moved as a whole.
    pub(super) marks: Vec<Mark>,
    /// What the steps take away from the host, to be compared when it is out of reach.
    pub(super) taken: Vec<Taken>,
    /// Whether something of the layer was neither chosen nor settled.
    pub(super) has_rest: bool,
    /// Whether anything was at or below one of the chosen paths.
    pub(super) found: BTreeSet<PathBuf>,
    pub(super) written: u64,
    pub(super) removed: u64,
    pub(super) adjusted: u64,
    asides: usize,
}

/// Something of overlayfs's own in a tree that is to be moved.
#[derive(Debug)]
pub(super) enum Mark {
    Whiteout(Vec<u8>),
    /// Attributes that begin with `user.overlay.`.
    Attributes(Vec<u8>, Vec<Vec<u8>>),
}

/// What a step takes from the host.
#[derive(Debug)]
pub(super) struct Taken {
    /// The number of the step.
    pub(super) step: usize,
    /// Everything in it by its path below the root, the top first.
    pub(super) files: Vec<(Vec<u8>, Stat)>,
}

pub(super) fn plan(
    root: &Path,
    host: &OwnedFd,
    upper: &OwnedFd,
    request: &Request<'_>,
) -> Result<RootPlan, Error> {
    let mut planner = Planner {
        root,
        request,
        plan: RootPlan::default(),
    };
    let old = files::stat_of(host).trying("look at", root)?;
    let new = files::stat_of(upper).trying("look at", root)?;
    if planner.chosen(b"") == Chosen::Whole {
        planner.attributes(b"", &new, &old);
    }
    planner.directory(b"", upper, Some(host), false)?;
    planner.plan.directories.reverse();
    Ok(planner.plan)
}

/// How much of a path the user chose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chosen {
    Whole,
    /// Something below it.
    Part,
    Nothing,
}

struct Planner<'a> {
    root: &'a Path,
    request: &'a Request<'a>,
    plan: RootPlan,
}

/// An entry of the layer and where it is.
struct Place<'a> {
    path: Vec<u8>,
    full: PathBuf,
    name: &'a [u8],
    upper: &'a OwnedFd,
    host: Option<&'a OwnedFd>,
}

impl Planner<'_> {
    fn chosen(&mut self, path: &[u8]) -> Chosen {
        let full = files::full(self.root, path);
        let paths = self.request.paths;
        if paths.is_empty() {
            return Chosen::Whole;
        }
        let mut chosen = Chosen::Nothing;
        for wanted in paths {
            if full.starts_with(wanted) {
                self.plan.found.insert(wanted.clone());
                return Chosen::Whole;
            }
            if wanted.starts_with(&full) {
                chosen = Chosen::Part;
            }
        }
        chosen
    }

    fn directory(
        &mut self,
        path: &[u8],
        upper: &OwnedFd,
        host: Option<&OwnedFd>,
        hides: bool,
    ) -> Result<(), Error> {
        let full = files::full(self.root, path);
        let names = layer::names(upper).trying("read", &full)?;
        if let Some(host) = host.filter(|_| hides) {
            for name in layer::names(host).trying("read", &full)? {
                let inner = files::join(path, &name);
                if names.binary_search(&name).is_err() && self.chosen(&inner) == Chosen::Whole {
                    self.removal(&inner, host, &name)?;
                }
            }
        }
        for name in &names {
            let path = files::join(path, name);
            let place = Place {
                full: files::full(self.root, &path),
                path,
                name,
                upper,
                host,
            };
            self.entry(&place, hides)?;
        }
        Ok(())
    }

    fn entry(&mut self, place: &Place<'_>, hides: bool) -> Result<(), Error> {
        let chosen = self.chosen(&place.path);
        if chosen == Chosen::Nothing {
            self.plan.has_rest = true;
            return Ok(());
        }
        let said = layer::look(place.upper.as_fd(), place.name).trying("look at", &place.full)?;
        let old = match place.host {
            Some(host) => stat_if_any(host.as_fd(), place.name).trying("look at", &place.full)?,
            None => None,
        };
        match (said, old) {
            (Said::Directory { stat, opaque }, Some(old)) if old.is_dir() => {
                let hides = hides || opaque;
                if chosen == Chosen::Whole {
                    self.attributes(&place.path, &stat, &old);
                }
                let upper = open_dir(place.upper, place)?;
                let host = place.host.map(|host| open_dir(host, place)).transpose()?;
                let kept_before = self.plan.kept.len();
                self.directory(&place.path, &upper, host.as_ref(), hides)?;
                // A removal that was kept back is still said by hiding the directory.
                let clear = chosen == Chosen::Whole && self.plan.kept.len() == kept_before;
                let path = place.path.clone();
                self.plan.merged.push(Merged { path, clear });
            }
            (Said::Directory { stat, .. }, None) if chosen == Chosen::Part => {
                self.make_directory(place, &stat)?;
            }
            _ if chosen == Chosen::Part => self.plan.has_rest = true,
            (Said::Whiteout, None) => self.settle(&place.path),
            (Said::Whiteout, Some(_)) => {
                if let Some(host) = place.host
                    && self.removal(&place.path, host, place.name)?
                {
                    self.settle(&place.path);
                }
            }
            (Said::Directory { stat, .. }, old) => self.new_tree(place, &stat, old.as_ref())?,
            (Said::File(stat), old) => self.file(place, &stat, old.as_ref())?,
        }
        Ok(())
    }

    fn settle(&mut self, path: &[u8]) {
        self.plan.settled.push(path.to_vec());
    }

    fn aside(&mut self, letter: char) -> String {
        self.plan.asides += 1;
        format!("{letter}{}", self.plan.asides)
    }

    /// Notes a conflict. True if the change is to be made all the same.
    fn is_overruled(&mut self, path: &[u8], conflicts: Vec<Vec<u8>>) -> bool {
        if conflicts.is_empty() {
            return true;
        }
        self.plan.conflicts.extend(conflicts);
        if self.request.resolve == Resolve::Theirs {
            self.settle(path);
        }
        self.request.resolve == Resolve::Ours
    }

    fn judge(
        &self,
        path: &[u8],
        kind: ProposedKind,
        old: Option<&Stat>,
        new: Option<&Stat>,
    ) -> Option<String> {
        let verdict = self.request.guard.judge(&ProposedChange {
            path: &files::full(self.root, path),
            kind,
            old: old.map(FileFacts::of),
            new: new.map(FileFacts::of),
            before: self.request.before,
            after: self.request.after,
        });
        match verdict {
            Verdict::Allow => None,
            Verdict::KeepBack(reason) => Some(reason),
        }
    }

    fn keep(&mut self, path: &[u8], reason: String) {
        self.plan.kept.push((path.to_vec(), reason));
    }

    fn unchanged(&self, path: &[u8], now: Option<&Stat>) -> bool {
        let full = files::full(self.root, path);
        self.request.base.is_unchanged(&full, now)
    }

    /// Attributes of a directory that both have, compared three ways. Its time is the layer's only
    /// if nothing changed in it on the host.
    fn attributes(&mut self, path: &[u8], new: &Stat, old: &Stat) {
        let was = self.request.base.directory(&files::full(self.root, path));
        let mut after = Attributes::of(old);
        let wanted = layer::attributes(new);
        let now = layer::attributes(old);
        let by_layer = was.is_none_or(|was| layer::attributes(&was) != wanted);
        if by_layer && wanted != now {
            let by_host = was.is_none_or(|was| layer::attributes(&was) != now);
            let conflicts = if by_host {
                vec![path.to_vec()]
            } else {
                Vec::new()
            };
            if self.is_overruled_quietly(conflicts) {
                let kind = ProposedKind::Attributes;
                if let Some(reason) = self.judge(path, kind, Some(old), Some(new)) {
                    self.keep(path, reason);
                } else {
                    after = Attributes::of(new);
                    self.plan.adjusted += 1;
                }
            }
        }
        after.mtime = was
            .filter(|was| was.mtime == old.mtime)
            .map(|_| (new.mtime.seconds, new.mtime.nanos));
        self.plan.directories.push(Step::Adjust {
            path: path.to_vec(),
            id: InodeId::of(old),
            before: Attributes::of(old),
            after,
        });
    }

    /// As [`Self::is_overruled`], for a directory whose entries are settled one by one.
    fn is_overruled_quietly(&mut self, conflicts: Vec<Vec<u8>>) -> bool {
        let is_free = conflicts.is_empty();
        self.plan.conflicts.extend(conflicts);
        is_free || self.request.resolve == Resolve::Ours
    }

    /// Takes something away from the host. False if it stays.
    fn removal(&mut self, path: &[u8], host: &OwnedFd, name: &[u8]) -> Result<bool, Error> {
        let mut doomed = Doomed::default();
        self.doom(path, host.as_fd(), name, &mut doomed)?;
        let Some((_, old)) = doomed.files.first().cloned() else {
            return Ok(true);
        };
        if !self.is_overruled_quietly(doomed.conflicts) {
            return Ok(self.request.resolve == Resolve::Theirs);
        }
        if let Some(reason) = doomed.kept {
            self.keep(path, reason);
            return Ok(false);
        }
        let aside = self.aside('o');
        self.plan.removed += 1;
        self.plan.taken.push(Taken {
            step: self.plan.steps.len(),
            files: doomed.files,
        });
        self.plan.steps.push(Step::Remove {
            path: path.to_vec(),
            aside,
            old: InodeId::of(&old),
        });
        Ok(true)
    }

    /// Lists everything that would go with a path, and what speaks against it.
    fn doom(
        &self,
        path: &[u8],
        host: BorrowedFd<'_>,
        name: &[u8],
        doomed: &mut Doomed,
    ) -> Result<(), Error> {
        let full = files::full(self.root, path);
        let Some(stat) = stat_if_any(host, name).trying("look at", &full)? else {
            return Ok(());
        };
        doomed.files.push((path.to_vec(), stat));
        if !self.unchanged(path, Some(&stat)) {
            doomed.conflicts.push(path.to_vec());
        }
        if doomed.kept.is_none() {
            doomed.kept = self.judge(path, ProposedKind::Remove, Some(&stat), None);
        }
        if stat.is_dir() {
            let fd = files::open_dir_below(host, name).trying("read", &full)?;
            for name in layer::names(&fd).trying("read", &full)? {
                self.doom(&files::join(path, &name), fd.as_fd(), &name, doomed)?;
            }
        }
        Ok(())
    }

    /// Any file that is not a directory.
    fn file(&mut self, place: &Place<'_>, new: &Stat, old: Option<&Stat>) -> Result<(), Error> {
        let path = &place.path;
        let same = match old {
            Some(old) => is_same(place, new, old)?,
            None => false,
        };
        if let Some(old) = old.filter(|_| same) {
            self.same_content(path, new, old);
            return Ok(());
        }
        let mut doomed = Doomed::default();
        match (old, place.host) {
            (Some(_), Some(host)) => self.doom(path, host.as_fd(), place.name, &mut doomed)?,
            _ if !self.unchanged(path, None) => doomed.conflicts.push(path.clone()),
            _ => {}
        }
        if !self.is_overruled(path, doomed.conflicts) {
            return Ok(());
        }
        // Of an ordinary file only the new content matters; of a directory also what goes.
        let goes = doomed.kept.filter(|_| old.is_some_and(Stat::is_dir));
        if let Some(reason) = goes.or_else(|| self.judge(path, ProposedKind::Put, old, Some(new))) {
            self.keep(path, reason);
            return Ok(());
        }
        self.marks_at(path, place.upper.as_fd(), place.name)?;
        self.plan.written += 1;
        self.put(path, InodeId::of(new), doomed.files);
        Ok(())
    }

    fn same_content(&mut self, path: &[u8], new: &Stat, old: &Stat) {
        let is_touched = new.mtime != old.mtime;
        if layer::attributes(new) == layer::attributes(old) && !is_touched {
            self.settle(path);
            return;
        }
        let conflicts = if self.unchanged(path, Some(old)) {
            Vec::new()
        } else {
            vec![path.to_vec()]
        };
        if !self.is_overruled(path, conflicts) {
            return;
        }
        if let Some(reason) = self.judge(path, ProposedKind::Attributes, Some(old), Some(new)) {
            self.keep(path, reason);
            return;
        }
        self.plan.adjusted += 1;
        self.settle(path);
        let mut after = Attributes::of(new);
        after.mtime = Some((new.mtime.seconds, new.mtime.nanos));
        self.plan.steps.push(Step::Adjust {
            path: path.to_vec(),
            id: InodeId::of(old),
            before: Attributes::of(old),
            after,
        });
    }

    /// Puts an entry of the layer where the host has nothing, or these files.
    fn put(&mut self, path: &[u8], new: InodeId, taken: Vec<(Vec<u8>, Stat)>) {
        self.settle(path);
        let (to, from) = (path.to_vec(), From::Layer(path.to_vec()));
        let Some((_, old)) = taken.first().cloned() else {
            self.plan.steps.push(Step::Place { to, from, id: new });
            return;
        };
        self.plan.taken.push(Taken {
            step: self.plan.steps.len(),
            files: taken,
        });
        self.plan.steps.push(Step::Exchange {
            to,
            from,
            new,
            old: InodeId::of(&old),
        });
    }

    /// A directory that only the layer has: it is moved as a whole, without what is kept back.
    fn new_tree(&mut self, place: &Place<'_>, new: &Stat, old: Option<&Stat>) -> Result<(), Error> {
        let path = &place.path;
        let conflicts = if self.unchanged(path, old) {
            Vec::new()
        } else {
            vec![path.clone()]
        };
        if !self.is_overruled(path, conflicts) {
            return Ok(());
        }
        if !self.tree(path, place.upper.as_fd(), place.name, old)? {
            return Ok(());
        }
        let taken = old.map(|old| (path.clone(), *old)).into_iter().collect();
        self.put(path, InodeId::of(new), taken);
        Ok(())
    }

    /// Judges everything in a tree of the layer. False if its top is kept back.
    fn tree(
        &mut self,
        path: &[u8],
        upper: BorrowedFd<'_>,
        name: &[u8],
        old: Option<&Stat>,
    ) -> Result<bool, Error> {
        let full = files::full(self.root, path);
        let stat = files::stat_at(upper, name).trying("look at", &full)?;
        if stat.file_type() == FileType::CharacterDevice && stat.rdev == 0 {
            self.plan.marks.push(Mark::Whiteout(path.to_vec()));
            return Ok(true);
        }
        if let Some(reason) = self.judge(path, ProposedKind::Put, old, Some(&stat)) {
            self.keep(path, reason);
            return Ok(false);
        }
        self.plan.written += 1;
        self.marks_at(path, upper, name)?;
        if !stat.is_dir() {
            return Ok(true);
        }
        let fd = files::open_dir_below(upper, name).trying("read", &full)?;
        for name in layer::names(&fd).trying("read", &full)? {
            let inner = files::join(path, &name);
            if !self.tree(&inner, fd.as_fd(), &name, None)? {
                let aside = self.aside('k');
                self.plan.steps.push(Step::Extract { path: inner, aside });
            }
        }
        Ok(true)
    }

    fn marks_at(&mut self, path: &[u8], upper: BorrowedFd<'_>, name: &[u8]) -> Result<(), Error> {
        let names = layer::marks(upper, name)
            .trying("read the attributes of", files::full(self.root, path))?;
        if !names.is_empty() {
            self.plan.marks.push(Mark::Attributes(path.to_vec(), names));
        }
        Ok(())
    }

    /// A directory that only the layer has, and of which only a part was chosen.
    fn make_directory(&mut self, place: &Place<'_>, stat: &Stat) -> Result<(), Error> {
        let path = &place.path;
        let conflicts = if self.unchanged(path, None) {
            Vec::new()
        } else {
            vec![path.clone()]
        };
        if !self.is_overruled_quietly(conflicts) {
            return Ok(());
        }
        if let Some(reason) = self.judge(path, ProposedKind::Put, None, Some(stat)) {
            self.keep(path, reason);
            return Ok(());
        }
        let name = self.aside('n');
        self.plan.written += 1;
        self.plan.made.push(path.clone());
        self.plan.steps.push(Step::Place {
            to: path.clone(),
            from: From::Made(name, Attributes::of(stat)),
            id: InodeId::default(),
        });
        let upper = open_dir(place.upper, place)?;
        self.directory(path, &upper, None, false)?;
        self.plan.merged.push(Merged {
            path: path.clone(),
            clear: true,
        });
        Ok(())
    }
}

/// What would go, and what speaks against it.
#[derive(Default)]
struct Doomed {
    files: Vec<(Vec<u8>, Stat)>,
    conflicts: Vec<Vec<u8>>,
    kept: Option<String>,
}

fn open_dir(parent: &OwnedFd, place: &Place<'_>) -> Result<OwnedFd, Error> {
    files::open_dir_below(parent.as_fd(), place.name).trying("open", &place.full)
}

/// Whether the host's file has the layer's content already, and no second name.
fn is_same(place: &Place<'_>, new: &Stat, old: &Stat) -> Result<bool, Error> {
    if new.file_type() != old.file_type() || new.size != old.size {
        return Ok(false);
    }
    match new.file_type() {
        FileType::RegularFile if old.nlink == 1 => {
            let Some(host) = place.host else {
                return Ok(false);
            };
            let flags = OFlags::RDONLY | OFlags::NONBLOCK;
            let open = |top: &OwnedFd| files::open_below(top.as_fd(), place.name, flags);
            // What can't be read is taken for changed.
            let (Ok(one), Ok(other)) = (open(host), open(place.upper)) else {
                return Ok(false);
            };
            is_same_content(&one.into(), &other.into()).trying("compare", &place.full)
        }
        FileType::Fifo | FileType::Socket => Ok(true),
        _ => Ok(false),
    }
}
