//! Masks secrets in a text that arrives in pieces and has to go on at once.
//!
//! Protects whoever reads a command's output (a model, a log) from the secrets in it. A line is held
//! back until it is complete, so the result does not depend on how the text was cut; a prompt, which
//! no line break follows, goes on as soon as it ends like one. A secret that is written over several
//! lines is masked only if it is a private key. Masking is advice, like all inspection: a command
//! that wants to leak a secret can spell it in a way that no rule knows.

use std::ops::Range;

use crate::engine::{Engine, Kinds};
use crate::finding::{Finding, FindingType, ThreatLevel};
use crate::hosts::HostList;

/// Bytes of a line that are held back; a longer line goes on in parts.
const MAX_HELD_BYTES: usize = 64 * 1024;
/// Bytes of a long line that stay held back: a secret is shorter.
const OVERLAP_BYTES: usize = 4 * 1024;
/// Bytes already passed on that still count as the context of what follows.
const CONTEXT_BYTES: usize = 1024;

/// Masks the secrets of one stream.
#[derive(Debug)]
pub struct Redactor {
    engine: Engine,
    /// What was passed on lately, then what is held back.
    buffer: Vec<u8>,
    /// How much of the buffer was passed on.
    passed: usize,
    /// The last line began or continued a private key.
    in_key: bool,
    count: u64,
}

impl Default for Redactor {
    fn default() -> Self {
        Self {
            engine: Engine {
                kinds: Kinds::SECRETS,
                allowed: HostList::default(),
            },
            buffer: Vec::new(),
            passed: 0,
            in_key: false,
            count: 0,
        }
    }
}

impl Redactor {
    /// Takes the next bytes; returns what can go on.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.buffer.extend_from_slice(bytes);
        let held = self.buffer.get(self.passed..).unwrap_or_default();
        if let Some(end) = last_line_end(held) {
            return self.release(self.passed + end);
        }
        if held.len() > MAX_HELD_BYTES {
            let end = self.buffer.len() - OVERLAP_BYTES;
            return self.release(self.before_secret(end));
        }
        if is_prompt(held) && !self.in_key && self.masks(self.buffer.len()).is_empty() {
            return self.release(self.buffer.len());
        }
        Vec::new()
    }

    /// Takes bytes that go on unchanged, such as the echo of what a person types.
    pub fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.passed < self.buffer.len() {
            return self.feed(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        self.passed = self.buffer.len();
        self.forget();
        bytes.to_vec()
    }

    /// Ends the text; returns what was held back.
    pub fn finish(&mut self) -> Vec<u8> {
        self.release(self.buffer.len())
    }

    /// How many secrets were masked so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Passes the buffer on up to `end`, secrets masked.
    fn release(&mut self, end: usize) -> Vec<u8> {
        let mut masks = self.masks(end);
        masks.extend(self.key_lines(end));
        masks.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut out = Vec::with_capacity(end - self.passed);
        let mut at = self.passed;
        for (range, rule) in masks {
            if range.end <= at {
                continue;
            }
            out.extend_from_slice(self.buffer.get(at..range.start).unwrap_or_default());
            if range.start >= at && !rule.is_empty() {
                self.count += 1;
                out.extend_from_slice(format!("[redacted {rule}]").as_bytes());
            }
            at = range.end;
        }
        out.extend_from_slice(self.buffer.get(at..end).unwrap_or_default());
        self.passed = end;
        self.forget();
        out
    }

    /// Drops what is too far back to matter.
    fn forget(&mut self) {
        if self.passed > 4 * CONTEXT_BYTES {
            let drop = self.passed - CONTEXT_BYTES;
            self.buffer.drain(..drop);
            self.passed -= drop;
        }
    }

    /// What to mask in the buffer up to `end`, with the rule that found it.
    fn masks(&self, end: usize) -> Vec<(Range<usize>, &'static str)> {
        let text = self.buffer.get(..end).unwrap_or_default();
        let mut masks = Vec::new();
        let mut at = 0;
        // The windows of the engine are larger than what is held back; a chunk may be larger still.
        while at < text.len() {
            let window = text.get(at..text.len().min(at + crate::window::WINDOW));
            let window = window.unwrap_or_default();
            let is_last = at + window.len() == text.len();
            let next = if is_last {
                window.len()
            } else {
                crate::window::next(window)
            };
            let found = self.engine.window(window, at as u64);
            masks.extend(
                found
                    .iter()
                    .filter(|finding| is_secret(finding))
                    .map(|finding| (extend(text, finding), finding.rule)),
            );
            at += next;
        }
        masks.retain(|(range, _)| range.end > self.passed);
        masks
    }

    /// Lines of a private key's body between what was passed on and `end`: the header names the rule.
    fn key_lines(&mut self, end: usize) -> Vec<(Range<usize>, &'static str)> {
        let mut masks = Vec::new();
        let mut at = self.passed;
        for line in self
            .buffer
            .get(self.passed..end)
            .unwrap_or_default()
            .split_inclusive(|byte| *byte == b'\n')
        {
            let range = at..at + line.len();
            at = range.end;
            if self.in_key {
                let is_end = crate::normalize::find(line, b"-----END", 80).is_some();
                self.in_key = !is_end && is_key_line(line);
                if self.in_key || is_end {
                    masks.push((range, ""));
                    continue;
                }
            }
            self.in_key = begins_key(line);
        }
        masks
    }

    /// `end`, or the start of the secret that lies across it.
    fn before_secret(&self, end: usize) -> usize {
        let across = self
            .masks(self.buffer.len())
            .into_iter()
            .map(|(range, _)| range);
        across
            .filter(|range| range.start < end && end < range.end && range.start > self.passed)
            .map(|range| range.start)
            .min()
            .unwrap_or(end)
    }
}

