//! Secrets in text: known token formats, private keys, connection strings, assignments.
//!
//! Protects against a tool's output carrying a credential into a model's context, a log or a
//! commit. It reads the text only: it asks no issuer whether a token is alive. A finding shows
//! the kind, the first four characters, the length and a hash, never the secret.

mod assign;
mod checksum;
mod custom;
mod name;
mod shape;
mod tokens;

use std::ops::Range;

use custom::{CUSTOM, Match};
use name::Promise;
use shape::{is_example, is_filler};
use tokens::{Check, TOKENS, Token};

use crate::finding::{Finding, FindingType, ThreatLevel};
use crate::normalize::View;
use crate::redact;
use crate::trigger::Triggers;

/// Words inside names that promise a secret.
const KEYWORDS: [&str; 17] = [
    "passw",
    "passphrase",
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "credential",
    "_pw",
    "login",
    "_pat",
    "crumb",
    "psk",
    "auth[",
    "auth =",
    "auth=",
    "auth: ",
];

const LITERALS: [&str; tokens::COUNT + CUSTOM.len() + KEYWORDS.len()] = {
    let mut all = [""; tokens::COUNT + CUSTOM.len() + KEYWORDS.len()];
    let mut at = 0;
    while at < tokens::COUNT {
        all[at] = TOKENS[at].prefix;
        at += 1;
    }
    let mut custom = 0;
    while custom < CUSTOM.len() {
        all[at] = CUSTOM[custom].0;
        custom += 1;
        at += 1;
    }
    let mut keyword = 0;
    while keyword < KEYWORDS.len() {
        all[at] = KEYWORDS[keyword];
        keyword += 1;
        at += 1;
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
        if let Some(token) = TOKENS.get(literal) {
            matches.extend(recognise(token, text, at));
        } else if let Some((_, recognise)) = CUSTOM.get(literal - TOKENS.len()) {
            matches.extend(recognise(text, at));
        } else if at >= assigned_until
            && let Some(found) = assign::at(text, at)
        {
            // One assignment can hold several keywords in its name: `secret_access_key`.
            assigned_until = found.value.end;
            matches.push(assigned(found));
        }
    });
    matches.extend(
        runs.iter()
            .filter_map(|run| custom::in_run(text, run.clone())),
    );
    keep_best(matches)
        .into_iter()
        .map(|found| finding(view, &found))
        .collect()
}

fn recognise(token: &Token, text: &[u8], at: usize) -> Option<Match> {
    let start = at + token.prefix.len();
    if text.get(at..start)? != token.prefix.as_bytes() {
        return None;
    }
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    if before.is_some_and(|byte| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-' | b'.' | b'/') && token.check == Check::Random
    }) {
        return None;
    }
    let length = token.alphabet.run(text.get(start..)?, token.length.1 + 1);
    // Sentences end in full stops, names in hyphens: not part of the token.
    let trailing = text
        .get(start..start + length)?
        .iter()
        .rev()
        .take_while(|b| matches!(b, b'.' | b'-' | b'='))
        .count();
    let length = if length > token.length.1 || length - trailing >= token.length.0 {
        length - trailing
    } else {
        length
    };
    if length < token.length.0 || length > token.length.1 {
        return None;
    }
    let body = text.get(start..start + length)?;
    if text
        .get(start + length)
        .is_some_and(u8::is_ascii_alphanumeric)
    {
        return None;
    }
    if is_filler(body) || is_example(body) || body.ends_with(b"EXAMPLE") {
        return None;
    }
    let confidence = match token.check {
        Check::Crc if checksum::base62_crc32(body) => 0.99,
        Check::Crc => 0.8,
        Check::Random if !is_random(body) => return None,
        Check::Random => 0.85,
        Check::None => 0.93,
    };
    Some(Match {
        rule: token.rule,
        name: token.name,
        value: at..start + length,
        level: token.level,
        confidence,
    })
}

fn is_random(body: &[u8]) -> bool {
    let digits = body.iter().any(u8::is_ascii_digit) && shape::entropy(body) >= 2.6;
    let letters = body.len() >= 24 && shape::entropy(body) >= 3.5 && !shape::is_wordy(body);
    digits || letters
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
