//! Overlays: what runs changed over a directory that stayed as it was.
//!
//! For each root there is a layer as overlayfs writes it: a copy of every file that was changed, a
//! character device 0:0 for every name that was removed (a *whiteout*), and directories that hide
//! the one below them (*opaque*, by `user.overlay.opaque`). Several runs may stack: each goes on
//! where the last one ended.
//!
//! To know at the end whether the host changed a file meanwhile, what each of them was is written
//! down when the run that changed it ends.
//!
//! Layers are not synced (see `work`). If the machine rebooted since one was written, some
//! of it may be missing, and it is not committed before the user has said that all is there.

mod apply;
mod base;
mod commit;
mod copy;
mod journal;
mod layer;
mod plan;
mod snapshots;
mod step;
mod transaction;
mod view;
pub(crate) mod work;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::boot;
use crate::cache::exactly_now;
use crate::diff::Change;
use crate::error::{Error, Trying};
use crate::files;
use crate::id::ObjectId;
use crate::identity::{self, Identity};
use crate::name::WorkspaceName;
use crate::state::WorkspaceState;
use crate::store::{self, Lock};
use crate::tree::Time;
use crate::workspace::{Place, read_json};

pub use commit::{CommitOptions, CommitReport, Resolve};

use self::base::Base;

/// The roots that have layers.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Index {
    roots: Vec<Root>,
    /// When the first run began that could write to the layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<(i64, u32)>,
    /// When the machine was started in which a run could write to the layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot: Option<String>,
    /// Whether that was not always the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    restarted: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Root {
    #[serde(with = "crate::state::path")]
    path: PathBuf,
    /// Which directory that was when the layer was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<Identity>,
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
    began: Instant,
    /// `None`: another run uses the overlay, and this one only reads it.
    lock: Option<Lock>,
}

impl Overlay {
    pub(crate) fn exists(place: &Place) -> bool {
        directory(place).join(INDEX).exists()
    }

    /// Opens it, or makes an empty one.
    pub(crate) fn open(place: Place, dir: PathBuf) -> Result<Self, Error> {
        let lock = lock(&place)?;
        let index = read_index(&place)?;
        let mut overlay = Self {
            place,
            dir,
            index,
            started: exactly_now(),
            began: Instant::now(),
            lock: Some(lock),
        };
        transaction::recover(&overlay)?;
        // A commit that was finished just now may have left nothing.
        overlay.index = read_index(&overlay.place)?;
        overlay.index.restarted |=
            overlay.index.boot.is_some() && overlay.index.boot != boot::current();
        if let Some(since) = overlay.unnoted()? {
            overlay.started = since;
        }
        Ok(overlay)
    }

    /// The overlay while another run uses it, to be read only: whatever would change it is refused.
    pub(crate) fn in_use(place: Place, dir: PathBuf) -> Result<Self, Error> {
        Ok(Self {
            index: read_index(&place)?,
            place,
            dir,
            started: exactly_now(),
            began: Instant::now(),
            lock: None,
        })
    }

    fn require_lock(&self) -> Result<(), Error> {
        match self.lock {
            Some(_) => Ok(()),
            None => Err(Error::OverlayBusy(self.place.name.clone())),
        }
    }

    /// The layer for a root: a directory with `upper` and `work`, as overlayfs takes it with the
    /// option `volatile`. Made if there is none.
    ///
    /// # Errors
    /// If it can't be made, or the store is in the root: a layer can't be over itself.
    pub fn layer(&mut self, root: &Path) -> Result<PathBuf, Error> {
        self.require_lock()?;
        let layer = layer_path(&self.place.path, root)?;
        let boot = boot::current();
        let known = self.index.roots.iter().find(|known| known.path == root);
        let is_known = known.is_some();
        let top = identity::open(root, known.and_then(|known| known.identity.as_ref()))?;
        if is_known {
            work::renew(&layer)?;
        } else {
            // A power failure may have lost the index, and not what it told of.
            match fs::rename(&layer, unnamed(&self.place)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                renamed => renamed.trying("set aside", &layer)?,
            }
            let identity = make_layer(root, &top, &layer)?;
            if self.index.roots.is_empty() {
                self.index.since = Some((self.started.seconds, self.started.nanos));
            }
            self.index.roots.push(Root {
                path: root.to_owned(),
                identity: Some(identity),
                layer: layer_name(root),
            });
        }
        self.begin_run()?;
        if !is_known || self.index.boot != boot {
            // Layers that were synced have no boot; that they are no longer must not be lost.
            let was_synced = is_known && self.index.boot.is_none();
            self.index.boot = boot;
            self.save_index(was_synced)?;
        }
        Ok(layer)
    }

