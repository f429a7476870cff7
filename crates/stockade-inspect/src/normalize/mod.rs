//! Text as a model reads it: Unicode folded, invisible characters out, markup tricks undone.
//!
//! Protects the rules from text that is dressed up so that a plain search misses it. One pass,
//! linear in the input, which remembers where every byte came from so that findings point into
//! the original. Clean ASCII is not copied.
//!
//! It does not translate, correct spelling or render HTML; letters of other scripts that look
//! like Latin ones are folded per word, by the reader of the view, because only there it is known
//! whether a word mixes scripts.

pub(crate) mod confusable;
mod entity;
mod escape;
pub(crate) mod invisible;
mod view;

use std::ops::Range;

use escape::Effect;
use view::Piece;
pub(crate) use view::View;

use invisible::Invisible;

/// Something invisible that was taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hidden {
    pub(crate) kind: HiddenKind,
    /// Where, in the coordinates of the text that was normalised.
    pub(crate) source: Range<usize>,
}

/// What was taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HiddenKind {
    /// An escape sequence that writes the clipboard.
    Clipboard,
    /// An escape sequence that conceals text.
    Conceal,
    /// A run of invisible characters, and the visible ones on both sides of it.
    Run {
        characters: Vec<char>,
        before: Option<char>,
        after: Option<char>,
    },
}

/// Normalises the text of a view.
pub(crate) fn normalize<'a>(input: &'a View<'a>) -> (View<'a>, Vec<Hidden>) {
    let text = input.text();
    let mut writer = Writer::new(text);
    let mut at = 0;
    while let Some(length) = text.get(at..).and_then(plain_length) {
        at += length;
        at = match text.get(at).copied().unwrap_or_default() {
            b'&' => writer.entity(at),
            b'<' | b'*' => writer.markup(at),
            0x08 => writer.overstrike(at),
            0x1b => writer.escape(at),
            _ => writer.character(at),
        };
    }
    writer.finish(input)
}

/// True if the text has no invisible character and no escape sequence, so that nothing in it can
/// split a word. Much faster than to normalise it.
pub(crate) fn hides_nothing(text: &[u8]) -> bool {
    const STRIDE: usize = 64;
    memchr::memchr2(0x08, 0x1b, text).is_none()
        && text.chunks(STRIDE).enumerate().all(|(number, chunk)| {
            chunk.is_ascii()
                || chunk.iter().enumerate().all(|(at, byte)| {
                    // Only the first byte of a character: it may end in the next chunk.
                    *byte < 0xc0
                        || text
                            .get(number * STRIDE + at..)
                            .and_then(decode)
                            .is_none_or(|(character, _)| invisible::class(character).is_none())
                })
        })
}

/// How many bytes come before the first that starts something, `None` if none does.
#[inline]
fn plain_length(text: &[u8]) -> Option<usize> {
    const STRIDE: usize = 32;
    let (blocks, rest) = text.as_chunks::<STRIDE>();
    // Without a branch for each byte, so that the compiler can compare a block at once.
    let block = blocks
        .iter()
        .position(|block| block.iter().fold(0, |any, byte| any | is_special(*byte)) != 0);
    let (from, part) = match block {
        Some(block) => (
            block * STRIDE,
            blocks.get(block).map(<[u8; STRIDE]>::as_slice),
        ),
        None => (text.len() - rest.len(), Some(rest)),
    };
    let within = part?.iter().position(|byte| !PLAIN[usize::from(*byte)])?;
    Some(from + within)
}

/// Not 0 for a byte that starts something: the same set as [`PLAIN`] leaves out.
#[inline]
const fn is_special(byte: u8) -> u8 {
    (byte & 0x80)
        | (byte == 0x08) as u8
        | (byte == 0x1b) as u8
        | (byte == b'&') as u8
        | (byte == b'*') as u8
        | (byte == b'<') as u8
}

/// Bytes that can be copied without a look: ASCII but for the ones that start something.
const PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = !matches!(byte, 0x08 | 0x1b | 0x26 | 0x2a | 0x3c);
        byte += 1;
    }
    table
};

struct Writer<'a> {
    source: &'a [u8],
    out: Vec<u8>,
    pieces: Vec<Piece>,
    /// Start of the source bytes that are to be copied but have not been yet.
    pending: usize,
    hidden: Vec<Hidden>,
    /// Index in `hidden` of the run that ended at the current place, if one did.
    open_run: Option<usize>,
    changed: bool,
}

