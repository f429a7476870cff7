//! Keeping house: which workspaces there are, and removing what is no longer wanted.

use std::fs;
use std::time::Duration;

use super::WorkspaceManager;
use crate::error::{Error, Trying};
use crate::files;
use crate::fsck::{self, FsckReport};
use crate::gc::{self, GcReport};
use crate::name::WorkspaceName;
use crate::overlay::{self, Overlay};
use crate::progress::{Progress, Silent};
use crate::restore;
use crate::state::{WorkspaceState, now_ms};
use crate::store::Session;
use crate::workspace::{Held, Place};

/// Undoes or finishes what was interrupted: the store may have the only copy of the host's files.
fn put_in_order(session: &Session, held: &Held) -> Result<(), Error> {
    restore::recover(session, held, &Silent)?;
    if Overlay::exists(&held.place) {
        match Overlay::open(held.place.clone(), held.state.dir.clone()) {
            // There is nothing to be put in order by.
            Ok(_) | Err(Error::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl WorkspaceManager {
    /// All workspaces, the newest first.
    ///
    /// # Errors
    /// If the store or one of them can't be read.
    pub fn list(&self) -> Result<Vec<WorkspaceState>, Error> {
        let (states, mut damaged) = self.list_readable()?;
        match damaged.pop() {
            Some(error) => Err(error),
            None => Ok(states),
        }
    }

    /// All workspaces that can be read, the newest first, and what is wrong with the others.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn list_readable(&self) -> Result<(Vec<WorkspaceState>, Vec<Error>), Error> {
        let session = self.store.enter()?;
        let mut states = Vec::new();
        let mut damaged = Vec::new();
        for name in self.store.names()? {
            match Place::find(&session, &name).and_then(|place| place.state_and_use()) {
                Ok(state) => states.push(state),
                // Removed in between.
                Err(Error::NoWorkspace(_)) => {}
                Err(error) => damaged.push(error),
            }
        }
        states.sort_by(|one, other| {
            (other.created_ms, &other.name).cmp(&(one.created_ms, &one.name))
        });
        Ok((states, damaged))
    }

    /// One workspace.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn show(&self, name: &WorkspaceName) -> Result<WorkspaceState, Error> {
        let session = self.store.enter()?;
        Place::find(&session, name)?.state_and_use()
    }

    /// Whether runs changed something over the directory that was neither committed nor discarded.
    ///
    /// # Errors
    /// If there is no workspace of that name.
    pub fn has_overlay(&self, name: &WorkspaceName) -> Result<bool, Error> {
        let session = self.store.enter()?;
        Ok(Overlay::exists(&Place::find(&session, name)?))
    }

    /// All workspaces in words.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn format_status(&self) -> Result<String, Error> {
        Ok(crate::status::format(&self.list()?))
    }

    /// Removes a workspace with its snapshots; its directory stays. Content that no other one
    /// has is freed by the next collection.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn remove(&self, name: &WorkspaceName) -> Result<(), Error> {
        let session = self.store.enter()?;
        let held = Place::find(&session, name)?.hold()?;
        if held.state.is_alive() {
            return Err(Error::Alive(name.clone()));
        }
        put_in_order(&session, &held)?;
        let _lock = overlay::lock(&held.place)?;
        self.discard_files(&held.place)
    }

    /// Removes a workspace whose state can't be read. Nobody knows what runs in it.
    ///
    /// # Errors
    /// If there is none of that name, or its state can be read, or a run uses its overlay.
    pub fn remove_damaged(&self, name: &WorkspaceName) -> Result<(), Error> {
        let session = self.store.enter()?;
        let place = Place::find(&session, name)?;
        if place.state().is_ok() {
            return Err(Error::Exists(name.clone()));
        }
        let _lock = overlay::lock(&place)?;
        self.discard_files(&place)
    }

    pub(super) fn discard_files(&self, place: &Place) -> Result<(), Error> {
        let random = files::random_name();
        let unnamed = self
            .store
            .workspaces()
            .join(format!("{}{random}", files::TEMPORARY));
        fs::rename(&place.path, &unnamed).trying("remove", &place.path)?;
        files::remove_tree_of_others(&unnamed)
    }

    /// Removes workspaces that were not used for so long, with what their overlays have, save for
    /// those in which something runs.
    /// Answers with those that were removed.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub fn cleanup(&self, max_age: Duration) -> Result<Vec<WorkspaceName>, Error> {
        let age = u64::try_from(max_age.as_millis()).unwrap_or(u64::MAX);
        let session = self.store.enter()?;
        let mut removed = Vec::new();
        for name in self.store.names()? {
            let held = match Place::find(&session, &name).and_then(Place::hold) {
                // Removed in between; or it is not known when it was used.
                Err(Error::NoWorkspace(_) | Error::Damaged { .. }) => continue,
                held => held?,
            };
            // A time in the future, after the clock was set back, is not old.
            let used = held.state.used_ms.max(overlay::used_ms(&held.place.path));
            let old = now_ms().saturating_sub(used) > age;
            if old && !held.state.is_alive() {
                if put_in_order(&session, &held).is_err() {
                    continue;
                }
                let _lock = match overlay::lock(&held.place) {
                    Err(Error::OverlayBusy(_)) => continue,
                    lock => lock?,
                };
                self.discard_files(&held.place)?;
                removed.push(name);
            }
        }
        Ok(removed)
    }

    /// Frees what no snapshot needs.
    ///
    /// # Errors
    /// If something in the store can't be read; then nothing is freed.
    pub fn gc(&self) -> Result<GcReport, Error> {
        gc::collect(&self.store)
    }

    /// Checks everything in the store.
    ///
    /// # Errors
    /// If it can't be looked at; what is wrong with what is in it is in the report.
    pub fn fsck(&self, progress: &dyn Progress) -> Result<FsckReport, Error> {
        fsck::check(&self.store, progress)
    }
}
