//! Finds the places where a rule could match, before any rule is asked.
//!
//! A text is mostly no secret and no command. One table of bits, computed by the compiler, says
//! for each three bytes whether some literal begins with them; the scan reads it once per byte
//! and everything else happens at the few places that pass. No automaton is built at run time.

/// Five bits of each of three bytes: letters count alike in either case.
const BITS: usize = 15;

/// Literals and the filter over their first three bytes.
///
/// Upper and lower case pass alike; the caller compares as it needs.
#[derive(Debug)]
pub(crate) struct Triggers<const N: usize> {
    filter: [u64; WORDS],
    /// For each word of the filter, five bits of the fourth byte of its literals, one bit each.
    fourth: [u32; WORDS],
    /// For each word of the filter, the number of entries before it.
    before: [u16; WORDS],
    /// Sorted by slot.
    entries: [Entry; N],
}

const WORDS: usize = (1 << BITS) / 64;

#[derive(Clone, Copy, Debug)]
struct Entry {
    slot: usize,
    literal: &'static str,
    index: usize,
}

impl<const N: usize> Triggers<N> {
    /// Builds the table, at compile time.
    ///
    /// Every literal must have three bytes at least.
    pub(crate) const fn new(literals: &[&'static str; N]) -> Self {
        let mut filter = [0; WORDS];
        let mut fourth = [0; WORDS];
        let mut entries = [Entry {
            slot: 0,
            literal: "",
            index: 0,
        }; N];
        let mut index = 0;
        while index < N {
            let bytes = literals[index].as_bytes();
            assert!(bytes.len() >= 3, "a trigger needs three bytes");
            let slot = slot(bytes[0], bytes[1], bytes[2]);
            filter[slot / 64] |= 1 << (slot % 64);
            fourth[slot / 64] |= if bytes.len() > 3 {
                1 << (bytes[3] & 31)
            } else {
                u32::MAX
            };
            // Insertion sort: the compiler runs it once over a few hundred entries.
            let mut at = index;
            while at > 0 && entries[at - 1].slot > slot {
                entries[at] = entries[at - 1];
                at -= 1;
            }
            entries[at] = Entry {
                slot,
                literal: literals[index],
                index,
            };
            index += 1;
        }
        let mut before = [0; WORDS];
        let mut entry = 0;
        while entry < N {
            let mut word = entries[entry].slot / 64 + 1;
            while word < WORDS {
                before[word] += 1;
                word += 1;
            }
            entry += 1;
        }
        Self {
            filter,
            fourth,
            before,
            entries,
        }
    }

    /// Calls `hit(position, index)` for every literal at every position, in order of position.
    ///
    /// Letters are compared without regard to case.
    pub(crate) fn scan(&self, text: &[u8], mut hit: impl FnMut(usize, usize)) {
        // Eight positions at a time, their slots computed four in a word.
        let mut at = 0;
        while let Some(block) = text.get(at..at + 10) {
            let low = lanes(block, 0);
            let high = lanes(block, 2);
            let even = (low & ODD) << 10 | (low >> 8 & ODD) << 5 | high & ODD;
            let odd = (low >> 8 & ODD) << 10 | (high & ODD) << 5 | high >> 8 & ODD;
            let mut any = 0;
            for pair in 0..4 {
                any |= self.passes(even >> (16 * pair)) << (2 * pair);
                any |= self.passes(odd >> (16 * pair)) << (2 * pair + 1);
            }
            while any != 0 {
                let lane = any.trailing_zeros() as usize;
                any &= any - 1;
                let slot = slot(block[lane], block[lane + 1], block[lane + 2]);
                // Three bytes pass often by chance, four hardly.
                let next = text.get(at + lane + 3).map_or(0, |byte| byte & 31);
                if self.fourth[slot / 64] >> next & 1 != 0 || at + lane + 3 >= text.len() {
                    self.candidate(text, at + lane, slot, &mut hit);
                }
            }
            at += 8;
        }
        for (lane, window) in text.get(at..).unwrap_or_default().windows(3).enumerate() {
            let [first, second, third] = *window else {
                return;
            };
            let slot = slot(first, second, third);
            if self.filter[slot / 64] >> (slot % 64) & 1 != 0 {
                self.candidate(text, at + lane, slot, &mut hit);
            }
        }
    }

    /// Calls `hit(position, index)` for every literal at this position.
    #[inline]
    pub(crate) fn at(&self, text: &[u8], at: usize, hit: &mut impl FnMut(usize, usize)) {
        if let Some([first, second, third]) = text.get(at..at + 3) {
            let slot = slot(*first, *second, *third);
            if self.filter[slot / 64] >> (slot % 64) & 1 != 0 {
                self.candidate(text, at, slot, hit);
            }
        }
    }

    /// 1 if the slot in the low 15 bits has a literal.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only the low 15 bits are meant"
    )]
    fn passes(&self, slot: u64) -> u64 {
        let slot = slot as usize & ((1 << BITS) - 1);
        self.filter[slot / 64] >> (slot % 64) & 1
    }

    #[inline(never)]
    fn candidate(&self, text: &[u8], at: usize, slot: usize, hit: &mut impl FnMut(usize, usize)) {
        // Few words of the filter have more than a handful of entries.
        let from = usize::from(self.before[slot / 64]);
        let entries = self.entries.get(from..).unwrap_or_default();
        for entry in entries.iter().take_while(|entry| entry.slot <= slot) {
            if entry.slot != slot {
                continue;
            }
            let literal = entry.literal.as_bytes();
            if text.get(at..at + literal.len()).is_some_and(|found| {
                found
                    .iter()
                    .zip(literal)
                    .all(|(a, b)| a.eq_ignore_ascii_case(b))
            }) {
                hit(at, entry.index);
            }
        }
    }
}

/// Every other byte of a word, five bits of each.
const ODD: u64 = 0x001f_001f_001f_001f;

#[inline]
fn lanes(block: &[u8], at: usize) -> u64 {
    block
        .get(at..at + 8)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

#[inline]
const fn slot(first: u8, second: u8, third: u8) -> usize {
    (first as usize & 31) << 10 | (second as usize & 31) << 5 | third as usize & 31
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: Triggers<4> = Triggers::new(&["ghp_", "pass", "password", "://"]);

    #[test]
    fn every_literal_is_found_at_every_place() {
        let mut hits = Vec::new();
        TABLE.scan(b"PassWord=ghp_ https://x gh", |at, index| {
            hits.push((at, index));
        });
        assert_eq!(hits, [(0, 1), (0, 2), (9, 0), (19, 3)]);
        hits.clear();
        for at in [0, 1, 9, 19, 24] {
            TABLE.at(b"PassWord=ghp_ https://x gh", at, &mut |at, index| {
                hits.push((at, index));
            });
        }
        assert_eq!(hits, [(0, 1), (0, 2), (9, 0), (19, 3)]);
    }

    #[test]
    fn short_text_has_no_hits() {
        for text in [&b""[..], b"g", b"gh"] {
            TABLE.scan(text, |_, _| panic!("no literal fits"));
            TABLE.at(text, 0, &mut |_, _| panic!("no literal fits"));
        }
    }
}
