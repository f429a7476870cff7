//! What a tree looked like when its last snapshot was taken, so that the next one reads only what
//! changed.
//!
//! A file is taken to be as it was if everything that `stat(2)` says is as it was: size, times to
//! the nanosecond, inode, mode. A file that was changed so shortly before it was looked at that
//! another change could have left the same times is not believed (git calls it *racily clean*).
//! The cache belongs to one snapshot and holds only while that exists: that keeps the content.
//!
//! It has several parts: directories that changed later are in a later one, which belongs to a
//! later snapshot. It is not synced and each part carries a hash: if one is lost or damaged, what
//! it had is read again.

mod key;
mod write;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::codec::{Decoded, Malformed, Reader};
use crate::files::Stat;
use crate::id::{ObjectId, SnapshotId};

pub(crate) use key::{KEY, exactly_now, key, now, stat_of_key};
pub(crate) use write::CacheWriter;

const MAGIC: &[u8; 8] = b"stkcach2";

/// A cache that was read.
#[derive(Debug)]
pub(crate) struct Cache {
    bytes: Vec<u8>,
    /// From a directory's path to where its record begins in `bytes`.
    directories: HashMap<Box<[u8]>, usize>,
    pub(crate) snapshot: SnapshotId,
    /// How long the first part is.
    first: usize,
    /// Whether all parts could be used.
    whole: bool,
}

/// A directory as it was.
#[derive(Clone, Debug)]
pub(crate) struct CachedDirectory<'a> {
    pub(crate) tree: ObjectId,
    pub(crate) count: u64,
    entries: Reader<'a>,
}

/// A file as it was.
pub(crate) struct CachedEntry<'a> {
    pub(crate) name: &'a [u8],
    key: &'a [u8],
    certain: bool,
    /// The encoded node.
    pub(crate) node: &'a [u8],
}

impl CachedEntry<'_> {
    /// Whether the file is certainly the same.
    pub(crate) fn is_unchanged(&self, stat: &Stat) -> bool {
        self.certain && self.key == key(stat)
    }

    /// What the file was, on this device.
    pub(crate) fn stat(&self, dev: u64) -> Stat {
        key::stat(self.key, dev).unwrap_or_default()
    }
}

impl Cache {
    /// Reads a cache; none if there is none that can be used.
    pub(crate) fn load(path: &Path) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        Self::parse(bytes).ok()
    }

    fn parse(bytes: Vec<u8>) -> Decoded<Self> {
        let mut from = Reader::new(&bytes);
        if from.array()? != *MAGIC {
            return Err(Malformed);
        }
        let mut directories = HashMap::new();
        let first = part(&mut from)?;
        let end = bytes.len() - from.left();
        let mut snapshot = read_part(first, end, &mut directories)?;
        let first = first.len();
        let mut whole = true;
        while whole && !from.is_empty() {
            match part(&mut from) {
                Ok(part) => {
                    let end = bytes.len() - from.left();
                    snapshot = read_part(part, end, &mut directories)?;
                }
                // Whoever wrote it was interrupted; up to here it is that of an earlier snapshot.
                Err(Malformed) => whole = false,
            }
        }
        Ok(Self {
            bytes,
            directories,
            snapshot,
            first,
            whole,
        })
    }

    pub(crate) fn directory(&self, path: &[u8]) -> Option<CachedDirectory<'_>> {
        let at = *self.directories.get(path)?;
        let mut from = Reader::new(&self.bytes[at..]);
        Some(CachedDirectory {
            tree: ObjectId::from_bytes(from.array().ok()?),
            count: from.number().ok()?,
            entries: from,
        })
    }

    /// Paths of all directories.
    pub(crate) fn directories(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.directories.keys().map(|path| &**path)
    }

    /// Whether so much can be added at its end. Later parts are read each time, and take the place
    /// of earlier ones.
    fn has_room_for(&self, length: usize) -> bool {
        const LEAST: usize = 64 * 1024;
        let later = self.bytes.len() - self.first + length;
        self.whole && later <= LEAST.max(self.first / 2)
    }
}

/// Takes a part off, if it is what was written.
fn part<'a>(from: &mut Reader<'a>) -> Decoded<&'a [u8]> {
    let hash = ObjectId::from_bytes(from.array()?);
    let length = from.u64_fixed()?.try_into().map_err(|_| Malformed)?;
    let part = from.take(length)?;
    if ObjectId::of(part) == hash {
        Ok(part)
    } else {
        Err(Malformed)
    }
}

