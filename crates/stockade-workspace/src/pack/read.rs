//! Reading a pack.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{BLOCK_ROW, FOOTER, INDEX_ROW, LONGEST_BLOCK, MAGIC};
use crate::codec::{Decoded, Reader};
use crate::error::{Error, Trying};
use crate::id::ObjectId;

/// A pack of the store.
#[derive(Debug)]
pub(crate) struct Pack {
    path: PathBuf,
    file: File,
    length: u64,
    blocks: Vec<u8>,
    index: Vec<u8>,
}

/// Where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) block: u32,
    pub(crate) offset: u32,
    pub(crate) length: u32,
}

impl Pack {
    pub(crate) fn open(path: PathBuf) -> Result<Self, Error> {
        let file = File::open(&path).trying("open", &path)?;
        let length = file.metadata().trying("look at", &path)?.len();
        let damaged = |reason: &str| Error::damaged(&path, reason);
        let Some(footer_at) = length.checked_sub(FOOTER as u64) else {
            return Err(damaged("it is too short"));
        };
        let mut footer = [0; FOOTER];
        file.read_exact_at(&mut footer, footer_at)
            .trying("read", &path)?;
        let footer = Footer::take(&footer).map_err(|_| damaged("its end is not that of a pack"))?;
        if footer.magic != *MAGIC {
            return Err(damaged("its end is not that of a pack"));
        }
        let blocks = u64::from(footer.blocks) * BLOCK_ROW as u64;
        let objects = u64::from(footer.objects) * INDEX_ROW as u64;
        if footer.tables_at.checked_add(blocks + objects) != Some(footer_at) {
            return Err(damaged("its tables do not fit"));
        }
        let size = usize::try_from(blocks + objects).map_err(|_| damaged("it is too large"))?;
        let mut tables = vec![0; size];
        file.read_exact_at(&mut tables, footer.tables_at)
            .trying("read", &path)?;
        if ObjectId::of(&tables) != footer.hash {
            return Err(damaged("its tables were changed"));
        }
        let index = tables.split_off(usize::try_from(blocks).unwrap_or(size));
        Ok(Self {
            path,
            file,
            length,
            blocks: tables,
            index,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes on disk.
    pub(crate) const fn len(&self) -> u64 {
        self.length
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = (ObjectId, Found)> + '_ {
        self.index.chunks_exact(INDEX_ROW).filter_map(row)
    }

    pub(crate) fn find(&self, id: &ObjectId) -> Option<Found> {
        let rows = self.index.as_chunks::<INDEX_ROW>().0;
        let at = rows
            .binary_search_by(|row| row[..ObjectId::LEN].cmp(id.as_bytes()))
            .ok()?;
        row(&rows[at]).map(|(_, found)| found)
    }

    /// The content of a block.
    pub(crate) fn block(&self, number: u32) -> Result<Vec<u8>, Error> {
        let damaged = |reason: &str| Error::damaged(&self.path, reason);
        let at = number as usize * BLOCK_ROW;
        let row = self.blocks.get(at..).unwrap_or_default();
        let (offset, stored, raw) =
            block_row(row).map_err(|_| damaged("its index names a block that is not there"))?;
        let stored = stored as usize;
        let raw = raw as usize;
        let fits = offset
            .checked_add(stored as u64)
            .is_some_and(|end| end <= self.length);
        if raw > LONGEST_BLOCK || !fits {
            return Err(damaged("a block does not fit"));
        }
        let mut compressed = vec![0; stored];
        self.file
            .read_exact_at(&mut compressed, offset)
            .trying("read", &self.path)?;
        let content = zstd::bulk::decompress(&compressed, raw)
            .map_err(|error| damaged(&format!("a block can't be decompressed: {error}")))?;
        if content.len() == raw {
            Ok(content)
        } else {
            Err(damaged("a block is shorter than it should be"))
        }
    }
}

fn row(row: &[u8]) -> Option<(ObjectId, Found)> {
    let mut from = Reader::new(row);
    let id = ObjectId::from_bytes(from.array().ok()?);
    let found = Found {
        block: from.u32_fixed().ok()?,
        offset: from.u32_fixed().ok()?,
        length: from.u32_fixed().ok()?,
    };
    Some((id, found))
}

fn block_row(row: &[u8]) -> Decoded<(u64, u32, u32)> {
    let mut from = Reader::new(row);
    Ok((from.u64_fixed()?, from.u32_fixed()?, from.u32_fixed()?))
}

struct Footer {
    hash: ObjectId,
    blocks: u32,
    objects: u32,
    tables_at: u64,
    magic: [u8; 8],
}

impl Footer {
    fn take(bytes: &[u8]) -> Decoded<Self> {
        let mut from = Reader::new(bytes);
        Ok(Self {
            hash: ObjectId::from_bytes(from.array()?),
            blocks: from.u32_fixed()?,
            objects: from.u32_fixed()?,
            tables_at: from.u64_fixed()?,
            magic: from.array()?,
        })
    }
}
