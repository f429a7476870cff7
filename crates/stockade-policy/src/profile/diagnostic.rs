//! A message about a place in a file, with the line and a caret under it.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use stockade_rules::{AbsPath, Origin};

use super::printable::printable;

/// What is wrong, where, and what to do about it.
///
/// Prints without colours and without control characters: the file may come from anyone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The file.
    pub file: AbsPath,
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    #[serde(skip)]
    excerpt: Excerpt,
}

/// The part of the line that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    text: String,
    caret: Range<usize>,
}

/// A file's text, with its lines found once.
pub(super) struct SourceText<'a> {
    file: &'a AbsPath,
    text: &'a str,
    /// The byte at which each line starts.
    lines: Vec<usize>,
}

/// Characters of a long line that are shown on each side of the caret.
const CONTEXT: usize = 60;

impl<'a> SourceText<'a> {
    pub(super) fn new(file: &'a AbsPath, text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0)
            .chain(ends.map(|(at, _)| at + 1))
            .collect();
        Self { file, text, lines }
    }

    pub(super) fn as_str(&self) -> &'a str {
        self.text
    }

    /// The origin of what stands at this byte.
    pub(super) fn origin(&self, at: usize) -> Origin {
        Origin::line(self.file.as_path(), self.line_of(at))
    }

    /// A message about these bytes.
    pub(super) fn diagnostic(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> Diagnostic {
        let line = self.line_of(span.start);
        let from = self.lines.get(line - 1).copied().unwrap_or_default();
        let rest = self.text.get(from..).unwrap_or_default();
        let whole = rest.lines().next().unwrap_or_default();
        let before = whole.get(..span.start - from).unwrap_or(whole);
        let marked = whole.get(before.len()..).unwrap_or_default();
        let marked = marked.get(..span.len()).unwrap_or(marked);
        let column = before.chars().count();
        Diagnostic {
            file: self.file.clone(),
            line,
            column: column + 1,
            message: message.into(),
            hint,
            excerpt: Excerpt::new(whole, column, marked.chars().count()),
        }
    }

    fn line_of(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at).max(1)
    }
}

impl Excerpt {
    fn new(line: &str, column: usize, width: usize) -> Self {
        let skipped = column.saturating_sub(CONTEXT);
        let width = width.clamp(1, CONTEXT);
        let mut text: String = line
            .chars()
            .skip(skipped)
            .take(column - skipped + width + CONTEXT)
            .map(printable)
            .collect();
        text.truncate(text.trim_end().len());
        let start = column - skipped;
        Self {
            text,
            caret: start..start + width,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(
            f,
            "{}:{number}:{}: {}",
            self.file, self.column, self.message
        )?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {}", self.excerpt.text)?;
        let Range { start, end } = self.excerpt.caret;
        write!(
            f,
            "{margin} | {}{}",
            " ".repeat(start),
            "^".repeat(end - start)
        )
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, span: Range<usize>) -> String {
        let file = AbsPath::new("/f.toml").unwrap();
        SourceText::new(&file, text)
            .diagnostic(span, "bad", None)
            .to_string()
    }

    #[test]
    fn the_caret_stands_under_the_word() {
        assert_eq!(
            shown("a = 1\nbé = 22\n", 7..9),
            "/f.toml:2:2: bad\n  |\n2 | bé = 22\n  |  ^".to_owned()
        );
    }

    #[test]
    fn hostile_text_is_shown_harmlessly() {
        let text = shown("x = \"\u{1b}[2J\u{202e}\"\t", 0..1);
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{202e}'),
            "{text}"
        );
    }

    #[test]
    fn any_span_is_survived() {
        for text in ["", "\n", "é", "a\r\nb", &"x".repeat(5000)] {
            for start in 0..=text.len() + 2 {
                let shown = shown(text, start..start + 1000);
                assert!(shown.len() < 600, "{}", shown.len());
            }
        }
    }
}
