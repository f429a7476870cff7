//! Pack files: many objects in one file, compressed in blocks.
//!
//! ```text
//! magic · block · block · … · table of blocks · index of objects · footer
//! ```
//!
//! A block is a zstd frame with one long object or many short ones: a thousand small files
//! compress as well together as in an archive, and the disk has one file to write. The index is
//! in the order of identities and is searched where it lies. The footer holds a hash over both
//! tables; content is checked against its own identity whenever it is read.
//!
//! A pack is written under a temporary name, synced and renamed: one that has its name is whole.

mod read;
mod write;

pub(crate) use read::{Found, Pack};
pub(crate) use write::{Block, PackWriter};

const MAGIC: &[u8; 8] = b"stkpack1";
/// What pack files' names end with.
pub(crate) const EXTENSION: &str = "pack";

/// Offset (8), stored length (4), length (4).
const BLOCK_ROW: usize = 16;
/// Identity (32), block (4), offset in it (4), length (4).
const INDEX_ROW: usize = 44;
/// Hash (32), number of blocks (4), of objects (4), where the tables begin (8), magic (8).
const FOOTER: usize = 56;

/// No block is longer, uncompressed: an object of its own, such as the list of a huge directory.
const LONGEST_BLOCK: usize = 1 << 30;

/// Short objects are collected up to this length before they are compressed.
pub(crate) const BLOCK: usize = 1024 * 1024;

/// The level of compression.
pub(crate) const LEVEL: i32 = 3;
