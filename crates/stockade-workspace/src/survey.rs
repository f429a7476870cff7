//! What a tree is now, in the terms of snapshots: a node for every entry, an identity for every
//! directory. Reads only what its cache does not know.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use crate::cache::{Cache, CacheWriter, now};
use crate::codec::put_bytes;
use crate::content::{Reading, meta};
use crate::error::{Error, Trying};
use crate::exclude::Excludes;
use crate::files::{self, Stat};
use crate::id::{ObjectId, SnapshotId};
use crate::listing::{Directory, Entry, Listing, Seen};
use crate::pack::Block;
use crate::progress::Progress;
use crate::scan;
use crate::store::Sink;
use crate::tree::{self, Kind, Node, Time};
use crate::xattr;

/// What to survey, and how.
pub(crate) struct Surveyor<'a> {
    pub(crate) top: BorrowedFd<'a>,
    pub(crate) top_path: &'a Path,
    pub(crate) excludes: &'a Excludes,
    pub(crate) xattrs: bool,
    pub(crate) cache: Option<&'a Cache>,
    /// Where content goes that the store does not have; nowhere if this only looks.
    pub(crate) sink: Option<&'a Sink<'a>>,
    pub(crate) progress: &'a dyn Progress,
}

/// A tree as it is.
pub(crate) struct Survey<'c> {
    /// A moment before anything was looked at.
    looked: Time,
    pub(crate) directories: Vec<Directory<'c>>,
    /// For each directory its encoded nodes: those of its entries as they were seen, or of those
    /// that are directories where all else is as the cache has it.
    slots: Vec<Vec<Slot<'c>>>,
    cache: Option<&'c Cache>,
    /// For each directory its identity.
    trees: Vec<ObjectId>,
    /// The top itself.
    pub(crate) root: Node,
    /// Second names of files, and their first.
    pub(crate) links: Vec<(Vec<u8>, Vec<u8>)>,
    /// Files that changed while they were read.
    pub(crate) unstable: Vec<PathBuf>,
    pub(crate) totals: Totals,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Totals {
    /// Directories, the top included.
    pub directories: u64,
    /// Everything that is no directory.
    pub files: u64,
    /// Bytes of ordinary files.
    pub bytes: u64,
}

/// An encoded node.
enum Slot<'c> {
    /// As the cache has it.
    Cached(&'c [u8]),
    Own(Box<[u8]>),
    /// Removed since it was seen.
    Gone,
}

impl Slot<'_> {
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Cached(bytes) => Some(bytes),
            Self::Own(bytes) => Some(bytes),
            Self::Gone => None,
        }
    }
}

