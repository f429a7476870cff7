//! How a text of any size is cut into windows, so that memory stays bounded and the findings do
//! not depend on how the text arrived.
//!
//! Windows overlap. Each owns the part up to where the next begins, and reports what *starts*
//! there: so a finding is reported once, and whole, as long as it is shorter than the overlap.
//! Where a window ends depends on the text alone, never on how it was fed.

/// Bytes in a window.
pub(crate) const WINDOW: usize = 64 * 1024;
/// Bytes that two windows share, at least.
pub(crate) const OVERLAP: usize = 4 * 1024;

/// Where the window after this one begins. `text` is a full window, with more to follow.
///
/// After a line break if there is one near, else after white space, else between two characters.
pub(crate) fn next(text: &[u8]) -> usize {
    let last = text.len().saturating_sub(OVERLAP);
    let first = last.saturating_sub(OVERLAP);
    let candidates = text.get(first..last).unwrap_or_default();
    if let Some(at) = candidates.iter().rposition(|byte| *byte == b'\n') {
        return first + at + 1;
    }
    if let Some(at) = candidates.iter().rposition(u8::is_ascii_whitespace) {
        return first + at + 1;
    }
    // Not inside a UTF-8 character: its continuation bytes are 10xxxxxx.
    let inside = text
        .get(..=last)
        .unwrap_or_default()
        .iter()
        .rev()
        .take(3)
        .take_while(|byte| **byte & 0xc0 == 0x80)
        .count();
    last - inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_after_a_line_else_a_blank_else_a_character() {
        let mut text = vec![b'a'; WINDOW];
        assert_eq!(next(&text), WINDOW - OVERLAP);
        text[WINDOW - OVERLAP - 100] = b' ';
        assert_eq!(next(&text), WINDOW - OVERLAP - 99);
        text[WINDOW - OVERLAP - 200] = b'\n';
        assert_eq!(next(&text), WINDOW - OVERLAP - 199);
        let text = "é".repeat(WINDOW / 2 + 1).into_bytes();
        let cut = next(text.get(1..=WINDOW).unwrap());
        assert_eq!(text[cut + 1] & 0xc0, 0xc0, "{cut}");
    }
}
