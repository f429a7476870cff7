//! Making the host's directory what the view over it shows.
//!
//! Planned first (see `plan`), then carried out as a whole or not at all (see `transaction`). What
//! the guard keeps back, and what was not chosen, stays in the overlay.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;
use serde::Serialize;

use super::base::Base;
use super::journal::{self, Journal, Merged, RootJournal};
use super::layer::{self, Said, on_host, stat_if_any};
use super::plan::{self, Request, RootPlan};
use super::step::{InodeId, Step};
use super::view::{HostView, MergedView};
use super::{Overlay, directory, transaction};
use crate::cache::exactly_now;
use crate::content;
use crate::error::{Error, Trying};
use crate::files;
use crate::guard::{CommitGuard, KeptBack};
use crate::identity::{self, Identity};
use crate::restore::set_attributes_at;
use crate::tree::Time;

/// What becomes of files that the host changed meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are three ways")]
pub enum Resolve {
    /// Nothing is committed, and they are listed.
    Refuse,
    /// They become what the overlay has.
    Ours,
    /// They stay, and the overlay's are forgotten.
    Theirs,
}

/// How an overlay is committed.
#[expect(
    missing_debug_implementations,
    clippy::exhaustive_structs,
    reason = "callers fill it in, with a guard of their own"
)]
pub struct CommitOptions<'a> {
    /// Whole paths; with what is below them. Everything if there are none.
    pub paths: &'a [PathBuf],
    /// What becomes of conflicts.
    pub resolve: Resolve,
    /// Asked about every change.
    pub guard: &'a dyn CommitGuard,
    /// Whether to wait until the disk has everything. Without it a power failure can lose what was
    /// committed, as it can lose what any program wrote; a kill never can.
    pub durable: bool,
}

/// What a commit changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CommitReport {
    /// Files and directories that were written.
    pub written: u64,
    /// Files and directories that were removed.
    pub removed: u64,
    /// Of which only attributes changed.
    pub adjusted: u64,
    /// Files that stayed as the host had them.
    pub kept: Vec<PathBuf>,
    /// Changes that the guard did not let pass; they are still in the overlay.
    pub kept_back: Vec<KeptBack>,
}

/// A root and its layer, both open.
pub(super) struct Pair<'a> {
    pub(super) root: &'a Path,
    pub(super) identity: Option<&'a Identity>,
    pub(super) layer: &'a str,
    pub(super) host: OwnedFd,
    pub(super) upper: OwnedFd,
}

impl Overlay {
    /// Commits what the overlay changed, all of it or nothing. What was committed is no longer part
    /// of the overlay; what the guard kept back still is.
    ///
    /// # Errors
    /// If there is nothing at or below one of the paths, if the machine rebooted and nobody
    /// has [taken it as complete](Self::take_as_complete), if files of the host changed meanwhile
    /// and the options don't say what to do, or if something can't be written; nothing of the host
    /// has changed then.
    pub fn commit(self, options: &CommitOptions<'_>) -> Result<CommitReport, Error> {
        self.require_lock()?;
        if self.was_restarted() {
            return Err(Error::Restarted(self.place.name));
        }
        self.place.state()?.check_quiet()?;
        let _quiet = self.place.keep_quiet()?;
        self.note()?;
        let pairs = self.pairs()?;
        let base = Base::load(&directory(&self.place))?;
        let plans = plan_all(&pairs, &base, options)?;
        for path in options.paths {
            if !plans.iter().any(|plan| plan.found.contains(path)) {
                return Err(Error::NoChange {
                    workspace: self.place.name.clone(),
                    path: path.clone(),
                });
            }
        }
        let mut report = CommitReport::default();
        let mut conflicts = Vec::new();
        for (pair, plan) in pairs.iter().zip(&plans) {
            let full = |path: &[u8]| files::full(pair.root, path);
            conflicts.extend(plan.conflicts.iter().map(|path| full(path)));
            report.kept_back.extend(kept_back(pair, plan));
            report.written += plan.written;
            report.removed += plan.removed;
            report.adjusted += plan.adjusted;
        }
        if options.resolve == Resolve::Refuse && !conflicts.is_empty() {
            return Err(Error::HostChanged(conflicts));
        }
        if options.resolve == Resolve::Theirs {
            report.kept = conflicts;
        }
        let since = self
            .index
            .since
            .map(|(seconds, nanos)| Time { seconds, nanos });
        options
            .guard
            .before_commit(since)
            .trying("prepare the commit in", self.dir())?;
        let whole = plans
            .iter()
            .all(|plan| !plan.has_rest && plan.kept.is_empty());
        let journal = Journal {
            id: files::random_name(),
            whole,
            roots: pairs
                .iter()
                .zip(&plans)
                .map(|(pair, plan)| pair.journal(plan))
                .collect(),
        };
        let opened: Vec<_> = pairs
            .iter()
            .zip(&plans)
            .map(|(pair, plan)| (plan, &pair.host, &pair.upper))
            .collect();
        let journal = transaction::prepare(&self, journal, &opened)?;
        let plans: Vec<&RootPlan> = plans.iter().collect();
        transaction::apply(&self, &journal, &plans, options.durable)?;
        drop(opened);
        drop(pairs);
        finish(&self, &journal)?;
        Ok(report)
    }

