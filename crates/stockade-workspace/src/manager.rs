//! The front: all that can be done with workspaces.

mod house;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::diff::{self, Diff};
use crate::error::{Error, Trying};
use crate::export;
use crate::files;
use crate::guard::{AllowAll, CommitGuard, KeptBack};
use crate::home::{self, HomeLayer, HomeLayerInfo};
use crate::identity::Identity;
use crate::import;
use crate::input::Input;
use crate::name::{SnapshotName, WorkspaceName};
use crate::overlay::{self, Overlay};
use crate::process;
use crate::progress::Progress;
use crate::restore::{self, RestoreMode, RestoreReport};
use crate::snapshot;
use crate::state::{SCHEMA, Status, Transition, WorkspaceState, is_secret_name, now_ms};
use crate::store::{self, Lock, Session, Sink, Store};
use crate::survey::Surveyor;
use crate::workspace::{Held, Place, SnapshotRecord, write_json};

/// Workspaces in a store.
#[derive(Clone, Debug)]
pub struct WorkspaceManager {
    store: Store,
    most: usize,
}

/// Says that something runs in a workspace, as long as it lives.
#[derive(Debug)]
pub struct RunLock(#[expect(dead_code, reason = "held, not used")] Lock);

/// How a workspace is made.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct CreateOptions {
    /// Variables for what runs in it; those that look like secrets are left out.
    pub env: BTreeMap<String, String>,
    /// What is not part of it, as in `.gitignore`.
    pub excludes: Vec<String>,
    /// Whether extended attributes are part of snapshots.
    pub xattrs: bool,
    /// Whether there is no first snapshot, to compare later states with.
    pub no_baseline: bool,
}

/// As many workspaces as a store has at most, unless it is told otherwise.
const DEFAULT_MAX_WORKSPACES: usize = 64;