    /// Where [`Overlay::layer`] has the layer for a root.
    ///
    /// # Errors
    /// If the store is in the root.
    pub fn layer_path(&self, root: &Path) -> Result<PathBuf, Error> {
        layer_path(&self.place.path, root)
    }

    /// Remembers when a run began whose changes are not noted yet: it may be killed before that.
    fn begin_run(&self) -> Result<(), Error> {
        let path = directory(&self.place).join(UNNOTED);
        if path.exists() {
            return Ok(());
        }
        let text = format!("{} {}", self.started.seconds, self.started.nanos);
        files::replace_unsynced(&path, &[text.as_bytes()])
    }

    fn unnoted(&self) -> Result<Option<Time>, Error> {
        let path = directory(&self.place).join(UNNOTED);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.trying("read", &path)?,
        };
        let time = text.split_once(' ').and_then(|(seconds, nanos)| {
            Some(Time {
                seconds: seconds.parse().ok()?,
                nanos: nanos.parse().ok()?,
            })
        });
        let time = time.ok_or_else(|| Error::damaged(&path, "it is no time"))?;
        Ok(Some(time))
    }

    fn save_index(&self, synced: bool) -> Result<(), Error> {
        let path = directory(&self.place).join(INDEX);
        let text = serde_json::to_vec_pretty(&self.index).unwrap_or_default();
        if synced {
            files::replace(&path, &text)
        } else {
            // A power failure may lose the layer; the host's files are as they were.
            files::replace_unsynced(&path, &[&text])
        }
    }

    /// Whether the machine rebooted since runs wrote to it. Unless it was shut down in
    /// order, some of what they wrote may be missing.
    pub const fn was_restarted(&self) -> bool {
        self.index.restarted
    }

    /// Takes everything to be there, after the machine rebooted.
    pub fn take_as_complete(&mut self) {
        self.index.restarted = false;
    }

    /// The directories that have layers.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        self.index.roots.iter().map(|root| &*root.path)
    }

    /// The workspace's name.
    pub fn name(&self) -> &WorkspaceName {
        &self.place.name
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
        self.require_lock()?;
        let mut base = Base::load(&directory(&self.place))?;
        let mut is_new = false;
        for pair in self.pairs()? {
            is_new |= base.note(pair.root, &pair.host, &pair.upper, self.started)?;
        }
        if is_new {
            base.save()?;
        }
        files::remove_file(&directory(&self.place).join(UNNOTED))?;
        self.clear()
    }

    /// Removes what earlier runs left in their directories.
    fn clear(&self) -> Result<(), Error> {
        let mut roots = self.index.roots.iter();
        roots.try_for_each(|root| {
            work::clear_after(&directory(&self.place).join(&root.layer), self.began)
        })
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
        self.require_lock()?;
        remove(&self.place)
    }

    fn upper(&self, root: &Root) -> PathBuf {
        directory(&self.place).join(&root.layer).join("upper")
    }
}

/// Makes an empty layer for a root, which is open as `top`.
pub(crate) fn make_layer(root: &Path, top: &OwnedFd, layer: &Path) -> Result<Identity, Error> {
    for part in ["upper", work::WORK] {
        files::make_private_dir(&layer.join(part))?;
    }
    // The top of the view has the attributes of the layer's top.
    let stat = files::stat_of(top).trying("look at", root)?;
    let upper = files::open_top(&layer.join("upper"))?;
    let meta = crate::content::meta(&stat, Vec::new());
    crate::restore::set_attributes(std::os::fd::AsFd::as_fd(&upper), &meta, false)
        .trying("set the attributes of", layer)?;
    Ok(Identity::of(top, &stat))
}

/// Names the time at which a run began whose changes are not noted.
const UNNOTED: &str = "unnoted";

