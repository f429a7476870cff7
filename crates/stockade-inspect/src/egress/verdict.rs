//! What the verifier finds in the commands of a text: data that flows from where it is kept to
//! another machine, whichever program carries it, and shells that are handed over.

use std::sync::OnceLock;

use stockade_verify::{CodeVerifier, Language, Severity, Span, Suppressions, Violation};

use super::code::is_file_name;
use super::outflow::{Manner, Outflow};
use super::sensitive::Data;
use crate::hosts::host_of;

/// The rule of findings that only the flow of data shows.
pub(super) const RULE: &str = "egress.flow";

/// What text goes through before it is run: the command itself may not be there to be read.
pub(super) const HIDDEN: [&str; 14] = [
    "base64 -d",
    "base64 --decode",
    "base64 -D",
    "base32 -d",
    "xxd -r",
    "xxd -p -r",
    "| rev",
    "rev <<<",
    "| sh",
    "| bash",
    "|bash",
    "eval ",
    "${IFS",
    "$'\\x",
];

/// How much of one window the verifier is shown at most: it costs more than the rest together.
const MAX_JUDGED_BYTES: usize = 12 * 1024;

/// The verifier, and how much of the window it may still be shown.
pub(super) struct Verdicts {
    spare: usize,
}

impl Verdicts {
    pub(super) const fn new() -> Self {
        Self {
            spare: MAX_JUDGED_BYTES,
        }
    }

    /// Everything that leaves by the verifier's account, with the span of the command.
    pub(super) fn outflows(&mut self, source: &str) -> Vec<(Span, Outflow)> {
        static VERIFIER: OnceLock<CodeVerifier> = OnceLock::new();
        let Some(spare) = self.spare.checked_sub(source.len()) else {
            return Vec::new();
        };
        self.spare = spare;
        let verifier = VERIFIER.get_or_init(|| {
            let mut verifier = CodeVerifier::new();
            // The author of inspected text is not trusted: a comment in it must not silence a rule.
            verifier.suppressions = Suppressions::Ignore;
            verifier
        });
        let result = verifier.verify_as(source, Language::Bash);
        let errors = result
            .violations
            .into_iter()
            .filter(|violation| violation.severity == Severity::Error);
        errors
            .filter_map(|violation| Some((violation.span, outflow(source, &violation)?)))
            .collect()
    }
}

fn outflow(source: &str, violation: &Violation) -> Option<Outflow> {
    let (rule, act, data, manner) = match violation.rule {
        "exfiltration" => (RULE, "a command", Data::Environment, Manner::Send),
        "reverse-shell" => (
            "egress.reverse-shell",
            "a command",
            Data::None,
            Manner::Shell,
        ),
        _ => return None,
    };
    let command = source.get(violation.span.start..violation.span.end);
    Some(Outflow {
        rule,
        act,
        hosts: hosts(command.unwrap_or_default()),
        data,
        manner,
        wary: true,
    })
}

/// Hosts among the words of a command: in URLs, after `@`, or alone.
fn hosts(command: &str) -> Vec<String> {
    let words = command.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '=' | ';'));
    let mut hosts: Vec<String> = words
        .filter(|word| word.contains("://") || word.contains('@') || word.contains('.'))
        .filter(|word| !word.starts_with(['/', '.', '~', '@', '-', '$']) && !is_file_name(word))
        .filter_map(|word| host_of(word.rsplit('@').next().unwrap_or(word)))
        .filter(|host| host.contains('.'))
        .collect();
    hosts.sort();
    hosts.dedup();
    hosts
}
