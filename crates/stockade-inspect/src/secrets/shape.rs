//! The shape of a value: its alphabet, its entropy, and the shapes that no secret has.

use super::formats::tables::{EXAMPLE_WORDS, REFERENCE_PARTS, REFERENCE_STARTS};

/// Which bytes the body of a token may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// Letters and digits.
    Alnum,
    /// `Alnum` and `_`, `-`.
    Base64Url,
    /// `Alnum` and `+`, `/`, `=`.
    Base64,
    /// `0-9a-f`, either case.
    Hex,
    /// `A-Z0-9`.
    Upper,
    /// `a-z0-9`.
    Lower,
    /// `Base64Url` and `.`.
    Dotted,
    /// Hexadecimal digits and `-`, as in UUIDs.
    Uuid,
    /// `Dotted` and `=`.
    Padded,
    /// `0-9`.
    Digit,
    /// `0-9a-f`.
    LowerHex,
    /// `Dotted` and `~`.
    Secret,
}

impl Alphabet {
    pub(super) const fn has(self, byte: u8) -> bool {
        match self {
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Base64Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Lower => byte.is_ascii_lowercase() || byte.is_ascii_digit(),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Uuid => byte.is_ascii_hexdigit() || byte == b'-',
            Self::Digit => byte.is_ascii_digit(),
            Self::LowerHex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Self::Secret => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~')
            }
            Self::Padded => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'=')
            }
        }
    }

    /// How many bytes at the start of `text` belong to the alphabet, at most `limit`.
    pub(super) fn run(self, text: &[u8], limit: usize) -> usize {
        text.iter()
            .take(limit)
            .take_while(|byte| self.has(**byte))
            .count()
    }
}

/// Shannon entropy in bits per byte.
#[expect(
    clippy::cast_precision_loss,
    reason = "a count of at most a few thousand bytes"
)]
pub(super) fn entropy(value: &[u8]) -> f32 {
    let mut counts = [0_u32; 256];
    for byte in value {
        counts[usize::from(*byte)] += 1;
    }
    let total = value.len().max(1) as f32;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = *count as f32 / total;
            -share * share.log2()
        })
        .sum()
}

/// True for a UUID.
pub(super) fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// How many different bytes a value holds, letters in either case counted once.
pub(super) fn distinct(value: &[u8]) -> usize {
    let mut seen = [false; 256];
    for byte in value {
        seen[usize::from(byte.to_ascii_lowercase())] = true;
    }
    seen.iter().filter(|known| **known).count()
}

/// True for digits in ascending order, one repeated byte, a keyboard row: filler.
pub(super) fn is_filler(value: &[u8]) -> bool {
    if distinct(value) <= 3 && value.len() >= 8 {
        return true;
    }
    let steps = value
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if a.wrapping_add(1) == *b || a == b))
        .count();
    // Two sequences in turn: `a1b2c3d4`.
    let turns = value
        .windows(3)
        .filter(|window| matches!(window, [a, _, b] if a.wrapping_add(1) == *b))
        .count();
    value.len() >= 8 && (steps * 10 >= value.len() * 8 || turns * 10 >= value.len() * 7)
}

/// True if the value says of itself that it is none.
pub(super) fn is_example(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    EXAMPLE_WORDS
        .iter()
        .any(|word| contains(&lower, word.as_bytes()))
}

/// True if the value is looked up elsewhere: a variable, a template, a call.
pub(super) fn is_reference(value: &[u8]) -> bool {
    REFERENCE_STARTS.iter().any(|start| value.starts_with(start.as_bytes()))
        || REFERENCE_PARTS.iter().any(|part| contains(value, part.as_bytes()))
        || holds_braces(value)
        || (value.starts_with(b"%") && value.ends_with(b"%"))
        || (value.starts_with(b"__") && value.ends_with(b"__"))
        || (value.starts_with(b"[") && value.ends_with(b"]"))
        // A tag of YAML: `!vault`, `!Ref`, `!ENV`.
        || matches!(value, [b'!', name @ ..] if name.len() >= 3 && name.iter().all(u8::is_ascii_alphabetic))
}

