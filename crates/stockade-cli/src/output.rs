//! Printing: data to stdout, talk to stderr, colours only on a terminal.
//!
//! `anstream` strips colours where the stream is no terminal, or `NO_COLOR` or `TERM=dumb` say so.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::failure::Failure;

/// The version of every JSON document this program prints. It changes when a field changes its
/// meaning or goes away, not when one is added.
pub(crate) const SCHEMA: u32 = 1;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const SO_SO: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();

/// Text or JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Text,
}

/// A document with its version in front.
#[derive(Serialize)]
struct Versioned<T> {
    schema: u32,
    #[serde(flatten)]
    document: T,
}

impl Format {
    pub(crate) const fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// Writes text to stdout; `write` gets a stream that knows whether colours are wanted.
pub(crate) fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(anstream::stdout().lock());
    write(&mut out)?;
    Ok(out.flush()?)
}

/// Writes bytes to stdout as they are.
pub(crate) fn raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// Writes one JSON document to stdout.
pub(crate) fn json(document: impl Serialize) -> Result<(), Failure> {
    let mut bytes = serde_json::to_vec_pretty(&Versioned {
        schema: SCHEMA,
        document,
    })
    .map_err(io::Error::from)?;
    bytes.push(b'\n');
    raw(&bytes)
}

/// Writes one JSON document of many to stdout, on a line of its own.
pub(crate) fn json_line(document: impl Serialize) -> Result<(), Failure> {
    raw(format!("{}\n", versioned(document)?).as_bytes())
}

/// A JSON document with its version, on one line.
pub(crate) fn versioned(document: impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_string(&Versioned {
        schema: SCHEMA,
        document,
    })?)
}

/// Text that came from outside, such as the name of a file, made harmless for a terminal: line
/// breaks and other control characters, and those that turn the direction of text, are escaped.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_harmful)
}

/// The same for a text of several lines.
pub(crate) fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| letter != '\n' && is_harmful(letter))
}

/// A message of several lines. Those behind the first are indented: a name with a line break in it
/// can't make a line that looks like a message of its own.
fn indented(text: &str) -> String {
    printable_lines(text).replace('\n', "\n  ")
}

/// Control characters, and those that show nothing but change how others are shown
/// (CVE-2021-42574).
fn is_harmful(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, harmful: impl Fn(char) -> bool + Copy) -> Cow<'_, str> {
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        if harmful(letter) {
            safe.extend(letter.escape_default());
        } else {
            safe.push(letter);
        }
    }
    Cow::Owned(safe)
}

/// Tells the person what went wrong. There is nowhere left to report a failure to do so.
pub(crate) fn failure(failure: &Failure, format: Format) {
    let _ = match format {
        Format::Text => failure_text(failure),
        Format::Json => failure_json(failure),
    };
}

/// One line of advice or warning on stderr.
pub(crate) fn warn(message: &str, format: Format) {
    let _ = match format {
        Format::Text => {
            let message = printable(message);
            write_error(&format!("{SO_SO}warning:{SO_SO:#} {message}"))
        }
        Format::Json => {
            let record = serde_json::json!({ "schema": SCHEMA, "warning": message });
            write_error(&record.to_string())
        }
    };
}

/// What was done, on stderr.
#[cfg(target_os = "linux")]
pub(crate) fn note(message: &str) {
    let _ = write_error(&printable(message));
}

/// Several lines about what is about to happen, on stderr.
pub(crate) fn explanation(lines: &[String], format: Format) {
    let _ = match format {
        Format::Text => {
            let lines: Vec<_> = lines.iter().map(|line| printable(line)).collect();
            let (first, rest) = lines
                .split_first()
                .map_or(("", &[][..]), |(first, rest)| (&**first, rest));
            let rest = rest.join("\n  ");
            write_error(&format!("{BOLD}{first}{BOLD:#}\n  {rest}"))
        }
        Format::Json => {
            let record = serde_json::json!({ "schema": SCHEMA, "explanation": lines });
            write_error(&record.to_string())
        }
    };
}

/// What the person could do next, on stderr.
pub(crate) fn hint(text: &str) -> io::Result<()> {
    write_error(&format!("{BOLD}hint:{BOLD:#} {}", indented(text)))
}

fn failure_text(failure: &Failure) -> io::Result<()> {
    let message = failure.message();
    write_error(&format!("{BAD}error:{BAD:#} {}", indented(&message)))?;
    failure.next_step().map_or(Ok(()), hint)
}

/// On one line, so that it can be told from what the command itself wrote.
fn failure_json(failure: &Failure) -> io::Result<()> {
    let record = serde_json::json!({ "schema": SCHEMA, "error": failure.record() });
    write_error(&record.to_string())
}

/// Writes to stderr in one call: a command that still runs may write there too, and its text must
/// not get into the middle of a line.
fn write_error(text: &str) -> io::Result<()> {
    let choice = anstream::AutoStream::choice(&io::stderr());
    let mut line = anstream::AutoStream::new(Vec::new(), choice);
    writeln!(line, "{text}")?;
    io::stderr().lock().write_all(&line.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_cannot_drive_the_terminal() {
        assert_eq!(printable_lines("plain\nname é"), "plain\nname é");
        assert_eq!(printable("a\x1b[2Jb\r"), "a\\u{1b}[2Jb\\r");
        assert_eq!(printable("a\u{202e}b\u{2066}"), "a\\u{202e}b\\u{2066}");
        assert_eq!(printable("a\nerror: b"), "a\\nerror: b");
        assert_eq!(indented("a\nerror: b"), "a\n  error: b");
    }
}
