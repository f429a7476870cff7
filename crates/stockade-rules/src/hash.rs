//! A hash of paths that is quick, and known for each directory on the way once it is for a path.

use std::hash::Hasher;

/// FNV-1a. Paths are looked up thousands of times before a command starts, and the hasher of the
/// standard library takes ten times as long. It guards against chosen collisions; here they could
/// only slow down whoever wrote the policy: what hostile code chooses is looked up, never added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathHash(u64);

impl Default for PathHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl PathHash {
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut hash = Self::default();
        hash.write(text);
        hash
    }

    /// A number below `size`, which must be a power of two. The upper half is the better one.
    pub(crate) fn place(self, size: usize) -> usize {
        let folded = ((self.0 >> 32) ^ self.0) & u64::from(u32::MAX);
        usize::try_from(folded).unwrap_or_default() & (size - 1)
    }

    pub(crate) fn add(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
}

impl Hasher for PathHash {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.add(*byte);
        }
    }

    /// What is hashed is one text: its length says nothing more.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}
