//! What has to change for a directory to be what a snapshot has.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::RestoreMode;
use super::guarded::Guarded;
use crate::codec::Reader;
use crate::error::Error;
use crate::files::{self, Stat};
use crate::guard::ProposedKind;
use crate::id::ObjectId;
use crate::listing::Entry;
use crate::snapshot;
use crate::store::Session;
use crate::survey::Survey;
use crate::tree::{Kind, Meta, Node};
use crate::workspace::SnapshotRecord;

/// One change. Paths are below the top.
#[derive(Debug)]
pub(super) enum Change {
    /// Something the snapshot does not have.
    Remove { path: Vec<u8> },
    /// The same for a directory that may have files which are not part of the workspace.
    RemoveIfEmpty { path: Vec<u8> },
    /// A file that is not as it should be, or a whole directory that is not there.
    Put { path: Vec<u8>, node: Node },
}

/// Everything that has to change.
#[derive(Debug)]
pub(super) struct Plan {
    /// In the order in which they can be made.
    pub(super) changes: Vec<Change>,
    /// Second names, to be made when the first ones are there.
    pub(super) links: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Files of which only attributes change, with what they have now.
    pub(super) files: Vec<(Vec<u8>, Meta, Stat)>,
    /// Directories whose attributes have to be set when all else is done, with what they have now.
    pub(super) directories: BTreeMap<Vec<u8>, (Meta, Option<Stat>)>,
    /// What new directories don't get, because it was kept back.
    pub(super) left_out: BTreeSet<Vec<u8>>,
}

struct Planner<'a, 'g> {
    session: &'a Session,
    survey: &'a Survey<'a>,
    mode: RestoreMode,
    careful: bool,
    plan: Plan,
    guarded: &'a mut Guarded<'g>,
    /// First names of files that are replaced, or that come with a new directory.
    replaced: HashSet<Vec<u8>>,
}

impl Plan {
    pub(super) fn new(
        session: &Session,
        record: &SnapshotRecord,
        survey: &Survey<'_>,
        mode: RestoreMode,
        careful: bool,
        guarded: &mut Guarded<'_>,
    ) -> Result<Self, Error> {
        let mut planner = Planner {
            session,
            survey,
            mode,
            careful,
            plan: Self {
                changes: Vec::new(),
                links: BTreeMap::new(),
                files: Vec::new(),
                directories: BTreeMap::new(),
                left_out: BTreeSet::new(),
            },
            guarded,
            replaced: HashSet::new(),
        };
        let root = record.root_node()?;
        planner.directory(0, b"", &record.tree)?;
        planner.relink(record)?;
        planner.promote_links(record)?;
        if root.meta != survey.root.meta || !planner.plan.is_empty() {
            // What is prepared is prepared there, which changes its time.
            let stat = survey.directories[0].stat;
            let entry = (root.meta, Some(stat));
            planner.plan.directories.insert(Vec::new(), entry);
        }
        Ok(planner.plan)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
            && self.links.is_empty()
            && self.files.is_empty()
            && self.directories.is_empty()
    }

    /// How many bytes will be written, without those of whole directories.
    pub(super) fn bytes(&self) -> u64 {
        let size = |change: &Change| match change {
            Change::Put {
                node:
                    Node {
                        kind: Kind::File { size, .. },
                        ..
                    },
                ..
            } => *size,
            _ => 0,
        };
        self.changes.iter().map(size).sum()
    }
}

