//! Hawk's sandbox manager: directories whose state is kept, paused, resumed and compared.
//!
//! Each sandbox is a workspace in a [`Store`]: content is kept once, a pause freezes what runs in it,
//! and any number of processes may use the directory at once.

mod base64;
mod files;
mod state;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};
use stockade_workspace::{
    ChangeKind, CreateOptions, Error, NameError, Silent, Store, WorkspaceManager, WorkspaceName,
};

pub use state::SandboxState;

/// Manages sandboxes that are kept in one directory.
#[derive(Clone, Debug)]
pub struct SandboxManager {
    manager: WorkspaceManager,
    dir: PathBuf,
    max_sandboxes: usize,
}

/// Why something could not be done with a sandbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxManagerError {
    /// The id can't be one.
    #[error(transparent)]
    Id(#[from] NameError),
    /// A file could not be read or written.
    #[error("can't {act}")]
    Io {
        /// What was tried.
        act: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The files are too many to be held in memory.
    #[error("the files of `{}` have more than {limit} bytes; export the workspace instead", .dir.display())]
    TooLarge {
        /// The directory.
        dir: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// A name can't be written in JSON.
    #[error("`{}` is not UTF-8 and can't be part of a document", .0.display())]
    NotText(PathBuf),
    /// The store can't do it.
    #[error(transparent)]
    Workspace(#[from] Error),
}

/// As many sandboxes as Hawk has at most.
const MAX_SANDBOXES: usize = 64;

impl SandboxManager {
    /// The sandboxes in `dir`, which is made if it is not there.
    ///
    /// # Errors
    /// If it can't be made, or is not a store.
    pub fn new(dir: impl Into<PathBuf>) -> Result<Self, SandboxManagerError> {
        let dir = dir.into();
        let store = Store::open(&dir)?;
        Ok(Self {
            manager: WorkspaceManager::new(store).max_sandboxes(MAX_SANDBOXES),
            dir,
            max_sandboxes: MAX_SANDBOXES,
        })
    }

    /// The same with another limit on how many sandboxes there are.
    #[must_use]
    pub fn with_max_sandboxes(mut self, limit: usize) -> Self {
        self.manager = self.manager.max_sandboxes(limit);
        self.max_sandboxes = limit;
        self
    }

    /// Where the sandboxes are kept.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// How many sandboxes there may be.
    pub fn max_sandboxes(&self) -> usize {
        self.max_sandboxes
    }

    /// All sandboxes by their ids.
    ///
    /// # Errors
    /// If one of them can't be read.
    pub fn sandboxes(&self) -> Result<BTreeMap<String, SandboxState>, SandboxManagerError> {
        let states = self.list()?.into_iter();
        Ok(states.map(|state| (state.id.clone(), state)).collect())
    }

    /// Makes a sandbox of a directory, and keeps how the directory is now.
    ///
    /// # Errors
    /// If there are too many sandboxes, or the directory can't be read.
    pub fn create(
        &self,
        work_dir: &Path,
        env_vars: BTreeMap<String, String>,
    ) -> Result<SandboxState, SandboxManagerError> {
        let options = CreateOptions {
            env: env_vars,
            ..CreateOptions::default()
        };
        let name = new_id()?;
        let state = self.manager.create(&name, work_dir, &options, &Silent)?;
        SandboxState::new(state)
    }

    /// Freezes everything that runs in a sandbox, and keeps how its directory is now.
    ///
    /// # Errors
    /// If it does not run, or something can't be frozen; then all goes on.
    pub fn pause(&self, id: &str) -> Result<(), SandboxManagerError> {
        let name = id.parse()?;
        self.manager.pause(&name)?;
        self.manager
            .snapshot(&name, Some("paused".to_owned()), &Silent)?;
        Ok(())
    }

    /// Resumes everything in a paused sandbox. The directory is left as it is.
    ///
    /// # Errors
    /// If it is not paused.
    pub fn resume(&self, id: &str) -> Result<SandboxState, SandboxManagerError> {
        SandboxState::new(self.manager.resume(&id.parse()?)?)
    }

    /// The state of a sandbox with its files, as Hawk's JSON document. The store gets a snapshot too,
    /// which also has modes, links and times.
    ///
    /// # Errors
    /// If there is no such sandbox, or a name is not UTF-8.
    pub fn snapshot(&self, id: &str) -> Result<Vec<u8>, SandboxManagerError> {
        let name = id.parse()?;
        self.manager
            .snapshot(&name, Some("snapshot".to_owned()), &Silent)?;
        SandboxState::new(self.manager.show(&name)?)?.to_json()
    }

    /// Makes a sandbox of Hawk's JSON document, and fills `work_dir` if that is empty. The document
    /// is not trusted: its own id and directory are not used, and no path in it leads elsewhere.
    ///
    /// # Errors
    /// If the document is not what it should be; then nothing of it is kept.
    pub fn restore(
        &self,
        data: &[u8],
        work_dir: &Path,
    ) -> Result<SandboxState, SandboxManagerError> {
        let name = new_id()?;
        let file = self.dir.join(format!("{name}.json"));
        let written = write_private(&file, data).map_err(|source| SandboxManagerError::Io {
            act: "write the document to the store",
            source,
        });
        let imported = written.and_then(|()| {
            let imported = self.manager.import(&file, &name, work_dir, false, &Silent);
            Ok(imported?)
        });
        // A leftover would only take up space.
        let _ = std::fs::remove_file(&file);
        SandboxState::new(imported?)
    }

    /// All sandboxes, the newest first.
    ///
    /// # Errors
    /// If one of them can't be read.
    pub fn list(&self) -> Result<Vec<SandboxState>, SandboxManagerError> {
        let states = self.manager.list()?;
        states.into_iter().map(SandboxState::new).collect()
    }

    /// Removes sandboxes that were not used for so long, save for those in which something runs.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub fn cleanup(&self, max_age: Duration) -> Result<(), SandboxManagerError> {
        self.manager.cleanup(max_age)?;
        Ok(())
    }

    /// What differs between the directory as it was when the sandbox was made and now: lines that
    /// begin with `added:`, `deleted:` or `modified:`.
    ///
    /// # Errors
    /// If there is no such sandbox, or its directory can't be read.
    pub fn diff_sandbox(&self, id: &str) -> Result<Vec<String>, SandboxManagerError> {
        let name: WorkspaceName = id.parse()?;
        let state = self.manager.show(&name)?;
        let baseline = state.baseline.map(|id| id.to_string());
        let diff = self.manager.diff(&name, baseline.as_deref(), &Silent)?;
        let mut lines = Vec::new();
        for change in &diff.changes {
            let path = change.path.display();
            match change.kind {
                ChangeKind::Added => lines.push(format!("added: {path}")),
                ChangeKind::Removed => lines.push(format!("deleted: {path}")),
                ChangeKind::Renamed => {
                    let from = change.from.as_deref().unwrap_or(&change.path);
                    lines.push(format!("deleted: {}", from.display()));
                    lines.push(format!("added: {path}"));
                }
                _ => lines.push(format!("modified: {path}")),
            }
        }
        lines.sort();
        Ok(lines)
    }

    /// All sandboxes for people.
    ///
    /// # Errors
    /// If one of them can't be read.
    pub fn format_status(&self) -> Result<String, SandboxManagerError> {
        Ok(self.manager.format_status()?)
    }
}

/// An id in Hawk's form: `sb-` and twelve hexadecimal digits.
fn new_id() -> Result<WorkspaceName, SandboxManagerError> {
    let mut bytes = [0; 8];
    getrandom(&mut bytes[2..], GetRandomFlags::empty()).map_err(|error| {
        SandboxManagerError::Io {
            act: "get random numbers",
            source: error.into(),
        }
    })?;
    let number = u64::from_be_bytes(bytes);
    Ok(format!("sb-{number:012x}").parse()?)
}

fn write_private(file: &Path, data: &[u8]) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(file)?.write_all(data)
}
