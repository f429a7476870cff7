//! What differs between two states of a tree, for people and programs.

mod compare;
mod text;

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::Error;
use crate::store::Session;
use crate::tree::{Content, Kind, Node};

pub(crate) use compare::{Side, changes};
pub use text::Text;

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Mode, owner or extended attributes changed, and nothing else.
    Attributes,
    /// Its content changed.
    Modified,
    /// It is gone.
    Removed,
    /// It has another name.
    Renamed,
    /// It is of another kind: a link where a file was.
    Retyped,
}

/// What a file was or is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileInfo {
    /// `file`, `directory`, `symlink`, `hardlink`, `fifo`, `socket` or `device`.
    pub kind: &'static str,
    /// Permission bits.
    pub mode: u32,
    /// Bytes of an ordinary file.
    pub size: u64,
}

/// One difference.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// Which file, below the top.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Its old name, if it was renamed.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "lossy_option"
    )]
    pub from: Option<PathBuf>,
    /// What happened.
    pub kind: ChangeKind,
    /// What it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<FileInfo>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<FileInfo>,
    #[serde(skip)]
    pub(crate) sources: [Source; 2],
}

/// Where to read what a file was or is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Nothing,
    /// In the store.
    Object(Content),
    /// Below a directory of the host.
    File(PathBuf, Vec<u8>),
    /// The target of a link.
    Bytes(Vec<u8>),
}

/// All differences, by path.
#[derive(Debug)]
#[non_exhaustive]
pub struct Diff {
    session: Session,
    /// Each file that differs.
    pub changes: Vec<Change>,
}

impl Diff {
    pub(crate) fn new(session: Session, mut changes: Vec<Change>) -> Self {
        find_renames(&mut changes);
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        Self { session, changes }
    }

    /// A change in lines, as far as it has any.
    ///
    /// # Errors
    /// If one of the two files can't be read.
    pub fn text(&self, change: &Change) -> Result<Text, Error> {
        text::of(&self.session, change)
    }
}

impl Change {
    /// A change of which all is known.
    pub(crate) fn known(
        path: &[u8],
        kind: ChangeKind,
        old: Option<(FileInfo, Source)>,
        new: Option<(FileInfo, Source)>,
    ) -> Self {
        let (old, old_source) = old.unzip();
        let (new, new_source) = new.unzip();
        Self {
            path: PathBuf::from(OsString::from_vec(path.to_vec())),
            from: None,
            kind,
            old,
            new,
            sources: [old_source, new_source].map(|source| source.unwrap_or(Source::Nothing)),
        }
    }

    pub(crate) fn new(
        path: &[u8],
        old: Option<(&Node, Source)>,
        new: Option<(&Node, Source)>,
    ) -> Option<Self> {
        let kind = match (&old, &new) {
            (None, None) => return None,
            (None, Some(_)) => ChangeKind::Added,
            (Some(_), None) => ChangeKind::Removed,
            (Some((old, _)), Some((new, _))) => {
                if info(old).kind != info(new).kind {
                    ChangeKind::Retyped
                } else if !old.is_directory() && old.kind != new.kind {
                    ChangeKind::Modified
                } else if is_same_but_time(old, new) {
                    return None;
                } else {
                    ChangeKind::Attributes
                }
            }
        };
        let told = |side: Option<(&Node, Source)>| side.map(|(node, source)| (info(node), source));
        Some(Self::known(path, kind, told(old), told(new)))
    }
}

fn is_same_but_time(old: &Node, new: &Node) -> bool {
    let (old, new) = (&old.meta, &new.meta);
    (old.mode, old.uid, old.gid, &old.xattrs) == (new.mode, new.uid, new.gid, &new.xattrs)
}

pub(crate) fn info(node: &Node) -> FileInfo {
    let (kind, size) = match &node.kind {
        Kind::Directory(_) => ("directory", 0),
        Kind::File { size, .. } => ("file", *size),
        Kind::Symlink(_) => ("symlink", 0),
        Kind::HardLink(_) => ("hardlink", 0),
        Kind::Fifo => ("fifo", 0),
        Kind::Socket => ("socket", 0),
        Kind::CharDevice(_) | Kind::BlockDevice(_) => ("device", 0),
    };
    FileInfo {
        kind,
        mode: node.meta.mode,
        size,
    }
}

/// With as many files of the same size one that came is compared: thousands of them must not take
/// for ever.
const COMPARED: usize = 50;

/// A file that went and one that came with the same content are one that moved.
fn find_renames(changes: &mut Vec<Change>) {
    let is_file = |info: &Option<FileInfo>| {
        info.as_ref()
            .is_some_and(|info| info.kind == "file" && info.size > 0)
    };
    let mut gone: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, change) in changes.iter().enumerate() {
        if let Some(old) = &change.old
            && change.kind == ChangeKind::Removed
            && is_file(&change.old)
        {
            gone.entry(old.size).or_default().push(at);
        }
    }
    let mut moved = Vec::new();
    for at in 0..changes.len() {
        if changes[at].kind != ChangeKind::Added || !is_file(&changes[at].new) {
            continue;
        }
        let size = changes[at].new.as_ref().map_or(0, |info| info.size);
        let Some(candidates) = gone.get_mut(&size) else {
            continue;
        };
        let fits =
            |gone: &usize| text::is_same(&changes[*gone].sources[0], &changes[at].sources[1]);
        let Some(index) = candidates.iter().take(COMPARED).position(fits) else {
            continue;
        };
        let from = candidates.remove(index);
        changes[at].kind = ChangeKind::Renamed;
        changes[at].from = Some(changes[from].path.clone());
        changes[at].old = changes[from].old.clone();
        changes[at].sources[0] = changes[from].sources[0].clone();
        moved.push(from);
    }
    moved.sort_unstable();
    for at in moved.into_iter().rev() {
        changes.remove(at);
    }
}

fn lossy<S: serde::Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

#[expect(clippy::ref_option, reason = "serde hands it over like this")]
fn lossy_option<S: serde::Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    lossy(path.as_deref().unwrap_or(Path::new("")), to)
}
