//! Finds the places where a rule could match, before any rule is asked.
//!
//! A text is mostly no secret and no command. One table of bits, computed by the compiler, says
//! for each three bytes whether some literal begins with them; the scan reads it once per byte
//! and everything else happens at the few places that pass. No automaton is built at run time.

/// Bits of the table's index.
const BITS: u32 = 15;
const WORDS: usize = 1 << (BITS - 6);

/// Literals and the filter over their first three bytes.
///
/// Upper and lower case pass alike; the caller compares as it needs.
#[derive(Debug)]
pub(crate) struct Triggers<const N: usize> {
    filter: [u64; WORDS],
    /// Sorted by key.
    entries: [Entry; N],
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u32,
    literal: &'static str,
    index: usize,
}

impl<const N: usize> Triggers<N> {
    /// Builds the table, at compile time.
    ///
    /// Every literal must have three bytes at least.
    pub(crate) const fn new(literals: &[&'static str; N]) -> Self {
        let mut filter = [0; WORDS];
        let mut entries = [Entry { key: 0, literal: "", index: 0 }; N];
        let mut index = 0;
        while index < N {
            let bytes = literals[index].as_bytes();
            assert!(bytes.len() >= 3, "a trigger needs three bytes");
            let key = key(bytes[0], bytes[1], bytes[2]);
            let bit = slot(key);
            filter[bit >> 6] |= 1 << (bit & 63);
            // Insertion sort: the compiler runs it once over a few hundred entries.
            let mut at = index;
            while at > 0 && entries[at - 1].key > key {
                entries[at] = entries[at - 1];
                at -= 1;
            }
            entries[at] = Entry { key, literal: literals[index], index };
            index += 1;
        }
        Self { filter, entries }
    }

    /// Calls `hit(position, index)` for every literal at every position, in order of position.
    ///
    /// Letters are compared without regard to case.
    pub(crate) fn scan(&self, text: &[u8], mut hit: impl FnMut(usize, usize)) {
        for (at, window) in text.windows(3).enumerate() {
            let [first, second, third] = *window else { return };
            let key = key(first, second, third);
            let bit = slot(key);
            if self.filter[bit >> 6] >> (bit & 63) & 1 != 0 {
                self.candidate(text, at, key, &mut hit);
            }
        }
    }

    #[inline(never)]
    fn candidate(&self, text: &[u8], at: usize, key: u32, hit: &mut impl FnMut(usize, usize)) {
        let from = self.entries.partition_point(|entry| entry.key < key);
        for entry in self.entries.iter().skip(from).take_while(|entry| entry.key == key) {
            let literal = entry.literal.as_bytes();
            if text
                .get(at..at + literal.len())
                .is_some_and(|found| found.eq_ignore_ascii_case(literal))
            {
                hit(at, entry.index);
            }
        }
    }
}

const fn key(first: u8, second: u8, third: u8) -> u32 {
    u32::from_le_bytes([first | 0x20, second | 0x20, third | 0x20, 0])
}

const fn slot(key: u32) -> usize {
    (key.wrapping_mul(0x9e37_79b1) >> (32 - BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: Triggers<4> = Triggers::new(&["ghp_", "pass", "password", "://"]);

    #[test]
    fn every_literal_is_found_at_every_place() {
        let mut hits = Vec::new();
        TABLE.scan(b"PassWord=ghp_ https://x gh", |at, index| hits.push((at, index)));
        assert_eq!(hits, [(0, 1), (0, 2), (9, 0), (19, 3)]);
    }

    #[test]
    fn short_text_has_no_hits() {
        for text in [&b""[..], b"g", b"gh"] {
            TABLE.scan(text, |_, _| panic!("no literal fits"));
        }
    }
}
