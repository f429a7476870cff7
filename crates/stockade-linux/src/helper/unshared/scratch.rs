//! The run's own directory for temporary files.
//!
//! Without a mount namespace a private `/tmp` can't be had, and the host's must not be shared:
//! others' files lie there, and names that programs of the user trust. So the run gets a
//! directory that it alone uses, and the keeper removes it. Only a keeper that is killed itself
//! leaves it behind.

use std::fs;
use std::os::unix::fs::DirBuilderExt;

use stockade_rules::AbsPath;

use crate::stage::{At, Failure, Stage};

/// Removed by [`Scratch::remove`].
pub(super) struct Scratch<'a>(Option<&'a AbsPath>);

impl<'a> Scratch<'a> {
    /// Makes the directory; whatever has that name already is not ours.
    pub(super) fn make(path: Option<&'a AbsPath>) -> Result<Self, Failure> {
        if let Some(path) = path {
            fs::DirBuilder::new()
                .mode(0o700)
                .create(path)
                .at_path(Stage::Scratch, path.as_path())?;
        }
        Ok(Self(path))
    }

    /// Removes it with everything in it; whoever wrote there is dead by now. Links are removed,
    /// not followed.
    pub(super) fn remove(self) {
        if let Some(path) = self.0 {
            // What the user can't remove (a full disk, an odd file system) stays, visibly.
            let _ = fs::remove_dir_all(path);
        }
    }
}
