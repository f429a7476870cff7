//! The journal of a commit, and the mark that says that its steps are done.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::step::{From, InodeId, Step};
use crate::error::Error;
use crate::exclude::STAGE_PREFIX;
use crate::files;
use crate::identity::Identity;
use crate::workspace::{read_json, write_json};

/// All that has to be known to undo a commit or to finish it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    /// By which the mark knows it.
    pub(super) id: String,
    /// Whether nothing of the overlay remains.
    pub(super) whole: bool,
    pub(super) roots: Vec<RootJournal>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RootJournal {
    #[serde(with = "crate::state::path")]
    pub(super) path: PathBuf,
    pub(super) identity: Option<Identity>,
    pub(super) layer: String,
    /// A directory in the overlay's.
    pub(super) stage: String,
    /// A directory at the top of the root, if the store is on another file system.
    pub(super) tree_stage: Option<String>,
    pub(super) steps: Vec<Step>,
    /// Entries of the layer to be removed in the end, if they are still these files.
    pub(super) discard: Vec<Discard>,
    /// Directories of the layer to be removed in the end, if they are empty.
    pub(super) merged: Vec<Merged>,
    /// Directories that were made because something in them was chosen.
    pub(super) made: Vec<Vec<u8>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Discard {
    #[serde(with = "crate::state::bytes")]
    pub(super) path: Vec<u8>,
    pub(super) id: InodeId,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Merged {
    #[serde(with = "crate::state::bytes")]
    pub(super) path: Vec<u8>,
    /// Whether all that it hid of the host is gone.
    pub(super) clear: bool,
}

const JOURNAL: &str = "commit.json";
const DONE: &str = "commit.done";
pub(super) const STAGE: &str = "stage-";

impl Journal {
    pub(super) fn save(&self, directory: &Path) -> Result<(), Error> {
        write_json(&directory.join(JOURNAL), self)
    }

    /// From here on the commit is finished, whatever happens.
    pub(super) fn mark_done(&self, directory: &Path, durable: bool) -> Result<(), Error> {
        let path = directory.join(DONE);
        if durable {
            files::replace(&path, self.id.as_bytes())
        } else {
            files::replace_unsynced(&path, &[self.id.as_bytes()])
        }
    }

    pub(super) fn is_done(&self, directory: &Path) -> bool {
        let mark = std::fs::read(directory.join(DONE)).unwrap_or_default();
        mark == self.id.as_bytes()
    }
}

/// Whether the journal of a commit makes sense, if there is one.
pub(super) fn check(directory: &Path) -> Result<(), Error> {
    read(directory).map(drop)
}

/// Removes the journal, and then its mark: a mark without a journal means nothing.
pub(super) fn forget(directory: &Path) -> Result<(), Error> {
    files::remove_file(&directory.join(JOURNAL))?;
    files::remove_file(&directory.join(DONE))
}

/// The journal of a commit that was interrupted.
pub(super) fn read(directory: &Path) -> Result<Option<Journal>, Error> {
    let path = directory.join(JOURNAL);
    if !path.exists() {
        return Ok(None);
    }
    let journal: Journal = read_json(&path)?;
    for root in &journal.roots {
        let tree_stage = root.tree_stage.as_deref().map(str::as_bytes);
        let is_sound = tree_stage
            .is_none_or(|name| name.starts_with(STAGE_PREFIX) && crate::tree::is_component(name))
            && root.stage.starts_with(STAGE)
            && crate::tree::is_component(root.stage.as_bytes())
            && root.layer == super::layer_name(&root.path)
            && root.steps.iter().all(is_sound_step);
        if !is_sound {
            return Err(Error::damaged(&path, "it names no files of a commit"));
        }
    }
    Ok(Some(journal))
}

fn is_sound_step(step: &Step) -> bool {
    let is_name = |name: &str| crate::tree::is_component(name.as_bytes());
    let is_path = |path: &[u8]| {
        path.is_empty()
            || path
                .split(|byte| *byte == b'/')
                .all(crate::tree::is_component)
    };
    let is_source = |from: &From| match from {
        From::Layer(path) => is_path(path),
        From::Staged(name) | From::Made(name, _) => is_name(name),
    };
    match step {
        Step::Extract { path, aside } | Step::Remove { path, aside, .. } => {
            is_path(path) && is_name(aside)
        }
        Step::Place { to, from, .. } | Step::Exchange { to, from, .. } => {
            is_path(to) && is_source(from)
        }
        Step::Adjust { path, .. } => is_path(path),
    }
}
