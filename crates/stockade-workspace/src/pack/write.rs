//! Writing a pack.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{BLOCK, EXTENSION, LEVEL, MAGIC};
use crate::error::{Error, Trying};
use crate::files;
use crate::id::ObjectId;

/// Objects that are compressed together. One for each thread.
pub(crate) struct Block {
    raw: Vec<u8>,
    objects: Vec<(ObjectId, u32, u32)>,
    compressor: zstd::bulk::Compressor<'static>,
    compressed: Vec<u8>,
}

impl Block {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            raw: Vec::with_capacity(BLOCK + BLOCK / 4),
            objects: Vec::new(),
            compressor: zstd::bulk::Compressor::new(LEVEL)?,
            compressed: Vec::new(),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether no more should be added before it is written.
    pub(crate) fn is_full(&self) -> bool {
        self.raw.len() >= BLOCK
    }

    /// Whether this much more would be too much for one block.
    pub(crate) fn has_room_for(&self, length: usize) -> bool {
        self.raw.is_empty() || self.raw.len() + length <= BLOCK
    }

    pub(crate) fn push(&mut self, id: ObjectId, content: &[u8]) {
        let offset = self.raw.len();
        self.raw.extend_from_slice(content);
        let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        self.objects.push((id, short(offset), short(content.len())));
    }

    /// Compresses what was pushed.
    pub(crate) fn compress(&mut self) -> io::Result<()> {
        let bound = zstd::zstd_safe::compress_bound(self.raw.len());
        self.compressed.clear();
        self.compressed.reserve(bound);
        self.compressor
            .compress_to_buffer(&self.raw, &mut self.compressed)?;
        Ok(())
    }

    fn clear(&mut self) {
        self.raw.clear();
        self.objects.clear();
    }
}

/// A pack under construction. Dropped before [`PackWriter::finish`], it leaves nothing.
pub(crate) struct PackWriter {
    directory: PathBuf,
    temporary: PathBuf,
    file: File,
    offset: u64,
    blocks: Vec<u8>,
    rows: Vec<(ObjectId, u32, u32, u32)>,
    block_count: u32,
    kept: bool,
}

impl PackWriter {
    pub(crate) fn new(directory: &Path) -> Result<Self, Error> {
        let name = format!("{}{}", files::TEMPORARY, files::random_name());
        let temporary = directory.join(name);
        let mut file = files::create_private(&temporary).trying("create", &temporary)?;
        file.write_all(MAGIC).trying("write", &temporary)?;
        Ok(Self {
            directory: directory.to_owned(),
            temporary,
            file,
            offset: MAGIC.len() as u64,
            blocks: Vec::new(),
            rows: Vec::new(),
            block_count: 0,
            kept: false,
        })
    }

    /// Bytes written so far.
    pub(crate) const fn len(&self) -> u64 {
        self.offset
    }

    /// Appends a block that was compressed, and empties it.
    pub(crate) fn append(&mut self, block: &mut Block) -> Result<(), Error> {
        self.file
            .write_all(&block.compressed)
            .trying("write", &self.temporary)?;
        let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        self.blocks.extend_from_slice(&self.offset.to_le_bytes());
        for length in [block.compressed.len(), block.raw.len()] {
            self.blocks.extend_from_slice(&short(length).to_le_bytes());
        }
        let number = self.block_count;
        self.rows.extend(
            block
                .objects
                .iter()
                .map(|(id, offset, length)| (*id, number, *offset, *length)),
        );
        self.block_count += 1;
        self.offset += block.compressed.len() as u64;
        block.clear();
        Ok(())
    }

    /// Starts writing what is there to the disk, so that less is left to do at the end.
    pub(crate) fn duplicate(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Writes the tables and gives the pack its name; from then on it is part of the store.
    pub(crate) fn finish(mut self) -> Result<PathBuf, Error> {
        self.rows.sort_unstable();
        let mut tables = std::mem::take(&mut self.blocks);
        for (id, block, offset, length) in &self.rows {
            tables.extend_from_slice(id.as_bytes());
            for number in [block, offset, length] {
                tables.extend_from_slice(&number.to_le_bytes());
            }
        }
        let hash = ObjectId::of(&tables);
        let count = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        tables.extend_from_slice(hash.as_bytes());
        tables.extend_from_slice(&self.block_count.to_le_bytes());
        tables.extend_from_slice(&count.to_le_bytes());
        tables.extend_from_slice(&self.offset.to_le_bytes());
        tables.extend_from_slice(MAGIC);
        self.file
            .write_all(&tables)
            .trying("write", &self.temporary)?;
        self.file.sync_all().trying("write", &self.temporary)?;
        // The tables' hash alone could be that of another pack whose blocks were compressed in
        // another way; a pack that is in use must never be replaced.
        let name = format!("{hash}-{}.{EXTENSION}", files::random_name());
        let path = self.directory.join(name);
        fs::rename(&self.temporary, &path).trying("rename", &self.temporary)?;
        self.kept = true;
        files::sync_parent(&path)?;
        Ok(path)
    }
}

impl Drop for PackWriter {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