    /// What a guard would keep back of all that the overlay changed.
    ///
    /// # Errors
    /// If its layers can't be read.
    pub fn kept_back(&self, guard: &dyn CommitGuard) -> Result<Vec<KeptBack>, Error> {
        let pairs = self.pairs()?;
        let base = Base::load(&directory(&self.place))?;
        let options = CommitOptions {
            paths: &[],
            // Conflicts don't matter here.
            resolve: Resolve::Ours,
            guard,
            durable: false,
        };
        let plans = plan_all(&pairs, &base, &options)?;
        let kept = pairs
            .iter()
            .zip(&plans)
            .flat_map(|(pair, plan)| kept_back(pair, plan));
        Ok(kept.collect())
    }

    pub(super) fn pairs(&self) -> Result<Vec<Pair<'_>>, Error> {
        self.index
            .roots
            .iter()
            .map(|root| {
                Ok(Pair {
                    root: &root.path,
                    identity: root.identity.as_ref(),
                    layer: &root.layer,
                    host: identity::open(&root.path, root.identity.as_ref())?,
                    upper: files::open_top(&self.upper(root))?,
                })
            })
            .collect()
    }
}

fn plan_all(
    pairs: &[Pair<'_>],
    base: &Base,
    options: &CommitOptions<'_>,
) -> Result<Vec<RootPlan>, Error> {
    let request = Request {
        base,
        guard: options.guard,
        resolve: options.resolve,
        paths: options.paths,
        before: &HostView(pairs),
        after: &MergedView(pairs),
    };
    pairs
        .iter()
        .map(|pair| plan::plan(pair.root, &pair.host, &pair.upper, &request))
        .collect()
}

fn kept_back<'p>(pair: &'p Pair<'_>, plan: &'p RootPlan) -> impl Iterator<Item = KeptBack> + 'p {
    plan.kept.iter().map(|(path, reason)| KeptBack {
        path: files::full(pair.root, path),
        reason: reason.clone(),
    })
}

impl Pair<'_> {
    fn journal(&self, plan: &RootPlan) -> RootJournal {
        RootJournal {
            path: self.root.to_owned(),
            identity: self.identity.cloned(),
            layer: self.layer.to_owned(),
            stage: String::new(),
            tree_stage: None,
            steps: Vec::new(),
            discard: Vec::new(),
            merged: plan.merged.clone(),
            made: plan.made.clone(),
        }
    }
}

/// Leaves in the overlay what was not committed. Called when all steps are done, and again if that
/// was interrupted.
pub(super) fn finish(overlay: &Overlay, journal: &Journal) -> Result<(), Error> {
    let directory = directory(&overlay.place);
    for root in &journal.roots {
        transaction::remove_tree_stage(root)?;
    }
    if journal.whole {
        return super::remove(&overlay.place);
    }
    let mut base = Base::load(&directory)?;
    for root in &journal.roots {
        let rest = Rest::open(&directory, root)?;
        rest.discard(root)?;
        rest.put_back(&directory.join(&root.stage), root)?;
        rest.remove_empty(&root.merged)?;
        files::remove_tree_of_others(&directory.join(&root.stage))?;
        let applied = root.steps.iter().filter_map(Step::target);
        let applied = applied
            .chain(root.made.iter().map(|made| &made[..]))
            .collect();
        base.retain(&root.path, |path| rest.needs_note(path, &applied));
        base.note(&root.path, &rest.host, &rest.upper, exactly_now())?;
    }
    base.save()?;
    journal::forget(&directory)
}

/// What is left of a layer.
struct Rest<'a> {
    root: &'a Path,
    host: OwnedFd,
    upper: OwnedFd,
    upper_path: PathBuf,
}

