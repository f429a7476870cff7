//! `run --redact`: secrets in what the command prints are masked on their way.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use stockade_engine::Stream;
use stockade_inspect::Redactor;

use crate::output::{self, Format};

/// Keys whose echo has not been seen yet; more than a line that a person types.
const MAX_TYPED_BYTES: usize = 4096;

/// Masks each stream of a command by itself.
#[derive(Default)]
pub(super) struct Redaction(RefCell<State>);

#[derive(Default)]
struct State {
    streams: BTreeMap<Stream, Redactor>,
    /// What was typed lately: its echo is shown at once, for the person knows it.
    typed: VecDeque<u8>,
}

/// What was masked in the output of a run: the field `redaction` of its report.
#[derive(Debug, Serialize)]
pub(super) struct Redacted {
    count: u64,
}

impl Redaction {
    pub(super) fn replace(&self, stream: Stream, bytes: &[u8]) -> Vec<u8> {
        let mut state = self.0.borrow_mut();
        let is_echo = stream == Stream::Terminal && state.take_echo(bytes);
        let redactor = state.streams.entry(stream).or_default();
        if is_echo {
            redactor.pass(bytes)
        } else {
            redactor.feed(bytes)
        }
    }

    pub(super) fn typed(&self, keys: &[u8]) {
        let typed = &mut self.0.borrow_mut().typed;
        typed.extend(keys);
        let surplus = typed.len().saturating_sub(MAX_TYPED_BYTES);
        typed.drain(..surplus);
    }

    pub(super) fn rest(&self, stream: Stream) -> Vec<u8> {
        let mut state = self.0.borrow_mut();
        let redactor = state.streams.get_mut(&stream);
        redactor.map(Redactor::finish).unwrap_or_default()
    }

    pub(super) fn finish(self) -> Redacted {
        let streams = self.0.into_inner().streams;
        Redacted {
            count: streams.values().map(Redactor::count).sum(),
        }
    }
}

impl State {
    /// True if the bytes are what was typed, in order.
    fn take_echo(&mut self, bytes: &[u8]) -> bool {
        let is_echo =
            bytes.len() <= self.typed.len() && self.typed.iter().zip(bytes).all(|(a, b)| a == b);
        if is_echo {
            self.typed.drain(..bytes.len());
        }
        is_echo
    }
}

impl Redacted {
    /// Tells a person that the output is not what the command printed.
    pub(super) fn tell(&self, format: Format) {
        if self.count > 0 {
            let plural = if self.count == 1 { "" } else { "s" };
            let text = format!("masked {} secret{plural} in the output", self.count);
            output::warn(&text, format);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &[u8] = b"ghp_vPqMZ0t3JkXq1sLw8bRzNd5cFy2aUe4HgTi7";

    #[test]
    fn the_echo_of_keys_is_shown_at_once_and_other_output_is_held_to_its_line_end() {
        let redaction = Redaction::default();
        redaction.typed(b"ls");
        assert_eq!(redaction.replace(Stream::Terminal, b"l"), b"l");
        assert_eq!(redaction.replace(Stream::Terminal, b"s"), b"s");
        assert!(redaction.replace(Stream::Terminal, b"a").is_empty());
        assert_eq!(redaction.replace(Stream::Terminal, b"b\r\n"), b"ab\r\n");
        // Keys are of the terminal alone.
        redaction.typed(TOKEN);
        assert!(redaction.replace(Stream::Stdout, TOKEN).is_empty());
        assert_eq!(
            redaction.rest(Stream::Stdout),
            b"[redacted secret.github-token]"
        );
        assert_eq!(redaction.finish().count, 1);
    }

    #[test]
    fn keys_without_echo_do_not_pile_up() {
        let redaction = Redaction::default();
        for _ in 0..100 {
            redaction.typed(&[b'x'; 1000]);
        }
        assert_eq!(redaction.0.borrow().typed.len(), MAX_TYPED_BYTES);
    }
}