/// Enters the directories of a part, which ends here in the file, and tells to which snapshot it
/// belongs.
fn read_part(
    part: &[u8],
    end: usize,
    directories: &mut HashMap<Box<[u8]>, usize>,
) -> Decoded<SnapshotId> {
    let mut from = Reader::new(part);
    let snapshot = String::from_utf8(from.bytes()?.to_vec()).map_err(|_| Malformed)?;
    let snapshot = SnapshotId::try_from(snapshot).map_err(|_| Malformed)?;
    while !from.is_empty() {
        let path = from.bytes()?;
        let record = from.u32_fixed()? as usize;
        if record == 0 {
            directories.remove(path);
        } else {
            directories.insert(path.into(), end - from.left());
            from.take(record)?;
        }
    }
    Ok(snapshot)
}

impl<'a> CachedDirectory<'a> {
    /// The entries in the order of their names.
    pub(crate) fn entries(&self) -> impl Iterator<Item = CachedEntry<'a>> + use<'a> {
        let mut from = self.entries.clone();
        (0..self.count).map_while(move |_| {
            Some(CachedEntry {
                name: from.bytes().ok()?,
                key: from.take(KEY).ok()?,
                certain: from.byte().ok()? == 1,
                node: from.bytes().ok()?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Time;

    fn at(seconds: i64, nanos: u32) -> Time {
        Time { seconds, nanos }
    }

    fn changed(ctime: Time) -> Stat {
        Stat {
            ctime,
            mtime: ctime,
            ..Stat::default()
        }
    }

    fn id(text: &[u8]) -> SnapshotId {
        SnapshotId::from_hash(ObjectId::of(text))
    }

    fn writer(snapshot: &[u8]) -> CacheWriter {
        CacheWriter::new(&id(snapshot), at(1000, 0), 0)
    }

    #[test]
    fn a_cache_survives_and_damage_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cache");
        let stat = changed(at(5, 5));
        let mut first = writer(b"s");
        first.directory(b"", &ObjectId::of(b"t"), 2);
        first.entry(b"a", &stat, b"node a");
        first.entry(b"b", &changed(at(1000, 0)), b"node b");
        first.directory(b"d", &ObjectId::of(b"u"), 0);
        first.save(&path).unwrap();
        let cache = Cache::load(&path).unwrap();
        assert_eq!(cache.snapshot, id(b"s"));
        assert!(cache.directory(b"x").is_none());
        assert_eq!(cache.directory(b"d").unwrap().count, 0);
        let entries: Vec<_> = cache.directory(b"").unwrap().entries().collect();
        assert_eq!(
            (entries[0].name, entries[0].node),
            (&b"a"[..], &b"node a"[..])
        );
        assert!(entries[0].is_unchanged(&stat));
        assert_eq!(entries[0].stat(0), stat);
        assert!(!entries[0].is_unchanged(&Stat { size: 1, ..stat }));
        assert!(!entries[1].is_unchanged(&changed(at(1000, 0))));
        let mut bytes = fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(Cache::load(&path).is_none());
    }

    #[test]
    fn later_parts_replace_directories_and_may_be_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cache");
        let mut first = writer(b"1");
        for name in [b"same", b"gone", b"new!"] {
            first.directory(name, &ObjectId::of(b"old"), 0);
        }
        first.save(&path).unwrap();
        let cache = Cache::load(&path).unwrap();
        let mut second = writer(b"2");
        second.directory(b"new!", &ObjectId::of(b"new"), 0);
        second.removed(b"gone");
        assert!(second.append(&cache, &path).unwrap());

        let tree = |cache: &Cache, path| cache.directory(path).map(|found| found.tree);
        let cache = Cache::load(&path).unwrap();
        assert_eq!(cache.snapshot, id(b"2"));
        assert_eq!(tree(&cache, b"same"), Some(ObjectId::of(b"old")));
        assert_eq!(tree(&cache, b"new!"), Some(ObjectId::of(b"new")));
        assert_eq!(tree(&cache, b"gone"), None);
        assert_eq!(cache.directories().len(), 2);

        // Interrupted: the first part is that of the first snapshot, and nothing is added to it.
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let cache = Cache::load(&path).unwrap();
        assert_eq!(cache.snapshot, id(b"1"));
        assert!(tree(&cache, b"gone").is_some());
        assert!(!writer(b"3").append(&cache, &path).unwrap());
        fs::write(&path, &bytes).unwrap();

        // It does not grow for ever.
        let mut number = 0;
        while writer(b"n")
            .append(&Cache::load(&path).unwrap(), &path)
            .unwrap()
        {
            number += 1;
            assert!(number < 10_000);
        }
    }
}