/// True for `{name}`: a template, but not a brace here and there among random signs.
fn holds_braces(value: &[u8]) -> bool {
    let inner = value.iter().position(|b| *b == b'{').and_then(|open| {
        let rest = value.get(open + 1..)?;
        rest.get(..rest.iter().position(|b| *b == b'}')?)
    });
    inner.is_some_and(|inner| {
        inner
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b" _.-:!\"'[](),|$".contains(b))
    })
}

/// True if `needle` occurs in `haystack`.
pub(super) fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(haystack, needle).is_some()
}

/// True if most pairs of neighbouring letters are pairs that words are made of.
///
/// Three pairs in ten are in the table, so a random text of nine letters passes once in a hundred.
pub(super) fn is_wordy(value: &[u8]) -> bool {
    let (common, pairs) = common_pairs(value);
    common * 100 >= pairs * 72
}

/// How many pairs of neighbouring letters words are made of, and how many pairs there are.
pub(super) fn common_pairs(value: &[u8]) -> (usize, usize) {
    let mut pairs = 0_usize;
    let mut common = 0_usize;
    for pair in value.windows(2) {
        if let [first, second] = *pair
            && first.is_ascii_alphabetic()
            && second.is_ascii_alphabetic()
        {
            pairs += 1;
            let (row, column) = (
                first.to_ascii_lowercase() - b'a',
                second.to_ascii_lowercase(),
            );
            common += usize::from(PAIRS[usize::from(row)] >> (column - b'a') & 1 == 1);
        }
    }
    (common, pairs)
}

/// For each first letter, the second letters that follow it in words, one bit each.
const PAIRS: [u32; 26] = {
    let rows = [
        "bcdgilmnprstuvyk",
        "aeiloruy",
        "aehiklortuc",
        "aeiorsud",
        "acdefgilmnoprstuvwxy",
        "aefiortu",
        "aehiloru",
        "aeiotur",
        "abcdeglmnoprstvz",
        "aou",
        "eisa",
        "abdefilostuyk",
        "abeimopsuy",
        "acdegiknostuvy",
        "bcdfgiklmnoprstuvw",
        "aehiloprstu",
        "u",
        "acdegiklmnorstuy",
        "acehikloprstuw",
        "aehilorstuwy",
        "abcdegilmnprst",
        "aeio",
        "aehion",
        "aept",
        "aeost",
        "aeio",
    ];
    let mut table = [0; 26];
    let mut row = 0;
    while row < 26 {
        let bytes: &[u8] = rows[row].as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            table[row] |= 1 << (bytes[at] - b'a');
            at += 1;
        }
        row += 1;
    }
    table
};

/// How many of the four kinds of characters a value mixes: lower, upper, digits, signs.
pub(super) fn kinds(value: &[u8]) -> usize {
    usize::from(value.iter().any(u8::is_ascii_lowercase))
        + usize::from(value.iter().any(u8::is_ascii_uppercase))
        + usize::from(value.iter().any(u8::is_ascii_digit))
        + usize::from(value.iter().any(|byte| !byte.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_of_known_texts() {
        assert!(entropy(b"aaaaaaaa") < 0.01);
        assert!((entropy(b"abcdefgh") - 3.0).abs() < 0.01);
        assert!(entropy(b"").abs() < 0.01);
    }

    #[test]
    fn filler_and_examples_are_no_secrets() {
        for filler in [
            "xxxxxxxxxxxx",
            "0000000000000000",
            "12345678901",
            "abcdefghijkl",
        ] {
            assert!(is_filler(filler.as_bytes()), "{filler}");
        }
        assert!(!is_filler(b"h7Gd02kdPq91Lm"));
        assert!(is_example(b"YOUR_API_KEY"));
        assert!(is_reference(b"${TOKEN}") && is_reference(b"os.environ['X']"));
        assert!(!is_reference(b"super$ecret"));
    }

    #[test]
    fn uuids_are_recognised() {
        assert!(is_uuid(b"743b294a-cd03-11ec-9d64-0242ac120002"));
        assert!(!is_uuid(b"743b294a-cd03-11ec-9d64-0242ac12000g"));
    }
}
