//! Named states of an overlay: whole copies of its layers and of what is known about them, beside
//! the overlay in the workspace's directory.
//!
//! A copy has no name until it is whole. Copies share blocks with the overlay where the file system
//! can do that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::{Index, Overlay, UNNOTED, base, copy, directory, read_index_in, unnamed, work};
use crate::error::{Error, Trying};
use crate::files;
use crate::name::SnapshotName;
use crate::store;
use crate::workspace::Place;

/// As many snapshots as an overlay has at most: each is a copy.
const MAX_SNAPSHOTS: usize = 64;

impl Overlay {
    /// Keeps what the overlay has now under a name; a snapshot of that name is replaced.
    pub(crate) fn snapshot(&self, name: &SnapshotName) -> Result<(), Error> {
        self.require_lock()?;
        let path = snapshot_path(&self.place, name);
        if !path.exists() && snapshots(&self.place)?.len() >= MAX_SNAPSHOTS {
            return Err(Error::TooManySnapshots {
                workspace: self.place.name.clone(),
                limit: MAX_SNAPSHOTS,
            });
        }
        files::make_private_dir(&snapshots_in(&self.place.path))?;
        put_copy(&self.place, &directory(&self.place), &path)
    }

    /// Makes the overlay what it was when the snapshot was taken.
    pub(crate) fn restore_snapshot(self, name: &SnapshotName) -> Result<(), Error> {
        self.require_lock()?;
        let path = snapshot_path(&self.place, name);
        self.require_snapshot(&path, name)?;
        put_copy(&self.place, &path, &directory(&self.place))
    }

    pub(crate) fn remove_snapshot(&self, name: &SnapshotName) -> Result<(), Error> {
        let path = snapshot_path(&self.place, name);
        self.require_snapshot(&path, name)?;
        super::remove_directory(&self.place, &path)
    }

    /// Copies the overlay to a workspace that has none.
    pub(crate) fn copy_to(&self, other: &Place) -> Result<(), Error> {
        self.require_lock()?;
        put_copy(other, &directory(&self.place), &directory(other))
    }

    /// The names of all snapshots, in order.
    ///
    /// # Errors
    /// If the store can't be read.
    pub fn snapshots(&self) -> Result<Vec<SnapshotName>, Error> {
        snapshots(&self.place)
    }

    fn require_snapshot(&self, path: &Path, name: &SnapshotName) -> Result<(), Error> {
        if path.exists() {
            return Ok(());
        }
        Err(Error::NoOverlaySnapshot {
            workspace: self.place.name.clone(),
            name: name.clone(),
        })
    }
}

fn snapshots(place: &Place) -> Result<Vec<SnapshotName>, Error> {
    let paths = store::list(&snapshots_in(&place.path))?;
    let names = paths
        .iter()
        .filter_map(|path| path.file_name()?.to_str()?.parse().ok());
    let mut names: Vec<SnapshotName> = names.collect();
    names.sort();
    Ok(names)
}

/// What is wrong with the snapshots of a workspace's overlay.
pub(super) fn check(place: &Place) -> Result<(), Error> {
    for name in snapshots(place)? {
        let path = snapshot_path(place, &name);
        read_index_in(&path)?;
        base::Base::load(&path)?;
    }
    Ok(())
}

/// Puts a whole copy of an overlay's directory in the place of `to`.
fn put_copy(place: &Place, from: &Path, to: &Path) -> Result<(), Error> {
    let fresh = unnamed(place);
    let done = copy_overlay(from, &fresh).and_then(|()| replace(&fresh, to));
    // The old state, or what could be copied.
    let removed = files::remove_tree_of_others(&fresh);
    done.and(removed)
}

/// Has `to` be what `fresh` is; afterwards `fresh` is what `to` was, if there was anything.
fn replace(fresh: &Path, to: &Path) -> Result<(), Error> {
    match renameat_with(CWD, fresh, CWD, to, RenameFlags::EXCHANGE) {
        Err(Errno::NOENT) => fs::rename(fresh, to).trying("name", to),
        exchanged => exchanged.trying("replace", to),
    }
}

fn copy_overlay(from: &Path, to: &Path) -> Result<(), Error> {
    files::make_private_dir(to)?;
    let Index { roots, .. } = read_index_in(from)?;
    for root in roots {
        let (from, to) = (from.join(&root.layer), to.join(&root.layer));
        for part in ["upper", work::WORK] {
            files::make_private_dir(&to.join(part))?;
        }
        copy::copy_layer(&from.join("upper"), &to.join("upper"))?;
    }
    // An overlay without these is empty.
    for name in [base::NAME, UNNOTED, super::INDEX] {
        match fs::copy(from.join(name), to.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            copied => drop(copied.trying("copy", from.join(name))?),
        }
    }
    Ok(())
}

/// Where a workspace keeps the snapshots of its overlay.
fn snapshots_in(workspace: &Path) -> PathBuf {
    workspace.join("overlay-snapshots")
}

fn snapshot_path(place: &Place, name: &SnapshotName) -> PathBuf {
    snapshots_in(&place.path).join(name.to_string())
}
