//! Bytes to text, offsets to lines, spans to excerpts.

use std::borrow::Cow;

use crate::result::Span;

/// Where lines begin.
pub(crate) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        let after = text
            .bytes()
            .enumerate()
            .filter(|(_, b)| *b == b'\n')
            .map(|(at, _)| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(after).collect(),
        }
    }

    /// Line and column of an offset, from 1; columns count characters.
    pub(crate) fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts[line - 1];
        let column = self
            .text
            .get(start..offset)
            .map_or(0, |before| before.chars().count());
        (line, column + 1)
    }

    /// The line with this number, without its end.
    pub(crate) fn line(&self, number: usize) -> &'t str {
        let start = self
            .starts
            .get(number.saturating_sub(1))
            .copied()
            .unwrap_or(self.text.len());
        let end = self.starts.get(number).copied().unwrap_or(self.text.len());
        self.text[start..end].trim_end_matches(['\n', '\r'])
    }
}

/// The bytes as text of the same length, and whether they were UTF-8 to begin with.
pub(crate) fn to_text(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return (Cow::Borrowed(text), true);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    (Cow::Owned(text), false)
}

/// The text of a span on one line, shortened.
pub(crate) fn excerpt(text: &str, span: Span) -> String {
    const MAX_EXCERPT_BYTES: usize = 160;
    let code = text.get(span.start..span.end).unwrap_or_default().trim();
    let line = code.lines().next().unwrap_or_default();
    if line.len() == code.len() && line.len() <= MAX_EXCERPT_BYTES {
        return line.to_owned();
    }
    let kept: String = line.chars().take(MAX_EXCERPT_BYTES).collect();
    format!("{kept} …")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        let lines = Lines::new("añb\ncd");
        assert_eq!(lines.position(0), (1, 1));
        assert_eq!(lines.position(3), (1, 3));
        assert_eq!(lines.position(5), (2, 1));
        assert_eq!(lines.line(2), "cd");
        assert_eq!(lines.line(9), "");
    }

    #[test]
    fn other_bytes_keep_their_place() {
        let (text, clean) = to_text(b"a\xff\xfeb\xc3");
        assert_eq!((text.as_ref(), clean), ("a??b?", false));
    }
}
