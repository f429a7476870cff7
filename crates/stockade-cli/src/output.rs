//! Printing: data to stdout, talk to stderr, colours only on a terminal.
//!
//! `anstream` strips colours where the stream is no terminal, or `NO_COLOR` or `TERM=dumb` say so.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::failure::{Failure, FailureRecord};

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

/// What a program that reads JSON is told while a command runs and after it.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event<'a> {
    Error { error: FailureRecord<'a> },
    Explanation { explanation: &'a [String] },
    Warning { warning: &'a str },
}

/// Where records go instead of standard error.
static RECORDS: OnceLock<File> = OnceLock::new();

/// Has all later records written to a descriptor of their own.
#[cfg(target_os = "linux")]
pub(crate) fn send_records_to(file: File) {
    // Only the first is asked for by anybody.
    let _ = RECORDS.set(file);
}

fn tell_event(event: &Event<'_>) -> io::Result<()> {
    record(versioned(event)?)
}

/// Writes a JSON document on a line of its own, so that it can be told from what the command itself
/// wrote.
pub(crate) fn record(mut document: String) -> io::Result<()> {
    document.push('\n');
    match RECORDS.get() {
        Some(mut file) => file.write_all(document.as_bytes()),
        None => io::stderr().lock().write_all(document.as_bytes()),
    }
}

/// Tells the person what went wrong. There is nowhere left to report a failure to do so.
pub(crate) fn failure(failure: &Failure, format: Format) {
    let _ = match format {
        Format::Text => failure_text(failure),
        Format::Json => failure_json(failure),
    };
}

/// Writes lines to stderr at once: others write there, too.
fn say(text: &str) -> io::Result<()> {
    let stderr = io::stderr();
    let mut text = match anstream::AutoStream::choice(&stderr) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(text).to_string(),
        _ => text.to_owned(),
    };
    text.push('\n');
    stderr.lock().write_all(text.as_bytes())
}

/// One line of advice or warning on stderr.
pub(crate) fn warn(message: &str, format: Format) {
    let _ = match format {
        Format::Text => say(&format!("{SO_SO}warning:{SO_SO:#} {}", printable(message))),
        Format::Json => tell_event(&Event::Warning { warning: message }),
    };
}

/// What was done, on stderr.
#[cfg(target_os = "linux")]
pub(crate) fn note(message: &str) {
    let _ = say(&printable(message));
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
            say(&format!("{BOLD}{first}{BOLD:#}\n  {rest}"))
        }
        Format::Json => tell_event(&Event::Explanation { explanation: lines }),
    };
}

/// What the person could do next, on stderr.
pub(crate) fn hint(text: &str) -> io::Result<()> {
    say(&format!("{BOLD}hint:{BOLD:#} {}", indented(text)))
}

fn failure_text(failure: &Failure) -> io::Result<()> {
    let message = failure.message();
    say(&format!("{BAD}error:{BAD:#} {}", indented(&message)))?;
    failure.next_step().map_or(Ok(()), hint)
}

fn failure_json(failure: &Failure) -> io::Result<()> {
    tell_event(&Event::Error {
        error: failure.record(),
    })
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
