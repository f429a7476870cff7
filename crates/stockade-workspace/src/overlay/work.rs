//! The directory in which overlayfs works.
//!
//! Layers are mounted *volatile*: the end of a run does not wait until the disk has everything that
//! the whole file system has to write. In exchange overlayfs leaves a mark in its directory and
//! refuses to mount over it again (Documentation/filesystems/overlayfs.rst, "Volatile mount"). Until
//! the machine is started anew nothing can be lost, and the marked directory is set aside.
//!
//! That is a rename: to remove it here would cost each run milliseconds on a disk that is told of
//! every block that becomes free.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Trying};
use crate::files;
use crate::store;

/// Makes a layer one that can be mounted.
pub(crate) fn renew(layer: &Path) -> Result<(), Error> {
    let work = layer.join(WORK);
    // Within its directory: elsewhere its own permissions would matter, and it has none.
    let aside = work.join(format!("{}{}", files::TEMPORARY, files::random_name()));
    match fs::rename(work.join(WORK), aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed.trying("set aside", work.join(WORK)),
    }
}

/// What was set aside in a layer, and is of no use.
pub(crate) fn set_aside(layer: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = store::list(&layer.join(WORK))?;
    found.retain(|path| files::is_temporary(path));
    Ok(found)
}

/// When a run last used a layer, in milliseconds since 1970: each changes this directory.
pub(crate) fn used_ms(layer: &Path) -> Option<u64> {
    let changed = layer.join(WORK).metadata().ok()?.modified().ok()?;
    let since = changed.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

/// Removes what was set aside, at most in a small part of the time that a run took.
pub(crate) fn clear_after(layer: &Path, began: Instant) -> Result<(), Error> {
    const LONG: Duration = Duration::from_millis(100);
    let took = began.elapsed();
    if took < LONG {
        return Ok(());
    }
    clear(layer, Instant::now() + took / 20)
}

/// Removes what was set aside in a layer; after `end` the rest is left for later.
fn clear(layer: &Path, end: Instant) -> Result<(), Error> {
    for path in set_aside(layer)? {
        if Instant::now() > end {
            break;
        }
        files::remove_tree_of_others(&path)?;
    }
    Ok(())
}

/// overlayfs makes a directory of the same name in the one that it is given.
pub(super) const WORK: &str = "work";

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_marked_directory_is_set_aside_and_removed_when_there_is_time() {
        let dir = tempfile::tempdir().unwrap();
        let layer = dir.path();
        let inner = layer.join(WORK).join(WORK);
        fs::create_dir(layer.join(WORK)).unwrap();
        renew(layer).unwrap();
        assert!(set_aside(layer).unwrap().is_empty());
        for _ in 0..3 {
            // As overlayfs leaves it: nobody may enter.
            fs::create_dir_all(inner.join("incompat/volatile")).unwrap();
            fs::set_permissions(&inner, fs::Permissions::from_mode(0o000)).unwrap();
            renew(layer).unwrap();
            assert!(!inner.exists());
        }
        assert_eq!(set_aside(layer).unwrap().len(), 3);
        clear(layer, Instant::now()).unwrap();
        assert!(set_aside(layer).unwrap().len() >= 2, "it took its time");
        clear(layer, Instant::now() + Duration::from_secs(60)).unwrap();
        assert!(set_aside(layer).unwrap().is_empty());
    }
}
