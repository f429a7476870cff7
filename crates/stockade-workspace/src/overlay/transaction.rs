//! Carrying out a commit: all of it, or nothing.
//!
//! A journal in the store has every step before the first is taken. Files are known by their
//! inodes, so each step can be undone whether or not it was taken. When all are done and what came
//! out of the host is still what was looked at, a mark beside the journal says so: from then on
//! a commit that was interrupted is finished, before that it is rolled back.
//!
//! The layer and what the host loses lie in the store, which no sandbox can reach. Only if the
//! store is on another file system, copies are made in a directory at the top of the root.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use super::apply::Work;
use super::base::Base;
use super::journal::{self, Journal, RootJournal, STAGE};
use super::layer::on_host;
use super::plan::RootPlan;
use super::step::Step;
use super::{Overlay, directory};
use crate::error::{Error, Trying};
use crate::exclude::STAGE_PREFIX;
use crate::files;
use crate::identity;

/// Writes the journal and prepares everything; nothing of the host has changed then.
pub(super) fn prepare(
    overlay: &Overlay,
    mut journal: Journal,
    plans: &[(&RootPlan, &OwnedFd, &OwnedFd)],
) -> Result<Journal, Error> {
    let directory = directory(&overlay.place);
    for (root, (_, host, upper)) in journal.roots.iter_mut().zip(plans) {
        root.stage = format!("{STAGE}{}", files::random_name());
        if !files::is_same_mount(host, upper) {
            let prefix = String::from_utf8_lossy(STAGE_PREFIX);
            root.tree_stage = Some(format!("{prefix}{}", files::random_name()));
        }
    }
    journal.save(&directory)?;
    let prepared = journal
        .roots
        .iter_mut()
        .zip(plans)
        .try_for_each(|(root, (plan, ..))| {
            files::make_private_dir(&directory.join(&root.stage))?;
            Work::open(&directory, root)?.prepare(root, plan)
        });
    match prepared.and_then(|()| journal.save(&directory)) {
        Ok(()) => Ok(journal),
        Err(error) => {
            roll_back(&directory, &journal)?;
            Err(error)
        }
    }
}

/// Takes every step, or none.
pub(super) fn apply(
    overlay: &Overlay,
    journal: &Journal,
    plans: &[&RootPlan],
    durable: bool,
) -> Result<(), Error> {
    let directory = directory(&overlay.place);
    let applied = journal
        .roots
        .iter()
        .zip(plans)
        .try_for_each(|(root, plan)| {
            let work = Work::open(&directory, root)?;
            work.sync(durable)?;
            for (number, step) in root.steps.iter().enumerate() {
                // In the order of steps.
                let at = plan.taken.binary_search_by_key(&number, |taken| taken.step);
                work.take(step, at.ok().map(|at| &plan.taken[at]))?;
            }
            Ok(())
        });
    let checked = applied.and_then(|()| {
        for (root, plan) in journal.roots.iter().zip(plans) {
            let work = Work::open(&directory, root)?;
            work.check_taken(root, &plan.taken)?;
            work.sync(durable)?;
        }
        journal.mark_done(&directory, durable)
    });
    if let Err(cause) = checked {
        roll_back(&directory, journal)?;
        return Err(match cause {
            Error::HostChanged(_) => cause,
            cause => Error::NotCommitted(Box::new(cause)),
        });
    }
    Ok(())
}

/// Undoes a commit that was interrupted, or finishes it.
pub(super) fn recover(overlay: &Overlay) -> Result<(), Error> {
    let directory = directory(&overlay.place);
    let Some(journal) = journal::read(&directory)? else {
        return remove_stages(&directory);
    };
    if journal.is_done(&directory) {
        return super::commit::finish(overlay, &journal);
    }
    roll_back(&directory, &journal)
}

/// Staging directories that no journal names.
fn remove_stages(directory: &Path) -> Result<(), Error> {
    for path in crate::store::list(directory)? {
        let name = path.file_name().unwrap_or_default();
        if name.as_encoded_bytes().starts_with(STAGE.as_bytes()) {
            files::remove_tree_of_others(&path)?;
        }
    }
    Ok(())
}

fn roll_back(directory: &Path, journal: &Journal) -> Result<(), Error> {
    let mut stranded = Vec::new();
    for root in journal.roots.iter().rev() {
        if !directory.join(&root.stage).is_dir() {
            continue;
        }
        let work = Work::open(directory, root)?;
        let is_adjust = |step: &&Step| matches!(step, Step::Adjust { .. });
        for step in root.steps.iter().rev().filter(|step| !is_adjust(step)) {
            stranded.extend(work.undo(step)?);
        }
        // Last: every other step changes the times of directories.
        for step in root.steps.iter().rev().filter(is_adjust) {
            work.undo(step)?;
        }
    }
    refresh_notes(directory, journal)?;
    if !stranded.is_empty() {
        return Err(Error::Stranded {
            paths: stranded,
            kept: directory.to_owned(),
        });
    }
    for root in &journal.roots {
        remove_tree_stage(root)?;
        files::remove_tree_of_others(&directory.join(&root.stage))?;
    }
    journal::forget(directory)
}

/// What was put back is no change of the host's.
fn refresh_notes(directory: &Path, journal: &Journal) -> Result<(), Error> {
    let mut base = Base::load(directory)?;
    for root in &journal.roots {
        let host = identity::open(&root.path, root.identity.as_ref())?;
        for step in &root.steps {
            let (Step::Exchange { to: path, .. }
            | Step::Remove { path, .. }
            | Step::Adjust { path, .. }) = step
            else {
                continue;
            };
            let full = files::full(&root.path, path);
            if let Some(now) = on_host(host.as_fd(), path).trying("look at", &full)? {
                base.refresh(&full, &now);
            }
        }
    }
    base.save()
}

/// Removes the directory at the top of a root; the root keeps its time.
pub(super) fn remove_tree_stage(root: &RootJournal) -> Result<(), Error> {
    let Some(name) = &root.tree_stage else {
        return Ok(());
    };
    let host = identity::open(&root.path, root.identity.as_ref())?;
    let before = files::stat_of(&host).trying("look at", &root.path)?;
    files::remove_tree(&root.path.join(name))?;
    crate::restore::set_times(host.as_fd(), before.mtime).trying("set the times of", &root.path)
}
