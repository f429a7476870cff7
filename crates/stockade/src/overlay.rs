//! Running over a copy-on-write view of the workspace, and deciding what of it reaches the host.

use std::path::{Path, PathBuf};

use stockade_engine::ExecPlan;
use stockade_policy::profile::Profile;
use stockade_policy::{AbsPath, Surroundings};
use stockade_workspace::{Overlay, Store, WorkspaceManager, WorkspaceName};

use crate::error::Error;
use crate::sandbox::Sandbox;
use crate::session::Session;

pub use crate::guard::{AllowProtected, ProtectedNames};
pub use stockade_workspace::{
    Change, ChangeKind, CommitOptions, CommitReport, Diff, KeptBack, Resolve,
};

/// What a builder was told about the overlay.
#[derive(Debug, Default)]
pub(crate) struct OverlaySettings {
    pub(crate) store: Option<PathBuf>,
}

/// Where a sandbox's overlay is.
#[derive(Debug)]
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
            name: WorkspaceName::for_directory(&directory),
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
        let overlay = self.overlay.as_ref().ok_or(Error::NoOverlay)?;
        Ok(sandbox.place()?.manager()?.overlay_diff(overlay)?)
    }
}

/// Has every change of a plan go to the overlay.
pub(crate) fn add_layers(plan: &mut ExecPlan, overlay: &mut Overlay) -> Result<(), Error> {
    plan.overlay(|root| {
        let layer = overlay.layer(root.as_path())?;
        AbsPath::new(&layer).map_err(|source| Error::Workspace {
            path: layer,
            source,
        })
    })
}
