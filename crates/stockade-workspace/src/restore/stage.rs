//! Where a restore prepares files.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::Mode;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Trying};
use crate::exclude::STAGE_PREFIX;
use crate::files;
use crate::workspace::Held;

/// A staging directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StagePlace {
    /// In the workspace's part of the store.
    Store(String),
    /// At the top of the workspace's directory: renames lead nowhere else.
    Tree(String),
}

const IN_STORE: &str = "restore-";

impl Default for StagePlace {
    fn default() -> Self {
        Self::Store(format!("{IN_STORE}{}", files::random_name()))
    }
}

impl StagePlace {
    /// The store, if a rename leads from there to the directory.
    pub(super) fn choose(held: &Held, top: &OwnedFd) -> Result<Self, Error> {
        let store = files::open_top(&held.place.path)?;
        if files::is_same_mount(&store, top) {
            return Ok(Self::default());
        }
        let prefix = String::from_utf8_lossy(STAGE_PREFIX);
        Ok(Self::Tree(format!("{prefix}{}", files::random_name())))
    }

    pub(super) fn path(&self, held: &Held) -> PathBuf {
        match self {
            Self::Store(name) => held.place.path.join(name),
            Self::Tree(name) => held.state.dir.join(name),
        }
    }

    /// Makes it, and opens it.
    pub(super) fn make(&self, held: &Held, top: &OwnedFd) -> Result<OwnedFd, Error> {
        let path = self.path(held);
        match self {
            Self::Store(_) => {
                files::make_private_dir(&path)?;
                files::open_top(&path)
            }
            Self::Tree(name) => {
                match rustix::fs::mkdirat(top, &**name, Mode::from(0o700)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error).trying("make the directory", path),
                }
                files::open_dir_below(top.as_fd(), name.as_bytes()).trying("open", path)
            }
        }
    }

    /// Whether it can be one: what is named so is removed.
    pub(super) fn is_sound(&self) -> bool {
        let (name, prefix) = match self {
            Self::Store(name) => (name, IN_STORE.as_bytes()),
            Self::Tree(name) => (name, STAGE_PREFIX),
        };
        name.as_bytes().starts_with(prefix) && crate::tree::is_component(name.as_bytes())
    }
}
