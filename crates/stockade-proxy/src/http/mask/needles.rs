//! What must not come back: each value in the spellings in which this proxy or a host may write it.

use memchr::memmem;
use stockade_policy::profile::Masked;

use crate::base64;

/// A spelling of a value, and what stands in its place.
struct Needle {
    text: Vec<u8>,
    shown: Vec<u8>,
}

/// All spellings of some values.
#[derive(Default)]
pub(crate) struct Needles(Vec<Needle>);

/// A piece of a text that belongs to values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The spelling with which it begins.
    pub(super) needle: usize,
}

impl Needles {
    /// The spellings of these values, and of what was `sent` in their place: pairs of an encoded
    /// text with the value and the same text with the placeholder.
    pub(super) fn new(masks: &[Masked], sent: &[(Vec<u8>, Vec<u8>)]) -> Self {
        let mut needles = Self::default();
        for (text, shown) in sent {
            needles.add(text.clone(), shown.clone());
        }
        for own in masks {
            let (value, shown) = (own.value.reveal().as_bytes(), own.placeholder.as_bytes());
            needles.add(value.to_vec(), shown.to_vec());
            for spell in [percent_upper, percent_lower, json] {
                needles.add(spell(value), shown.to_vec());
            }
            // Bytes before the value move it within the groups of three that are encoded.
            for before in 0..3 {
                let (text, shown) = (encoded(value, before), encoded(shown, before));
                needles.add(url_safe(&text), url_safe(&shown));
                needles.add(text, shown);
            }
        }
        needles
    }

    fn add(&mut self, text: Vec<u8>, shown: Vec<u8>) {
        if !text.is_empty() && self.0.iter().all(|needle| needle.text != text) {
            self.0.push(Needle { text, shown });
        }
    }

    /// Whether a text has as many bytes after as before.
    pub(super) fn keep_length(&self) -> bool {
        let mut needles = self.0.iter();
        needles.all(|needle| needle.text.len() == needle.shown.len())
    }

    pub(super) fn shown(&self, needle: usize) -> &[u8] {
        &self.0[needle].shown
    }

    /// Every byte that belongs to a value. Pieces that overlap are one: of two values that share
    /// bytes nothing must be left over.
    pub(super) fn find(&self, text: &[u8], begun: Option<Found>) -> Vec<Found> {
        let mut found: Vec<Found> = begun.into_iter().collect();
        for (number, needle) in self.0.iter().enumerate() {
            let finder = memmem::Finder::new(&needle.text);
            let mut from = 0;
            while let Some(at) = finder.find(&text[from..]) {
                let start = from + at;
                found.push(Found {
                    start,
                    end: start + needle.text.len(),
                    needle: number,
                });
                from = start + 1;
            }
        }
        // What goes on from before comes first, then the longest.
        let is_begun = |piece: &Found| begun.is_some_and(|begun| begun == *piece);
        found.sort_by_key(|piece| (piece.start, !is_begun(piece), usize::MAX - piece.end));
        let mut merged: Vec<Found> = Vec::with_capacity(found.len());
        for piece in found {
            match merged.last_mut() {
                Some(last) if piece.start < last.end => last.end = last.end.max(piece.end),
                _ => merged.push(piece),
            }
        }
        merged
    }

    /// How many bytes at the end could be the beginning of a spelling.
    pub(super) fn begun(&self, text: &[u8]) -> usize {
        let needles = self.0.iter().map(|needle| begun(text, &needle.text));
        needles.max().unwrap_or(0)
    }
}

/// A value is in these, too.
impl Drop for Needles {
    fn drop(&mut self) {
        for needle in &mut self.0 {
            needle.text.fill(0);
            std::hint::black_box(&needle.text);
        }
    }
}

impl std::fmt::Debug for Needles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Needles({})", self.0.len())
    }
}

fn begun(text: &[u8], needle: &[u8]) -> usize {
    let longest = text.len().min(needle.len() - 1);
    let mut lengths = (1..=longest).rev();
    lengths
        .find(|length| needle.starts_with(&text[text.len() - length..]))
        .unwrap_or(0)
}

/// The letters of base64 that depend on the value alone, when so many bytes are before it.
fn encoded(value: &[u8], before: usize) -> Vec<u8> {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(value);
    let (first, end) = ((8 * before).div_ceil(6), 8 * bytes.len() / 6);
    let text = base64::encode(&bytes).into_bytes();
    bytes.fill(0);
    std::hint::black_box(&bytes);
    text[first..end].to_vec()
}

fn url_safe(text: &[u8]) -> Vec<u8> {
    let letter = |byte: &u8| match byte {
        b'+' => b'-',
        b'/' => b'_',
        other => *other,
    };
    text.iter().map(letter).collect()
}

fn percent_upper(value: &[u8]) -> Vec<u8> {
    percent(value, b"0123456789ABCDEF")
}

fn percent_lower(value: &[u8]) -> Vec<u8> {
    percent(value, b"0123456789abcdef")
}

/// As in a URL (RFC 3986 section 2.3).
fn percent(value: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    let mut text = Vec::with_capacity(value.len());
    for byte in value {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            text.push(*byte);
        } else {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            text.extend([b'%', digits[high], digits[low]]);
        }
    }
    text
}

/// As in a string of JSON.
fn json(value: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(value.len());
    for byte in value {
        if matches!(byte, b'"' | b'\\') {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text
}
