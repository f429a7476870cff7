//! Running over a copy-on-write view of the workspace, and deciding what of it reaches the host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stockade_engine::ExecPlan;
use stockade_policy::profile::Profile;
use stockade_policy::{AbsPath, Surroundings};
use stockade_workspace::{Overlay, Store, WorkspaceManager};

use crate::error::Error;
use crate::sandbox::{Parts, Sandbox};
use crate::session::Session;

pub use crate::guard::{AllowProtected, ProtectedNames};
pub use stockade_workspace::{
    Change, ChangeKind, CommitOptions, CommitReport, Diff, KeptBack, Resolve, SnapshotName,
    WorkspaceName,
};

/// What a builder was told about the overlay.
#[derive(Debug, Default)]
pub(crate) struct OverlaySettings {
    pub(crate) store: Option<PathBuf>,
    pub(crate) name: Option<WorkspaceName>,
}

/// Where a sandbox's overlay is.
#[derive(Clone, Debug)]
pub(crate) struct OverlayPlace {
    name: WorkspaceName,
    directory: PathBuf,
    /// None where there is no home directory that could have one.
    store: Option<PathBuf>,
    home: Option<PathBuf>,
}

impl OverlaySettings {
    pub(crate) fn place(&self, profile: &Profile, around: &Surroundings) -> OverlayPlace {
        let directory = profile.cwd.as_path().to_owned();
        let users_own = around
            .stores
            .first()
            .map(|store| store.as_path().to_owned());
        OverlayPlace {
            name: self
                .name
                .clone()
                .unwrap_or_else(|| WorkspaceName::for_directory(&directory)),
            directory,
            store: self.store.clone().or(users_own),
            home: around.home.as_ref().map(|home| home.as_path().to_owned()),
        }
    }
}

impl OverlayPlace {
    fn manager(&self) -> Result<WorkspaceManager, Error> {
        let store = self.store.clone().ok_or(Error::NoStore)?;
        Ok(WorkspaceManager::new(Store::open(store)?))
    }

    /// The overlay, for a command over it; made if it is not there.
    fn open(&self) -> Result<Overlay, Error> {
        Ok(self.manager()?.overlay(&self.name, &self.directory)?)
    }
}

impl Sandbox {
    /// The name under which `stockade ws` knows the overlay.
    ///
    /// # Errors
    /// If the sandbox has no overlay.
    pub fn overlay_name(&self) -> Result<&WorkspaceName, Error> {
        Ok(&self.place()?.name)
    }

    /// What commands changed and nobody committed or discarded.
    ///
    /// # Errors
    /// If the sandbox has no overlay, or a command runs over it.
    pub fn diff(&self) -> Result<Diff, Error> {
        let place = self.place()?;
        Ok(place.manager()?.overlay_diff(&place.open()?)?)
    }

    /// Applies what commands changed to the workspace, all of it or nothing. Protected names (git
    /// hooks, editor settings and the like) are kept back and listed; files that the host changed
    /// meanwhile are an error.
    ///
    /// # Errors
    /// If the sandbox has no overlay, a command runs over it, or the changes can't be applied.
    pub fn commit(&self) -> Result<CommitReport, Error> {
        self.commit_paths(&[], Resolve::Refuse)
    }

    /// The same for these absolute paths and what is below them, or for all changes if there are no
    /// paths; `resolve` decides about files that the host changed meanwhile.
    ///
    /// # Errors
    /// As [`Sandbox::commit`], and if nothing changed at one of the paths.
    pub fn commit_paths(&self, paths: &[PathBuf], resolve: Resolve) -> Result<CommitReport, Error> {
        let place = self.place()?;
        let overlay = place.open()?;
        let roots = overlay.roots().map(Path::to_owned).collect();
        let guard = ProtectedNames::new(self.profile().clone(), place.home.clone(), roots);
        Ok(overlay.commit(&CommitOptions {
            paths,
            resolve,
            guard: &guard,
            durable: true,
        })?)
    }

    /// Drops what commands changed.
    ///
    /// # Errors
    /// If the sandbox has no overlay, or a command runs over it.
    pub fn discard(&self) -> Result<(), Error> {
        let place = self.place()?;
        Ok(place.manager()?.discard_overlay(&place.name)?)
    }

    /// Keeps what the overlay has now under a name: letters, digits, `.`, `_` and `-`. A snapshot of
    /// that name is replaced.
    ///
    /// # Errors
    /// If the sandbox has no overlay, a command runs over it, the name can't be one, or the overlay
    /// can't be copied.
    pub fn snapshot(&self, name: &str) -> Result<(), Error> {
        let (place, name) = (self.place()?, snapshot_name(name)?);
        Ok(place.manager()?.snapshot_overlay(&place.open()?, &name)?)
    }

    /// Makes the overlay what it was when the snapshot was taken.
    ///
    /// # Errors
    /// If the sandbox has no overlay, a command runs over it, or there is no such snapshot.
    pub fn restore(&self, name: &str) -> Result<(), Error> {
        let (place, name) = (self.place()?, snapshot_name(name)?);
        Ok(place.manager()?.restore_overlay(place.open()?, &name)?)
    }

    /// The names of the overlay's snapshots, in order.
    ///
    /// # Errors
    /// If the sandbox has no overlay, or a command runs over it.
    pub fn snapshots(&self) -> Result<Vec<SnapshotName>, Error> {
        Ok(self.place()?.open()?.snapshots()?)
    }

