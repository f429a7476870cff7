//! Reading lines whose length is bounded.

use std::io::{self, BufRead};

/// No message is longer; a longer line is skipped and answered with an error.
pub const MAX_LINE_BYTES: usize = 8 << 20;

/// Reads messages, one a line.
#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    line: Vec<u8>,
}

/// A line, as far as it can be read.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are two ways")]
pub enum Line<'a> {
    /// A line without its end.
    Complete(&'a [u8]),
    /// A line that was longer than [`MAX_LINE_BYTES`]; it was skipped.
    TooLong,
}

impl<R: BufRead> LineReader<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Self {
        Self {
            input,
            line: Vec::new(),
        }
    }

    /// The next line that is not blank; none at the end. A last line without an end is a line.
    ///
    /// # Errors
    /// If reading fails.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            self.line.clear();
            let mut is_too_long = false;
            let mut is_end = true;
            loop {
                let available = match self.input.fill_buf() {
                    Ok(available) => available,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                if available.is_empty() {
                    break;
                }
                is_end = false;
                let newline = available.iter().position(|byte| *byte == b'\n');
                let part = &available[..newline.unwrap_or(available.len())];
                if self.line.len() + part.len() > MAX_LINE_BYTES {
                    is_too_long = true;
                    self.line.clear();
                }
                if !is_too_long {
                    self.line.extend_from_slice(part);
                }
                let used = part.len() + usize::from(newline.is_some());
                self.input.consume(used);
                if newline.is_some() {
                    break;
                }
            }
            if is_too_long {
                return Ok(Some(Line::TooLong));
            }
            if is_end {
                return Ok(None);
            }
            if !self.line.trim_ascii().is_empty() {
                return Ok(Some(Line::Complete(&self.line)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_newlines_and_blank_ones_are_skipped() {
        let mut reader = LineReader::new(&b"one\n\n  \r\ntwo"[..]);
        assert_eq!(reader.next_line().unwrap(), Some(Line::Complete(b"one")));
        assert_eq!(reader.next_line().unwrap(), Some(Line::Complete(b"two")));
        assert_eq!(reader.next_line().unwrap(), None);
    }

    #[test]
    fn a_long_line_is_skipped_and_the_next_one_read() {
        let mut text = vec![b'x'; MAX_LINE_BYTES + 1];
        text.extend(b"\nnext\n");
        text.extend(vec![b'y'; MAX_LINE_BYTES]);
        let mut reader = LineReader::new(io::BufReader::new(&text[..]));
        assert_eq!(reader.next_line().unwrap(), Some(Line::TooLong));
        assert_eq!(reader.next_line().unwrap(), Some(Line::Complete(b"next")));
        let Some(Line::Complete(line)) = reader.next_line().unwrap() else {
            panic!("a line of the greatest length is refused");
        };
        assert_eq!(line.len(), MAX_LINE_BYTES);
    }
}
