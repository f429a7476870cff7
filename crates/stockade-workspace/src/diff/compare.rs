//! Walking two trees at once, past everything that is the same in both.

use std::path::Path;

use super::{Change, Source};
use crate::codec::Reader;
use crate::error::Error;
use crate::files;
use crate::id::ObjectId;
use crate::store::Session;
use crate::survey::Survey;
use crate::tree::{Kind, Node};

/// A state of a tree.
pub(crate) enum Side<'a> {
    /// A snapshot's.
    Stored(ObjectId),
    /// As it is, in this directory.
    Present(&'a Survey<'a>, &'a Path),
}

/// A directory of one side.
#[derive(Clone, Copy)]
enum Handle {
    Tree(ObjectId),
    Index(usize),
}

type Entries = Vec<(Vec<u8>, Node, Option<Handle>)>;

impl Side<'_> {
    fn top(&self) -> Handle {
        match self {
            Self::Stored(id) => Handle::Tree(*id),
            Self::Present(..) => Handle::Index(0),
        }
    }

    fn identity(&self, handle: Handle) -> ObjectId {
        match (self, handle) {
            (Self::Present(survey, _), Handle::Index(at)) => survey.tree(at),
            (_, Handle::Tree(id)) => id,
            (Self::Stored(id), Handle::Index(_)) => *id,
        }
    }

    fn entries(&self, session: &Session, handle: Handle) -> Result<Entries, Error> {
        if let (Self::Present(survey, _), Handle::Index(at)) = (self, handle) {
            let entries = survey.entries(at).filter_map(|(name, entry, node)| {
                let node = Node::take(&mut Reader::new(node)).ok()?;
                Some((name.to_vec(), node, entry.child().map(Handle::Index)))
            });
            return Ok(entries.collect());
        }
        let tree = session.tree(&self.identity(handle))?;
        let entries = tree.into_iter().map(|(name, node)| {
            let handle = match node.kind {
                Kind::Directory(id) => Some(Handle::Tree(id)),
                _ => None,
            };
            (name, node, handle)
        });
        Ok(entries.collect())
    }

    fn source(&self, path: &[u8], node: &Node) -> Source {
        match (&node.kind, self) {
            (Kind::File { content, .. }, Self::Stored(_)) => Source::Object(content.clone()),
            (Kind::File { .. }, Self::Present(_, dir)) => {
                Source::File((*dir).to_owned(), path.to_vec())
            }
            (Kind::Symlink(target), _) => Source::Bytes(target.clone()),
            _ => Source::Nothing,
        }
    }
}

/// Everything that differs.
pub(crate) fn changes(
    session: &Session,
    old: &Side<'_>,
    new: &Side<'_>,
) -> Result<Vec<Change>, Error> {
    let mut comparison = Comparison {
        session,
        old,
        new,
        changes: Vec::new(),
    };
    comparison.directories(b"", Some(old.top()), Some(new.top()))?;
    Ok(comparison.changes)
}

struct Comparison<'a> {
    session: &'a Session,
    old: &'a Side<'a>,
    new: &'a Side<'a>,
    changes: Vec<Change>,
}

impl Comparison<'_> {
    fn directories(
        &mut self,
        path: &[u8],
        old: Option<Handle>,
        new: Option<Handle>,
    ) -> Result<(), Error> {
        if let (Some(old), Some(new)) = (old, new)
            && self.old.identity(old) == self.new.identity(new)
        {
            return Ok(());
        }
        let list = |side: &Side<'_>, handle: Option<Handle>| match handle {
            Some(handle) => side.entries(self.session, handle),
            None => Ok(Vec::new()),
        };
        let mut before = list(self.old, old)?.into_iter().peekable();
        let mut after = list(self.new, new)?.into_iter().peekable();
        loop {
            let name = match (before.peek(), after.peek()) {
                (None, None) => return Ok(()),
                (Some((name, ..)), None) | (None, Some((name, ..))) => name.clone(),
                (Some((one, ..)), Some((other, ..))) => one.min(other).clone(),
            };
            let was = before.next_if(|(other, ..)| *other == name);
            let is = after.next_if(|(other, ..)| *other == name);
            self.entry(&files::join(path, &name), was, is)?;
        }
    }

    fn entry(
        &mut self,
        path: &[u8],
        was: Option<(Vec<u8>, Node, Option<Handle>)>,
        is: Option<(Vec<u8>, Node, Option<Handle>)>,
    ) -> Result<(), Error> {
        let old = was
            .as_ref()
            .map(|(_, node, _)| (node, self.old.source(path, node)));
        let new = is
            .as_ref()
            .map(|(_, node, _)| (node, self.new.source(path, node)));
        self.changes.extend(Change::new(path, old, new));
        let old = was.and_then(|(_, _, handle)| handle);
        let new = is.and_then(|(_, _, handle)| handle);
        if old.is_some() || new.is_some() {
            self.directories(path, old, new)?;
        }
        Ok(())
    }
}
