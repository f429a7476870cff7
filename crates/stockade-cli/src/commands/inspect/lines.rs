//! Line numbers for offsets in a text that is read once.

use std::collections::VecDeque;

/// Offsets of line breaks, those of the recent past only.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Bytes fed so far.
    size: u64,
    /// Line breaks that were forgotten.
    forgotten: u64,
    /// Offsets of the line breaks kept.
    breaks: VecDeque<u64>,
    /// Offset of the last line break forgotten.
    last_forgotten: Option<u64>,
}

/// How far back a finding may lie: more than an inspection window and a chunk.
const KEPT: u64 = 512 * 1024;

/// A place for people: both counted from 1, the column in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) column: u64,
}

impl Lines {
    /// Takes the next bytes of the text.
    pub(super) fn feed(&mut self, chunk: &[u8]) {
        let breaks = chunk.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        self.breaks
            .extend(breaks.map(|(at, _)| self.size + at as u64));
        self.size += chunk.len() as u64;
        let horizon = self.size.saturating_sub(KEPT);
        while self.breaks.front().is_some_and(|offset| *offset < horizon) {
            self.last_forgotten = self.breaks.pop_front();
            self.forgotten += 1;
        }
    }

    /// The place of an offset that is not too far back.
    pub(super) fn place(&self, offset: u64) -> Place {
        let before = self
            .breaks
            .partition_point(|line_break| *line_break < offset);
        let last = match before.checked_sub(1) {
            Some(last) => self.breaks.get(last).copied(),
            None => self.last_forgotten,
        };
        Place {
            line: self.forgotten + before as u64 + 1,
            column: last.map_or(offset + 1, |last| offset.saturating_sub(last)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_one_across_chunks() {
        let mut lines = Lines::default();
        lines.feed(b"ab\nc");
        lines.feed(b"d\n\nx");
        for (offset, line, column) in [
            (0, 1, 1),
            (1, 1, 2),
            (3, 2, 1),
            (4, 2, 2),
            (6, 3, 1),
            (7, 4, 1),
        ] {
            assert_eq!(lines.place(offset), Place { line, column }, "{offset}");
        }
    }

    #[test]
    fn forgets_the_far_past_but_not_the_count() {
        let mut lines = Lines::default();
        for _ in 0..100_000 {
            lines.feed(b"0123456789\n");
        }
        assert!(lines.breaks.len() < 60_000);
        assert_eq!(
            lines.place(1_099_999),
            Place {
                line: 100_000,
                column: 11
            }
        );
    }
}