impl<'a> Writer<'a> {
    fn new(source: &'a [u8]) -> Self {
        Self {
            source,
            out: Vec::new(),
            pieces: Vec::new(),
            pending: 0,
            hidden: Vec::new(),
            open_run: None,
            changed: false,
        }
    }

    fn finish(mut self, input: &'a View<'a>) -> (View<'a>, Vec<Hidden>) {
        if !self.changed {
            return (input.clone_borrowed(), self.hidden);
        }
        self.flush(self.source.len());
        (
            View::rewritten(self.out, self.pieces, input.map().clone()),
            self.hidden,
        )
    }

    /// Copies what is pending up to `end`.
    fn flush(&mut self, end: usize) {
        if !self.changed {
            self.out.reserve(self.source.len());
            self.changed = true;
        }
        if let Some(bytes) = self.source.get(self.pending..end)
            && !bytes.is_empty()
        {
            self.pieces.push(Piece {
                view: self.out.len(),
                source: self.pending,
                length: bytes.len(),
                copied: true,
            });
            self.out.extend_from_slice(bytes);
        }
    }

    /// Replaces `source` by `text`.
    fn replace(&mut self, source: Range<usize>, text: &[u8]) -> usize {
        self.flush(source.start);
        if !text.is_empty() {
            self.pieces.push(Piece {
                view: self.out.len(),
                source: source.start,
                length: source.len(),
                copied: false,
            });
            self.out.extend_from_slice(text);
        }
        self.pending = source.end;
        source.end
    }

    fn drop_hidden(&mut self, source: Range<usize>, kind: HiddenKind) -> usize {
        let end = self.replace(source.clone(), b"");
        self.hidden.push(Hidden { kind, source });
        end
    }

    fn entity(&mut self, at: usize) -> usize {
        let Some((character, length)) = self.source.get(at..).and_then(entity::parse) else {
            return at + 1;
        };
        self.write(character, at..at + length)
    }

    /// Tags, comments and emphasis *inside* a word split it for a search but not for a reader.
    fn markup(&mut self, at: usize) -> usize {
        let inside = at
            .checked_sub(1)
            .and_then(|before| self.source.get(before))
            .is_some_and(u8::is_ascii_alphabetic);
        if !inside {
            return at + 1;
        }
        let rest = self.source.get(at..).unwrap_or_default();
        let mut length = 0;
        // Several in a row: `ig<b></b>nore`.
        while let Some(next) = rest.get(length..).and_then(markup_length) {
            length += next;
        }
        if length > 0 && rest.get(length).is_some_and(u8::is_ascii_alphabetic) {
            self.replace(at..at + length, b"")
        } else {
            at + 1
        }
    }

    /// `X BS X` is how old manual pages print bold.
    fn overstrike(&mut self, at: usize) -> usize {
        let previous = at.checked_sub(1).and_then(|before| self.source.get(before));
        let next = self.source.get(at + 1);
        if next.is_some() && (previous == next || previous == Some(&b'_')) && self.pending < at {
            self.replace(at - 1..at + 1, b"")
        } else {
            at + 1
        }
    }

    fn escape(&mut self, at: usize) -> usize {
        let Some((length, effect)) = self.source.get(at..).and_then(escape::parse) else {
            return at + 1;
        };
        let source = at..at + length;
        match effect {
            Effect::Clipboard => self.drop_hidden(source, HiddenKind::Clipboard),
            Effect::Conceal => self.drop_hidden(source, HiddenKind::Conceal),
            Effect::Plain => self.replace(source, b""),
        }
    }

    /// A byte that is not ASCII.
    fn character(&mut self, at: usize) -> usize {
        match decode(self.source.get(at..).unwrap_or_default()) {
            Some((character, length)) => self.write(character, at..at + length),
            None => at + 1,
        }
    }

    /// Writes the folded form of a character that came from `source`.
    fn write(&mut self, character: char, source: Range<usize>) -> usize {
        if invisible::class(character).is_some() {
            return self.invisible(character, source);
        }
        let run = self.open_run.take();
        if let Some(run) = run
            && let Some(Hidden {
                kind: HiddenKind::Run { after, .. },
                source: seen,
            }) = self.hidden.get_mut(run)
            && seen.end == source.start
        {
            *after = Some(character);
        }
        let mut folded = Folded::default();
        fold(character, &mut folded);
        if self.source.get(source.clone()) == Some(folded.bytes()) {
            return source.end;
        }
        self.replace(source, folded.bytes())
    }

