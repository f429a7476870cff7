//! The files that a profile is made of, read from the real file system.
//!
//! Protects the user from the project's own file, which whoever wrote the project made: it must
//! be an ordinary file, so that no complaint about it quotes another file and no pipe makes the
//! program wait.

use std::env;
use std::fs::File;
use std::io::{self, Read};

use stockade_policy::Surroundings;
use stockade_policy::profile::{
    Loader, MAX_FILE_BYTES, PROJECT_FILE, Profile, ProfileError, Sources, user_file,
};
use stockade_rules::AbsPath;

/// The real file system, as [`Profile::resolve`] reads it.
#[derive(Clone, Debug, Default)]
pub struct Files {
    project: Option<AbsPath>,
}

impl Files {
    /// `project` is the project's own file, which is read with suspicion.
    pub fn new(project: Option<AbsPath>) -> Self {
        Self { project }
    }

    /// Where a profile's layers are for a user in this directory: their own file and the
    /// project's, if they exist.
    pub fn sources(around: Surroundings) -> Sources {
        let xdg = env::var_os("XDG_CONFIG_HOME");
        Sources {
            user: user_file(around.home.as_ref(), xdg.as_deref()),
            project: around.cwd.join(PROJECT_FILE).ok(),
            ..Sources::new(around)
        }
    }

    /// Reads and merges every layer.
    ///
    /// # Errors
    /// If a file can't be read, a project's file grants something, or settings contradict.
    pub fn load(sources: &Sources) -> Result<Profile, ProfileError> {
        Profile::resolve(sources, &Self::new(sources.project.clone()))
    }
}

impl Loader for Files {
    fn read(&self, path: &AbsPath) -> io::Result<Vec<u8>> {
        if self.project.as_ref() == Some(path) {
            // Not a link, whose target a complaint would quote; not a pipe, which would hang.
            let data = path.as_path().symlink_metadata()?;
            if !data.is_file() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a project's profile must be an ordinary file",
                ));
            }
        }
        let mut bytes = Vec::new();
        // One byte more than is allowed tells a large file from a good one.
        let limit = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
        File::open(path)?
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn exists(&self, path: &AbsPath) -> bool {
        path.as_path().symlink_metadata().is_ok()
    }
}
