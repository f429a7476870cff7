//! What a tree looked like when its last snapshot was taken, so that the next one reads only what
//! changed.
//!
//! A file is taken to be as it was if everything that `stat(2)` says is as it was: size, times to
//! the nanosecond, inode, mode. A file that was changed so shortly before it was looked at that
//! another change could have left the same times is not believed (git calls it *racily clean*).
//! The cache belongs to one snapshot and holds only while that exists: that keeps the content.
//!
//! It is not synced and carries a hash: if it is lost or damaged, everything is read again.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::codec::{Decoded, Malformed, Reader, put_bytes, put_number};
use crate::error::Error;
use crate::files::{self, Stat};
use crate::id::{ObjectId, SnapshotId};
use crate::tree::Time;

const MAGIC: &[u8; 8] = b"stkcach1";

/// The parts of a [`Stat`] that must not have changed. Not the device: its number may change when
/// the machine is started again.
pub(crate) const KEY: usize = 64;

/// A cache that was read.
#[derive(Debug)]
pub(crate) struct Cache {
    bytes: Vec<u8>,
    /// From a directory's path to where its record begins; both in `bytes`.
    directories: HashMap<Box<[u8]>, usize>,
    pub(crate) snapshot: SnapshotId,
}

/// A directory as it was.
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
}

impl Cache {
    /// Reads a cache; none if there is none that can be used.
    pub(crate) fn load(path: &Path) -> Option<Self> {
        let bytes = fs::read(path).ok()?;
        Self::parse(bytes).ok()
    }