    fn invisible(&mut self, character: char, source: Range<usize>) -> usize {
        // A byte order mark at the very start is no trick.
        if character == '\u{feff}' && source.start == 0 {
            return self.replace(source, b"");
        }
        if let Some(run) = self.open_run
            && let Some(Hidden {
                kind: HiddenKind::Run { characters, .. },
                source: seen,
            }) = self.hidden.get_mut(run)
            && seen.end == source.start
        {
            characters.push(character);
            seen.end = source.end;
            return self.replace(source, b"");
        }
        let before = before(self.source, source.start);
        let after = self
            .source
            .get(source.end)
            .filter(|b| b.is_ascii())
            .map(|b| char::from(*b));
        let end = self.drop_hidden(
            source,
            HiddenKind::Run {
                characters: vec![character],
                before,
                after,
            },
        );
        self.open_run = Some(self.hidden.len() - 1);
        end
    }
}

impl Hidden {
    /// The first class of the characters taken out, `None` for escape sequences.
    pub(crate) fn class(&self) -> Option<Invisible> {
        match &self.kind {
            HiddenKind::Run { characters, .. } => characters
                .first()
                .and_then(|character| invisible::class(*character)),
            HiddenKind::Clipboard | HiddenKind::Conceal => None,
        }
    }
}

/// A few bytes of folded text, without allocation.
#[derive(Default)]
struct Folded {
    bytes: [u8; 32],
    length: usize,
}

impl Folded {
    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn push(&mut self, character: char) {
        let mut buffer = [0; 4];
        for byte in character.encode_utf8(&mut buffer).bytes() {
            // The longest compatibility decomposition (U+FDFA, 18 characters) does not fit;
            // what is cut off there is no word of any rule.
            if let Some(slot) = self.bytes.get_mut(self.length) {
                *slot = byte;
                self.length += 1;
            }
        }
    }
}

/// NFKD without diacritics of Latin, Greek, Cyrillic and Arabic letters, lower-case, with
/// punctuation in its ASCII form.
fn fold(character: char, out: &mut Folded) {
    match character {
        '\u{2018}' | '\u{2019}' | '\u{201b}' => out.push('\''),
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '«' | '»' => out.push('"'),
        '\u{2010}'..='\u{2015}' => out.push('-'),
        '\u{2028}' | '\u{2029}' => out.push('\n'),
        '。' | '।' | '۔' | '｡' => out.push('.'),
        '،' | '、' => out.push(','),
        '؟' => out.push('?'),
        '؛' => out.push(';'),
        'ß' => {
            out.push('s');
            out.push('s');
        }
        // Hangul is looked up composed.
        '\u{ac00}'..='\u{d7a3}' | '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}' => {
            out.push(character);
        }
        _ => unicode_normalization::char::decompose_compatible(character, |part| {
            if !is_mark(part) {
                for lower in part.to_lowercase() {
                    out.push(lower);
                }
            }
        }),
    }
}

/// Marks that spelling can do without: Latin and Greek accents, Arabic vowels and tatweel.
const fn is_mark(character: char) -> bool {
    matches!(
        character,
        '\u{0300}'..='\u{036f}' | '\u{0610}'..='\u{061a}' | '\u{0640}'
        | '\u{064b}'..='\u{065f}' | '\u{0670}' | '\u{20d0}'..='\u{20ff}'
    )
}