impl<'a> Surveyor<'a> {
    pub(crate) fn survey(&self) -> Result<Survey<'a>, Error> {
        let looked = now();
        self.progress.begin("looking", None);
        let mut directories = scan::scan(self.top, self.top_path, self.excludes, self.cache)?;
        let (link_paths, first_names) = find_links(&directories);
        let mut slots: Vec<Vec<Slot<'a>>> = Vec::with_capacity(directories.len());
        let mut wanted = Vec::new();
        for (at, directory) in directories.iter().enumerate() {
            slots.push(match &directory.listing {
                Listing::Seen(seen) => {
                    self.match_entries(at, directory, seen, &first_names, &mut wanted)?
                }
                Listing::Same(same) => same.children.iter().map(|_| Slot::Gone).collect(),
            });
        }
        let unstable = self.read(&mut directories, &mut slots, &wanted)?;
        let (trees, root) = self.encode(&directories, &mut slots)?;
        let totals = count(&directories, &slots);
        Ok(Survey {
            looked,
            directories,
            slots,
            cache: self.cache,
            trees,
            root,
            links: link_paths,
            unstable,
            totals,
        })
    }

    /// Gives every entry its node from the cache or from what is known about it; ordinary files
    /// that are not in the cache are left to be read.
    fn match_entries(
        &self,
        at: usize,
        directory: &Directory<'a>,
        seen: &Seen,
        first_names: &HashMap<(u64, u64), Vec<u8>>,
        wanted: &mut Vec<(usize, usize)>,
    ) -> Result<Vec<Slot<'a>>, Error> {
        let cached = directory.cached.as_ref();
        let mut cached = cached.map(|cached| cached.entries().peekable());
        let mut row = Vec::with_capacity(seen.len());
        for (index, (name, entry)) in seen.iter().enumerate() {
            let before = cached.as_mut().and_then(|cached| {
                while cached.next_if(|before| before.name < name).is_some() {}
                cached.next_if(|before| before.name == name)
            });
            let slot = match before {
                _ if entry.child().is_some() => Slot::Gone,
                _ if entry.stat.nlink > 1
                    && let Some(first) = first_names.get(&(entry.stat.dev, entry.stat.ino))
                    && *first != directory.path_of(name) =>
                {
                    // What belongs to the file is kept with its first name.
                    own(&Node {
                        meta: crate::tree::Meta::default(),
                        kind: Kind::HardLink(first.clone()),
                    })
                }
                Some(before) if before.is_unchanged(&entry.stat) && !tree::is_link(before.node) => {
                    Slot::Cached(before.node)
                }
                _ if entry.stat.file_type().is_file() => {
                    wanted.push((at, index));
                    Slot::Gone
                }
                _ => self.special(directory, name, &entry.stat)?,
            };
            row.push(slot);
        }
        Ok(row)
    }

    /// The node of something that is neither a directory nor an ordinary file; it is not opened.
    fn special(
        &self,
        directory: &Directory<'_>,
        name: &[u8],
        stat: &Stat,
    ) -> Result<Slot<'a>, Error> {
        use rustix::fs::FileType;
        let kind = match stat.file_type() {
            FileType::Symlink => {
                let path = files::join(&directory.path, name);
                let target = files::open_dir_below(self.top, &directory.path)
                    .and_then(|fd| rustix::fs::readlinkat(fd, name, Vec::new()));
                match target {
                    Ok(target) => Kind::Symlink(target.into_bytes()),
                    Err(rustix::io::Errno::NOENT | rustix::io::Errno::INVAL) => {
                        return Ok(Slot::Gone);
                    }
                    Err(error) => {
                        return Err(error).trying("read", files::full(self.top_path, &path));
                    }
                }
            }
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            FileType::CharacterDevice => Kind::CharDevice(stat.rdev),
            FileType::BlockDevice => Kind::BlockDevice(stat.rdev),
            _ => return Ok(Slot::Gone),
        };
        Ok(own(&Node {
            meta: meta(stat, Vec::new()),
            kind,
        }))
    }

    fn read(
        &self,
        directories: &mut [Directory<'a>],
        slots: &mut [Vec<Slot<'a>>],
        wanted: &[(usize, usize)],
    ) -> Result<Vec<PathBuf>, Error> {
        let mut unstable = Vec::new();
        if wanted.is_empty() {
            return Ok(unstable);
        }
        let size = |(at, index): &(usize, usize)| {
            let seen = directories[*at].seen();
            seen.map_or(0, |seen| seen.get(*index).1.stat.size)
        };
        self.progress
            .begin("reading", Some(wanted.iter().map(size).sum()));
        let reading = Reading {
            top: self.top,
            top_path: self.top_path,
            sink: self.sink,
            xattrs: self.xattrs,
            progress: self.progress,
        };
        for (number, file) in reading.read_all(directories, wanted)? {
            let (at, index) = wanted[number];
            let Some(file) = file else { continue };
            if let Listing::Seen(seen) = &mut directories[at].listing {
                seen.entry_mut(index).stat = file.stat;
                if file.unstable {
                    let path = files::join(&directories[at].path, seen.get(index).0);
                    unstable.push(files::full(self.top_path, &path));
                }
            }
            slots[at][index] = own(&file.node);
        }
        Ok(unstable)
    }

    /// Builds the directories, children first.
    fn encode(
        &self,
        directories: &[Directory<'a>],
        slots: &mut [Vec<Slot<'a>>],
    ) -> Result<(Vec<ObjectId>, Node), Error> {
        let mut trees = vec![ObjectId::from_bytes([0; 32]); directories.len()];
        let mut block = match self.sink {
            Some(_) => Some(Block::new().trying("compress content of", self.top_path)?),
            None => None,
        };
        let mut bytes = Vec::new();
        for at in (0..directories.len()).rev() {
            let directory = &directories[at];
            for (slot, child) in children(directory) {
                if !directories[child].gone {
                    let node = self.directory_node(&directories[child], trees[child])?;
                    slots[at][slot] = own(&node);
                }
            }
            trees[at] = if let Some(tree) = unchanged(directory, &slots[at]) {
                tree
            } else {
                bytes.clear();
                for (name, _, node) in entries(directory, &slots[at]) {
                    put_bytes(&mut bytes, name);
                    bytes.extend_from_slice(node);
                }
                match (self.sink, &mut block) {
                    (Some(sink), Some(block)) => sink.put(block, &bytes)?,
                    _ => ObjectId::of(&bytes),
                }
            };
        }
        if let (Some(sink), Some(block)) = (self.sink, &mut block) {
            sink.flush(block)?;
        }
        let root = self.directory_node(&directories[0], trees[0])?;
        Ok((trees, root))
    }

    fn directory_node(&self, directory: &Directory<'_>, tree: ObjectId) -> Result<Node, Error> {
        let xattrs = if self.xattrs {
            let path = files::full(self.top_path, &directory.path);
            files::open_dir_below(self.top, &directory.path)
                .and_then(|fd| xattr::read(fd.as_fd()))
                .trying("read the attributes of", path)?
        } else {
            Vec::new()
        };
        Ok(Node {
            meta: meta(&directory.stat, xattrs),
            kind: Kind::Directory(tree),
        })
    }
}

impl Survey<'_> {
    /// What is in a directory: names, what the system says, and encoded nodes.
    pub(crate) fn entries(&self, at: usize) -> impl Iterator<Item = (&[u8], Entry, &[u8])> {
        entries(&self.directories[at], &self.slots[at])
    }

    pub(crate) fn tree(&self, at: usize) -> ObjectId {
        self.trees[at]
    }

    /// Writes down what was seen, as what snapshot `id` has.
    pub(crate) fn save_cache(&self, id: &SnapshotId, path: &Path) -> Result<(), Error> {
        if let Some(cache) = self.cache {
            let mut writer = CacheWriter::new(id, self.looked, 0);
            self.put_all(&mut writer, |at| !self.is_as_cached(at));
            for path in self.removed_since(cache) {
                writer.removed(path);
            }
            if writer.append(cache, path)? {
                return Ok(());
            }
        }
        let files = usize::try_from(self.totals.files).unwrap_or(0);
        let mut writer = CacheWriter::new(id, self.looked, files * 160);
        self.put_all(&mut writer, |_| true);
        writer.save(path)
    }

    fn put_all(&self, writer: &mut CacheWriter, is_wanted: impl Fn(usize) -> bool) {
        for (at, directory) in self.directories.iter().enumerate() {
            if directory.gone || !is_wanted(at) {
                continue;
            }
            writer.directory(&directory.path, &self.trees[at], self.entries(at).count());
            for (name, entry, node) in self.entries(at) {
                writer.entry(name, &entry.stat, node);
            }
        }
    }

    /// Whether the cache has nothing to learn about a directory.
    fn is_as_cached(&self, at: usize) -> bool {
        let directory = &self.directories[at];
        let cached = directory.cached.as_ref().map(|cached| cached.tree);
        matches!(directory.listing, Listing::Same(_)) && cached == Some(self.trees[at])
    }

    /// Directories of the cache that are not here.
    fn removed_since<'c>(&self, cache: &'c Cache) -> Vec<&'c [u8]> {
        let directories = self.directories.iter();
        let here = directories.filter(|directory| !directory.gone && directory.cached.is_some());
        if here.clone().count() == cache.directories().len() {
            return Vec::new();
        }
        let here: HashSet<&[u8]> = here.map(|directory| &*directory.path).collect();
        let gone = cache.directories().filter(|path| !here.contains(path));
        gone.collect()
    }
}

