//! One workspace's files in the store: its state, its snapshots' records, its lock.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Trying};
use crate::files;
use crate::id::{ObjectId, SnapshotId};
use crate::name::WorkspaceName;
use crate::overlay;
use crate::state::{SCHEMA, WorkspaceState, now_ms};
use crate::store::{self, Lock, Session};
use crate::survey::Totals;
use crate::tree::{Kind, Node};

/// What is kept about a snapshot beside its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SnapshotRecord {
    /// The version of this shape.
    pub schema: u32,
    /// Its identity.
    pub id: SnapshotId,
    /// When it was taken, in milliseconds since 1970.
    pub created_ms: u64,
    /// What the user said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The one before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SnapshotId>,
    /// How much it holds.
    pub totals: Totals,
    /// Bytes of content that no snapshot before it had.
    pub added: u64,
    /// Whether extended attributes are part of it.
    pub xattrs: bool,
    /// What was not part of it, as in `.gitignore`.
    pub excludes: Vec<String>,
    /// The top directory's content.
    pub tree: ObjectId,
    /// The top directory's own attributes, encoded.
    pub root: String,
    /// Second names of files, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<ObjectId>,
    /// Files that changed while they were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unstable: Vec<String>,
}

impl SnapshotRecord {
    /// The top directory.
    pub(crate) fn root_node(&self) -> Result<Node, Error> {
        let malformed = || Error::Incomplete(self.id.clone());
        let bytes = from_hex(&self.root).ok_or_else(malformed)?;
        let mut from = crate::codec::Reader::new(&bytes);
        let mut node = Node::take(&mut from).map_err(|_| malformed())?;
        if !node.is_directory() {
            return Err(malformed());
        }
        node.kind = Kind::Directory(self.tree);
        Ok(node)
    }

    /// Gives the record its identity: the hash of all else in it.
    pub(crate) fn seal(mut self, salt: &str) -> Self {
        let mut text = serde_json::to_vec(&self).unwrap_or_default();
        text.extend_from_slice(salt.as_bytes());
        self.id = SnapshotId::from_hash(ObjectId::of(&text));
        self
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}

/// A workspace that is there. Its state can be read by anyone at any time.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) name: WorkspaceName,
    pub(crate) path: PathBuf,
}

/// A workspace that nobody else changes meanwhile.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) place: Place,
    pub(crate) state: WorkspaceState,
    _lock: Lock,
}

