//! What words mean to the rules: sets of classes, and the table that finds them.
//!
//! The word lists are written by hand and turned by the compiler into one table of hashes, so
//! that nothing is built at run time. Words that mark an attack strongly are entered a second time
//! rotated by 13 and a third time backwards.

use super::english::ENGLISH;
use super::foreign::FOREIGN as OTHER;

/// A set of meanings.
pub(super) type Class = u128;

macro_rules! classes {
    ($($name:ident)*) => {
        /// The number of each class.
        #[derive(Clone, Copy)]
        #[expect(clippy::upper_case_acronyms, reason = "named as the constants below")]
        enum Bit { $($name),* }
        $(pub(super) const $name: Class = 1 << Bit::$name as u32;)*
    };
}

classes! {
    OVERRIDE PRIOR INSTR NONE DROP HALT THINK HELP MIND VOID ORDER THESE CHANGE ALL EVERYTHING
    YOUR YOU MY ME I NOT FOLLOW NEW AI MODEL LANGUAGE USER REVEAL SYSTEM PROMPT SEND SENSITIVE
    SECRET HIDE GET TELL WITHOUT NOW ARE ACT AS PLEASE ACTION IF TASK QUESTION DET ARTICLE
    SAY HELLO RESPOND ONLY WITH INCLUDE RESPONSE GENRE WRITE URGENT JAIL RESTRICT FREE FROM ON
    MODE MODENAME ENABLED IMAGINE WANT TO MUST AUTHORITY AM CAN PAY CURRENCY INSTEAD THIS IS
    WHAT TOOL CALL PII COVERT KNOWLEDGE KEEP TRANSLATE TEXT FOLLOWING RECOMMEND LET DO
    CONVERSATION NOTICE READING THREAT REFUSE CHARACTER THEN TOLD FIRST CONTINUE REPEAT AFTER
    AUTHORIZED ABOUT PERSONA HACKED FEEDBACK LONGER DISABLE CHATLOG
    LETTERS POSITIVE MALICE ASK
    // Not words but how they stand: see `words`.
    FOREIGN START FIELD EMAIL URL AMOUNT ROT13 REVERSED SHOUT QUOTE BREAK DISGUISED SPREAD
}

/// Number of slots; a power of two well above the number of words.
const SLOTS: usize = 8192;
const FILTER_WORDS: usize = 1 << 10;

/// Words by the hash of their spelling.
#[derive(Debug)]
pub(super) struct Lexicon {
    /// One bit for each 16-bit hash: most words of a text are settled here.
    filter: [u64; FILTER_WORDS],
    slots: [Slot; SLOTS],
}

/// A word, or nothing if the key is 0. Both parts in one line of the cache.
#[derive(Clone, Copy, Debug)]
struct Slot {
    key: u32,
    classes: Class,
}

/// The table.
pub(super) static LEXICON: Lexicon = Lexicon::new();

/// Classes whose words are also entered rotated and backwards.
const DISGUISE: Class = OVERRIDE | PRIOR | INSTR | SYSTEM | PROMPT | SECRET;

impl Lexicon {
    #[expect(clippy::large_stack_arrays, reason = "the stack is the compiler's")]
    const fn new() -> Self {
        let mut table = Self {
            filter: [0; FILTER_WORDS],
            slots: [Slot { key: 0, classes: 0 }; SLOTS],
        };
        table.add(ENGLISH, 0);
        table.add(OTHER, FOREIGN);
        table
    }

    const fn add(&mut self, rows: &[(Class, &str)], flag: Class) {
        let mut row = 0;
        while row < rows.len() {
            let (class, list) = rows[row];
            let bytes = list.as_bytes();
            let mut start = 0;
            while start < bytes.len() {
                let mut end = start;
                while end < bytes.len() && bytes[end] != b' ' {
                    end += 1;
                }
                if end > start {
                    self.add_word(bytes, start, end, class, flag);
                }
                start = end + 1;
            }
            row += 1;
        }
    }

    const fn add_word(
        &mut self,
        bytes: &[u8],
        start: usize,
        end: usize,
        class: Class,
        flag: Class,
    ) {
        let mut plain = Hasher::new();
        let mut rotated = Hasher::new();
        let mut backwards = Hasher::new();
        let mut at = start;
        while at < end {
            plain = plain.push(bytes[at]);
            rotated = rotated.push(rot13(bytes[at]));
            backwards = backwards.push(bytes[end - 1 - (at - start)]);
            at += 1;
        }
        self.insert(plain.finish(), class, flag);
        if flag == 0 && class & DISGUISE != 0 && end - start >= 5 {
            self.insert(rotated.finish(), ROT13, 0);
            self.insert(backwards.finish(), REVERSED, 0);
        }
    }