/// For each entry that is a directory its slot and its index.
fn children(directory: &Directory<'_>) -> Vec<(usize, usize)> {
    let child = |(slot, entry): (usize, &Entry)| Some((slot, entry.child()?));
    match &directory.listing {
        Listing::Same(same) => {
            let entries = same.children.iter().map(|child| &child.entry);
            entries.enumerate().filter_map(child).collect()
        }
        Listing::Seen(seen) => {
            let entries = seen.iter().map(|(_, entry)| entry);
            entries.enumerate().filter_map(child).collect()
        }
    }
}

/// What is in a directory: names, what the system says, and encoded nodes.
fn entries<'s>(
    directory: &'s Directory<'_>,
    slots: &'s [Slot<'_>],
) -> Box<dyn Iterator<Item = (&'s [u8], Entry, &'s [u8])> + 's> {
    match (&directory.listing, &directory.cached) {
        (Listing::Seen(seen), _) => Box::new(
            seen.iter()
                .zip(slots)
                .filter_map(|((name, entry), slot)| Some((name, *entry, slot.bytes()?))),
        ),
        (Listing::Same(same), Some(cached)) => {
            let mut children = same.children.iter().zip(slots).peekable();
            let dev = directory.stat.dev;
            let entries = cached.entries().enumerate();
            Box::new(entries.filter_map(move |(index, before)| {
                match children.next_if(|(child, _)| child.index == index) {
                    Some((child, slot)) => Some((before.name, child.entry, slot.bytes()?)),
                    None => Some((before.name, Entry::new(before.stat(dev)), before.node)),
                }
            }))
        }
        (Listing::Same(_), None) => Box::new(std::iter::empty()),
    }
}

