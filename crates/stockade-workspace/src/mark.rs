//! What a snapshot is made of: every object that can be reached from it.

use std::collections::HashSet;

use crate::error::Error;
use crate::id::ObjectId;
use crate::snapshot;
use crate::store::Session;
use crate::tree::{Content, Extent, Kind};
use crate::workspace::SnapshotRecord;

/// Adds all that `record` needs to `live`, and what can't be read to `problems`.
pub(crate) fn mark(
    session: &Session,
    record: &SnapshotRecord,
    live: &mut HashSet<ObjectId>,
    problems: &mut Vec<Error>,
) {
    if let Some(id) = record.links {
        live.insert(id);
        if let Err(error) = snapshot::links(session, record) {
            problems.push(error);
        }
    }
    if let Err(error) = record.root_node() {
        problems.push(error);
    }
    let mut trees = vec![record.tree];
    while let Some(id) = trees.pop() {
        if !live.insert(id) {
            continue;
        }
        let tree = match session.tree(&id) {
            Ok(tree) => tree,
            Err(error) => {
                problems.push(error);
                continue;
            }
        };
        for (_, node) in tree {
            match node.kind {
                Kind::Directory(id) => trees.push(id),
                Kind::File { content, .. } => {
                    if let Content::Listed(id) = content {
                        live.insert(id);
                    }
                    match session.extents(&content) {
                        Ok(extents) => live.extend(extents.iter().filter_map(Extent::object)),
                        Err(error) => problems.push(error),
                    }
                }
                _ => {}
            }
        }
    }
}
