//! What a tree is now, in the terms of snapshots: a node for every entry, an identity for every
//! directory. Reads only what its cache does not know.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use crate::cache::{Cache, CacheWriter, now};
use crate::codec::put_bytes;
use crate::content::{Reading, meta};
use crate::error::{Error, Trying};
use crate::files::{self, Stat};
use crate::id::{ObjectId, SnapshotId};
use crate::pack::Block;
use crate::progress::Progress;
use crate::scan::{self, Directory, Excludes};
use crate::store::Sink;
use crate::tree::{Kind, Node, Time};
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
    pub(crate) directories: Vec<Directory>,
    /// For each directory its encoded nodes, as its entries are.
    slots: Vec<Vec<Slot<'c>>>,
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

/// What the cache knows about a directory, entry by entry.
struct Known<'c> {
    tree: Option<ObjectId>,
    nodes: Vec<Option<&'c [u8]>>,
}

impl<'a> Surveyor<'a> {
    pub(crate) fn survey(&self) -> Result<Survey<'a>, Error> {
        let looked = now();
        self.progress.begin("looking", None);
        let mut directories = scan::scan(self.top, self.top_path, self.excludes)?;
        let (link_paths, first_names) = find_links(&directories);
        let mut known = Vec::with_capacity(directories.len());
        let mut slots: Vec<Vec<Slot<'a>>> = Vec::with_capacity(directories.len());
        let mut wanted = Vec::new();
        for (at, directory) in directories.iter().enumerate() {
            let (cached, row) = self.match_directory(at, directory, &first_names, &mut wanted)?;
            known.push(cached);
            slots.push(row);
        }
        let unstable = self.read(&mut directories, &mut slots, &wanted)?;
        let (trees, root) = self.encode(&directories, &mut slots, &known)?;
        let totals = count(&directories, &slots);
        Ok(Survey {
            looked,
            directories,
            slots,
            trees,
            root,
            links: link_paths,
            unstable,
            totals,
        })
    }

    /// Gives every entry its node from the cache or from what is known about it; ordinary files
    /// that are not in the cache are left to be read.
    fn match_directory(
        &self,
        at: usize,
        directory: &Directory,
        first_names: &HashMap<(u64, u64), Vec<u8>>,
        wanted: &mut Vec<(usize, usize)>,
    ) -> Result<(Known<'a>, Vec<Slot<'a>>), Error> {
        let cached = self
            .cache
            .and_then(|cache| cache.directory(&directory.path));
        let tree = cached
            .as_ref()
            .filter(|cached| cached.count == directory.entries.len() as u64)
            .map(|cached| cached.tree);
        let mut cached = cached.map(|cached| cached.entries().peekable());
        let mut nodes = Vec::with_capacity(directory.entries.len());
        let mut row = Vec::with_capacity(directory.entries.len());
        for (index, entry) in directory.entries.iter().enumerate() {
            let name = directory.name(entry);
            let before = cached.as_mut().and_then(|cached| {
                while cached.next_if(|before| before.name < name).is_some() {}
                cached.next_if(|before| before.name == name)
            });
            nodes.push(before.as_ref().map(|before| before.node));
            let slot = match before {
                _ if entry.child().is_some() => Slot::Gone,
                _ if entry.stat.nlink > 1
                    && let Some(first) = first_names.get(&(entry.stat.dev, entry.stat.ino))
                    && *first != directory.path_of(entry) =>
                {
                    // What belongs to the file is kept with its first name.
                    own(&Node {
                        meta: crate::tree::Meta::default(),
                        kind: Kind::HardLink(first.clone()),
                    })
                }
                Some(before) if before.is_unchanged(&entry.stat) && !is_link_node(before.node) => {
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
        Ok((Known { tree, nodes }, row))
    }

    /// The node of something that is neither a directory nor an ordinary file; it is not opened.
    fn special(&self, directory: &Directory, name: &[u8], stat: &Stat) -> Result<Slot<'a>, Error> {
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
        directories: &mut [Directory],
        slots: &mut [Vec<Slot<'a>>],
        wanted: &[(usize, usize)],
    ) -> Result<Vec<PathBuf>, Error> {
        let mut unstable = Vec::new();
        if wanted.is_empty() {
            return Ok(unstable);
        }
        let size = |(at, index): &(usize, usize)| directories[*at].entries[*index].stat.size;
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
            let directory = &mut directories[at];
            directory.entries[index].stat = file.stat;
            if file.unstable {
                let path = directory.path_of(&directory.entries[index]);
                unstable.push(files::full(self.top_path, &path));
            }
            slots[at][index] = own(&file.node);
        }
        Ok(unstable)
    }

    /// Builds the directories, children first.
    fn encode(
        &self,
        directories: &[Directory],
        slots: &mut [Vec<Slot<'a>>],
        known: &[Known<'a>],
    ) -> Result<(Vec<ObjectId>, Node), Error> {
        let mut trees = vec![ObjectId::from_bytes([0; 32]); directories.len()];
        let mut block = match self.sink {
            Some(_) => Some(Block::new().trying("compress content of", self.top_path)?),
            None => None,
        };
        let mut bytes = Vec::new();
        for at in (0..directories.len()).rev() {
            let directory = &directories[at];
            let mut same = known[at].tree;
            bytes.clear();
            for (index, entry) in directory.entries.iter().enumerate() {
                if let Some(child) = entry.child() {
                    if directories[child].gone {
                        same = None;
                        continue;
                    }
                    let node = self.directory_node(&directories[child], trees[child])?;
                    slots[at][index] = own(&node);
                }
                if slots[at][index].bytes() != known[at].nodes[index] {
                    same = None;
                }
            }
            trees[at] = if let Some(tree) = same {
                tree
            } else {
                for (entry, slot) in directory.entries.iter().zip(&slots[at]) {
                    if let Some(node) = slot.bytes() {
                        put_bytes(&mut bytes, directory.name(entry));
                        bytes.extend_from_slice(node);
                    }
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

    fn directory_node(&self, directory: &Directory, tree: ObjectId) -> Result<Node, Error> {
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
    pub(crate) fn entries(
        &self,
        at: usize,
    ) -> impl Iterator<Item = (&[u8], &scan::Entry, &[u8])> + '_ {
        let directory = &self.directories[at];
        directory
            .entries
            .iter()
            .zip(&self.slots[at])
            .filter_map(|(entry, slot)| Some((directory.name(entry), entry, slot.bytes()?)))
    }

    pub(crate) fn tree(&self, at: usize) -> ObjectId {
        self.trees[at]
    }

    /// Writes down what was seen, as what snapshot `id` has.
    pub(crate) fn save_cache(&self, id: &SnapshotId, path: &Path) -> Result<(), Error> {
        let files: usize = self.slots.iter().map(Vec::len).sum();
        let mut writer = CacheWriter::new(id, self.looked, files * 160);
        for (at, directory) in self.directories.iter().enumerate() {
            if directory.gone {
                continue;
            }
            writer.directory(&directory.path, &self.trees[at], self.entries(at).count());
            for (name, entry, node) in self.entries(at) {
                writer.entry(name, &entry.stat, node);
            }
        }
        writer.save(path)
    }
}

fn own<'c>(node: &Node) -> Slot<'c> {
    let mut bytes = Vec::new();
    node.put(&mut bytes);
    Slot::Own(bytes.into_boxed_slice())
}

/// Whether an encoded node is a second name: then the first may have moved meanwhile.
fn is_link_node(node: &[u8]) -> bool {
    node.first() == Some(&4)
}

type Links = (Vec<(Vec<u8>, Vec<u8>)>, HashMap<(u64, u64), Vec<u8>>);

/// Files with several names in the tree: for each further name the first one, and the first name
/// by the file's identity.
fn find_links(directories: &[Directory]) -> Links {
    let mut names: HashMap<(u64, u64), Vec<Vec<u8>>> = HashMap::new();
    for directory in directories {
        for entry in &directory.entries {
            if entry.stat.nlink > 1 && !entry.stat.is_dir() {
                let id = (entry.stat.dev, entry.stat.ino);
                names.entry(id).or_default().push(directory.path_of(entry));
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

fn count(directories: &[Directory], slots: &[Vec<Slot<'_>>]) -> Totals {
    let mut totals = Totals::default();
    for (directory, slots) in directories.iter().zip(slots) {
        totals.directories += u64::from(!directory.gone);
        for (entry, slot) in directory.entries.iter().zip(slots) {
            if entry.child().is_none() && slot.bytes().is_some() {
                totals.files += 1;
                if entry.stat.file_type().is_file() {
                    totals.bytes += entry.stat.size;
                }
            }
        }
    }
    totals
}
