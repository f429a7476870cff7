//! A hash of paths that is quick, and known for each directory on the way once it is for a path.

use std::hash::Hasher;

/// Multiplies words of eight bytes. Paths are looked up thousands of times before a command starts,
/// and the hasher of the standard library takes ten times as long. It guards against chosen
/// collisions; here they could only slow down whoever wrote the policy: what hostile code chooses is
/// looked up, never added.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathHash {
    /// Of the whole words.
    folded: u64,
    /// The bytes that make no whole word yet.
    rest: u64,
    /// How many bytes there were.
    length: u64,
}

/// The golden ratio's fraction: odd, and its bits are all over the place.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

const WORD: usize = size_of::<u64>();

impl PathHash {
    pub(crate) fn of(text: &[u8]) -> u64 {
        let mut hash = Self::default();
        hash.write(text);
        hash.finish()
    }

    pub(crate) fn add(&mut self, byte: u8) {
        self.rest = self.rest << 8 | u64::from(byte);
        self.length += 1;
        if self.length.is_multiple_of(WORD as u64) {
            self.fold(self.rest);
            self.rest = 0;
        }
    }

    fn fold(&mut self, word: u64) {
        self.folded = (self.folded.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    }
}

impl Hasher for PathHash {
    fn write(&mut self, bytes: &[u8]) {
        if self.length.is_multiple_of(WORD as u64) {
            let (words, rest) = bytes.as_chunks::<WORD>();
            for word in words {
                self.fold(u64::from_be_bytes(*word));
            }
            self.rest = rest
                .iter()
                .fold(0, |rest, byte| rest << 8 | u64::from(*byte));
            self.length += bytes.len() as u64;
            return;
        }
        for byte in bytes {
            self.add(*byte);
        }
    }

    /// What is hashed is one text: its length says nothing more.
    fn write_usize(&mut self, _: usize) {}

    /// Every bit of the text has changed the upper ones; here they come down to the lower ones.
    fn finish(&self) -> u64 {
        let mut last = *self;
        last.fold(self.rest ^ self.length << 56);
        let spread = last.folded ^ last.folded >> 32;
        spread.wrapping_mul(FACTOR) ^ spread >> 29
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn byte_by_byte_is_as_at_once() {
        let text = b"/home/user/project/target/debug/x";
        let mut hash = PathHash::default();
        for (at, byte) in text.iter().enumerate() {
            assert_eq!(hash.finish(), PathHash::of(&text[..at]));
            let mut rest = hash;
            rest.write(&text[at..]);
            assert_eq!(rest.finish(), PathHash::of(text));
            hash.add(*byte);
        }
    }

    /// As tables take them: by the lower bits, and by the upper seven.
    #[test]
    fn names_that_are_much_alike_are_spread() {
        let names: Vec<String> = (0..4096).map(|n| format!("/ws/dir/f{n}.txt")).collect();
        let hashes = || names.iter().map(|name| PathHash::of(name.as_bytes()));
        let lower: HashSet<u64> = hashes().map(|hash| hash % 8192).collect();
        let upper: HashSet<u64> = hashes().map(|hash| hash >> 52).collect();
        // A random hash leaves 39 % of the slots empty or with a collision.
        assert!(lower.len() > 3000, "{}", lower.len());
        assert!(upper.len() > 2400, "{}", upper.len());
    }
}
