//! Whether a value looks made by a machine, or like a name, a word or a place.

use super::super::formats::tables::FILE_ENDINGS;
use super::super::shape::{common_pairs, contains, entropy, is_wordy};

/// True for `user_password`, `Password2`: a name rather than a value. Not for `thisismypassword`.
pub(super) fn is_about_passwords(lower: &[u8]) -> bool {
    (contains(lower, b"password") || contains(lower, b"passwd"))
        && (lower.len() < 14 || !lower.iter().all(u8::is_ascii_lowercase))
}

/// True for something a machine made: mixed characters without words.
pub(in crate::secrets) fn looks_random(value: &[u8]) -> bool {
    if value.len() < 6
        || value
            .iter()
            .any(|b| b.is_ascii_whitespace() || !b.is_ascii_graphic())
    {
        return false;
    }
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = value.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let changes = value
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if class(*a) != class(*b)))
        .count();
    let mixed_case =
        value.iter().any(u8::is_ascii_lowercase) && value.iter().any(u8::is_ascii_uppercase);
    let hex = value.iter().all(u8::is_ascii_hexdigit);
    // Signs of code and patterns; long keys of web frameworks hold them too.
    let signs = value
        .iter()
        .any(|b| matches!(b, b'[' | b'{' | b'(' | b'|' | b'\\' | b'<'));
    if (signs && (value.len() < 40 || digits < 3)) || holds_words(value) {
        return false;
    }
    if hex && value.len() >= 16 {
        return digits >= 3 && letters >= 3 && entropy(value) >= 2.7;
    }
    if value.len() < 12 {
        return digits >= 2 && letters >= 2 && changes >= 4;
    }
    if digits == 0 {
        return is_gibberish(value);
    }
    let dense = changes * 100 >= value.len() * 18;
    entropy(value) >= 3.0
        && ((digits >= 2 && letters >= 4 && changes >= 4 && dense)
            || (digits >= 2 && changes >= 3 && !is_wordy(value))
            || (digits >= 1 && value.len() >= 16 && changes >= 2 && !is_wordy(value))
            || (mixed_case
                && digits >= 1
                && value.len() >= 24
                && changes * 100 >= value.len() * 28))
}

/// True for letters without digits that no language has: a random text holds three common pairs in
/// ten, a name or a sentence at least six.
fn is_gibberish(value: &[u8]) -> bool {
    let (common, pairs) = common_pairs(value);
    pairs >= 18 && common * 100 < pairs * 45 && entropy(value) >= 3.3
}

/// True if long runs of lower-case letters read like words, and are much of the value: in a long
/// random one some run is pronounceable by chance.
fn holds_words(value: &[u8]) -> bool {
    let words: usize = value
        .split(|byte| !byte.is_ascii_lowercase())
        .filter(|run| run.len() >= 9 && is_wordy(run))
        .map(<[u8]>::len)
        .sum();
    words > 0 && (value.len() < 28 || words * 100 >= value.len() * 40)
}

fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    }
}

/// Paths, URLs, versions, dates, e-mail addresses, file names.
pub(super) fn is_location(value: &[u8]) -> bool {
    contains(value, b"://")
        || value.starts_with(b"/")
        || value.starts_with(b"./")
        || value.starts_with(b"../")
        || value.starts_with(b"~/")
        || value.starts_with(b"arn:")
        || value.starts_with(b"sha256:")
        || FILE_ENDINGS
            .iter()
            .any(|ending| value.ends_with(ending.as_bytes()))
        || value
            .iter()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b':' | b'/' | b'T' | b'Z'))
}
