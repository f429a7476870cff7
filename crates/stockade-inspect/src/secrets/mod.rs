//! Secrets in text: known token formats, private keys, connection strings, assignments.
//!
//! Protects against a tool's output carrying a credential into a model's context, a log or a
//! commit. It reads the text only: it asks no issuer whether a token is alive. A finding shows
//! the kind, the first four characters, the length and a hash, never the secret.

mod assign;
mod checksum;
mod custom;
mod formats;
mod name;
mod shape;

use std::ops::Range;

use custom::{CUSTOM, Match, commands};
use formats::tables::{CALLS, COMMANDS, KEYWORDS, SERVICES};
use formats::{ANCHORS, FORMATS};
use name::Promise;

use crate::finding::{Finding, FindingType, ThreatLevel};
use crate::normalize::View;
use crate::redact;
use crate::trigger::Triggers;

/// How many literals begin each sort of secret, in the order of [`LITERALS`].
const SORTS: [usize; 6] = [
    ANCHORS.len(),
    CUSTOM.len(),
    COMMANDS.len(),
    CALLS.len(),
    KEYWORDS.len(),
    SERVICES.len(),
];

const COUNT: usize = SORTS[0] + SORTS[1] + SORTS[2] + SORTS[3] + SORTS[4] + SORTS[5];

const LITERALS: [&str; COUNT] = {
    let mut all = [""; COUNT];
    let mut at = 0;
    let mut sort = 0;
    while sort < SORTS.len() {
        let mut row = 0;
        while row < SORTS[sort] {
            all[at] = match sort {
                0 => ANCHORS[row].0,
                1 => CUSTOM[row].0,
                2 => COMMANDS[row].0,
                3 => CALLS[row].0,
                4 => KEYWORDS[row],
                _ => SERVICES[row],
            };
            at += 1;
            row += 1;
        }
        sort += 1;
    }
    all
};

static TRIGGERS: Triggers<{ LITERALS.len() }> = Triggers::new(&LITERALS);

/// Every secret in the view.
pub(crate) fn scan(view: &View<'_>, runs: &[Range<usize>]) -> Vec<Finding> {
    let text = view.text();
    let mut matches = Vec::new();
    let mut assigned_until = 0;
    TRIGGERS.scan(text, |at, literal| {
        let mut row = literal;
        let mut sort = 0;
        while row >= SORTS[sort] {
            row -= SORTS[sort];
            sort += 1;
        }
        match sort {
            0 => matches.extend(FORMATS[ANCHORS[row].1].find(text, at, ANCHORS[row].0)),
            1 => matches.extend(CUSTOM[row].1(text, at)),
            2 => matches.extend(commands::option(text, at, &COMMANDS[row])),
            3 => matches.extend(commands::argument(text, at, &CALLS[row])),
            // One assignment can hold several keywords in its name: `secret_access_key`.
            _ if at < assigned_until => {}
            _ => {
                if let Some(found) = assign::at(text, at) {
                    assigned_until = found.value.end;
                    matches.push(assigned(found));
                }
            }
        }
    });
    matches.extend(runs.iter().filter_map(|run| formats::in_run(text, run)));
    keep_best(matches)
        .into_iter()
        .map(|found| finding(view, &found))
        .collect()
}

fn assigned(found: assign::Assigned) -> Match {
    let (rule, name) = match found.promise {
        Promise::Password => ("secret.password", "password"),
        Promise::Token => ("secret.generic", "secret"),
        Promise::Key => ("secret.generic-key", "key"),
    };
    let level = if found.confidence >= 0.7 {
        ThreatLevel::High
    } else {
        ThreatLevel::Medium
    };
    Match {
        rule,
        name,
        value: found.value,
        level,
        confidence: found.confidence,
    }
}

/// Of matches that overlap, keeps the surest; of equals the longest.
fn keep_best(mut matches: Vec<Match>) -> Vec<Match> {
    matches.sort_by(|a, b| {
        (b.level, b.confidence, b.value.len())
            .partial_cmp(&(a.level, a.confidence, a.value.len()))
            .unwrap_or(std::cmp::Ordering::Equal)
            .then(a.value.start.cmp(&b.value.start))
    });
    // Taken by start: overlaps can only be with the neighbours in this map.
    let mut kept: std::collections::BTreeMap<usize, Match> = std::collections::BTreeMap::new();
    for found in matches {
        let before = kept.range(..found.value.end).next_back();
        if before.is_none_or(|(_, other)| other.value.end <= found.value.start) {
            kept.insert(found.value.start, found);
        }
    }
    kept.into_values().collect()
}

fn finding(view: &View<'_>, found: &Match) -> Finding {
    let value = view.text().get(found.value.clone()).unwrap_or_default();
    Finding {
        kind: FindingType::DataLeak,
        level: found.level,
        message: format!("{} in the clear", found.name),
        content: redact::secret(found.name, value),
        rule: found.rule,
        span: view.span(found.value.clone()),
        confidence: found.confidence,
    }
}
