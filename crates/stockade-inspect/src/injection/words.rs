//! Text as a sequence of the words that rules know, with how far apart they stand.

use std::cell::Cell;
use std::ops::Range;

use super::lexicon::{
    AMOUNT, BREAK, Class, DISGUISED, EMAIL, FIELD, Hasher, LEXICON, QUOTE, SHOUT, SPREAD, START,
    URL,
};
use crate::normalize::{confusable, decode};

/// A word that some rule knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Its number among all words of the text, known or not.
    pub(super) index: u32,
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) classes: Class,
}

impl Word {
    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(super) const fn has(self, classes: Class) -> bool {
        self.classes & classes != 0
    }
}

/// What a byte is to the reader of words.
const SIGN: u8 = 0;
const LETTER: u8 = 1;
const WIDE: u8 = 2;
const NEWLINE: u8 = 3;
const JOIN: u8 = 4;
const MARK: u8 = 5;

const KINDS: [u8; 256] = {
    let mut table = [SIGN; 256];
    let mut byte = 0_u8;
    loop {
        table[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => LETTER,
            0x80..=0xff => WIDE,
            b'\n' => NEWLINE,
            b'\'' | b'_' => JOIN,
            b'"' | b'`' | b'$' | b'!' | b'-' => MARK,
            _ => SIGN,
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    table
};

/// What a sign does wherever it stands: how many words apart it sets its neighbours, and
/// [`BEGINS`] if a sentence or field starts after it.
const SIGNS: [u8; 256] = {
    let mut table = [BEGINS; 256];
    let mut byte = 0_u8;
    loop {
        table[byte as usize] = match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b'\'' | b'_' | b'-' => 0,
            b'.' | b'!' | b'?' | b';' => BEGINS | 2,
            // Signs of code and markup stand between statements, not between words.
            b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'=' | b'|' | b'\\' | b'<' | b'>' => {
                BEGINS | 2
            }
            b'/' | b'#' | b'@' | b'"' | b'`' => BEGINS | 1,
            _ => BEGINS,
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    table
};

const BEGINS: u8 = 0x80;

/// ASCII letters and digits in lower case, 0 for all else.
const LETTERS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
};

/// Hashes the ASCII letters and digits at `at`, in lower case; returns where they end.
#[inline]
fn hash_letters(text: &[u8], mut at: usize, hash: &mut Hasher) -> Letters {
    let mut digits = false;
    // Eight at a time: most words end within the first load.
    while let Some(bytes) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let bytes = u64::from_le_bytes(*bytes);
        let count = letters(bytes);
        let kept = if count == 8 {
            u64::MAX
        } else {
            (1 << (8 * count)) - 1
        };
        // Of letters and digits, only the digits lack this bit.
        digits |= !bytes & kept & (EACH * 0x40) != 0;
        *hash = hash.push_chunk((bytes | (EACH * 0x20)) & kept, count);
        at += count as usize;
        if count < 8 {
            return Letters { end: at, digits };
        }
    }
    for byte in text.get(at..).unwrap_or_default() {
        let lower = LETTERS[usize::from(*byte)];
        if lower == 0 {
            break;
        }
        digits |= byte.is_ascii_digit();
        *hash = hash.push(lower);
        at += 1;
    }
    Letters { end: at, digits }
}

/// A run of letters and digits.
struct Letters {
    end: usize,
    digits: bool,
}

/// One in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;

/// How many of the eight bytes, from the lowest on, are ASCII letters or digits.
#[inline]
const fn letters(bytes: u64) -> u32 {
    const HIGH: u64 = EACH * 0x80;
    let low = bytes & !HIGH;
    let lower = low | (EACH * 0x20);
    // Adding lifts the high bit of each byte that is at least the bound; none can carry over.
    let letter = (lower + EACH * (0x80 - 0x61)) & !(lower + EACH * (0x80 - 0x7b));
    let digit = (low + EACH * (0x80 - 0x30)) & !(low + EACH * (0x80 - 0x3a));
    let others = !(letter | digit) & HIGH | bytes & HIGH;
    others.trailing_zeros() / 8
}

/// Reads the words of a text.
pub(super) fn read(text: &[u8]) -> Vec<Word> {
    let mut reader = Reader {
        text,
        words: SPARE.take(),
        index: 0,
        fresh: START,
        letters: 0,
    };
    reader.run();
    reader.words
}

thread_local! {
    /// The list of the window before: its room is used again.
    static SPARE: Cell<Vec<Word>> = const { Cell::new(Vec::new()) };
}

/// Takes back a list that [`read`] gave.
pub(super) fn give_back(mut words: Vec<Word>) {
    words.clear();
    SPARE.set(words);
}

struct Reader<'a> {
    text: &'a [u8],
    words: Vec<Word>,
    index: u32,
    /// Flags of the next word: whether it starts a sentence, line or field.
    fresh: Class,
    /// How many single letters came in a row: `i g n o r e`.
    letters: usize,
}

