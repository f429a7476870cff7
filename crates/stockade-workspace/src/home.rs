//! Kept home layers: what the runs in one directory wrote to the home directory.
//!
//! ```text
//! homes/ID/index.json      whose layer this is
//! homes/ID/layer/          `upper` and `work`, as overlayfs takes them
//! homes/ID.lock            held by the run that uses the layer
//! ```
//!
//! A layer is never applied to the host. It may lie below the home directory it is mounted over:
//! overlayfs takes an upper directory in the lower one (Linux 5.13), and no command sees the store.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::boot;
use crate::error::{Error, Trying};
use crate::files;
use crate::id::ObjectId;
use crate::overlay::{make_layer, work};
use crate::store::{self, Lock, Store};
use crate::workspace::read_json;

/// Whose layer it is.
#[derive(Debug, Serialize, Deserialize)]
struct Index {
    #[serde(with = "crate::state::path")]
    dir: PathBuf,
    #[serde(with = "crate::state::path")]
    home: PathBuf,
    /// When the machine was started in which a run last wrote to the layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot: Option<String>,
}

/// A kept layer that no other run uses meanwhile.
#[derive(Debug)]
pub struct HomeLayer {
    path: PathBuf,
    was_restarted: bool,
    began: Instant,
    #[expect(dead_code, reason = "held, not used")]
    lock: Lock,
}

/// What is known about a kept layer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HomeLayerInfo {
    /// The directory whose runs use it.
    pub dir: PathBuf,
    /// The home directory it is over.
    pub home: PathBuf,
    /// When a run last began to use it, in milliseconds since 1970.
    pub used_ms: u64,
    /// The length of the files in it.
    pub bytes: u64,
    /// Whether a run uses it now.
    pub in_use: bool,
}

impl HomeLayer {
    /// The layer of the runs in `dir` over `home`, made if there is none.
    pub(crate) fn open(store: &Store, dir: &Path, home: &Path) -> Result<Self, Error> {
        files::make_private_dir(&homes(store))?;
        let lock = lock(store, dir, home)?;
        let place = place(store, dir, home);
        let path = place.join(LAYER);
        let known = match read_json::<Index>(&place.join(INDEX)) {
            Ok(index) => Some(index),
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if known.is_some() {
            work::renew(&path)?;
        } else {
            // A run that was killed may have left a layer without an index.
            remove(store, &place)?;
            let top = files::open_top(home)?;
            make_layer(home, &top, &path)?;
        }
        let boot = boot::current();
        let is_current = known.as_ref().is_some_and(|known| known.boot == boot);
        if !is_current {
            let index = Index {
                dir: dir.to_owned(),
                home: home.to_owned(),
                boot,
            };
            let text = serde_json::to_vec_pretty(&index).unwrap_or_default();
            files::replace_unsynced(&place.join(INDEX), &[&text])?;
        }
        Ok(Self {
            path,
            was_restarted: known.is_some() && !is_current,
            began: Instant::now(),
            lock,
        })
    }

    /// The directory with `upper` and `work`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the machine rebooted since the last run wrote to it. Layers are not synced: unless
    /// it was shut down in order, files may be missing.
    pub const fn was_restarted(&self) -> bool {
        self.was_restarted
    }

    /// Removes what earlier runs left of no use, as far as there is time. To be called after a run.
    ///
    /// # Errors
    /// If it can't be removed.
    pub fn leave(&self) -> Result<(), Error> {
        work::clear_after(&self.path, self.began)
    }
}

/// Where [`HomeLayer::open`] has a layer.
pub(crate) fn planned(store: &Store, dir: &Path, home: &Path) -> PathBuf {
    place(store, dir, home).join(LAYER)
}

/// All kept layers, the one that was used last first.
pub(crate) fn list(store: &Store) -> Result<Vec<HomeLayerInfo>, Error> {
    let mut found = Vec::new();
    for place in store::list(&homes(store))? {
        if files::is_temporary(&place) || !place.join(INDEX).exists() {
            continue;
        }
        let index: Index = read_json(&place.join(INDEX))?;
        let in_use = matches!(
            lock(store, &index.dir, &index.home),
            Err(Error::HomeBusy(_))
        );
        found.push(HomeLayerInfo {
            bytes: length_of_files(&place.join(LAYER).join("upper"))?,
            dir: index.dir,
            home: index.home,
            used_ms: work::used_ms(&place.join(LAYER)).unwrap_or(0),
            in_use,
        });
    }
    found.sort_by(|one, other| (other.used_ms, &other.dir).cmp(&(one.used_ms, &one.dir)));
    Ok(found)
}

/// Removes the layer of the runs in `dir` over `home`; whether there was one.
pub(crate) fn discard(store: &Store, dir: &Path, home: &Path) -> Result<bool, Error> {
    let place = place(store, dir, home);
    if !place.exists() {
        return Ok(false);
    }
    let _lock = lock(store, dir, home)?;
    remove(store, &place)?;
    Ok(true)
}

/// Names that nobody owns any more; only while alone in the store.
pub(crate) fn left_behind(store: &Store) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for place in store::list(&homes(store))? {
        if files::is_temporary(&place) {
            found.push(place);
        } else if place.is_dir() {
            found.extend(work::set_aside(&place.join(LAYER))?);
        }
    }
    Ok(found)
}