/// Lists the roots.
const INDEX: &str = "index.json";

fn read_index(place: &Place) -> Result<Index, Error> {
    read_index_in(&directory(place))
}

fn read_index_in(directory: &Path) -> Result<Index, Error> {
    let path = directory.join(INDEX);
    let index: Index = match read_json(&path) {
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(Index::default());
        }
        index => index?,
    };
    // A root that is not the one of its layer would be written with what another one has.
    let is_sound = |root: &Root| root.path.is_absolute() && root.layer == layer_name(&root.path);
    if index.roots.iter().all(is_sound) {
        Ok(index)
    } else {
        Err(Error::damaged(&path, "a layer is not that of its root"))
    }
}

/// Has a layer over a workspace's old directory be over the new one; it must be at the same path.
pub(crate) fn rebind(place: &Place, old: &Path, state: &WorkspaceState) -> Result<(), Error> {
    let _lock = lock(place)?;
    let mut index = read_index(place)?;
    for root in &mut index.roots {
        if root.path != old {
            continue;
        }
        if state.dir != old {
            return Err(Error::HasOverlay(place.name.clone()));
        }
        root.identity.clone_from(&state.identity);
        let text = serde_json::to_vec_pretty(&index).unwrap_or_default();
        return files::replace(&directory(place).join(INDEX), &text);
    }
    Ok(())
}

/// Discards the overlay of a workspace, also if it is damaged.
pub(crate) fn discard(place: &Place) -> Result<(), Error> {
    match Overlay::open(place.clone(), PathBuf::new()) {
        Ok(overlay) => overlay.discard(),
        Err(Error::Damaged { .. }) => {
            let _lock = lock(place)?;
            remove(place)
        }
        Err(error) => Err(error),
    }
}

/// What is wrong with the overlay of a workspace, as far as the store's own files go.
pub(crate) fn check(place: &Place) -> Result<(), Error> {
    snapshots::check(place)?;
    let directory = directory(place);
    if !directory.exists() {
        return Ok(());
    }
    read_index(place)?;
    Base::load(&directory)?;
    journal::check(&directory)
}

fn remove(place: &Place) -> Result<(), Error> {
    let directory = directory(place);
    if !directory.exists() {
        return Ok(());
    }
    remove_directory(place, &directory)
}

/// Removes a directory of a workspace, which loses its name first.
fn remove_directory(place: &Place, directory: &Path) -> Result<(), Error> {
    let unnamed = unnamed(place);
    fs::rename(directory, &unnamed).trying("remove", directory)?;
    files::remove_tree_of_others(&unnamed)
}

/// Where something can be that is to be removed.
fn unnamed(place: &Place) -> PathBuf {
    let name = format!("{}{}", files::TEMPORARY, files::random_name());
    place.path.join(name)
}

fn directory(place: &Place) -> PathBuf {
    directory_in(&place.path)
}

/// Where a workspace keeps its layers.
pub(crate) fn directory_in(workspace: &Path) -> PathBuf {
    workspace.join("overlay")
}

/// When a run last used the overlay of a workspace, in milliseconds since 1970; zero if none did.
/// Each changes the directory in which overlayfs works.
pub(crate) fn used_ms(workspace: &Path) -> u64 {
    let layers = store::list(&directory_in(workspace)).unwrap_or_default();
    let used = layers.iter().filter_map(|layer| work::used_ms(layer));
    used.max().unwrap_or(0)
}

/// Keeps runs from using the overlay of a workspace.
pub(crate) fn lock(place: &Place) -> Result<Lock, Error> {
    let how = FlockOperation::NonBlockingLockExclusive;
    store::lock(&place.path.join("overlay.lock"), how).map_err(|error| match error {
        Error::Io { source, .. } if source.kind() == io::ErrorKind::WouldBlock => {
            Error::OverlayBusy(place.name.clone())
        }
        other => other,
    })
}

/// What runs left in the layers of a workspace, and is of no use.
pub(crate) fn left_behind(workspace: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for layer in store::list(&directory_in(workspace))? {
        if layer.is_dir() {
            found.extend(work::set_aside(&layer)?);
        }
    }
    Ok(found)
}

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
    Ok(directory_in(workspace).join(layer_name(root)))
}
