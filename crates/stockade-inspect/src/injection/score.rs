//! Weak signals together: passages, their scores, and the findings they give.

use super::matcher::Signal;
use super::register;
use super::rules::Theme;
use crate::finding::{Finding, FindingType, ThreatLevel};
use crate::normalize::View;
use crate::redact;

/// Words without a signal that end a passage.
const APART: u32 = 60;
/// Longest passage, in words.
const MAX_PASSAGE_WORDS: u32 = 400;
/// What further rules of a theme count, compared with its strongest.
const REPEATED: f32 = 0.3;
/// Weight from which a signal is worth a finding of its own.
const NOTABLE: f32 = 2.5;
/// A signal below this weight stands in honest prompts too.
const MAX_SIDE_WEIGHT: f32 = 2.5;

/// The score from which a passage is reported, in a text of this many bytes.
///
/// The longer the text, the more passages there are that could look like an attack by chance.
pub(super) fn threshold(length: usize) -> f32 {
    match length {
        0..=150 => 2.4,
        151..=1000 => 2.6,
        1001..=4000 => 3.4,
        4001..=16000 => 4.0,
        _ => 4.5,
    }
}

/// Turns signals, ordered by their first word, into findings.
pub(super) fn judge(
    view: &View<'_>,
    signals: &[Signal],
    threshold: f32,
    findings: &mut Vec<Finding>,
) {
    let mut rest = signals;
    while let Some(first) = rest.first() {
        let mut end = first.words.end;
        let length = rest
            .iter()
            .take_while(|signal| {
                let near = signal.words.start <= end.saturating_add(APART)
                    && signal.words.start - first.words.start <= MAX_PASSAGE_WORDS;
                if near {
                    end = end.max(signal.words.end);
                }
                near
            })
            .count();
        let (passage, later) = rest.split_at(length);
        report(view, passage, threshold, findings);
        rest = later;
    }
}

fn report(view: &View<'_>, passage: &[Signal], threshold: f32, findings: &mut Vec<Finding>) {
    let score = score(passage);
    if score < threshold {
        return;
    }
    let confidence = 1.0 / (1.0 + (-(score - threshold + 0.5)).exp());
    let level = match score - threshold {
        // An honest prompt gives a role and a task too: worth knowing, no reason to stop.
        _ if is_role_only(passage) && register::is_prompt(view.text()) => ThreatLevel::Low,
        over if over >= 5.0 => ThreatLevel::Critical,
        over if over >= 2.5 => ThreatLevel::High,
        _ => ThreatLevel::Medium,
    };
    let mut notable: Vec<&Signal> = passage
        .iter()
        .filter(|signal| signal.weight >= NOTABLE)
        .collect();
    // One finding for each rule and place: of overlapping matches of a rule, the widest.
    notable.sort_by(|a, b| {
        (a.rule.id, a.bytes.start, b.bytes.end).cmp(&(b.rule.id, b.bytes.start, a.bytes.end))
    });
    notable.dedup_by(|b, a| a.rule.id == b.rule.id && b.bytes.start < a.bytes.end);
    if notable.is_empty() {
        let start = passage
            .iter()
            .map(|signal| signal.bytes.start)
            .min()
            .unwrap_or_default();
        let end = passage
            .iter()
            .map(|signal| signal.bytes.end)
            .max()
            .unwrap_or_default();
        let mut themes: Vec<Theme> = passage
            .iter()
            .map(|signal| signal.rule.theme)
            .filter(|theme| *theme != Theme::Benign)
            .collect();
        themes.sort_unstable();
        themes.dedup();
        let reasons: Vec<&str> = themes.iter().map(|theme| theme.message()).collect();
        findings.push(Finding {
            kind: FindingType::PromptInjection,
            level,
            message: format!("text {}", reasons.join(", ")),
            content: redact::excerpt(view.text().get(start..end).unwrap_or_default()),
            rule: "injection.combined",
            span: view.span(start..end),
            confidence,
        });
    }
    for signal in notable {
        findings.push(Finding {
            kind: FindingType::PromptInjection,
            level,
            message: format!("text {}", signal.rule.theme.message()),
            content: redact::excerpt(view.text().get(signal.bytes.clone()).unwrap_or_default()),
            rule: signal.rule.id,
            span: view.span(signal.bytes.clone()),
            confidence,
        });
    }
}

/// True if nothing of weight speaks for an attack but that the text gives its reader a role.
fn is_role_only(passage: &[Signal]) -> bool {
    let others = passage
        .iter()
        .filter(|signal| !signal.rule.is_role && signal.weight > 0.0)
        .map(|signal| signal.weight);
    others.fold(0.0_f32, f32::max) < MAX_SIDE_WEIGHT
}

/// Adds up a passage: themes in full, further rules of one theme in part, repetitions not at all.
fn score(passage: &[Signal]) -> f32 {
    let mut signals: Vec<&Signal> = passage.iter().collect();
    signals.sort_by(|a, b| {
        let order = (a.rule.theme, std::ptr::from_ref(a.rule))
            .cmp(&(b.rule.theme, std::ptr::from_ref(b.rule)));
        order.then(b.weight.total_cmp(&a.weight))
    });
    signals.dedup_by(|b, a| std::ptr::eq(a.rule, b.rule));
    let mut strongest = [0.0_f32; Theme::COUNT];
    let mut others = [0.0_f32; Theme::COUNT];
    let mut against = 0.0;
    for signal in signals {
        let theme = signal.rule.theme as usize;
        if signal.weight < 0.0 {
            against += signal.weight;
            continue;
        }
        if signal.weight > strongest[theme] {
            others[theme] += strongest[theme];
            strongest[theme] = signal.weight;
        } else {
            others[theme] += signal.weight;
        }
    }
    strongest
        .iter()
        .zip(&others)
        .map(|(strongest, others)| strongest + (others * REPEATED).min(2.0))
        .sum::<f32>()
        + against
}
