//! Writing the cache: as a whole, or what changed at its end.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::key::{is_certain, key};
use super::{Cache, MAGIC};
use crate::codec::{put_bytes, put_number};
use crate::error::{Error, Trying};
use crate::files::{self, Stat};
use crate::id::{ObjectId, SnapshotId};
use crate::tree::Time;

/// Collects what directories are.
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

    /// A directory that is no longer there.
    pub(crate) fn removed(&mut self, path: &[u8]) {
        self.end_directory();
        put_bytes(&mut self.out, path);
        self.out.extend_from_slice(&[0; 4]);
    }

    fn end_directory(&mut self) {
        if self.record.is_empty() {
            return;
        }
        let length = u32::try_from(self.record.len()).unwrap_or(u32::MAX);
        self.out.extend_from_slice(&length.to_le_bytes());
        self.out.append(&mut self.record);
    }

    /// Writes a new cache.
    pub(crate) fn save(mut self, path: &Path) -> Result<(), Error> {
        let head = self.head();
        files::replace_unsynced(path, &[MAGIC, &head, &self.out])
    }

    /// Adds this to the cache that was read. False if that has grown so much that a new one is
    /// better.
    pub(crate) fn append(mut self, cache: &Cache, path: &Path) -> Result<bool, Error> {
        let head = self.head();
        if !cache.has_room_for(head.len() + self.out.len()) {
            return Ok(false);
        }
        let mut file = File::options()
            .append(true)
            .open(path)
            .trying("open", path)?;
        file.write_all(&[&head, &*self.out].concat())
            .trying("write", path)?;
        Ok(true)
    }

    /// What a part of the file begins with: its hash and its length.
    fn head(&mut self) -> Vec<u8> {
        self.end_directory();
        let mut head = ObjectId::of(&self.out).as_bytes().to_vec();
        head.extend_from_slice(&(self.out.len() as u64).to_le_bytes());
        head
    }
}
