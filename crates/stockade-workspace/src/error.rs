//! What can go wrong with a store or a workspace.

use std::io;
use std::path::{Path, PathBuf};

use crate::id::{ObjectId, SnapshotId};
use crate::name::{NameError, SnapshotName, WorkspaceName};
use crate::state::Status;

/// Why an operation on a store or workspace failed. Nothing of the last complete state is lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error("can't {act} `{path}`")]
    Io {
        /// What was tried.
        act: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A file of the store is not what it should be.
    #[error("the store's file `{path}` is damaged: {reason}")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The store was written by a later version.
    #[error("the store `{path}` has the format {found}, which this version does not know")]
    Format {
        /// The store.
        path: PathBuf,
        /// What it says of itself.
        found: String,
    },
    /// Somebody else may write the store.
    #[error("others than you may write the store `{0}`, so what it holds can't be trusted")]
    StoreOfOthers(PathBuf),
    /// A piece of content is nowhere in the store.
    #[error("object {0} is missing from the store")]
    Missing(ObjectId),
    /// A name that can't be one of a workspace.
    #[error(transparent)]
    Name(#[from] NameError),
    /// No such workspace.
    #[error("there is no workspace `{0}`")]
    NoWorkspace(WorkspaceName),
    /// A workspace of that name exists.
    #[error("there is a workspace `{0}` already")]
    Exists(WorkspaceName),
    /// The store has as many workspaces as it may.
    #[error("the store has {0} workspaces, which is its limit")]
    TooMany(usize),
    /// No snapshot begins with these digits.
    #[error("the workspace `{workspace}` has no snapshot `{id}`")]
    NoSnapshot {
        /// Which workspace.
        workspace: WorkspaceName,
        /// What was asked for.
        id: String,
    },
    /// Several snapshots begin with these digits.
    #[error("`{0}` is the beginning of several snapshots")]
    Ambiguous(String),
    /// The workspace's state does not allow it.
    #[error("the workspace `{workspace}` is {status} {}", refusal(*status, act))]
    State {
        /// Which workspace.
        workspace: WorkspaceName,
        /// What it is.
        status: Status,
        /// What was asked for.
        act: &'static str,
    },
    /// The workspace's directory is not there or is none.
    #[error("the workspace's directory `{0}` is not a directory")]
    NotADirectory(PathBuf),
    /// Another directory is where a recorded one was.
    #[error("`{0}` is not the directory that the workspace was made of")]
    Replaced(PathBuf),
    /// A link is on the way to a recorded directory, where none was.
    #[error("`{0}` leads through a symbolic link, which was not there before")]
    BehindLink(PathBuf),
    /// An exclude rule makes no sense.
    #[error("the exclude rule `{rule}` makes no sense: {reason}")]
    Exclude {
        /// The rule.
        rule: String,
        /// Why.
        reason: String,
    },
    /// A restore failed half-way and what it had changed was put back.
    #[error("nothing was restored")]
    RolledBack(#[source] Box<Error>),
    /// A commit failed half-way and what it had changed was put back.
    #[error("nothing was committed")]
    NotCommitted(#[source] Box<Error>),
    /// A restore failed half-way and could not be undone either.
    #[error(
        "the restore failed ({cause}) and could not be undone ({undo}); old files are in `{kept}`"
    )]
    HalfRestored {
        /// Why the restore failed.
        cause: Box<Error>,
        /// Why it could not be undone.
        undo: Box<Error>,
        /// Where the old files are.
        kept: PathBuf,
    },
    /// An import was refused; nothing of it was kept.
    #[error("the import was refused: {0}")]
    Import(String),
    /// Files of the host changed since the overlay was made over them.
    #[error("{} changed on the host since the overlay was made", list(.0))]
    HostChanged(Vec<PathBuf>),
    /// A commit was rolled back, except for these: the host uses their names again.
    #[error("{} came back on the host while a commit was rolled back; the old ones are in `{}`", list(.paths), .kept.display())]
    Stranded {
        /// What could not be put back.
        paths: Vec<PathBuf>,
        /// Where the old files are.
        kept: PathBuf,
    },
    /// Something runs in the workspace.
    #[error("something runs in the workspace `{0}`")]
    Alive(WorkspaceName),
    /// Something runs in the workspace, and could write what is restored or committed meanwhile.
    #[error("something runs in the workspace `{0}` and could change its files meanwhile")]
    Busy(WorkspaceName),
    /// Something runs in a workspace whose directory has, or is in, the one that is written.
    #[error(
        "something runs in the workspace `{0}`, which shares the directory, and could change files meanwhile"
    )]
    BusyDirectory(WorkspaceName),
    /// The directory of a workspace can't be in the store, which no command may read or write.
    #[error("`{0}` is in the store of workspaces")]
    InStore(PathBuf),
    /// Another run uses the overlay.
    #[error("the overlay of `{0}` is in use by another run")]
    OverlayBusy(WorkspaceName),
    /// Another run uses the kept layer over the home directory.
    #[error("another run in `{0}` uses the kept home directory")]
    HomeBusy(PathBuf),
    /// There is nothing over the workspace's directory.
    #[error("the workspace `{0}` has no overlay")]
    NoOverlay(WorkspaceName),
    /// The overlay has no snapshot of that name.
    #[error("the overlay of `{workspace}` has no snapshot `{name}`")]
    NoOverlaySnapshot {
        /// Which workspace.
        workspace: WorkspaceName,
        /// What was asked for.
        name: SnapshotName,
    },
    /// The overlay has as many snapshots as it may.
    #[error("the overlay of `{workspace}` has {limit} snapshots, which is its limit")]
    TooManySnapshots {
        /// Which workspace.
        workspace: WorkspaceName,
        /// How many it may have.
        limit: usize,
    },
    /// An overlay belongs to the directory it was made over.
    #[error("the overlay of `{0}` belongs to the directory that it was made over")]
    HasOverlay(WorkspaceName),
    /// The overlay has nothing at or below a path.
    #[error("the overlay of `{workspace}` has no change at `{path}`")]
    NoChange {
        /// Which workspace.
        workspace: WorkspaceName,
        /// What was named.
        path: PathBuf,
    },
    /// The overlay may not be complete.
    #[error("the machine rebooted since the overlay of `{0}` was written")]
    Restarted(WorkspaceName),
    /// The store lies in the directory that is to be seen through an overlay.
    #[error("the store lies in `{0}`, which therefore can't be seen through an overlay")]
    StoreInRoot(PathBuf),
    /// Something below a snapshot that the store has lost.
    #[error("snapshot {0} is not complete in this store")]
    Incomplete(SnapshotId),
}