    const fn insert(&mut self, hash: Hash, class: Class, flag: Class) {
        let key = hash.key();
        self.filter[hash.filter() >> 6] |= 1 << (hash.filter() & 63);
        let mut at = hash.slot();
        while self.slots[at].key != 0 && self.slots[at].key != key {
            at = (at + 1) % SLOTS;
        }
        let slot = &mut self.slots[at];
        // A word of several languages does not tell which one the text is in.
        slot.classes |= if slot.key == 0 { class | flag } else { class };
        slot.key = key;
    }

    /// The classes of a word, 0 for one that no rule knows.
    #[inline]
    pub(super) fn classes(&self, hash: Hasher) -> Class {
        let hash = hash.finish();
        let bit = hash.filter();
        if self.filter[bit >> 6] >> (bit & 63) & 1 == 0 {
            return 0;
        }
        let key = hash.key();
        let mut at = hash.slot();
        loop {
            match self.slots[at] {
                Slot { key: 0, .. } => return 0,
                slot if slot.key == key => return slot.classes,
                _ => at = (at + 1) % SLOTS,
            }
        }
    }
}

/// A hash of a word, fed with lower-case bytes.
///
/// Bytes are gathered eight at a time, so that the multiplication is not waited for at each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hasher {
    mixed: u64,
    gathered: u64,
    length: u32,
}

impl Hasher {
    pub(super) const fn new() -> Self {
        Self {
            mixed: 0,
            gathered: 0,
            length: 0,
        }
    }

    #[must_use]
    #[inline]
    pub(super) const fn push(self, byte: u8) -> Self {
        self.push_chunk(byte as u64, 1)
    }

    /// Takes `count` bytes, at most eight, the first in the lowest bits and the rest of them zero.
    #[must_use]
    #[inline]
    pub(super) const fn push_chunk(mut self, chunk: u64, count: u32) -> Self {
        let used = self.length % 8;
        self.gathered |= chunk << (8 * used);
        self.length += count;
        if used + count >= 8 {
            self.mixed = mix(self.mixed ^ self.gathered);
            self.gathered = if used == 0 {
                0
            } else {
                chunk >> (64 - 8 * used)
            };
        }
        self
    }

    pub(super) const fn of(word: &[u8]) -> Self {
        let mut hash = Self::new();
        let mut at = 0;
        while at < word.len() {
            hash = hash.push(word[at].to_ascii_lowercase());
            at += 1;
        }
        hash
    }

    #[inline]
    pub(super) const fn finish(self) -> Hash {
        let length = (self.length as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
        Hash(mix((self.mixed ^ self.gathered).wrapping_add(length)))
    }
}

const fn mix(value: u64) -> u64 {
    let product = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 29
}

/// A finished hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hash(u64);

impl Hash {
    /// Never 0, which marks an empty slot.
    const fn key(self) -> u32 {
        (self.0 >> 32) as u32 | 1
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "only the low bits are meant"
    )]
    const fn slot(self) -> usize {
        self.0 as usize & (SLOTS - 1)
    }

    const fn filter(self) -> usize {
        (self.0 >> 16 & 0xffff) as usize
    }
}

const fn rot13(byte: u8) -> u8 {
    match byte {
        b'a'..=b'm' => byte + 13,
        b'n'..=b'z' => byte - 13,
        _ => byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::{View, normalize};

    fn classes(word: &str) -> Class {
        LEXICON.classes(Hasher::of(word.as_bytes()))
    }

    #[test]
    fn words_have_their_classes() {
        assert_ne!(classes("Ignore") & OVERRIDE, 0);
        assert_ne!(classes("instructions") & INSTR, 0);
        assert_eq!(classes("ignore") & FOREIGN, 0);
        assert_ne!(classes("ignoriere") & FOREIGN, 0);
        assert_ne!(classes("忽略") & OVERRIDE, 0);
        assert_ne!(classes("vtaber") & ROT13, 0);
        assert_ne!(classes("erongi") & REVERSED, 0);
        assert_eq!(classes("cucumber"), 0);
    }

    #[test]
    fn every_entry_is_spelled_as_normalised_text_is() {
        for (_, list) in ENGLISH.iter().chain(OTHER) {
            let view = View::plain(list.as_bytes(), 0);
            let (normal, _) = normalize(&view);
            assert_eq!(String::from_utf8_lossy(normal.text()), *list);
        }
    }
}