impl Place {
    pub(crate) fn find(session: &Session, name: &WorkspaceName) -> Result<Self, Error> {
        let path = session.store().workspace(name);
        if !path.join("state.json").exists() {
            return Err(Error::NoWorkspace(name.clone()));
        }
        Ok(Self {
            name: name.clone(),
            path,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.file("cache")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.file("journal.json")
    }

    pub(crate) fn snapshots_dir(&self) -> PathBuf {
        self.file("snapshots")
    }

    pub(crate) fn record_file(&self, id: &SnapshotId) -> PathBuf {
        self.snapshots_dir().join(format!("{id}.json"))
    }

    pub(crate) fn state(&self) -> Result<WorkspaceState, Error> {
        let path = self.file("state.json");
        let state: WorkspaceState = match read_json(&path) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NoWorkspace(self.name.clone()));
            }
            state => state?,
        };
        if state.schema == SCHEMA && state.name == self.name {
            Ok(state)
        } else {
            Err(Error::damaged(
                &path,
                "it is that of another workspace or version",
            ))
        }
    }

    /// The same with the time at which a run last used its overlay, if that is later.
    pub(crate) fn state_and_use(&self) -> Result<WorkspaceState, Error> {
        let mut state = self.state()?;
        state.used_ms = state.used_ms.max(overlay::used_ms(&self.path));
        Ok(state)
    }

    pub(crate) fn save(&self, state: &WorkspaceState) -> Result<(), Error> {
        write_json(&self.file("state.json"), state)
    }

    /// Waits until nobody else changes it.
    pub(crate) fn hold(self) -> Result<Held, Error> {
        let lock = match store::lock(&self.file("lock"), FlockOperation::LockExclusive) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NoWorkspace(self.name));
            }
            lock => lock?,
        };
        // It may have been removed while this waited.
        let state = self.state()?;
        Ok(Held {
            place: self,
            state,
            _lock: lock,
        })
    }

    /// Held by a run in the foreground, together with others.
    pub(crate) fn enter_run(&self) -> Result<Lock, Error> {
        store::lock(&self.file("runs.lock"), FlockOperation::LockShared)
    }

    /// Keeps runs in the foreground from starting; refused while one is on.
    pub(crate) fn keep_quiet(&self) -> Result<Lock, Error> {
        let how = FlockOperation::NonBlockingLockExclusive;
        store::lock(&self.file("runs.lock"), how).map_err(|error| match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::WouldBlock => {
                Error::Busy(self.name.clone())
            }
            other => other,
        })
    }

    /// All snapshots, the oldest first.
    pub(crate) fn records(&self) -> Result<Vec<SnapshotRecord>, Error> {
        let mut records = Vec::new();
        for path in self.record_files()? {
            records.push(read_record(&path)?);
        }
        sort(&mut records);
        Ok(records)
    }

    pub(crate) fn record_files(&self) -> Result<Vec<PathBuf>, Error> {
        let mut paths = store::list(&self.snapshots_dir())?;
        paths.retain(|path| {
            path.extension().is_some_and(|end| end == "json") && !files::is_temporary(path)
        });
        Ok(paths)
    }

    /// The snapshot that `text` is the beginning of.
    pub(crate) fn record(&self, text: &str) -> Result<SnapshotRecord, Error> {
        let mut fitting = self.record_files()?;
        fitting.retain(|path| {
            !text.is_empty()
                && path
                    .file_stem()
                    .and_then(|stem| stem.to_str())
                    .is_some_and(|stem| stem.starts_with(text))
        });
        match &fitting[..] {
            [] => Err(Error::NoSnapshot {
                workspace: self.name.clone(),
                id: text.escape_debug().to_string(),
            }),
            [path] => read_record(path),
            _ => Err(Error::Ambiguous(text.to_owned())),
        }
    }
}

/// By time; those of one millisecond by ancestry.
fn sort(records: &mut Vec<SnapshotRecord>) {
    records.sort_by(|one, other| (one.created_ms, &one.id).cmp(&(other.created_ms, &other.id)));
    // Clocks may be set back: a child always comes after its parent.
    let mut at = 0;
    while at < records.len() {
        let parent = records[at].parent.clone();
        let later = records[at + 1..]
            .iter()
            .position(|record| Some(&record.id) == parent.as_ref());
        match later {
            Some(offset) => {
                let record = records.remove(at);
                records.insert(at + 1 + offset, record);
            }
            None => at += 1,
        }
    }
}

pub(crate) fn read_record(path: &Path) -> Result<SnapshotRecord, Error> {
    let record: SnapshotRecord = read_json(path)?;
    let named = path.file_stem().and_then(|stem| stem.to_str());
    if record.schema == SCHEMA && named == Some(record.id.as_str()) {
        Ok(record)
    } else {
        Err(Error::damaged(
            path,
            "it is that of another snapshot or version",
        ))
    }
}

impl Held {
    /// Notes that it was used now, and keeps the state.
    pub(crate) fn save(&mut self) -> Result<(), Error> {
        self.state.used_ms = now_ms();
        self.place.save(&self.state)
    }
}

pub(crate) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = fs::read(path).trying("read", path)?;
    serde_json::from_slice(&text).map_err(|error| Error::damaged(path, error.to_string()))
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(io::Error::from)
        .trying("write", path)?;
    text.push(b'\n');
    files::replace(path, &text)
}
