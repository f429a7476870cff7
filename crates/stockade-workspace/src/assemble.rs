//! Making a snapshot of files that come from somewhere else than a directory.
//!
//! Nothing that comes is trusted: every path is one below the top without detours, everything has
//! a directory that it is in, nothing comes twice.

use std::collections::BTreeMap;

use crate::codec::put_bytes;
use crate::error::{Error, Trying};
use crate::files;
use crate::id::{ObjectId, SnapshotId};
use crate::pack::Block;
use crate::snapshot::{Links, encode_links};
use crate::state::{SCHEMA, now_ms};
use crate::store::Sink;
use crate::survey::Totals;
use crate::tree::{Kind, Meta, Node, is_plain_path};
use crate::workspace::{SnapshotRecord, to_hex};

/// Files of a snapshot to be.
#[derive(Debug, Default)]
pub(crate) struct Assembly {
    pub(crate) nodes: BTreeMap<Vec<u8>, Node>,
    pub(crate) root: Meta,
    pub(crate) message: Option<String>,
    pub(crate) xattrs: bool,
}

/// A directory whose content is not known yet.
pub(crate) fn some_directory() -> Kind {
    Kind::Directory(ObjectId::from_bytes([0; 32]))
}

fn refuse(path: &[u8], reason: &str) -> Error {
    let path = String::from_utf8_lossy(path);
    Error::Import(format!("`{}` {reason}", path.escape_debug()))
}

impl Assembly {
    /// Adds a file; the directory that it is in must be there.
    pub(crate) fn add(&mut self, path: Vec<u8>, node: Node) -> Result<(), Error> {
        if !is_plain_path(&path) || path.len() > 4096 {
            return Err(refuse(&path, "leads somewhere else"));
        }
        let (parent, _) = files::split(&path);
        let in_directory =
            parent.is_empty() || self.nodes.get(parent).is_some_and(Node::is_directory);
        if !in_directory {
            return Err(refuse(&path, "is in no directory"));
        }
        if self.nodes.contains_key(&path) {
            return Err(refuse(&path, "comes twice"));
        }
        self.nodes.insert(path, node);
        Ok(())
    }

    /// Adds a directory, and those above it, if they are not there.
    pub(crate) fn add_directories(&mut self, path: &[u8], meta: &Meta) -> Result<(), Error> {
        if path.is_empty() || self.nodes.get(path).is_some_and(Node::is_directory) {
            return Ok(());
        }
        let (parent, _) = files::split(path);
        self.add_directories(parent, meta)?;
        let node = Node {
            meta: meta.clone(),
            kind: some_directory(),
        };
        self.add(path.to_vec(), node)
    }

    /// Gives every file with several names to the first of them.
    fn order_links(&mut self) -> Result<Links, Error> {
        let mut groups: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
        for (path, node) in &self.nodes {
            if let Kind::HardLink(first) = &node.kind {
                let is_file = self.nodes.get(first).is_some_and(|first| {
                    !matches!(first.kind, Kind::HardLink(_) | Kind::Directory(_))
                });
                if !is_file {
                    return Err(refuse(path, "is a link to something that is not there"));
                }
                groups.entry(first.clone()).or_default().push(path.clone());
            }
        }
        let mut links = Vec::new();
        for (first, mut paths) in groups {
            let Some(node) = self.nodes.remove(&first) else {
                continue;
            };
            paths.push(first);
            paths.sort();
            let first = paths.remove(0);
            self.nodes.insert(first.clone(), node);
            for path in paths {
                let link = Node {
                    meta: Meta::default(),
                    kind: Kind::HardLink(first.clone()),
                };
                self.nodes.insert(path.clone(), link);
                links.push((path, first.clone()));
            }
        }
        links.sort();
        Ok(links)
    }

    /// Adds the directories to the store, and makes the record.
    pub(crate) fn finish(mut self, sink: &Sink<'_>) -> Result<SnapshotRecord, Error> {
        let mut block = Block::new().trying("compress", "an import")?;
        let links = self.order_links()?;
        let mut totals = Totals::default();
        // Children come after their directory, so from the end each is complete when it is met.
        let mut waiting: BTreeMap<Vec<u8>, Vec<(Vec<u8>, Node)>> = BTreeMap::new();
        for (path, mut node) in std::mem::take(&mut self.nodes).into_iter().rev() {
            match &node.kind {
                Kind::Directory(_) => {
                    let entries = waiting.remove(&path).unwrap_or_default();
                    let tree = put_tree(sink, &mut block, entries)?;
                    node.kind = Kind::Directory(tree);
                    totals.directories += 1;
                }
                Kind::File { size, .. } => {
                    totals.files += 1;
                    totals.bytes += size;
                }
                _ => totals.files += 1,
            }
            let (parent, name) = files::split(&path);
            let entry = (name.to_vec(), node);
            waiting.entry(parent.to_vec()).or_default().push(entry);
        }
        let tree = put_tree(
            sink,
            &mut block,
            waiting.remove(&Vec::new()).unwrap_or_default(),
        )?;
        totals.directories += 1;
        let links = if links.is_empty() {
            None
        } else {
            Some(sink.put(&mut block, &encode_links(&links))?)
        };
        sink.flush(&mut block)?;
        let mut root = Vec::new();
        Node {
            meta: self.root,
            kind: Kind::Directory(tree),
        }
        .put(&mut root);
        let record = SnapshotRecord {
            schema: SCHEMA,
            id: SnapshotId::from_hash(tree),
            created_ms: now_ms(),
            message: self.message,
            parent: None,
            totals,
            added: sink.added(),
            xattrs: self.xattrs,
            excludes: Vec::new(),
            tree,
            root: to_hex(&root),
            links,
            unstable: Vec::new(),
        };
        Ok(record.seal(&files::random_name()))
    }
}

fn put_tree(
    sink: &Sink<'_>,
    block: &mut Block,
    mut entries: Vec<(Vec<u8>, Node)>,
) -> Result<ObjectId, Error> {
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    let mut bytes = Vec::new();
    for (name, node) in entries {
        put_bytes(&mut bytes, &name);
        node.put(&mut bytes);
    }
    sink.put(block, &bytes)
}