impl Reader<'_> {
    fn run(&mut self) {
        let mut at = 0;
        while let Some(byte) = self.text.get(at) {
            at = match KINDS[usize::from(*byte)] {
                SIGN => {
                    self.sign(*byte);
                    at + 1
                }
                LETTER => self.words_from(at),
                WIDE => self.wide(at),
                NEWLINE => self.newline(at),
                _ => self.mark_or_join(at, *byte),
            };
        }
    }

    /// White space and signs: where do sentences and fields start?
    ///
    /// Without a branch: which sign comes next can't be guessed.
    #[inline]
    fn sign(&mut self, byte: u8) {
        let sign = SIGNS[usize::from(byte)];
        self.index += u32::from(sign & !BEGINS);
        self.fresh |= Class::from(sign / BEGINS) * START;
    }

    /// Words with one blank between, as in running text.
    #[inline]
    fn words_from(&mut self, start: usize) -> usize {
        let mut at = self.word(start);
        while let Some([b' ', next]) = self.text.get(at..at + 2)
            && KINDS[usize::from(*next)] == LETTER
        {
            at = self.word(at + 1);
        }
        at
    }

    #[inline]
    fn newline(&mut self, at: usize) -> usize {
        // A blank line ends a paragraph; a single line break may only wrap a sentence.
        if matches!(self.text.get(at + 1), Some(b'\n' | b'\r')) {
            self.mark(at, BREAK);
            self.index += 3;
            self.fresh |= START;
        } else if self.starts_line(at) {
            self.fresh |= START;
            self.index += 1;
        }
        // Indentation.
        let mut next = at + 1;
        while let Some(bytes) = self.text.get(next..).and_then(<[u8]>::first_chunk::<8>) {
            let others = u64::from_le_bytes(*bytes) ^ (EACH * 0x20);
            next += others.trailing_zeros() as usize / 8;
            if others != 0 {
                break;
            }
        }
        next
    }

    /// A sign whose neighbours say what it does.
    #[inline]
    fn mark_or_join(&mut self, at: usize, byte: u8) -> usize {
        if byte == b'!' && self.text.get(at + 1) == Some(&b'!') {
            self.mark(at, SHOUT);
        }
        match byte {
            b'"' | b'`' | b'\'' => self.quote(at),
            b'$' => self.amount(at),
            // A hyphen inside a word or before an option starts nothing.
            b'-' if self.text.get(at + 1) == Some(&b' ') => self.fresh |= START,
            _ => {}
        }
        self.sign(byte);
        at + 1
    }

    /// A line that begins with a list sign or after a line that was no running text.
    fn starts_line(&self, at: usize) -> bool {
        self.text
            .get(at.wrapping_sub(1))
            .is_none_or(|before| !before.is_ascii_alphanumeric() && *before != b',')
    }

    fn quote(&mut self, at: usize) {
        let before = self.text.get(..at).unwrap_or_default();
        let opens = before.last().is_none_or(|b| {
            matches!(
                b,
                b' ' | b'(' | b'[' | b'{' | b':' | b'=' | b',' | b'\n' | b'>'
            )
        });
        if !opens {
            return;
        }
        let field = before
            .iter()
            .rev()
            .take(4)
            .find(|b| **b != b' ')
            .is_some_and(|b| matches!(b, b':' | b'='));
        self.fresh |= START | if field { FIELD } else { 0 };
        self.mark(at, QUOTE);
    }

    /// `$3,000`
    fn amount(&mut self, at: usize) {
        if self.text.get(at + 1).is_some_and(u8::is_ascii_digit) {
            self.mark(at, AMOUNT);
        }
    }

    fn mark(&mut self, at: usize, classes: Class) {
        let at = offset(at);
        self.words.push(Word {
            index: self.index,
            start: at,
            end: at + 1,
            classes,
        });
    }

    /// A word that starts with an ASCII letter or digit.
    #[inline]
    fn word(&mut self, start: usize) -> usize {
        let mut hash = Hasher::new();
        let mut at = start;
        let mut code = false;
        let mut digits = false;
        loop {
            let letters = hash_letters(self.text, at, &mut hash);
            at = letters.end;
            digits |= letters.digits;
            let Some(byte) = self.text.get(at) else { break };
            match KINDS[usize::from(*byte)] {
                // `don't` is one word, `some_name` an identifier, `'word'` a quoted word.
                JOIN if self.text.get(at + 1).is_some_and(u8::is_ascii_alphanumeric) => {
                    code |= *byte == b'_';
                }
                WIDE => return self.mixed(start),
                _ => break,
            }
            at += 1;
        }
        if code {
            self.index += 1;
            self.fresh = 0;
            return at;
        }
        let classes = LEXICON.classes(hash);
        let letters = self.letters;
        if classes != 0 {
            self.push(start, at, classes);
        } else {
            self.unknown(start, at, digits);
        }
        self.letters = 0;
        if at - start == 1 && self.text.get(start).is_some_and(u8::is_ascii_alphabetic) {
            self.letters = letters + 1;
            self.letter(start, at);
        }
        at
    }

    fn push(&mut self, start: usize, end: usize, classes: Class) {
        if self.is_key(end) {
            self.index += 1;
            self.fresh = 0;
            return;
        }
        self.words.push(Word {
            index: self.index,
            start: offset(start),
            end: offset(end),
            classes: classes | self.fresh,
        });
        self.index += 1;
        self.fresh = 0;
        self.letters = 0;
    }

    /// True if a word that ends here is the key of a field: `"email": …`.
    fn is_key(&self, end: usize) -> bool {
        matches!(self.text.get(end), Some(b'"' | b'\'')) && self.text.get(end + 1) == Some(&b':')
    }

    /// A word that no rule knows may still be an address, a link, or a known word in disguise.
    #[inline]
    fn unknown(&mut self, start: usize, end: usize, digits: bool) {
        let length = end - start;
        let next = self.text.get(end).copied().unwrap_or_default();
        if next == b'@' {
            self.address(start, end);
            return;
        }
        if next == b':' && matches!(length, 4 | 5) && self.text.get(end + 1) == Some(&b'/') {
            self.push(start, end, URL);
            return;
        }
        if length == 3
            && next == b'.'
            && self
                .text
                .get(start..end)
                .is_some_and(|word| word.eq_ignore_ascii_case(b"www"))
        {
            self.push(start, end, URL);
            return;
        }
        if digits && (4..=16).contains(&length) {
            self.leet(start, end);
        }
        self.index += 1;
        self.fresh = 0;
    }

    /// `name@host`
    fn address(&mut self, start: usize, end: usize) {
        let host = self.text.get(end + 1..).unwrap_or_default();
        let length = host
            .iter()
            .take(64)
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
            .count();
        if host.get(..length).unwrap_or_default().contains(&b'.') {
            self.push(start, end + 1 + length, EMAIL);
        } else {
            self.index += 1;
            self.fresh = 0;
        }
    }

    /// `1gn0re`: digits and signs for letters.
    fn leet(&mut self, start: usize, end: usize) {
        let word = self.text.get(start..end).unwrap_or_default();
        let digits = word.iter().filter(|byte| byte.is_ascii_digit()).count();
        if digits == 0 || digits + 2 > word.len() {
            return;
        }
        let mut hash = Hasher::new();
        for byte in word {
            hash = hash.push(
                confusable::leet(*byte)
                    .unwrap_or(*byte)
                    .to_ascii_lowercase(),
            );
        }
        let classes = LEXICON.classes(hash);
        if classes != 0 {
            let at = (offset(start), offset(end));
            self.words.push(Word {
                index: self.index,
                start: at.0,
                end: at.1,
                classes: classes | DISGUISED | self.fresh,
            });
        }
    }

    /// A word of one letter: perhaps one of several, `i g n o r e`.
    fn letter(&mut self, start: usize, end: usize) {
        if self.letters >= 4 {
            self.spaced(end);
        }
        if self.letters == 12 {
            self.mark(start, SPREAD);
        }
    }

    /// `i g n o r e`: the letters that end at `end`, read as one word.
    fn spaced(&mut self, end: usize) {
        let mut letters = Vec::new();
        let mut at = end;
        let mut start = end;
        while letters.len() < self.letters.min(16) {
            let Some(before) = at.checked_sub(1) else {
                break;
            };
            let byte = self.text.get(before).copied().unwrap_or_default();
            if byte.is_ascii_alphabetic() {
                letters.push(byte);
                start = before;
            }
            at = before;
        }
        letters.reverse();
        // The word may have begun at any of the letters.
        for skip in 0..letters.len().saturating_sub(3) {
            let classes = LEXICON.classes(Hasher::of(letters.get(skip..).unwrap_or_default()));
            if classes != 0 {
                let length = letters.len() - skip;
                // Where it began: letters and blanks alternate, or nearly so.
                let start = offset(end.saturating_sub(2 * length - 1).max(start));
                // Counted as one word, so that the rules see its neighbours.
                self.index = self
                    .index
                    .saturating_sub(u32::try_from(length).unwrap_or_default());
                while self
                    .words
                    .last()
                    .is_some_and(|last| last.index >= self.index)
                {
                    self.words.pop();
                }
                self.words.push(Word {
                    index: self.index,
                    start,
                    end: offset(end),
                    classes: classes | DISGUISED,
                });
                self.index += 1;
                return;
            }
        }
    }

    /// A word with letters beyond ASCII: other scripts, or Latin letters in disguise.
    fn mixed(&mut self, start: usize) -> usize {
        let mut at = start;
        let mut plain = Hasher::new();
        let mut folded = Hasher::new();
        let mut ascii = 0;
        let mut alike = 0;
        while let Some((character, length)) = self.text.get(at..).and_then(decode) {
            let joins = character == '\''
                && self
                    .text
                    .get(at + 1)
                    .is_some_and(|next| KINDS[usize::from(*next)] == LETTER);
            if !joins {
                if !character.is_alphanumeric() && !is_sign_of_a_script(character)
                    || is_unspaced(character)
                {
                    break;
                }
                for byte in self.text.get(at..at + length).unwrap_or_default() {
                    plain = plain.push(byte.to_ascii_lowercase());
                }
                if character.is_ascii() {
                    ascii += 1;
                    folded = folded.push((character as u8).to_ascii_lowercase());
                } else if let Some(latin) = confusable::latin(character) {
                    alike += 1;
                    folded = folded.push(latin);
                } else {
                    folded = folded.push(b'?');
                }
            }
            at += length;
        }
        if at == start {
            return start + 1;
        }
        let classes = LEXICON.classes(plain);
        if classes != 0 {
            self.push(start, at, classes);
            return at;
        }
        // Only a word that mixes scripts, or is made of lookalikes alone, is in disguise.
        let disguised = if alike > 0 {
            LEXICON.classes(folded)
        } else {
            0
        };
        if disguised != 0 {
            let flag = if ascii > 0 || alike >= 4 {
                DISGUISED
            } else {
                0
            };
            self.push(start, at, disguised | flag);
            return at;
        }
        self.index += 1;
        self.fresh = 0;
        at
    }

    /// A character beyond ASCII: a word, or a run of a script that is written without spaces.
    fn wide(&mut self, at: usize) -> usize {
        let Some((character, length)) = self.text.get(at..).and_then(decode) else {
            return at + 1;
        };
        if is_unspaced(character) {
            return self.unspaced(at, length);
        }
        if character.is_alphanumeric() || is_sign_of_a_script(character) {
            return self.mixed(at);
        }
        self.fresh |= START;
        at + length
    }

    /// The longest known word at this character, of at most five characters.
    fn unspaced(&mut self, start: usize, first: usize) -> usize {
        let mut hash = Hasher::new();
        let mut at = start;
        let mut best = None;
        for _ in 0..5 {
            let Some((character, length)) = self.text.get(at..).and_then(decode) else {
                break;
            };
            if !is_unspaced(character) {
                break;
            }
            for byte in self.text.get(at..at + length).unwrap_or_default() {
                hash = hash.push(*byte);
            }
            at += length;
            let classes = LEXICON.classes(hash);
            if classes != 0 {
                best = Some((at, classes));
            }
        }
        if let Some((end, classes)) = best {
            self.push(start, end, classes);
            return end;
        }
        self.index += 1;
        self.fresh = 0;
        start + first
    }
}

