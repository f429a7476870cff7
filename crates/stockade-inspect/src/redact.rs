//! Evidence that can be printed: secrets shortened to a fingerprint, text made harmless.
//!
//! Protects the reader's terminal and log from the inspected text: a report must not become the
//! leak (a secret printed whole) nor the attack (escape sequences, line breaks that forge output).

use std::fmt::Write as _;

/// Longest evidence kept from text that is not a secret, in characters.
const EXCERPT_CHARS: usize = 160;

/// Describes a secret without printing it: kind, first four characters, length, hash.
///
/// Shorter secrets show fewer characters, so that at least three quarters stay hidden. The hash
/// tells two leaks of the same secret from leaks of different ones; it is cut to 8 hex digits so
/// that it confirms a guess but does not help to make one.
pub fn secret(kind: &str, value: &[u8]) -> String {
    let length = String::from_utf8_lossy(value).chars().count();
    let shown = (length / 4).min(4);
    let head: String = String::from_utf8_lossy(value)
        .chars()
        .take(shown)
        .map(printable)
        .collect();
    let hash = blake3::hash(value).to_hex();
    format!("{kind} {head}… ({length} characters, hash {})", &hash[..8])
}

/// A printable, shortened copy of text that is evidence but no secret.
pub fn excerpt(text: &[u8]) -> String {
    let lossy = String::from_utf8_lossy(text);
    let mut out = String::with_capacity(text.len().min(EXCERPT_CHARS) + 4);
    let mut spaced = false;
    for (count, character) in lossy.trim().chars().enumerate() {
        if count >= EXCERPT_CHARS {
            out.push('…');
            break;
        }
        if character.is_whitespace() {
            if !spaced {
                out.push(' ');
            }
            spaced = true;
            continue;
        }
        spaced = false;
        if is_invisible(character) {
            // Writing to a String can't fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
        } else {
            out.push(printable(character));
        }
    }
    out
}

fn printable(character: char) -> char {
    if character.is_control() {
        '·'
    } else {
        character
    }
}

fn is_invisible(character: char) -> bool {
    crate::normalize::invisible::class(character).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed_whole() {
        let value = b"ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let text = secret("GitHub token", value);
        assert!(
            text.starts_with("GitHub token ghp_… (40 characters, hash "),
            "{text}"
        );
        assert!(!text.contains("0123456789"));
        assert_eq!(secret("password", b"abc"), secret("password", b"abc"));
        assert!(secret("password", b"abc").starts_with("password … (3 characters"));
        assert!(secret("password", b"hunter22").starts_with("password hu… (8 characters"));
    }

    #[test]
    fn an_excerpt_cannot_forge_lines_or_colours() {
        assert_eq!(excerpt(b"a\x1b[31m\n\n  b\x07"), "a·[31m b·");
        assert_eq!(excerpt("x\u{202e}y".as_bytes()), "x\\u{202e}y");
        assert_eq!(excerpt(&[b'a'; 500]).chars().count(), EXCERPT_CHARS + 1);
        assert_eq!(excerpt(&[0xff, 0xfe]), "\u{fffd}\u{fffd}");
    }
}