fn is_secret(finding: &Finding) -> bool {
    finding.kind == FindingType::DataLeak && finding.level >= ThreatLevel::Medium
}

/// The bytes to mask for a finding: a value without quotes may go on after a sign that ends it for
/// the rule, as in `Tr0ub4dor&3`.
fn extend(text: &[u8], finding: &Finding) -> Range<usize> {
    let place = |offset: u64| {
        usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(text.len())
    };
    let (start, end) = (place(finding.span.start), place(finding.span.end));
    // The password of a URL ends at the host.
    if finding.rule == "secret.url-password" {
        return start..end;
    }
    let more = text.get(end..).unwrap_or_default().iter();
    let more = more.take_while(|byte| {
        (byte.is_ascii_graphic() || **byte >= 0x80) && !matches!(byte, b'"' | b'\'' | b'`' | b'<')
    });
    start..end + more.count()
}

/// Where the last complete line ends. What moves the cursor ends a line too: a program that draws a
/// whole screen prints no line breaks.
fn last_line_end(text: &[u8]) -> Option<usize> {
    let sign = text
        .iter()
        .rposition(|byte| matches!(byte, b'\n' | b'\r' | 0x07 | 0x08));
    let tail = text.get(sign.map_or(0, |at| at + 1)..).unwrap_or_default();
    let moved = escape_end(tail).map(|end| text.len() - tail.len() + end);
    moved.or(sign.map(|at| at + 1))
}

/// Where the last escape sequence ends that is neither a colour nor the erasing of a line.
fn escape_end(text: &[u8]) -> Option<usize> {
    let mut end = None;
    let mut at = 0;
    while let Some(escape) = text.get(at..)?.iter().position(|byte| *byte == 0x1b) {
        at += escape + 1;
        let Some(rest) = text.get(at..).and_then(|rest| rest.strip_prefix(b"[")) else {
            continue;
        };
        let Some(last) = rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
            break;
        };
        at += 1 + last + 1;
        if !matches!(rest.get(last), Some(b'm' | b'K')) {
            end = Some(at);
        }
    }
    end
}

/// True for a line that waits for an answer: a sign and a blank (`Password: `, `$ `, `>>> `), or a
/// question without any other sign (`name?`).
fn is_prompt(line: &[u8]) -> bool {
    let quotes = line
        .iter()
        .filter(|byte| matches!(byte, b'"' | b'`'))
        .count();
    match line {
        [
            ..,
            b':' | b'?' | b'>' | b'$' | b'#' | b'%' | b')' | b']',
            b' ',
        ] => quotes.is_multiple_of(2),
        [words @ .., b'?'] => words.iter().all(|b| b.is_ascii_alphabetic() || *b == b' '),
        _ => false,
    }
}

fn begins_key(line: &[u8]) -> bool {
    let has = |text: &[u8]| crate::normalize::find(line, text, line.len()).is_some();
    let begins = has(b"BEGIN ") && has(b"PRIVATE KEY") && !has(b"-----END");
    begins || line.starts_with(b"Private-Lines:")
}

/// True for a line of base64, a header of a key, or nothing.
fn is_key_line(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b">").unwrap_or(line).trim_ascii();
    let is_header = [&b"Proc-Type:"[..], b"DEK-Info:", b"Version:", b"Comment:"]
        .iter()
        .any(|header| line.starts_with(header));
    is_header
        || line.iter().all(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'"' | b'\\' | b',')
        })
}