impl WorkspaceManager {
    /// The workspaces in `store`.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            most: DEFAULT_MAX_WORKSPACES,
        }
    }

    /// The same with another limit on how many workspaces there are.
    #[must_use]
    pub fn max_sandboxes(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// Where they are.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Makes a workspace of a directory, with a first snapshot of it.
    ///
    /// # Errors
    /// If there is one of that name, there are too many, or the directory can't be read.
    pub fn create(
        &self,
        name: &WorkspaceName,
        dir: &Path,
        options: &CreateOptions,
        progress: &dyn Progress,
    ) -> Result<WorkspaceState, Error> {
        let session = self.store.enter()?;
        let mut held = self.make(&session, name, dir, options)?;
        if options.no_baseline {
            return Ok(held.state);
        }
        let message = Some("the beginning".to_owned());
        match snapshot::take(&session, &mut held, message, progress) {
            Ok(record) => {
                held.state.baseline = Some(record.id);
                held.save()?;
                Ok(held.state)
            }
            Err(error) => {
                self.discard_files(&held.place)?;
                Err(error)
            }
        }
    }

    /// No workspace is in the store, which no command may read or write.
    fn refuse_store(&self, dir: &Path) -> Result<(), Error> {
        let (_, store) = files::open_typed(self.store.path())?;
        if dir.starts_with(store) {
            return Err(Error::InStore(dir.to_owned()));
        }
        Ok(())
    }

    /// Makes a workspace without a snapshot.
    pub(crate) fn make(
        &self,
        session: &Session,
        name: &WorkspaceName,
        dir: &Path,
        options: &CreateOptions,
    ) -> Result<Held, Error> {
        let (top, dir) = files::open_typed(dir)?;
        let stat = files::stat_of(&top).trying("look at", &dir)?;
        self.refuse_store(&dir)?;
        let others = self.store.names()?;
        if others.contains(name) {
            return Err(Error::Exists(name.clone()));
        }
        if others.len() >= self.most {
            return Err(Error::TooMany(self.most));
        }
        let mut env = options.env.clone();
        env.retain(|name, _| !is_secret_name(name));
        let now = now_ms();
        let state = WorkspaceState {
            schema: SCHEMA,
            name: name.clone(),
            dir,
            identity: Some(Identity::of(&top, &stat)),
            env,
            excludes: options.excludes.clone(),
            xattrs: options.xattrs,
            status: Status::Running,
            created_ms: now,
            used_ms: now,
            paused_ms: None,
            resumed_ms: None,
            baseline: None,
            processes: Vec::new(),
        };
        snapshot::excludes(session, &state)?;
        // Whole before it has its name: nobody ever sees a workspace without a state.
        let random = files::random_name();
        let unnamed = self
            .store
            .workspaces()
            .join(format!("{}{random}", files::TEMPORARY));
        files::make_private_dir(&unnamed.join("snapshots"))?;
        Place {
            name: name.clone(),
            path: unnamed.clone(),
        }
        .save(&state)?;
        let path = self.store.workspace(name);
        let renamed = rustix::fs::renameat_with(
            rustix::fs::CWD,
            &unnamed,
            rustix::fs::CWD,
            &path,
            rustix::fs::RenameFlags::NOREPLACE,
        );
        if let Err(error) = renamed {
            files::remove_tree(&unnamed)?;
            return match error {
                rustix::io::Errno::EXIST => Err(Error::Exists(name.clone())),
                error => Err(error).trying("make the workspace", &path),
            };
        }
        files::sync_parent(&path)?;
        Place {
            name: name.clone(),
            path,
        }
        .hold()
    }

    /// Takes a snapshot.
    ///
    /// # Errors
    /// If the directory can't be read or the store can't be written; then there is none.
    pub fn snapshot(
        &self,
        name: &WorkspaceName,
        message: Option<String>,
        progress: &dyn Progress,
    ) -> Result<SnapshotRecord, Error> {
        let session = self.store.enter()?;
        let mut held = hold(&session, name, progress)?;
        snapshot::take(&session, &mut held, message, progress)
    }

    /// All snapshots of a workspace, the oldest first.
    ///
    /// # Errors
    /// If there is no such workspace or a record is damaged.
    pub fn snapshots(&self, name: &WorkspaceName) -> Result<Vec<SnapshotRecord>, Error> {
        let session = self.store.enter()?;
        Place::find(&session, name)?.records()
    }

    /// Makes the directory what the snapshot has; `id` may be cut short.
    ///
    /// # Errors
    /// If it can't be done; then nothing has changed.
    pub fn restore(
        &self,
        name: &WorkspaceName,
        id: &str,
        mode: RestoreMode,
        progress: &dyn Progress,
    ) -> Result<RestoreReport, Error> {
        self.restore_guarded(name, id, mode, &AllowAll, progress)
    }

    /// The same with a guard that is asked about every change; what it keeps back is not restored.
    ///
    /// # Errors
    /// As [`Self::restore`].
    pub fn restore_guarded(
        &self,
        name: &WorkspaceName,
        id: &str,
        mode: RestoreMode,
        guard: &dyn CommitGuard,
        progress: &dyn Progress,
    ) -> Result<RestoreReport, Error> {
        let session = self.store.enter()?;
        let mut held = hold(&session, name, progress)?;
        let record = held.place.record(id)?;
        let report = restore::restore(&session, &held, &record, mode, guard, progress)?;
        held.save()?;
        Ok(report)
    }

    /// What differs between a snapshot (the last one if none is named) and the directory.
    ///
    /// # Errors
    /// If there is no such snapshot or something can't be read.
    pub fn diff(
        &self,
        name: &WorkspaceName,
        id: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Diff, Error> {
        let session = self.store.enter()?;
        let held = hold(&session, name, progress)?;
        let record = match id {
            Some(id) => Some(held.place.record(id)?),
            None => held.place.records()?.pop(),
        };
        let Some(record) = record else {
            // There is nothing to differ from.
            drop(held);
            return Ok(Diff::new(session, Vec::new()));
        };
        let dir = held.state.dir.clone();
        let top = held.state.open_dir()?;
        let cache = snapshot::usable_cache(&held.place);
        let excludes = snapshot::excludes(&session, &held.state)?;
        let survey = Surveyor {
            top: top.as_fd(),
            top_path: &dir,
            excludes: &excludes,
            xattrs: record.xattrs,
            cache: cache.as_ref(),
            sink: None,
            progress,
        }
        .survey()?;
        let old = diff::Side::Stored(record.tree);
        let changes = diff::changes(&session, &old, &diff::Side::Present(&survey, &dir))?;
        drop(held);
        Ok(Diff::new(session, changes))
    }

    /// Held while something runs in a workspace in the foreground: commits and restores refuse.
    ///
    /// # Errors
    /// If there is no such workspace or the store can't be written.
    pub fn enter_run(&self, name: &WorkspaceName) -> Result<RunLock, Error> {
        let session = self.store.enter()?;
        Place::find(&session, name)?.enter_run().map(RunLock)
    }

    /// Opens a workspace's directory, if it is the one that was recorded.
    ///
    /// # Errors
    /// If another directory or a link is at its path.
    pub fn open_directory(&self, name: &WorkspaceName) -> Result<OwnedFd, Error> {
        let session = self.store.enter()?;
        Place::find(&session, name)?.state()?.open_dir()
    }

    /// Binds a workspace to the directory that is at its path now, or to another one. An overlay
    /// keeps its roots.
    ///
    /// # Errors
    /// If there is none, or a link leads to the path that was recorded.
    pub fn rebind(
        &self,
        name: &WorkspaceName,
        dir: Option<&Path>,
    ) -> Result<WorkspaceState, Error> {
        let session = self.store.enter()?;
        let mut held = Place::find(&session, name)?.hold()?;
        let old = held.state.dir.clone();
        let (top, dir) = match dir {
            Some(dir) => files::open_typed(dir)?,
            None => (files::open_top(&old)?, old.clone()),
        };
        let stat = files::stat_of(&top).trying("look at", &dir)?;
        held.state.identity = Some(Identity::of(&top, &stat));
        held.state.dir = dir;
        overlay::rebind(&held.place, &old, &held.state)?;
        held.save()?;
        Ok(held.state)
    }

    /// The overlay of a workspace, for a run over it; both are made if they are not there.
    ///
    /// # Errors
    /// If another run uses it, or the store can't be written.
    pub fn overlay(&self, name: &WorkspaceName, dir: &Path) -> Result<Overlay, Error> {
        let session = self.store.enter()?;
        let place = match Place::find(&session, name) {
            Err(Error::NoWorkspace(_)) => {
                let options = CreateOptions {
                    no_baseline: true,
                    ..CreateOptions::default()
                };
                self.make(&session, name, dir, &options)?.place
            }
            place => place?,
        };
        let dir = place.state()?.dir;
        // Before the run rather than after it.
        overlay::check(&place)?;
        Overlay::open(place, dir)
    }

    /// Where the layer for a root would be; nothing is made.
    ///
    /// # Errors
    /// If the store is in the root.
    pub fn planned_layer(&self, name: &WorkspaceName, root: &Path) -> Result<PathBuf, Error> {
        overlay::layer_path(&self.store.workspace(name), root)
    }

    /// The kept layer over `home` of the runs in `dir`; made if there is none.
    ///
    /// # Errors
    /// If another run uses it, or it can't be made.
    pub fn home_layer(&self, dir: &Path, home: &Path) -> Result<HomeLayer, Error> {
        // Nothing is collected meanwhile.
        let _session = self.store.enter()?;
        HomeLayer::open(&self.store, dir, home)
    }

    /// Where the kept layer over `home` would be; nothing is made.
    pub fn planned_home_layer(&self, dir: &Path, home: &Path) -> PathBuf {
        home::planned(&self.store, dir, home)
    }

    /// All kept layers over home directories, the one that was used last first.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn home_layers(&self) -> Result<Vec<HomeLayerInfo>, Error> {
        let _session = self.store.enter()?;
        home::list(&self.store)
    }

    /// Removes the kept layer over `home` of the runs in `dir`; answers whether there was one.
    ///
    /// # Errors
    /// If a run uses it, or it can't be removed.
    pub fn discard_home_layer(&self, dir: &Path, home: &Path) -> Result<bool, Error> {
        let _session = self.store.enter()?;
        home::discard(&self.store, dir, home)
    }

    /// The overlay of a workspace, if it has one.
    ///
    /// # Errors
    /// If there is no such workspace, or a run uses its overlay.
    pub fn existing_overlay(&self, name: &WorkspaceName) -> Result<Option<Overlay>, Error> {
        let session = self.store.enter()?;
        let place = Place::find(&session, name)?;
        if !Overlay::exists(&place) {
            return Ok(None);
        }
        let dir = place.state()?.dir;
        let overlay = Overlay::open(place.clone(), dir)?;
        // A commit that was interrupted may have been finished just now, and nothing is left.
        Ok(Overlay::exists(&place).then_some(overlay))
    }

    /// The overlay of a workspace while another run uses it, to be read only.
    ///
    /// # Errors
    /// If there is no such workspace or overlay.
    pub fn overlay_in_use(&self, name: &WorkspaceName) -> Result<Overlay, Error> {
        let session = self.store.enter()?;
        let place = Place::find(&session, name)?;
        if !Overlay::exists(&place) {
            return Err(Error::NoOverlay(name.clone()));
        }
        let dir = place.state()?.dir;
        Overlay::in_use(place, dir)
    }

    /// Forgets what runs changed over a workspace's directory, also if the store's files about it
    /// are damaged.
    ///
    /// # Errors
    /// If there is no such workspace or overlay, or a run uses it.
    pub fn discard_overlay(&self, name: &WorkspaceName) -> Result<(), Error> {
        let session = self.store.enter()?;
        let place = Place::find(&session, name)?;
        if Overlay::exists(&place) {
            overlay::discard(&place)
        } else {
            Err(Error::NoOverlay(name.clone()))
        }
    }

    /// Keeps what an overlay has now under a name; a snapshot of that name is replaced. Nothing may
    /// run over the overlay.
    ///
    /// # Errors
    /// If there are too many snapshots, or a layer can't be copied; then there is no new one.
    pub fn snapshot_overlay(&self, overlay: &Overlay, name: &SnapshotName) -> Result<(), Error> {
        let _session = self.store.enter()?;
        overlay.snapshot(name)
    }

    /// Makes an overlay what it was when the snapshot was taken.
    ///
    /// # Errors
    /// If there is no such snapshot, or it can't be copied; then the overlay is as it was.
    pub fn restore_overlay(&self, overlay: Overlay, name: &SnapshotName) -> Result<(), Error> {
        let _session = self.store.enter()?;
        overlay.restore_snapshot(name)
    }

    /// Removes a snapshot of an overlay.
    ///
    /// # Errors
    /// If there is no such snapshot, or it can't be removed.
    pub fn remove_overlay_snapshot(
        &self,
        overlay: &Overlay,
        name: &SnapshotName,
    ) -> Result<(), Error> {
        let _session = self.store.enter()?;
        overlay.remove_snapshot(name)
    }

    /// Makes a workspace of the same directory whose overlay is a copy of this one. Its name is that
    /// of the overlay's workspace with a number.
    ///
    /// # Errors
    /// If there are too many workspaces, or a layer can't be copied; then there is no new one.
    pub fn fork_overlay(&self, overlay: &Overlay) -> Result<WorkspaceName, Error> {
        let session = self.store.enter()?;
        let options = CreateOptions {
            no_baseline: true,
            ..CreateOptions::default()
        };
        let mut number = 2;
        let held = loop {
            let name = overlay.name().numbered(number);
            match self.make(&session, &name, overlay.dir(), &options) {
                Err(Error::Exists(_)) => number += 1,
                made => break made?,
            }
        };
        match overlay.copy_to(&held.place) {
            Ok(()) => Ok(held.place.name),
            Err(error) => {
                self.discard_files(&held.place)?;
                Err(error)
            }
        }
    }

    /// What an overlay changed.
    ///
    /// # Errors
    /// If its layers can't be read.
    pub fn overlay_diff(&self, overlay: &Overlay) -> Result<Diff, Error> {
        let session = self.store.enter()?;
        Ok(Diff::new(session, overlay.changes()?))
    }

    /// Writes a snapshot (the last one if none is named) into one file, to be imported elsewhere.
    /// Answers with what could not be part of it.
    ///
    /// # Errors
    /// If there is no such snapshot, or the file exists or can't be written.
    pub fn export(
        &self,
        name: &WorkspaceName,
        id: Option<&str>,
        file: &Path,
        progress: &dyn Progress,
    ) -> Result<Vec<String>, Error> {
        let session = self.store.enter()?;
        let held = hold(&session, name, progress)?;
        let record = match id {
            Some(id) => held.place.record(id)?,
            None => held
                .place
                .records()?
                .pop()
                .ok_or_else(|| Error::NoSnapshot {
                    workspace: name.clone(),
                    id: "(any)".to_owned(),
                })?,
        };
        export::write(&session, name, &record, file, progress)
    }

    /// Makes a workspace of an exported file, or of one of Hawk's, and fills its directory if
    /// that is empty. The file is not trusted, and no link or `..` on the way to the directory is followed.
    ///
    /// # Errors
    /// If the file is not what it should be, or can't be restored; then nothing of it is kept.
    pub fn import(
        &self,
        file: &Path,
        name: &WorkspaceName,
        dir: &Path,
        keep_links: bool,
        progress: &dyn Progress,
    ) -> Result<WorkspaceState, Error> {
        let imported = self.import_guarded(file, name, dir, keep_links, &AllowAll, progress);
        imported.map(|(state, _)| state)
    }

    /// The same with a guard that is asked about every file; what it keeps back is part of the
    /// snapshot, and not written to the directory.
    ///
    /// # Errors
    /// As [`Self::import`].
    pub fn import_guarded(
        &self,
        file: &Path,
        name: &WorkspaceName,
        dir: &Path,
        keep_links: bool,
        guard: &dyn CommitGuard,
        progress: &dyn Progress,
    ) -> Result<(WorkspaceState, Vec<KeptBack>), Error> {
        let session = self.store.enter()?;
        if self.store.names()?.contains(name) {
            return Err(Error::Exists(name.clone()));
        }
        let sink = Sink::new(&session);
        let imported = import::read(file, &sink, keep_links, progress)?;
        sink.finish()?;
        drop(sink);
        // New content was added: it is found in a new stay.
        drop(session);
        let session = self.store.enter()?;
        let dir = &std::path::absolute(dir).trying("find the path of", dir)?;
        self.refuse_store(dir)?;
        let is_new = std::fs::symlink_metadata(dir).is_err();
        files::make_dir(dir)?;
        let options = CreateOptions {
            env: imported.env,
            xattrs: imported.record.xattrs,
            ..CreateOptions::default()
        };
        let mut held = self.make(&session, name, dir, &options)?;
        // The guard knows the directory by the path that it was told.
        let filled = if held.state.dir == *dir {
            fill(&session, &mut held, &imported.record, guard, progress)
        } else {
            Err(Error::BehindLink(dir.clone()))
        };
        match filled {
            Ok(kept_back) => Ok((held.state, kept_back)),
            // The old files are in the workspace.
            Err(error @ Error::HalfRestored { .. }) => Err(error),
            Err(error) => {
                self.discard_files(&held.place)?;
                if is_new {
                    // It may have become somebody else's meanwhile.
                    let _ = std::fs::remove_dir(dir);
                }
                Err(error)
            }
        }
    }

    /// Changes the state of a workspace with nobody else in between.
    ///
    /// # Errors
    /// If there is none of that name, or what `change` says.
    pub fn update<T>(
        &self,
        name: &WorkspaceName,
        change: impl FnOnce(&mut WorkspaceState) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let session = self.store.enter()?;
        let mut held = Place::find(&session, name)?.hold()?;
        let answer = change(&mut held.state)?;
        held.save()?;
        Ok(answer)
    }

    /// Freezes everything that runs in a workspace.
    ///
    /// # Errors
    /// If it is not running, or something can't be frozen; then all goes on.
    pub fn pause(&self, name: &WorkspaceName) -> Result<WorkspaceState, Error> {
        self.step(name, Transition::Pause, |state| {
            process::each_alive(state, process::freeze).inspect_err(|_| {
                // The first complaint is the one that matters.
                let _ = process::each_alive(state, process::thaw);
            })
        })
    }

    /// Has everything in a paused workspace go on.
    ///
    /// # Errors
    /// If it is not paused.
    pub fn resume(&self, name: &WorkspaceName) -> Result<WorkspaceState, Error> {
        self.step(name, Transition::Resume, |state| {
            process::each_alive(state, process::thaw)
        })
    }

    /// Ends everything that runs in a workspace, for good; its history remains.
    ///
    /// # Errors
    /// If it was terminated before, or something can't be ended.
    pub fn terminate(&self, name: &WorkspaceName) -> Result<WorkspaceState, Error> {
        self.step(name, Transition::Terminate, |state| {
            process::each_alive(state, process::end)
        })
    }

    /// Where the output of what was left running in a workspace goes.
    pub fn log_file(&self, name: &WorkspaceName) -> PathBuf {
        self.store.workspace(name).join("log")
    }

    /// Makes a way to the standard input of what will be left running in a workspace.
    ///
    /// # Errors
    /// If there is no such workspace or the store can't be written.
    pub fn make_input(&self, name: &WorkspaceName) -> Result<Input, Error> {
        let session = self.store.enter()?;
        Input::make(&Place::find(&session, name)?.path)
    }

    /// Takes a step of the state machine; `act` does what belongs to it, and the step is only
    /// taken if that succeeds.
    fn step(
        &self,
        name: &WorkspaceName,
        step: Transition,
        act: impl FnOnce(&WorkspaceState) -> Result<(), Error>,
    ) -> Result<WorkspaceState, Error> {
        let session = self.store.enter()?;
        let mut held = Place::find(&session, name)?.hold()?;
        held.state.step(step)?;
        act(&held.state)?;
        held.save()?;
        Ok(held.state)
    }
}

/// Makes an imported snapshot the first one of a workspace, whose directory gets its files if it
/// is empty. Answers with what was kept back.
fn fill(
    session: &Session,
    held: &mut Held,
    record: &SnapshotRecord,
    guard: &dyn CommitGuard,
    progress: &dyn Progress,
) -> Result<Vec<KeptBack>, Error> {
    write_json(&held.place.record_file(&record.id), record)?;
    held.state.baseline = Some(record.id.clone());
    held.save()?;
    if !store::list(&held.state.dir)?.is_empty() {
        return Ok(Vec::new());
    }
    let mode = RestoreMode::Merge;
    let restored = restore::restore(session, held, record, mode, guard, progress)?;
    Ok(restored.kept_back)
}

/// A workspace that nobody else changes, with nothing left half-done.
fn hold(session: &Session, name: &WorkspaceName, progress: &dyn Progress) -> Result<Held, Error> {
    let held = Place::find(session, name)?.hold()?;
    restore::recover(session, &held, progress)?;
    Ok(held)
}
