//! A directory that was looked at, and what is in it.
//!
//! Where everything is what the cache says it was, only the directories below it are kept: most of
//! a large tree is like that, and the memory for the rest would take more time than to look.

use crate::cache::{CachedDirectory, CachedEntry};
use crate::files::{self, Stat};
use crate::tree;

/// A directory that was looked at.
#[derive(Debug)]
pub(crate) struct Directory<'c> {
    /// Below the top; empty for the top itself.
    pub(crate) path: Box<[u8]>,
    pub(crate) stat: Stat,
    /// It was removed between being seen and being read.
    pub(crate) gone: bool,
    /// What the cache says about it.
    pub(crate) cached: Option<CachedDirectory<'c>>,
    pub(crate) listing: Listing,
}

/// What is in a directory.
#[derive(Debug)]
pub(crate) enum Listing {
    /// What the cache says, save perhaps for what is further below.
    Same(Same),
    /// This.
    Seen(Seen),
}

/// What has to be known beside the cache.
#[derive(Debug, Default)]
pub(crate) struct Same {
    /// Those of its entries that are directories.
    pub(crate) children: Vec<Child>,
    /// How many entries are none.
    pub(crate) files: u64,
    /// Bytes of ordinary files.
    pub(crate) bytes: u64,
}

/// A directory in a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    /// Which entry of the cache's it is.
    pub(crate) index: usize,
    pub(crate) entry: Entry,
}

/// Entries in the order of their names.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    names: Vec<u8>,
    entries: Vec<(Span, Entry)>,
}

/// Where a name is.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    length: u16,
}

/// Something in a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) stat: Stat,
    /// See [`Entry::child`].
    child: u32,
}

const NO_CHILD: u32 = u32::MAX;

impl Entry {
    pub(crate) const fn new(stat: Stat) -> Self {
        Self {
            stat,
            child: NO_CHILD,
        }
    }

    /// The directory's index in the scan, if it is one. Parents come before children.
    pub(crate) fn child(&self) -> Option<usize> {
        (self.child != NO_CHILD).then_some(self.child as usize)
    }

    pub(crate) const fn set_child(&mut self, number: u32) {
        self.child = number;
    }
}

impl Directory<'_> {
    pub(crate) fn path_of(&self, name: &[u8]) -> Vec<u8> {
        files::join(&self.path, name)
    }

    /// Its entries as they were seen; none if they are what the cache says.
    pub(crate) const fn seen(&self) -> Option<&Seen> {
        match &self.listing {
            Listing::Seen(seen) => Some(seen),
            Listing::Same(_) => None,
        }
    }
}

impl Seen {
    pub(crate) fn clear(&mut self) {
        self.names.clear();
        self.entries.clear();
    }

    pub(crate) fn push(&mut self, name: &[u8]) {
        let span = Span {
            start: u32::try_from(self.names.len()).unwrap_or(u32::MAX),
            length: u16::try_from(name.len()).unwrap_or(u16::MAX),
        };
        self.names.extend_from_slice(name);
        self.entries.push((span, Entry::new(Stat::default())));
    }

    pub(crate) fn sort(&mut self) {
        let names = &self.names;
        self.entries
            .sort_unstable_by(|(one, _), (other, _)| one.of(names).cmp(other.of(names)));
    }

    /// Keeps what `look` says a state of, with that state.
    pub(crate) fn look(&mut self, mut look: impl FnMut(&[u8]) -> Option<Stat>) {
        let names = &self.names;
        self.entries.retain_mut(|(span, entry)| {
            let stat = look(span.of(names));
            entry.stat = stat.unwrap_or_default();
            stat.is_some()
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &Entry)> {
        self.entries
            .iter()
            .map(|(span, entry)| (span.of(&self.names), entry))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&[u8], &mut Entry)> {
        let names = &self.names;
        self.entries
            .iter_mut()
            .map(|(span, entry)| (span.of(names), entry))
    }

    pub(crate) fn get(&self, index: usize) -> (&[u8], &Entry) {
        let (span, entry) = &self.entries[index];
        (span.of(&self.names), entry)
    }

    pub(crate) fn entry_mut(&mut self, index: usize) -> &mut Entry {
        &mut self.entries[index].1
    }

    /// Whether everything is what the cache says; which it does not for files with several names,
    /// as the others may be elsewhere.
    pub(crate) fn is_same(&self, cached: &CachedDirectory<'_>) -> Option<Same> {
        if cached.count != self.len() as u64 {
            return None;
        }
        let mut same = Same::default();
        let mut before = cached.entries();
        for (index, (name, entry)) in self.iter().enumerate() {
            let before = before.next().filter(|before| before.name == name)?;
            if entry.stat.is_dir() {
                let entry = *entry;
                same.children.push(Child { index, entry });
            } else if is_file_as_it_was(&before, &entry.stat) {
                same.files += 1;
                if entry.stat.file_type().is_file() {
                    same.bytes += entry.stat.size;
                }
            } else {
                return None;
            }
        }
        Some(same)
    }
}

impl Span {
    fn of(self, names: &[u8]) -> &[u8] {
        let start = self.start as usize;
        &names[start..start + usize::from(self.length)]
    }
}

fn is_file_as_it_was(before: &CachedEntry<'_>, stat: &Stat) -> bool {
    stat.nlink == 1 && !tree::is_link(before.node) && before.is_unchanged(stat)
}