    fn parse(bytes: Vec<u8>) -> Decoded<Self> {
        let mut from = Reader::new(&bytes);
        let magic: [u8; 8] = from.array()?;
        let hash = ObjectId::from_bytes(from.array()?);
        if magic != *MAGIC || ObjectId::of(from.rest()) != hash {
            return Err(Malformed);
        }
        let snapshot = String::from_utf8(from.bytes()?.to_vec()).map_err(|_| Malformed)?;
        let snapshot = SnapshotId::try_from(snapshot).map_err(|_| Malformed)?;
        let mut directories = HashMap::new();
        while !from.is_empty() {
            let path = from.bytes()?;
            let record = from.u32_fixed()? as usize;
            directories.insert(path.into(), bytes.len() - from.left());
            from.take(record)?;
        }
        Ok(Self {
            bytes,
            directories,
            snapshot,
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
}

impl<'a> CachedDirectory<'a> {
    /// The entries in the order of their names.
    pub(crate) fn entries(self) -> impl Iterator<Item = CachedEntry<'a>> {
        let mut from = self.entries;
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

/// Writes a cache.
pub(crate) struct CacheWriter {
    out: Vec<u8>,
    record: Vec<u8>,
    /// Files changed after this moment are not certain.
    looked: Time,
}

impl CacheWriter {
    /// `looked` is a moment before anything was looked at.
    pub(crate) fn new(snapshot: &SnapshotId, looked: Time, expected: usize) -> Self {
        let mut out = Vec::with_capacity(expected);
        put_bytes(&mut out, snapshot.as_str().as_bytes());
        Self {
            out,
            record: Vec::new(),
            looked,
        }
    }

    /// Begins a directory of so many entries.
    pub(crate) fn directory(&mut self, path: &[u8], tree: &ObjectId, count: usize) {
        self.end_directory();
        put_bytes(&mut self.out, path);
        self.record.extend_from_slice(tree.as_bytes());
        put_number(&mut self.record, count as u64);
    }

    pub(crate) fn entry(&mut self, name: &[u8], stat: &Stat, node: &[u8]) {
        put_bytes(&mut self.record, name);
        self.record.extend_from_slice(&key(stat));
        self.record.push(u8::from(is_certain(stat, self.looked)));
        put_bytes(&mut self.record, node);
    }

    fn end_directory(&mut self) {
        if self.record.is_empty() {
            return;
        }
        let length = u32::try_from(self.record.len()).unwrap_or(u32::MAX);
        self.out.extend_from_slice(&length.to_le_bytes());
        self.out.append(&mut self.record);
    }

    pub(crate) fn save(mut self, path: &Path) -> Result<(), Error> {
        self.end_directory();
        let hash = ObjectId::of(&self.out);
        files::replace_unsynced(path, &[MAGIC, hash.as_bytes(), &self.out])
    }
}

pub(crate) fn key(stat: &Stat) -> [u8; KEY] {
    let mut key = [0; KEY];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        key[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(&stat.ino.to_le_bytes());
    put(&stat.mode.to_le_bytes());
    put(&stat.nlink.to_le_bytes());
    put(&stat.uid.to_le_bytes());
    put(&stat.gid.to_le_bytes());
    put(&stat.rdev.to_le_bytes());
    put(&stat.size.to_le_bytes());
    for time in [stat.mtime, stat.ctime] {
        put(&time.seconds.to_le_bytes());
        put(&time.nanos.to_le_bytes());
    }
    key
}

/// Whether a change after `looked` would certainly show. The change time can't be set by programs;
/// where it has a fraction of a second, the file system keeps fractions, as fine as the kernel's
/// clock ticks. Where it has none it may be one that keeps (two) seconds. A time in the future,
/// after the clock was set back, is never certain.
fn is_certain(stat: &Stat, looked: Time) -> bool {
    const TICKS: u128 = 100_000_000;
    const SECONDS: u128 = 2_000_000_000;
    let margin = if stat.ctime.nanos == 0 {
        SECONDS
    } else {
        TICKS
    };
    nanos(stat.ctime) + margin.cast_signed() < nanos(looked)
        && (stat.ctime.nanos != 0 || nanos(stat.mtime) + margin.cast_signed() < nanos(looked))
}

fn nanos(time: Time) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
}

/// This moment, by the clock that file times come from.
pub(crate) fn now() -> Time {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    Time {
        seconds: now.tv_sec,
        nanos: u32::try_from(now.tv_nsec).unwrap_or(0),
    }
}

/// This moment, by the finest clock: no file that was changed before has a later time.
pub(crate) fn exactly_now() -> Time {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Time {
        seconds: now.tv_sec,
        nanos: u32::try_from(now.tv_nsec).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn what_changed_a_moment_ago_is_not_believed() {
        let looked = at(1000, 500_000_000);
        assert!(is_certain(&changed(at(999, 5)), looked));
        assert!(!is_certain(&changed(at(1000, 450_000_000)), looked));
        assert!(!is_certain(&changed(at(1000, 500_000_001)), looked));
        // Whole seconds: perhaps a file system that keeps no fractions.
        assert!(!is_certain(&changed(at(999, 0)), looked));
        assert!(is_certain(&changed(at(998, 0)), looked));
        // The clock was set back.
        assert!(!is_certain(&changed(at(2000, 1)), looked));
    }

    #[test]
    fn a_cache_survives_and_damage_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cache");
        let id = SnapshotId::from_hash(ObjectId::of(b"s"));
        let mut writer = CacheWriter::new(&id, at(1000, 0), 0);
        let stat = changed(at(5, 5));
        writer.directory(b"", &ObjectId::of(b"t"), 2);
        writer.entry(b"a", &stat, b"node a");
        writer.entry(b"b", &changed(at(1000, 0)), b"node b");
        writer.directory(b"d", &ObjectId::of(b"u"), 0);
        writer.save(&path).unwrap();
        let cache = Cache::load(&path).unwrap();
        assert_eq!(cache.snapshot, id);
        assert!(cache.directory(b"x").is_none());
        assert_eq!(cache.directory(b"d").unwrap().count, 0);
        let entries: Vec<_> = cache.directory(b"").unwrap().entries().collect();
        assert_eq!(
            (entries[0].name, entries[0].node),
            (&b"a"[..], &b"node a"[..])
        );
        assert!(entries[0].is_unchanged(&stat));
        assert!(!entries[0].is_unchanged(&Stat { size: 1, ..stat }));
        assert!(!entries[1].is_unchanged(&changed(at(1000, 0))));
        let mut bytes = fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(Cache::load(&path).is_none());
    }
}
