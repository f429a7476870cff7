//! The run's own directories for temporary files and shared memory.
//!
//! Without a mount namespace a private `/tmp` can't be had, and the host's must not be shared:
//! others' files lie there, and names that programs of the user trust. So the run gets directories
//! that it alone uses, and the keeper removes them. Only a keeper that is killed itself leaves
//! them behind.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use stockade_rules::AbsPath;

use crate::stage::{At, Failure, Stage};

/// For nobody else.
const MODE: u32 = 0o700;

/// Removed by [`Scratch::remove`].
pub(super) struct Scratch<'a>(&'a [AbsPath]);

impl<'a> Scratch<'a> {
    /// Makes the directories; whatever has such a name already is not ours.
    pub(super) fn make(paths: &'a [AbsPath]) -> Result<Self, Failure> {
        for (index, path) in paths.iter().enumerate() {
            let made = DirBuilder::new().mode(MODE).create(path);
            if let Err(failure) = made.at_path(Stage::Scratch, path.as_path()) {
                Self(&paths[..index]).remove();
                return Err(failure);
            }
        }
        Ok(Self(paths))
    }

    /// Removes them with everything in them; whoever wrote there is dead by now. Links are
    /// removed, not followed.
    pub(super) fn remove(self) {
        for path in self.0 {
            if fs::remove_dir_all(path).is_err() {
                // A directory that its owner may not write: the command can make such.
                unlock(path.as_path());
                // What can't be removed now (an odd file system) stays, visibly.
                let _ = fs::remove_dir_all(path);
            }
        }
    }
}

/// Makes every directory below writable for its owner.
fn unlock(top: &Path) {
    let mut left = vec![top.to_owned()];
    while let Some(directory) = left.pop() {
        // The caller sees what does not work.
        let _ = fs::set_permissions(&directory, Permissions::from_mode(MODE));
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        left.extend(directories.map(|entry| entry.path()));
    }
}