/// The directory as the cache has it, if that is what it is.
fn unchanged(directory: &Directory<'_>, slots: &[Slot<'_>]) -> Option<ObjectId> {
    let cached = directory.cached.as_ref()?;
    if matches!(&directory.listing, Listing::Same(same) if same.children.is_empty()) {
        return Some(cached.tree);
    }
    let now = entries(directory, slots).map(|(name, _, node)| (name, node));
    let then = cached.entries().map(|before| (before.name, before.node));
    now.eq(then).then_some(cached.tree)
}

fn own<'c>(node: &Node) -> Slot<'c> {
    let mut bytes = Vec::new();
    node.put(&mut bytes);
    Slot::Own(bytes.into_boxed_slice())
}

type Links = (Vec<(Vec<u8>, Vec<u8>)>, HashMap<(u64, u64), Vec<u8>>);

/// Files with several names in the tree: for each further name the first one, and the first name
/// by the file's identity.
fn find_links(directories: &[Directory<'_>]) -> Links {
    let mut names: HashMap<(u64, u64), Vec<Vec<u8>>> = HashMap::new();
    for directory in directories {
        for (name, entry) in directory.seen().into_iter().flat_map(Seen::iter) {
            if entry.stat.nlink > 1 && !entry.stat.is_dir() {
                let id = (entry.stat.dev, entry.stat.ino);
                names.entry(id).or_default().push(directory.path_of(name));
            }
        }
    }
    let mut links = Vec::new();
    let mut first_names = HashMap::new();
    for (id, mut paths) in names {
        if paths.len() < 2 {
            continue;
        }
        paths.sort();
        let first = paths.remove(0);
        links.extend(paths.into_iter().map(|path| (path, first.clone())));
        first_names.insert(id, first);
    }
    links.sort();
    (links, first_names)
}

fn count(directories: &[Directory<'_>], slots: &[Vec<Slot<'_>>]) -> Totals {
    let mut totals = Totals::default();
    for (directory, slots) in directories.iter().zip(slots) {
        totals.directories += u64::from(!directory.gone);
        match &directory.listing {
            Listing::Same(same) => {
                totals.files += same.files;
                totals.bytes += same.bytes;
            }
            Listing::Seen(seen) => {
                for ((_, entry), slot) in seen.iter().zip(slots) {
                    if entry.child().is_none() && slot.bytes().is_some() {
                        totals.files += 1;
                        if entry.stat.file_type().is_file() {
                            totals.bytes += entry.stat.size;
                        }
                    }
                }
            }
        }
    }
    totals
}
