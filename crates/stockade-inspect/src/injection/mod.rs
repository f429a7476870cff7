//! Prompt injection: text that tries to steer an agent.
//!
//! Protects an agent's loop from the output of its tools: a web page, a mail, a log line or a
//! source comment that is data but reads like an instruction. Words are looked up in a lexicon of
//! meanings (the ten most spoken languages and some more), rules match sequences of meanings,
//! and the weights of what matched in one passage add up to a score. It does not understand
//! text: a paraphrase that avoids every known meaning passes.

mod english;
mod foreign;
pub(crate) mod hidden;
mod lexicon;
mod matcher;
mod rules;
mod score;
mod words;

use crate::finding::Finding;
use crate::normalize::View;
use crate::peek::{Encoding, Layer};

/// Reports what is in the view; returns layers that only this lexicon can see.
pub(crate) fn scan(view: &View<'_>, encoding: Option<Encoding>, findings: &mut Vec<Finding>) -> Vec<Layer> {
    let words = words::read(view.text());
    let signals = matcher::signals(&words);
    let _ = encoding;
    score::judge(view, &signals, score::threshold(view.text().len()), findings);
    Vec::new()
}
