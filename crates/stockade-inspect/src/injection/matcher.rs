//! Finds the sequences of the rules in the words of a text.

use std::ops::Range;

use super::lexicon::Class;
use super::rules::{RULES, Rule};
use super::words::Word;

/// A rule that matched.
#[derive(Clone, Debug)]
pub(super) struct Signal {
    pub(super) rule: &'static Rule,
    pub(super) weight: f32,
    /// Number of the first and the last word.
    pub(super) words: Range<u32>,
    /// Bytes of the view.
    pub(super) bytes: Range<usize>,
}

/// Known words looked at after the first of a sequence.
const HORIZON: usize = 32;

/// The union of what sequences may begin with.
const FIRST: Class = {
    let mut first = 0;
    let mut at = 0;
    while at < RULES.len() {
        first |= RULES[at].steps[0].any;
        at += 1;
    }
    first
};

/// Every sequence in the words, at most one for each rule and first word.
pub(super) fn signals(words: &[Word]) -> Vec<Signal> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if !word.has(FIRST) {
            continue;
        }
        let ahead = words.get(at + 1..words.len().min(at + 1 + HORIZON)).unwrap_or_default();
        for rule in RULES {
            if let Some(last) = sequence(rule, *word, ahead) {
                found.push(Signal {
                    rule,
                    weight: rule.weight,
                    words: word.index..last.index + 1,
                    bytes: word.range().start..last.range().end,
                });
            }
        }
    }
    found
}

/// The last word of the shortest match that begins with `first`.
fn sequence(rule: &Rule, first: Word, ahead: &[Word]) -> Option<Word> {
    let (head, steps) = rule.steps.split_first()?;
    if first.classes & head.any == 0 || first.classes & head.all != head.all {
        return None;
    }
    let mut reached: u32 = 0;
    let mut last = first;
    // Bit n of `reached` is set if the sequence so far can end at ahead[n]; the first step ends
    // at `first` itself.
    for (number, step) in steps.iter().enumerate() {
        let mut next: u32 = 0;
        for (at, word) in ahead.iter().enumerate() {
            if word.classes & step.any == 0 || word.classes & step.all != step.all {
                continue;
            }
            let within = |from: Word| (1..=step.gap + 1).contains(&word.index.wrapping_sub(from.index));
            let reachable = if number == 0 {
                within(first)
            } else {
                (0..at).any(|before| reached >> before & 1 == 1 && ahead.get(before).is_some_and(|from| within(*from)))
            };
            if reachable {
                next |= 1 << at;
                if next.count_ones() == 1 {
                    last = *word;
                }
            }
        }
        if next == 0 {
            return None;
        }
        reached = next;
    }
    Some(last)
}
