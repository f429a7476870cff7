//! Overlays: what runs changed over a directory that stayed as it was.
//!
//! For each root there is a layer as overlayfs writes it: a copy of every file that was changed, a
//! character device 0:0 for every name that was removed (a *whiteout*), and directories that hide
//! the one below them (*opaque*, by `user.overlay.opaque`). Several runs may stack: each goes on
//! where the last one ended.
//!
//! To know at the end whether the host changed a file meanwhile, what each of them was is written
//! down when the run that changed it ends.

mod base;
mod commit;
mod layer;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::cache::exactly_now;
use crate::diff::Change;
use crate::error::{Error, Trying};
use crate::files;
use crate::id::ObjectId;
use crate::store::{self, Lock};
use crate::tree::Time;
use crate::workspace::{Place, read_json};

pub use commit::{CommitReport, Resolve};

use self::base::Base;

/// The roots that have layers.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Index {
    roots: Vec<Root>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Root {
    #[serde(with = "crate::state::path")]
    path: PathBuf,
    /// The layer's directory in the overlay's.
    layer: String,
}

/// A workspace's overlay that nobody else uses meanwhile.
#[derive(Debug)]
pub struct Overlay {
    place: Place,
    /// The workspace's own directory, by which paths are told.
    dir: PathBuf,
    index: Index,
    started: Time,
    _lock: Lock,
}

impl Overlay {
    pub(crate) fn exists(place: &Place) -> bool {
        directory(place).join("index.json").exists()
    }

    /// Opens it, or makes an empty one.
    pub(crate) fn open(place: Place, dir: PathBuf) -> Result<Self, Error> {
        let how = FlockOperation::NonBlockingLockExclusive;
        let lock =
            store::lock(&place.path.join("overlay.lock"), how).map_err(|error| match error {
                Error::Io { source, .. } if source.kind() == std::io::ErrorKind::WouldBlock => {
                    Error::OverlayBusy(place.name.clone())
                }
                other => other,
            })?;
        let path = directory(&place).join("index.json");
        let index = if path.exists() {
            read_json(&path)?
        } else {
            Index::default()
        };
        let overlay = Self {
            place,
            dir,
            index,
            started: exactly_now(),
            _lock: lock,
        };
        commit::recover(&overlay)?;
        Ok(overlay)
    }

    /// The layer for a root: a directory with `upper` and `work`. Made if there is none.
    ///
    /// # Errors
    /// If it can't be made, or the store is in the root: a layer can't be over itself.
    pub fn layer(&mut self, root: &Path) -> Result<PathBuf, Error> {
        let layer = layer_path(&self.place.path, root)?;
        let directory = directory(&self.place);
        if let Some(known) = self.index.roots.iter().find(|known| known.path == root) {
            return Ok(directory.join(&known.layer));
        }
        for part in ["upper", "work"] {
            files::make_private_dir(&layer.join(part))?;
        }
        // The top of the view has the attributes of the layer's top.
        let top = files::open_top(root)?;
        let stat = files::stat_of(&top).trying("look at", root)?;
        let upper = files::open_top(&layer.join("upper"))?;
        let meta = crate::content::meta(&stat, Vec::new());
        crate::restore::set_attributes(std::os::fd::AsFd::as_fd(&upper), &meta, false)
            .trying("set the attributes of", &layer)?;
        self.index.roots.push(Root {
            path: root.to_owned(),
            layer: layer_name(root),
        });
        // A power failure may lose the layer; the host's files are as they were.
        let text = serde_json::to_vec_pretty(&self.index).unwrap_or_default();
        files::replace_unsynced(&directory.join("index.json"), &[&text])?;
        Ok(layer)
    }

    /// The workspace's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes down what the host's files were that the layers changed. To be called after a run.
    ///
    /// # Errors
    /// If a layer can't be read or the note can't be written.
    pub fn note(&self) -> Result<(), Error> {
        let mut base = Base::load(&directory(&self.place))?;
        let mut is_new = false;
        for root in &self.index.roots {
            let touched = layer::touched(&self.upper(root))?;
            is_new |= base.note(&root.path, touched, self.started)?;
        }
        if is_new { base.save() } else { Ok(()) }
    }

    /// Everything that differs from the host.
    pub(crate) fn changes(&self) -> Result<Vec<Change>, Error> {
        let mut changes = Vec::new();
        for root in &self.index.roots {
            let found = layer::changes(&root.path, &self.upper(root))?;
            changes.extend(found.into_iter().map(|mut change| {
                // Told from the workspace's directory; what is elsewhere by its whole path.
                if root.path != self.dir {
                    change.path = root.path.join(&change.path);
                }
                change
            }));
        }
        Ok(changes)
    }

    /// Forgets all that the runs changed.
    ///
    /// # Errors
    /// If it can't be removed.
    pub fn discard(self) -> Result<(), Error> {
        let directory = directory(&self.place);
        if !directory.exists() {
            return Ok(());
        }
        let name = format!("{}{}", files::TEMPORARY, files::random_name());
        let unnamed = self.place.path.join(name);
        fs::rename(&directory, &unnamed).trying("remove", &directory)?;
        files::remove_tree_of_others(&unnamed)
    }

    fn upper(&self, root: &Root) -> PathBuf {
        directory(&self.place).join(&root.layer).join("upper")
    }
}

fn directory(place: &Place) -> PathBuf {
    place.path.join(DIRECTORY)
}

/// Where a workspace keeps its layers.
const DIRECTORY: &str = "overlay";

fn layer_name(root: &Path) -> String {
    let mut name = ObjectId::of(root.as_os_str().as_bytes()).to_string();
    name.truncate(16);
    name
}

/// Where the layer for a root is in a workspace's directory.
pub(crate) fn layer_path(workspace: &Path, root: &Path) -> Result<PathBuf, Error> {
    if workspace.starts_with(root) {
        return Err(Error::StoreInRoot(root.to_owned()));
    }
    Ok(workspace.join(DIRECTORY).join(layer_name(root)))
}