/// Han, kana and Hangul: words are not set apart by spaces, or carry endings.
const fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

/// Vowel signs and viramas of the Indic scripts, which are not alphabetic but part of words.
const fn is_sign_of_a_script(character: char) -> bool {
    matches!(character, '\u{0900}'..='\u{0dff}' | '\u{0e00}'..='\u{0eff}')
}

/// Offsets fit: a window is far below 4 GiB.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bytes_at_once_are_what_each_byte_is_alone() {
        for byte in 0..=u8::MAX {
            for place in 0..8 {
                let mut bytes = *b"aZ09zA5m";
                bytes[place] = byte;
                let expected = if byte.is_ascii_alphanumeric() {
                    8
                } else {
                    place
                };
                let count = letters(u64::from_le_bytes(bytes));
                assert_eq!(count as usize, expected, "{byte} at {place}");
            }
        }
    }

    #[test]
    fn a_hash_does_not_depend_on_where_the_word_lies() {
        for word in [
            "a",
            "ignore",
            "Instruct",
            "instructions",
            "administrators",
            "antidisestablishment",
        ] {
            for before in 0..9 {
                for after in ["", " ", " and something else that is long enough"] {
                    let text = format!("{}{word}{after}", " ".repeat(before));
                    let mut hash = Hasher::new();
                    let letters = hash_letters(text.as_bytes(), before, &mut hash);
                    assert_eq!(letters.end, before + word.len());
                    assert!(!letters.digits);
                    assert_eq!(
                        hash.finish(),
                        Hasher::of(word.as_bytes()).finish(),
                        "{text}"
                    );
                }
            }
        }
    }
}