fn refusal(status: Status, act: &str) -> String {
    if status.to_string() == act {
        "already".to_owned()
    } else {
        format!("and can't be {act}")
    }
}

fn list(paths: &[PathBuf]) -> String {
    const SHOWN: usize = 3;
    let mut text: Vec<String> = paths
        .iter()
        .take(SHOWN)
        .map(|path| format!("`{}`", path.display()))
        .collect();
    if paths.len() > SHOWN {
        text.push(format!("and {} more", paths.len() - SHOWN));
    }
    text.join(", ")
}

impl Error {
    /// What the user could do next.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "free some space; `stockade ws gc` removes what no snapshot needs"
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                "choose another store with --store or STOCKADE_HOME"
            }
            Self::RolledBack(cause) | Self::NotCommitted(cause) => return cause.hint(),
            Self::Damaged { .. } | Self::Missing(_) | Self::Incomplete(_) => {
                "`stockade ws fsck` lists everything that is damaged"
            }
            Self::HomeBusy(_) => {
                "wait until it has ended, or use `--home copy`, which shares nothing with other runs"
            }
            Self::NoChange { .. } => {
                "`stockade ws diff --summary` lists them; paths are told from the workspace's \
                 directory"
            }
            Self::NotADirectory(_) => "make the directory first",
            Self::Replaced(_) => {
                "if you replaced it yourself: `stockade ws rebind NAME` takes the one that is \
                 there now, `stockade ws discard NAME` drops the overlay"
            }
            Self::BehindLink(_) => {
                "look where the link leads; if you moved the directory, move it back, or, without an \
                 overlay, `stockade ws rebind NAME --dir DIR` takes its new place"
            }
            Self::NoWorkspace(_) => "`stockade ws list` shows those that exist",
            Self::NoSnapshot { .. } | Self::Ambiguous(_) => {
                "`stockade ws snapshots NAME` shows those that exist"
            }
            Self::TooMany(_) => {
                "`stockade ws cleanup --max-age 30d` and `stockade ws rm NAME` remove old ones"
            }
            Self::State {
                status: Status::Paused,
                ..
            } => "`stockade ws resume NAME` has it go on",
            Self::Alive(_) => "`--force` ends it",
            Self::Busy(_) => "`--pause` has it wait, or wait until it has ended",
            Self::BusyDirectory(_) => {
                "`stockade ws pause NAME` has it wait, or wait until it has ended"
            }
            Self::StoreOfOthers(_) => {
                "`chmod 700` it if it is yours, or choose another with --store or STOCKADE_HOME"
            }
            Self::StoreInRoot(_) => "choose a store elsewhere with STOCKADE_HOME",
            Self::HasOverlay(_) => "`stockade ws discard NAME` drops the overlay",
            Self::NoOverlay(_) => "`stockade run --overlay=NAME` makes one",
            Self::Restarted(_) => {
                "after a power failure files may be missing or empty: `stockade ws diff` shows \
                 what is there, and `--after-restart` commits it"
            }
            Self::HostChanged(_) => {
                "`--theirs` keeps the host's files, `--ours` replaces them with the overlay's"
            }
            _ => return None,
        })
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Adds what was tried, and on what, to a system call's error.
pub(crate) trait Trying<T> {
    fn trying(self, act: &'static str, path: impl AsRef<Path>) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Trying<T> for Result<T, E> {
    fn trying(self, act: &'static str, path: impl AsRef<Path>) -> Result<T, Error> {
        self.map_err(|source| Error::Io {
            act,
            path: path.as_ref().to_owned(),
            source: source.into(),
        })
    }
}
