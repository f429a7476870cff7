//! Data leaving: commands that send, programs that connect, links that carry.
//!
//! Protects against an agent (or what it was told) carrying files, secrets or the environment to
//! another host. Commands are read with the shell parser and judged by what they send and where;
//! hosts are compared whole with the allowed ones. It sees what stands in the text: a script
//! fetched at run time, or a program that computes its target, is not seen.

mod arguments;
mod carriers;
mod cloud;
mod code;
mod command;
mod http;
mod links;
mod outflow;
mod places;
mod programs;
mod sensitive;
mod services;
mod sockets;
mod verdict;

use std::ops::Range;

use crate::finding::{Finding, FindingType};
use crate::hosts::HostList;
use crate::normalize::View;
use crate::redact;
use crate::trigger::Triggers;

use outflow::{Manner, Outflow};
use places::LITERALS;
use programs::{CODE, SHELLS};
use verdict::Verdicts;

/// All that is looked for, in the order: commands, programs, shells, links, hidden commands.
const ALL: [&str; LINKS_END + verdict::HIDDEN.len()] = {
    let mut all = [""; LINKS_END + verdict::HIDDEN.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < LITERALS.len() {
            LITERALS[at]
        } else if at < PROGRAMS_END {
            CODE[at - LITERALS.len()]
        } else if at < SHELLS_END {
            SHELLS[at - PROGRAMS_END]
        } else if at < LINKS_END {
            links::LITERALS[at - SHELLS_END]
        } else {
            verdict::HIDDEN[at - LINKS_END]
        };
        at += 1;
    }
    all
};

const PROGRAMS_END: usize = LITERALS.len() + CODE.len();
const SHELLS_END: usize = PROGRAMS_END + SHELLS.len();
const LINKS_END: usize = SHELLS_END + links::LITERALS.len();

/// How many commands of one line are read on their own.
const TAILS: usize = 4;

static TRIGGERS: Triggers<{ ALL.len() }> = Triggers::new(&ALL);

/// Everything in the view that carries data out.
pub(crate) fn scan(view: &View<'_>, allowed: &HostList) -> Vec<Finding> {
    let text = view.text();
    let mut found: Vec<(Range<usize>, Outflow)> = Vec::new();
    let mut code_done = 0;
    let (mut passage_done, mut tail_done, mut tails) = (0, 0, 0);
    let mut hidden_done = 0;
    let mut verdicts = Verdicts::new();
    TRIGGERS.scan(text, |at, literal| {
        if literal >= LINKS_END {
            if at >= hidden_done.max(passage_done) {
                let passage = places::passage(text, at);
                hidden_done = passage.end;
                let script = utf8(text, &passage);
                add(&passage, verdicts.outflows(&script), &mut found);
            }
        } else if literal >= SHELLS_END {
            links::at(text, at, allowed, &mut found);
        } else if literal >= PROGRAMS_END {
            programs::raw_shell(text, at, literal - PROGRAMS_END, &mut found);
        } else if literal >= LITERALS.len() {
            programs::code_passage(text, at, &mut code_done, &mut found);
        } else if (at >= tail_done || tails < TAILS)
            && places::is_worth(text, at, literal)
            && places::is_command_position(text, at)
        {
            if at >= passage_done {
                let passage = places::passage(text, at);
                passage_done = passage.end;
                read(text, passage, &mut verdicts, &mut found);
            }
            // Not part of a script: after a prompt, or shown in prose.
            if !found
                .iter()
                .rev()
                .take(64)
                .any(|(range, _)| range.contains(&at))
            {
                let tail = places::tail(text, at);
                // The tails of one line are few, so that a long line is not read over and over.
                tails = if at >= tail_done { 1 } else { tails + 1 };
                tail_done = tail_done.max(tail.end);
                read(text, tail, &mut verdicts, &mut found);
            }
        }
    });
    let mut findings: Vec<Finding> = found
        .iter()
        .filter_map(|(range, outflow)| finding(view, range, outflow, allowed))
        .collect();
    findings.sort_by_key(|finding| (finding.span.start, std::cmp::Reverse(finding.level)));
    findings.dedup_by(|b, a| {
        let inside = b.span.start < a.span.end;
        inside && (a.rule == b.rule || b.rule == verdict::RULE && a.level >= b.level)
    });
    findings
}

/// Reads a passage as a script.
fn read(
    text: &[u8],
    passage: Range<usize>,
    verdicts: &mut Verdicts,
    found: &mut Vec<(Range<usize>, Outflow)>,
) {
    let script = utf8(text, &passage);
    let outflows = command::outflows(&script);
    if outflows.is_empty() {
        programs::quoted_commands(&script, passage.start, found);
    }
    add(&passage, outflows, found);
    add(&passage, verdicts.outflows(&script), found);
}

fn add(
    passage: &Range<usize>,
    outflows: Vec<(stockade_shell::Span, Outflow)>,
    found: &mut Vec<(Range<usize>, Outflow)>,
) {
    let base = passage.start;
    let place = |(span, outflow): (stockade_shell::Span, Outflow)| {
        (base + span.start..base + span.end, outflow)
    };
    found.extend(outflows.into_iter().map(place));
}

/// A passage as text. Placeholders of the same length keep the offsets where it is no UTF-8.
fn utf8(text: &[u8], passage: &Range<usize>) -> String {
    let bytes = text.get(passage.clone()).unwrap_or_default();
    let mut script = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        script.push_str(chunk.valid());
        script.extend(chunk.invalid().iter().map(|_| '?'));
    }
    script
}

fn finding(
    view: &View<'_>,
    range: &Range<usize>,
    outflow: &Outflow,
    allowed: &HostList,
) -> Option<Finding> {
    let (level, confidence) = outflow::judge(outflow, allowed)?;
    let target = if outflow.hosts.is_empty() {
        String::new()
    } else {
        format!(" to {}", outflow.hosts.join(", "))
    };
    let what = match outflow.manner {
        Manner::Shell => "hands a shell over".to_owned(),
        Manner::Tunnel => "opens a way in".to_owned(),
        Manner::Contact | Manner::Session => format!("connects{target}"),
        Manner::Covert | Manner::Publish | Manner::Send => {
            format!("sends {}{target}", outflow.data.name())
        }
    };
    Some(Finding {
        kind: FindingType::Egress,
        level,
        message: format!("{} {what}", outflow.act),
        content: evidence(view, range),
        rule: outflow.rule,
        span: view.span(range.clone()),
        confidence,
    })
}

/// The command, with the secrets in it taken out.
fn evidence(view: &View<'_>, range: &Range<usize>) -> String {
    let bytes = view.text().get(range.clone()).unwrap_or_default();
    let mut clean = bytes.to_vec();
    let plain = View::plain(bytes, 0);
    for secret in crate::secrets::scan(&plain, &crate::peek::runs(bytes)) {
        let start = usize::try_from(secret.span.start).unwrap_or_default();
        let end = usize::try_from(secret.span.end)
            .unwrap_or_default()
            .min(clean.len());
        if let Some(value) = clean.get_mut(start..end) {
            value.fill(b'*');
        }
    }
    redact::excerpt(&clean)
}