impl<'a> Rest<'a> {
    fn open(directory: &Path, root: &'a RootJournal) -> Result<Self, Error> {
        let upper_path = directory.join(&root.layer).join("upper");
        Ok(Self {
            root: &root.path,
            host: identity::open(&root.path, root.identity.as_ref())?,
            upper: files::open_top(&upper_path)?,
            upper_path,
        })
    }

    /// Removes what was committed, or was exchanged for it.
    fn discard(&self, root: &RootJournal) -> Result<(), Error> {
        for entry in root.discard.iter().rev() {
            let full = files::full(&self.upper_path, &entry.path);
            match on_host(self.upper.as_fd(), &entry.path).trying("look at", &full)? {
                Some(stat) if InodeId::of(&stat) == entry.id => {
                    if stat.is_dir() {
                        files::remove_tree_of_others(&full)?;
                    } else {
                        files::remove_file(&full)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives what was kept back out of a directory that moved a place in the layer again.
    fn put_back(&self, stage: &Path, root: &RootJournal) -> Result<(), Error> {
        for step in &root.steps {
            let Step::Extract { path, aside } = step else {
                continue;
            };
            let full = files::full(&self.upper_path, path);
            let stage = files::open_top(stage)?;
            let waiting = stat_if_any(stage.as_fd(), aside.as_bytes()).trying("look at", &full)?;
            if waiting.is_none() {
                continue;
            }
            let (parent, name) = files::split(path);
            let parent = self.make_parents(parent)?;
            let how = RenameFlags::NOREPLACE;
            rustix::fs::renameat_with(&stage, &**aside, &parent, name, how)
                .trying("put back", full)?;
        }
        Ok(())
    }

    /// Directories of the layer that only lead to what is in them.
    fn make_parents(&self, path: &[u8]) -> Result<OwnedFd, Error> {
        let full = files::full(&self.upper_path, path);
        match files::open_dir_below(self.upper.as_fd(), path) {
            Err(Errno::NOENT) => {}
            opened => return opened.trying("open", full),
        }
        let (above, name) = files::split(path);
        let above = self.make_parents(above)?;
        rustix::fs::mkdirat(&above, name, Mode::from(0o700)).trying("make", &full)?;
        if let Some(stat) = on_host(self.host.as_fd(), path).trying("look at", &full)? {
            let meta = content::meta(&stat, Vec::new());
            set_attributes_at(above.as_fd(), name, &meta, false)
                .trying("set the attributes of", &full)?;
        }
        files::open_dir_below(above.as_fd(), name).trying("open", full)
    }

    /// Removes directories in which nothing is left, the deepest first.
    fn remove_empty(&self, merged: &[Merged]) -> Result<(), Error> {
        for entry in merged.iter().rev() {
            let full = files::full(&self.upper_path, &entry.path);
            let (parent, name) = files::split(&entry.path);
            let parent = match files::open_dir_below(self.upper.as_fd(), parent) {
                Err(Errno::NOENT) => continue,
                parent => parent.trying("open", &full)?,
            };
            match rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(Errno::NOTEMPTY) if !entry.clear => {}
                Err(Errno::NOTEMPTY) => {
                    let fd = files::open_dir_below(parent.as_fd(), name).trying("open", &full)?;
                    match rustix::fs::fremovexattr(&fd, "user.overlay.opaque") {
                        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
                        Err(error) => return Err(error).trying("show what is below", full),
                    }
                }
                Err(error) => return Err(error).trying("remove", full),
            }
        }
        Ok(())
    }

    /// Whether what the host had at a path still matters to something in the layer.
    fn needs_note(&self, path: &Path, applied: &BTreeSet<&[u8]>) -> bool {
        let Ok(below) = path.strip_prefix(self.root) else {
            return false;
        };
        let below = below.as_os_str().as_bytes();
        let mut end = 0;
        while end < below.len() {
            end = below[end..]
                .iter()
                .position(|byte| *byte == b'/')
                .map_or(below.len(), |at| end + at);
            if applied.contains(&below[..end]) {
                return false;
            }
            let (parent, name) = files::split(&below[..end]);
            let said = files::open_dir_below(self.upper.as_fd(), parent)
                .and_then(|fd| layer::look(fd.as_fd(), name));
            match said {
                Err(_) => return false,
                Ok(Said::Directory { opaque: false, .. }) => {}
                Ok(_) => return true,
            }
            end += 1;
        }
        true
    }
}
