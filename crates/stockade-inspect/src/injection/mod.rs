//! Prompt injection: text that tries to steer an agent.
//!
//! Protects an agent's loop from the output of its tools: a web page, a mail, a log line or a
//! source comment that is data but reads like an instruction. Words are looked up in a lexicon of
//! meanings (the ten most spoken languages and some more), rules match sequences of meanings,
//! and the weights of what matched in one passage add up to a score. It does not understand
//! text: a paraphrase that avoids every known meaning passes.

mod concealed;
pub(crate) mod hidden;
mod lexicon;
mod markers;
mod matcher;
mod register;
mod rules;
mod score;
mod words;

use crate::finding::Finding;
use crate::normalize::View;
use crate::peek::{self, Encoding, Layer};

use lexicon::{Class, REVERSED, ROT13};
use matcher::Signal;
use rules::{Rule, Theme};
use words::Word;

static ENCODED: Rule = Rule {
    id: "injection.encoded",
    theme: Theme::Disguise,
    weight: 2.0,
    is_role: false,
    steps: &[],
};

/// Reports what is in the view; returns layers that only this lexicon can see.
pub(crate) fn scan(
    view: &View<'_>,
    encoding: Option<Encoding>,
    findings: &mut Vec<Finding>,
) -> Vec<Layer> {
    let text = view.text();
    let words = words::read(text);
    let (mut signals, classes) = matcher::signals(&words);
    markers::signals(text, &words, &mut signals);
    concealed::signals(text, &mut signals);
    if encoding.is_some_and(is_disguise) {
        let marked: Vec<Signal> = signals
            .iter()
            .map(|signal| Signal {
                rule: &ENCODED,
                weight: ENCODED.weight,
                ..signal.clone()
            })
            .collect();
        signals.extend(marked);
    }
    signals.sort_by_key(|signal| (signal.words.start, signal.bytes.start));
    score::judge(view, &signals, score::threshold(text.len()), findings);
    let mut layers = Vec::new();
    if classes & ROT13 != 0 {
        layers = lines_of(text, &words, ROT13, Encoding::Rot13, peek::rot13);
    }
    if classes & REVERSED != 0 {
        layers.extend(lines_of(
            text,
            &words,
            REVERSED,
            Encoding::Reversed,
            reversed,
        ));
    }
    words::give_back(words);
    layers
}

/// True for encodings that people do not use by accident for running text.
const fn is_disguise(encoding: Encoding) -> bool {
    matches!(
        encoding,
        Encoding::Base64
            | Encoding::Binary
            | Encoding::Hex
            | Encoding::Invisible
            | Encoding::Reversed
            | Encoding::Rot13
    )
}

/// The lines where two words of a disguise stand near each other, undone.
fn lines_of(
    text: &[u8],
    words: &[Word],
    class: Class,
    encoding: Encoding,
    undo: fn(&[u8]) -> Vec<u8>,
) -> Vec<Layer> {
    const NEAR: u32 = 12;
    const MAX_LAYER_BYTES: usize = 2048;
    let mut layers: Vec<Layer> = Vec::new();
    let mut previous: Option<&Word> = None;
    for word in words.iter().filter(|word| word.has(class)) {
        let at = word.range().start;
        if previous.is_some_and(|before| word.index - before.index <= NEAR)
            && layers.last().is_none_or(|layer| layer.source.end <= at)
        {
            let before = text.get(..at).unwrap_or_default();
            let start = before
                .iter()
                .rev()
                .take(MAX_LAYER_BYTES)
                .position(|b| *b == b'\n')
                .map_or(at.saturating_sub(MAX_LAYER_BYTES), |back| at - back);
            let after = text.get(at..).unwrap_or_default();
            let end = at
                + after
                    .iter()
                    .take(MAX_LAYER_BYTES)
                    .position(|b| *b == b'\n')
                    .unwrap_or(after.len().min(MAX_LAYER_BYTES));
            let source = text.get(start..end).unwrap_or_default();
            layers.push(Layer {
                encoding,
                source: start..end,
                text: undo(source),
            });
        }
        previous = Some(word);
    }
    layers
}

fn reversed(text: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(text)
        .chars()
        .rev()
        .collect::<String>()
        .into_bytes()
}