impl Planner<'_, '_> {
    /// Compares a directory that is there with one of the snapshot. True if something in it, not
    /// further below, changes.
    fn directory(&mut self, at: usize, path: &[u8], tree: &ObjectId) -> Result<bool, Error> {
        if self.survey.tree(at) == *tree {
            return Ok(false);
        }
        let wanted = self.session.tree(tree)?;
        let survey = self.survey;
        let mut touched = false;
        let mut present = survey.entries(at).peekable();
        for (name, node) in wanted {
            while let Some((extra, entry, _)) = present.next_if(|(other, ..)| *other < &name[..]) {
                touched |= self.extra(files::join(path, extra), &entry);
            }
            let path = files::join(path, &name);
            if let Some((_, entry, now)) = present.next_if(|(other, ..)| *other == &name[..]) {
                touched |= self.compare(path, &entry, now, node)?;
            } else {
                touched |= self.put(path, node)?;
            }
        }
        for (extra, entry, _) in present {
            touched |= self.extra(files::join(path, extra), &entry);
        }
        Ok(touched)
    }

    /// Something that the snapshot does not have.
    fn extra(&mut self, path: Vec<u8>, entry: &Entry) -> bool {
        let elsewhere = entry.stat.dev != self.survey.directories[0].stat.dev;
        if self.mode == RestoreMode::Merge || elsewhere {
            return false;
        }
        if self.keeps_removal(&path, entry) {
            return false;
        }
        self.remove(path, entry);
        true
    }

    /// Whether the removal of something, or of anything in it, is kept back.
    fn keeps_removal(&mut self, path: &[u8], entry: &Entry) -> bool {
        if self
            .guarded
            .keeps(path, ProposedKind::Remove, Some(&entry.stat), None)
        {
            return true;
        }
        let survey = self.survey;
        let mut inner = entry
            .child()
            .into_iter()
            .flat_map(|child| survey.entries(child));
        inner.any(|(name, entry, _)| self.keeps_removal(&files::join(path, name), &entry))
    }

    fn remove(&mut self, path: Vec<u8>, entry: &Entry) {
        let survey = self.survey;
        let Some(child) = entry.child().filter(|_| self.careful) else {
            self.plan.changes.push(Change::Remove { path });
            return;
        };
        for (name, entry, _) in survey.entries(child) {
            self.remove(files::join(&path, name), &entry);
        }
        self.plan.changes.push(Change::RemoveIfEmpty { path });
    }

    fn compare(
        &mut self,
        path: Vec<u8>,
        entry: &Entry,
        now: &[u8],
        node: Node,
    ) -> Result<bool, Error> {
        let mut encoded = Vec::new();
        node.put(&mut encoded);
        if encoded == now {
            return Ok(false);
        }
        let present = Node::take(&mut Reader::new(now)).ok();
        match (&node.kind, entry.child()) {
            (Kind::Directory(tree), Some(child)) => {
                if entry.stat.dev != self.survey.directories[0].stat.dev {
                    return Ok(false);
                }
                let touched = self.directory(child, &path, tree)?;
                let differs = present.is_none_or(|present| present.meta != node.meta);
                if touched || differs {
                    let stat = self.survey.directories[child].stat;
                    self.plan.directories.insert(path, (node.meta, Some(stat)));
                }
                Ok(false)
            }
            (_, Some(_)) if self.keeps_removal(&path, entry) => Ok(false),
            (_, Some(_)) if self.careful => {
                if self
                    .guarded
                    .keeps(&path, ProposedKind::Put, Some(&entry.stat), Some(&node))
                {
                    return Ok(false);
                }
                self.remove(path.clone(), entry);
                self.put_judged(path, node)?;
                Ok(true)
            }
            _ => {
                let same_kind = present.is_some_and(|present| present.kind == node.kind);
                let adjustable = matches!(node.kind, Kind::File { .. }) && entry.stat.nlink == 1;
                let kind = if same_kind && adjustable {
                    ProposedKind::Attributes
                } else {
                    ProposedKind::Put
                };
                if self
                    .guarded
                    .keeps(&path, kind, Some(&entry.stat), Some(&node))
                {
                    Ok(false)
                } else if same_kind && adjustable {
                    self.plan.files.push((path, node.meta, entry.stat));
                    Ok(false)
                } else {
                    self.put_judged(path, node)?;
                    Ok(true)
                }
            }
        }
    }