/// It loses its name first, so that no run finds half of it.
fn remove(store: &Store, place: &Path) -> Result<(), Error> {
    let unnamed = homes(store).join(format!("{}{}", files::TEMPORARY, files::random_name()));
    match fs::rename(place, &unnamed) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).trying("remove", place),
        Ok(()) => files::remove_tree_of_others(&unnamed),
    }
}

fn lock(store: &Store, dir: &Path, home: &Path) -> Result<Lock, Error> {
    let path = place(store, dir, home).with_extension("lock");
    let how = FlockOperation::NonBlockingLockExclusive;
    store::lock(&path, how).map_err(|error| match error {
        Error::Io { source, .. } if source.kind() == io::ErrorKind::WouldBlock => {
            Error::HomeBusy(dir.to_owned())
        }
        other => other,
    })
}

/// Counts at most so many files: commands decide how many there are.
const MAX_COUNTED_FILES: usize = 1_000_000;

fn length_of_files(top: &Path) -> Result<u64, Error> {
    let top_fd = files::open_top(top)?;
    let mut directories = vec![Vec::new()];
    let (mut bytes, mut counted) = (0u64, 0usize);
    while let Some(directory) = directories.pop() {
        // A command may have made a directory that nobody can enter.
        let Ok(fd) = files::open_dir_below(top_fd.as_fd(), &directory) else {
            continue;
        };
        for name in files::names(&fd).trying("read", top)? {
            counted += 1;
            let Ok(stat) = files::stat_at(fd.as_fd(), &name) else {
                continue;
            };
            if stat.is_dir() {
                directories.push(files::join(&directory, &name));
            } else {
                bytes = bytes.saturating_add(stat.size);
            }
        }
        if counted > MAX_COUNTED_FILES {
            break;
        }
    }
    Ok(bytes)
}

fn homes(store: &Store) -> PathBuf {
    store.path().join("homes")
}

fn place(store: &Store, dir: &Path, home: &Path) -> PathBuf {
    let key = [dir.as_os_str().as_bytes(), home.as_os_str().as_bytes()].join(&0);
    let mut id = ObjectId::of(&key).to_string();
    id.truncate(16);
    homes(store).join(id)
}

const INDEX: &str = "index.json";
const LAYER: &str = "layer";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_found_again_and_used_by_one_run_at_a_time() {
        let temporary = tempfile::tempdir().unwrap();
        let home = temporary.path().join("home");
        fs::create_dir(&home).unwrap();
        // The store may lie in the home directory.
        let store = Store::open(home.join(".store")).unwrap();
        let dir = temporary.path();
        let first = HomeLayer::open(&store, dir, &home).unwrap();
        fs::write(first.path().join("upper/f"), "kept").unwrap();
        assert!(matches!(
            HomeLayer::open(&store, dir, &home),
            Err(Error::HomeBusy(_))
        ));
        assert!(matches!(
            discard(&store, dir, &home),
            Err(Error::HomeBusy(_))
        ));
        assert!(list(&store).unwrap()[0].in_use);
        drop(first);
        let again = HomeLayer::open(&store, dir, &home).unwrap();
        assert_eq!(fs::read(again.path().join("upper/f")).unwrap(), b"kept");
        assert!(!again.was_restarted());
        let other = HomeLayer::open(&store, &home, &home).unwrap();
        assert!(!other.path().join("upper/f").exists());
        drop((again, other));
        let listed = list(&store).unwrap();
        assert_eq!(listed.len(), 2);
        assert!(
            listed
                .iter()
                .any(|layer| layer.dir == dir && layer.bytes == 4 && !layer.in_use)
        );
        assert!(discard(&store, dir, &home).unwrap());
        assert!(!discard(&store, dir, &home).unwrap());
        assert_eq!(list(&store).unwrap().len(), 1);
    }

    #[test]
    fn a_layer_without_an_index_is_begun_anew() {
        let temporary = tempfile::tempdir().unwrap();
        let store = Store::open(temporary.path().join("store")).unwrap();
        let home = temporary.path();
        let layer = HomeLayer::open(&store, home, home).unwrap();
        fs::write(layer.path().join("upper/f"), "half").unwrap();
        fs::remove_file(layer.path().parent().unwrap().join(INDEX)).unwrap();
        drop(layer);
        let anew = HomeLayer::open(&store, home, home).unwrap();
        assert!(!anew.path().join("upper/f").exists());
    }
}
