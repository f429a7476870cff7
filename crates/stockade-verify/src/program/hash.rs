//! Maps by name. The names of a program are short and looked up all the time; the standard hash is
//! made for longer keys. The seed differs from run to run, so that nobody can choose names that
//! all meet in one place.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

pub(crate) type Map<K, V> = std::collections::HashMap<K, V, Seeded>;
pub(crate) type Set<K> = std::collections::HashSet<K, Seeded>;

/// Makes hashers that begin with this run's seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeded(u64);

impl Default for Seeded {
    fn default() -> Self {
        static SEED: OnceLock<u64> = OnceLock::new();
        Self(*SEED.get_or_init(|| RandomState::new().hash_one(0)))
    }
}

impl BuildHasher for Seeded {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

/// Eight bytes at a time, multiplied to twice the width and folded.
pub(crate) struct Folded(u64);

impl Folded {
    fn mix(&mut self, part: u64) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = self.0 ^ part;
        let high = ((u128::from(mixed) * u128::from(ODD)) >> 64) as u64;
        self.0 = high ^ mixed.wrapping_mul(ODD).rotate_left(29);
    }
}

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            self.mix(u64::from_le_bytes(*chunk));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // The length tells apart what is padded.
        self.mix(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 ^= u64::from(byte);
    }

    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let seeded = Seeded::default();
        let names = [
            "",
            "a",
            "b",
            "ab",
            "a\0",
            "abcdefgh",
            "abcdefg",
            "abcdefghi",
        ];
        let hashes: Set<u64> = names.iter().map(|name| seeded.hash_one(name)).collect();
        assert_eq!(hashes.len(), names.len());
    }
}