    /// Removes a snapshot of the overlay.
    ///
    /// # Errors
    /// If the sandbox has no overlay, a command runs over it, or there is no such snapshot.
    pub fn remove_snapshot(&self, name: &str) -> Result<(), Error> {
        let (place, name) = (self.place()?, snapshot_name(name)?);
        let manager = place.manager()?;
        Ok(manager.remove_overlay_snapshot(&place.open()?, &name)?)
    }

    /// A sandbox with the same policy whose overlay begins as a copy of this one's. From then on
    /// nothing that happens over one shows over the other, until it is committed.
    ///
    /// # Errors
    /// If the sandbox has no overlay, a command runs over it, or it can't be copied.
    pub fn fork(&self) -> Result<Self, Error> {
        let place = self.place()?;
        let name = place.manager()?.fork_overlay(&place.open()?)?;
        let parts = &self.parts;
        Ok(Self {
            parts: Arc::new(Parts {
                profile: parts.profile.clone(),
                helper: parts.helper.clone(),
                backends: parts.backends.clone(),
                network: parts.network.clone(),
                overlay: Some(OverlayPlace {
                    name,
                    ..place.clone()
                }),
            }),
        })
    }

    /// Removes the overlay with its snapshots and everything else that the store has of it.
    ///
    /// # Errors
    /// If the sandbox has no overlay, or a command runs over it.
    pub fn remove_overlay(&self) -> Result<(), Error> {
        let place = self.place()?;
        Ok(place.manager()?.remove(&place.name)?)
    }

    fn place(&self) -> Result<&OverlayPlace, Error> {
        self.parts.overlay.as_ref().ok_or(Error::NoOverlay)
    }

    pub(crate) fn open_overlay(&self) -> Result<Option<Overlay>, Error> {
        self.parts
            .overlay
            .as_ref()
            .map(OverlayPlace::open)
            .transpose()
    }
}

impl Session {
    /// What commands changed so far, and nobody committed or discarded. Commands may run meanwhile.
    ///
    /// # Errors
    /// If the session has no overlay, or its layers can't be read.
    pub fn diff(&self, sandbox: &Sandbox) -> Result<Diff, Error> {
        Ok(sandbox
            .place()?
            .manager()?
            .overlay_diff(self.own_overlay()?)?)
    }

    /// Keeps what the overlay has now under a name, as [`Sandbox::snapshot`] does. The sandbox is
    /// built again: `/tmp` is empty and what ran in the background is gone.
    ///
    /// # Errors
    /// If a command runs or its [`Child`](crate::Child) was not dropped, or as
    /// [`Sandbox::snapshot`]; the session goes on.
    pub fn snapshot(&mut self, name: &str) -> Result<(), Error> {
        snapshot_name(name)?;
        self.rebuild(|sandbox| sandbox.snapshot(name))
    }

    /// Makes the overlay what it was when the snapshot was taken, and builds the sandbox again.
    ///
    /// # Errors
    /// As [`Session::snapshot`], and if there is no such snapshot.
    pub fn restore(&mut self, name: &str) -> Result<(), Error> {
        snapshot_name(name)?;
        self.rebuild(|sandbox| sandbox.restore(name))
    }

    /// The names of the overlay's snapshots, in order. Commands may run meanwhile.
    ///
    /// # Errors
    /// If the session has no overlay.
    pub fn snapshots(&self) -> Result<Vec<SnapshotName>, Error> {
        Ok(self.own_overlay()?.snapshots()?)
    }

    /// Removes a snapshot of the overlay. Commands may run meanwhile.
    ///
    /// # Errors
    /// If the session has no overlay, or there is no such snapshot.
    pub fn remove_snapshot(&self, name: &str) -> Result<(), Error> {
        let name = snapshot_name(name)?;
        let manager = self.sandbox().place()?.manager()?;
        Ok(manager.remove_overlay_snapshot(self.own_overlay()?, &name)?)
    }

    fn own_overlay(&self) -> Result<&Overlay, Error> {
        self.overlay.as_ref().ok_or(Error::NoOverlay)
    }

    /// Opens a second session, with the same policy, whose overlay begins as a copy of this one's.
    /// The second session's [`Session::sandbox`] commits or discards what happens in it.
    ///
    /// # Errors
    /// As [`Session::snapshot`], and if the second session can't be opened.
    pub fn fork(&mut self) -> Result<Self, Error> {
        let fork = self.rebuild(Sandbox::fork)?;
        fork.open().inspect_err(|_| {
            // What was copied is of no use to anybody.
            let _ = fork.remove_overlay();
        })
    }
}

fn snapshot_name(name: &str) -> Result<SnapshotName, Error> {
    name.parse()
        .map_err(|error| Error::Overlay(stockade_workspace::Error::Name(error)))
}

/// Has a plan name the layers that an overlay in use has.
pub(crate) fn name_layers(plan: &mut ExecPlan, overlay: &Overlay) -> Result<(), Error> {
    plan.overlay(|root| layer_at(overlay.layer_path(root.as_path())?))
}

/// Has every change of a plan go to the overlay.
pub(crate) fn add_layers(plan: &mut ExecPlan, overlay: &mut Overlay) -> Result<(), Error> {
    plan.overlay(|root| layer_at(overlay.layer(root.as_path())?))
}

fn layer_at(path: PathBuf) -> Result<AbsPath, Error> {
    AbsPath::new(&path).map_err(|source| Error::Workspace { path, source })
}
