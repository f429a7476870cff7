//! `run --inspect`: what the command prints is inspected as it passes.
//!
//! Advice for whoever reads the output next. Nothing is held back and no byte is changed: the
//! bytes are out before they are looked at.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::Serialize;
use stockade_engine::Stream;
use stockade_inspect::{Finding, Kinds, StreamInspector, Tally, ThreatLevel};

use crate::output::{self, Format};

/// As many findings are kept; the totals count all of them.
const KEPT: usize = 1000;
/// As many are told on stderr.
const TOLD: usize = 5;

/// Inspects each stream of a command by itself.
#[derive(Default)]
pub(super) struct Inspector(RefCell<State>);

#[derive(Default)]
struct State {
    streams: BTreeMap<Stream, StreamInspector>,
    findings: Vec<Found>,
}

/// What was found in the output of a run: the field `inspection` of its report.
#[derive(Debug, Serialize)]
pub(super) struct Inspection {
    safe: bool,
    level: ThreatLevel,
    score: f32,
    /// How many there were, those that were not kept included.
    count: u64,
    findings: Vec<Found>,
}

#[derive(Debug, Serialize)]
struct Found {
    stream: &'static str,
    #[serde(flatten)]
    finding: Finding,
}

impl Inspector {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Ends every stream.
    pub(super) fn finish(self) -> Inspection {
        let mut state = self.0.into_inner();
        let mut total = Tally::default();
        for (stream, inspector) in std::mem::take(&mut state.streams) {
            let (last, tally) = inspector.finish();
            state.keep(stream, last);
            total.merge(&tally);
        }
        Inspection {
            safe: total.is_safe(),
            level: total.level(),
            score: total.score(),
            count: total.count(),
            findings: state.findings,
        }
    }

    /// Takes what a stream printed.
    pub(super) fn passed(&self, stream: Stream, bytes: &[u8]) {
        let mut state = self.0.borrow_mut();
        let inspector = state
            .streams
            .entry(stream)
            .or_insert_with(|| StreamInspector::new(Kinds::ALL, [""; 0]));
        let findings = inspector.feed(bytes);
        state.keep(stream, findings);
    }
}

impl State {
    fn keep(&mut self, stream: Stream, findings: Vec<Finding>) {
        let room = KEPT.saturating_sub(self.findings.len());
        let stream = name(stream);
        let found = findings.into_iter().take(room);
        self.findings
            .extend(found.map(|finding| Found { stream, finding }));
    }
}

impl Inspection {
    /// What a person should know at once, in a few lines on standard error.
    pub(super) fn tell(&self, format: Format) {
        let grave = |found: &&Found| found.finding.level >= ThreatLevel::Medium;
        for Found { stream, finding } in self.findings.iter().filter(grave).take(TOLD) {
            let text = format!(
                "found in {stream} at byte {}: {} {}: {} [{}]",
                finding.span.start,
                finding.level.name(),
                finding.rule,
                finding.message,
                finding.content,
            );
            output::warn(&text, format);
        }
        let more = self
            .findings
            .iter()
            .filter(grave)
            .count()
            .saturating_sub(TOLD);
        if more > 0 {
            let text = format!("{more} more were found; `--report FILE` has all");
            output::warn(&text, format);
        }
    }
}

const fn name(stream: Stream) -> &'static str {
    match stream {
        Stream::Stderr => "stderr",
        Stream::Stdout => "stdout",
        Stream::Terminal => "terminal",
    }
}
