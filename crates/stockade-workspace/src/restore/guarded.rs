//! Asking the guard about what a restore would do.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::files::{self, Stat};
use crate::guard::{
    CommitGuard, FileFacts, FileKind, FileTree, KeptBack, OpenTree, ProposedChange, ProposedKind,
    Verdict,
};
use crate::snapshot;
use crate::store::Session;
use crate::tree::{Extent, Kind, Node};
use crate::workspace::SnapshotRecord;

/// A guard with the two trees that it may look at.
pub(super) struct Guarded<'a> {
    guard: &'a dyn CommitGuard,
    dir: &'a Path,
    before: OpenTree<'a>,
    after: SnapshotTree<'a>,
    pub(super) kept: Vec<KeptBack>,
}

impl<'a> Guarded<'a> {
    pub(super) fn new(
        guard: &'a dyn CommitGuard,
        session: &'a Session,
        record: &'a SnapshotRecord,
        dir: &'a Path,
        top: BorrowedFd<'a>,
    ) -> Self {
        Self {
            guard,
            dir,
            before: OpenTree { dir, top },
            after: SnapshotTree {
                session,
                record,
                dir,
            },
            kept: Vec::new(),
        }
    }

    /// Whether a change is kept back; it is remembered then.
    pub(super) fn keeps(
        &mut self,
        path: &[u8],
        kind: ProposedKind,
        old: Option<&Stat>,
        new: Option<&Node>,
    ) -> bool {
        let full = files::full(self.dir, path);
        self.judge(full, kind, old.map(FileFacts::of), new)
    }

    /// The same for a second name of a file that is replaced.
    pub(super) fn keeps_link(&mut self, path: &[u8], node: &Node) -> bool {
        let full = files::full(self.dir, path);
        let old = self.before.facts(&full);
        self.judge(full, ProposedKind::Put, old, Some(node))
    }

    /// What was kept back until now, below the top.
    pub(super) fn kept_paths(&self) -> HashSet<Vec<u8>> {
        let below = |kept: &KeptBack| {
            let path = kept.path.strip_prefix(self.dir).ok()?;
            Some(path.as_os_str().as_bytes().to_vec())
        };
        self.kept.iter().filter_map(below).collect()
    }

    fn judge(
        &mut self,
        full: PathBuf,
        kind: ProposedKind,
        old: Option<FileFacts>,
        new: Option<&Node>,
    ) -> bool {
        let verdict = self.guard.judge(&ProposedChange {
            path: &full,
            kind,
            old,
            new: new.map(|node| self.after.facts_of(node)),
            before: &self.before,
            after: &self.after,
        });
        match verdict {
            Verdict::Allow => false,
            Verdict::KeepBack(reason) => {
                self.kept.push(KeptBack { path: full, reason });
                true
            }
        }
    }
}

/// Decides as was decided before: for a restore that was interrupted.
pub(super) struct Decided(pub(super) BTreeSet<PathBuf>);

impl CommitGuard for Decided {
    fn judge(&self, change: &ProposedChange<'_>) -> Verdict {
        if self.0.contains(change.path) {
            Verdict::KeepBack("kept back before".to_owned())
        } else {
            Verdict::Allow
        }
    }
}

/// What a snapshot has.
struct SnapshotTree<'a> {
    session: &'a Session,
    record: &'a SnapshotRecord,
    dir: &'a Path,
}

impl SnapshotTree<'_> {
    fn find(&self, path: &Path) -> Option<Node> {
        let below = path.strip_prefix(self.dir).ok()?;
        let node = snapshot::find(self.session, self.record, below.as_os_str().as_bytes());
        self.resolved(node.ok()??)
    }

    /// The file of which this is a second name.
    fn resolved(&self, node: Node) -> Option<Node> {
        match &node.kind {
            Kind::HardLink(first) => snapshot::find(self.session, self.record, first).ok()?,
            _ => Some(node),
        }
    }

    fn facts_of(&self, node: &Node) -> FileFacts {
        if let Kind::HardLink(first) = &node.kind
            && let Ok(Some(first)) = snapshot::find(self.session, self.record, first)
            && !matches!(first.kind, Kind::HardLink(_))
        {
            let mut facts = self.facts_of(&first);
            facts.links = 2;
            return facts;
        }
        let kind = match node.kind {
            Kind::Directory(_) => FileKind::Directory,
            Kind::File { .. } | Kind::HardLink(_) => FileKind::File,
            Kind::Symlink(_) => FileKind::Symlink,
            Kind::Fifo | Kind::Socket => FileKind::Pipe,
            Kind::CharDevice(_) | Kind::BlockDevice(_) => FileKind::Device,
        };
        FileFacts::new(kind, node.meta.mode & 0o7777)
    }
}

impl FileTree for SnapshotTree<'_> {
    fn facts(&self, path: &Path) -> Option<FileFacts> {
        self.find(path).map(|node| self.facts_of(&node))
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let node = self.find(path).ok_or(io::ErrorKind::NotFound)?;
        let (size, content) = match node.kind {
            Kind::Symlink(target) => return Ok(target),
            Kind::File { size, content } => (size, content),
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        if size > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = Vec::new();
        for extent in self.session.extents(&content).map_err(io::Error::other)? {
            let length = usize::try_from(extent.len()).unwrap_or(usize::MAX);
            if bytes.len().saturating_add(length) as u64 > limit {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            match extent {
                Extent::Data(_, id) => {
                    bytes.extend(self.session.get(&id).map_err(io::Error::other)?);
                }
                Extent::Hole(_) => bytes.resize(bytes.len() + length, 0),
            }
        }
        Ok(bytes)
    }

    fn names(&self, path: &Path) -> Vec<OsString> {
        let Some(Node {
            kind: Kind::Directory(tree),
            ..
        }) = self.find(path)
        else {
            return Vec::new();
        };
        let tree = self.session.tree(&tree).unwrap_or_default();
        tree.into_iter()
            .map(|(name, _)| OsString::from_vec(name))
            .collect()
    }
}