    /// Something that the directory does not have. True unless it is kept back.
    fn put(&mut self, path: Vec<u8>, node: Node) -> Result<bool, Error> {
        if self
            .guarded
            .keeps(&path, ProposedKind::Put, None, Some(&node))
        {
            return Ok(false);
        }
        self.put_judged(path, node)?;
        Ok(true)
    }

    fn put_judged(&mut self, path: Vec<u8>, node: Node) -> Result<(), Error> {
        if let Kind::HardLink(first) = node.kind {
            self.plan.links.insert(path, first);
            return Ok(());
        }
        if let Kind::Directory(tree) = &node.kind {
            self.new_directory(&path, &node.meta, tree)?;
        } else {
            self.replaced.insert(path.clone());
        }
        self.plan.changes.push(Change::Put { path, node });
        Ok(())
    }

    /// Everything in a new directory comes with it, save for second names; attributes of it and
    /// of those in it are set at the end.
    fn new_directory(&mut self, path: &[u8], meta: &Meta, tree: &ObjectId) -> Result<(), Error> {
        let entry = (meta.clone(), None);
        self.plan.directories.insert(path.to_vec(), entry);
        for (name, node) in self.session.tree(tree)? {
            let path = files::join(path, &name);
            if self
                .guarded
                .keeps(&path, ProposedKind::Put, None, Some(&node))
            {
                self.plan.left_out.insert(path);
                continue;
            }
            match node.kind {
                Kind::HardLink(first) => {
                    self.plan.links.insert(path, first);
                }
                Kind::Directory(tree) => self.new_directory(&path, &node.meta, &tree)?,
                _ => {
                    self.replaced.insert(path);
                }
            }
        }
        Ok(())
    }

    /// Second names of files that are replaced must become names of the new ones. Each of them is
    /// judged: under a protected name the same content may be a program that runs.
    fn relink(&mut self, record: &SnapshotRecord) -> Result<(), Error> {
        let kept = self.guarded.kept_paths();
        for (path, first) in snapshot::links(self.session, record)? {
            if !self.replaced.contains(&first)
                || self.plan.links.contains_key(&path)
                || is_below(&path, &kept)
            {
                continue;
            }
            let node = Node {
                meta: Meta::default(),
                kind: Kind::HardLink(first.clone()),
            };
            if self.guarded.keeps_link(&path, &node) {
                continue;
            }
            let (parent, _) = files::split(&path);
            if !self.plan.directories.contains_key(parent)
                && let Some(node) = snapshot::find(self.session, record, parent)?
            {
                let stat = self.stat_of(parent);
                self.plan
                    .directories
                    .insert(parent.to_vec(), (node.meta, stat));
            }
            self.plan.links.insert(path, first);
        }
        Ok(())
    }

    /// Names of a file whose first name was kept back: the next one takes its place.
    fn promote_links(&mut self, record: &SnapshotRecord) -> Result<(), Error> {
        let kept = self.guarded.kept_paths();
        let mut firsts: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for (path, first) in std::mem::take(&mut self.plan.links) {
            if !is_below(&first, &kept) {
                self.plan.links.insert(path, first);
            } else if let Some(promoted) = firsts.get(&first) {
                self.plan.links.insert(path, promoted.clone());
            } else if let Some(node) = snapshot::find(self.session, record, &first)? {
                firsts.insert(first, path.clone());
                self.plan.changes.push(Change::Put { path, node });
            }
        }
        Ok(())
    }

    fn stat_of(&self, path: &[u8]) -> Option<Stat> {
        let mut directories = self.survey.directories.iter();
        let found = directories.find(|directory| *directory.path == *path)?;
        Some(found.stat)
    }
}

/// Whether a path is one of these, or below one.
fn is_below(path: &[u8], tops: &HashSet<Vec<u8>>) -> bool {
    let mut path = path;
    while !path.is_empty() {
        if tops.contains(path) {
            return true;
        }
        (path, _) = files::split(path);
    }
    false
}