/// The character that the bytes start with, and its length.
pub(crate) fn decode(bytes: &[u8]) -> Option<(char, usize)> {
    let length = match bytes.first()? {
        0x00..=0x7f => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    let character = std::str::from_utf8(bytes.get(..length)?)
        .ok()?
        .chars()
        .next()?;
    Some((character, length))
}

/// The character that ends just before `at`.
fn before(bytes: &[u8], at: usize) -> Option<char> {
    (1..=4)
        .filter_map(|length| at.checked_sub(length))
        .find_map(|start| {
            std::str::from_utf8(bytes.get(start..at)?)
                .ok()?
                .chars()
                .next()
        })
}

/// Offset of `needle` in the first `limit` bytes.
pub(crate) fn find(haystack: &[u8], needle: &[u8], limit: usize) -> Option<usize> {
    memchr::memmem::find(haystack.get(..haystack.len().min(limit))?, needle)
}

/// Length of the emphasis, comment or inline tag that the text starts with.
fn markup_length(text: &[u8]) -> Option<usize> {
    if text.starts_with(b"**") {
        Some(2)
    } else if text.starts_with(b"<!--") {
        find(text, b"-->", 512).map(|end| end + 3)
    } else if inline_tag(text) {
        find(text, b">", 200).map(|end| end + 1)
    } else {
        None
    }
}

fn inline_tag(text: &[u8]) -> bool {
    const TAGS: [&[u8]; 12] = [
        b"<b>",
        b"<i>",
        b"<u>",
        b"<em>",
        b"<span",
        b"<wbr",
        b"<strong>",
        b"<font",
        b"<mark",
        b"<s>",
        b"<sub>",
        b"<sup>",
    ];
    const CLOSING: [&[u8]; 12] = [
        b"</b>",
        b"</i>",
        b"</u>",
        b"</em>",
        b"</span>",
        b"</wbr>",
        b"</strong>",
        b"</font>",
        b"</mark>",
        b"</s>",
        b"</sub>",
        b"</sup>",
    ];
    TAGS.iter().chain(&CLOSING).any(|tag| text.starts_with(tag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Span;

    fn folded(text: &str) -> String {
        let view = View::plain(text.as_bytes(), 0);
        let (normal, _) = normalize(&view);
        String::from_utf8_lossy(normal.text()).into_owned()
    }

    #[test]
    fn folds_forms_of_letters_and_punctuation() {
        assert_eq!(folded("ｉｇｎｏｒｅ 𝗽𝗿𝗲𝘃ⓘⓞus"), "ignore previous");
        assert_eq!(folded("Précédentes “ça”, ÄÖß"), "Precedentes \"ca\", aoss");
        assert_eq!(folded("指令。ИГНОРИРУЙ"), "指令.игнорируи");
        assert_eq!(folded("i&#103;nor&#x65; &amp; &lt;b&gt;"), "ignore & <b>");
        assert_eq!(folded("\x1b[1mig\x1b[0mnore"), "ignore");
        assert_eq!(folded("N\u{8}NA\u{8}AM\u{8}ME\u{8}E"), "NAME");
        assert_eq!(
            folded("ig<!-- x -->no<b></b>re ig**no**re 2 * 3 ** 4"),
            "ignore ignore 2 * 3 ** 4"
        );
    }

    #[test]
    fn a_block_at_once_is_what_each_byte_is_alone() {
        for byte in 0..=u8::MAX {
            assert_eq!(is_special(byte) == 0, PLAIN[usize::from(byte)], "{byte:#x}");
            for place in [0, 1, 31, 32, 33, 63, 64, 70] {
                let mut text = vec![b'a'; 71];
                text[place] = byte;
                let expected = (!PLAIN[usize::from(byte)]).then_some(place);
                assert_eq!(plain_length(&text), expected, "{byte:#x} at {place}");
            }
        }
    }

    #[test]
    fn clean_ascii_is_not_copied() {
        let view = View::plain(b"plain a < b && c * d & e\n", 7);
        let (normal, hidden) = normalize(&view);
        assert!(normal.is_plain());
        assert_eq!(hidden, []);
        assert_eq!(normal.span(2..5), Span { start: 9, end: 12 });
    }

    #[test]
    fn spans_lead_back_to_the_original_bytes() {
        let text = "ab \u{200b}ig\u{200d}nоre é x";
        let view = View::plain(text.as_bytes(), 100);
        let (normal, hidden) = normalize(&view);
        let found = normal
            .text()
            .windows(2)
            .position(|pair| pair == b"ig")
            .unwrap();
        let word = found..found + "ignоre".len();
        let span = normal.span(word);
        let offset = |at: u64| usize::try_from(at - 100).unwrap();
        let original = text.get(offset(span.start)..offset(span.end)).unwrap();
        assert_eq!(original, "ig\u{200d}nоre");
        assert_eq!(hidden.len(), 2);
        assert_eq!(
            hidden[1].kind,
            HiddenKind::Run {
                characters: vec!['\u{200d}'],
                before: Some('g'),
                after: Some('n')
            }
        );
    }

    #[test]
    fn a_byte_order_mark_is_no_finding_and_bad_bytes_pass() {
        let view = View::plain(b"\xef\xbb\xbfhello \xff\xc3", 0);
        let (normal, hidden) = normalize(&view);
        assert_eq!(normal.text(), b"hello \xff\xc3");
        assert_eq!(hidden, []);
    }
}
