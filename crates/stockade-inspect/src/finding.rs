//! What an inspection says: findings, their levels, and the result over one text.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much a finding matters, from nothing to certain harm.
///
/// Deliberately exhaustive: the scale is part of the output schema.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the scale is fixed by the output schema"
)]
pub enum ThreatLevel {
    /// Nothing found.
    #[default]
    None,
    /// Worth knowing, harmless by itself: the text stays `safe`.
    Low,
    /// A person should look before acting on the text.
    Medium,
    /// Very likely hostile or a real leak.
    High,
    /// Beyond doubt, or the damage would be severe.
    Critical,
}

impl ThreatLevel {
    /// The lower-case name used in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    /// One step up the scale, if there is one.
    #[must_use]
    pub const fn raised(self) -> Self {
        match self {
            Self::None => Self::Low,
            Self::Low => Self::Medium,
            Self::Medium => Self::High,
            Self::High | Self::Critical => Self::Critical,
        }
    }

    /// Share of a finding's confidence that counts towards the score of the whole text.
    const fn weight(self) -> f32 {
        match self {
            Self::None => 0.0,
            Self::Low => 0.15,
            Self::Medium => 0.6,
            Self::High => 0.85,
            Self::Critical => 1.0,
        }
    }
}

impl fmt::Display for ThreatLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "NONE",
            Self::Low => "LOW",
            Self::Medium => "MEDIUM",
            Self::High => "HIGH",
            Self::Critical => "CRITICAL",
        })
    }
}

/// What sort of thing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingType {
    /// A secret in the clear.
    DataLeak,
    /// A command or text that carries data to another host.
    Egress,
    /// Characters or markup that show a person something else than a model reads.
    HiddenText,
    /// Text that tries to steer an agent.
    PromptInjection,
}

impl FindingType {
    /// The name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataLeak => "data_leak",
            Self::Egress => "egress",
            Self::HiddenText => "hidden_text",
            Self::PromptInjection => "prompt_injection",
        }
    }
}

impl fmt::Display for FindingType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A range of bytes in the inspected input, before any normalisation or decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a pair of offsets will not grow")]
pub struct Span {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset after the last byte.
    pub end: u64,
}

/// One thing found.
///
/// `content` never holds a whole secret: see [`crate::redact`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// What sort of thing it is.
    #[serde(rename = "type")]
    pub kind: FindingType,
    /// How much it matters.
    pub level: ThreatLevel,
    /// One line for a person: what it is and why it matters.
    pub message: String,
    /// The evidence, shortened, printable and redacted.
    pub content: String,
    /// Stable name of the rule, such as `secret.github-token`.
    pub rule: &'static str,
    /// Where the evidence lies in the original bytes.
    pub span: Span,
    /// How sure the rule is, 0 to 1.
    pub confidence: f32,
}

/// The outcome of inspecting one text.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct InspectionResult {
    /// True if nothing of level medium or above was found.
    pub safe: bool,
    /// Every match, ordered by position.
    pub findings: Vec<Finding>,
    /// How likely it is that the text holds something harmful, 0 to 1.
    pub score: f32,
}

impl InspectionResult {
    /// The highest level among the findings.
    pub fn level(&self) -> ThreatLevel {
        self.findings
            .iter()
            .map(|finding| finding.level)
            .max()
            .unwrap_or_default()
    }

    pub(crate) fn from_findings(findings: Vec<Finding>) -> Self {
        let mut tally = Tally::default();
        for finding in &findings {
            tally.add(finding);
        }
        Self {
            safe: tally.is_safe(),
            score: tally.score(),
            findings,
        }
    }
}

/// Running totals over findings that are not kept: what a stream needs in bounded memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    level: ThreatLevel,
    count: u64,
    doubt: f32,
}

impl Tally {
    /// Takes one finding into account.
    pub fn add(&mut self, finding: &Finding) {
        self.level = self.level.max(finding.level);
        self.count += 1;
        self.doubt *= 1.0 - (finding.confidence * finding.level.weight()).clamp(0.0, 0.999);
    }

    /// Takes the findings of another text into account.
    pub fn merge(&mut self, other: &Self) {
        self.level = self.level.max(other.level);
        self.count += other.count;
        self.doubt *= other.doubt;
    }

    /// The highest level so far.
    pub fn level(&self) -> ThreatLevel {
        self.level
    }

    /// How many findings there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// True while nothing of level medium or above was found.
    pub fn is_safe(&self) -> bool {
        self.level < ThreatLevel::Medium
    }

    /// How likely it is that something harmful was found, 0 to 1.
    ///
    /// Findings are combined as independent evidence (noisy or), weighted by level.
    pub fn score(&self) -> f32 {
        1.0 - self.doubt
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            level: ThreatLevel::None,
            count: 0,
            doubt: 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(level: ThreatLevel, confidence: f32) -> Finding {
        Finding {
            kind: FindingType::Egress,
            level,
            message: String::new(),
            content: String::new(),
            rule: "test",
            span: Span { start: 0, end: 1 },
            confidence,
        }
    }

    #[test]
    fn low_findings_stay_safe_and_medium_ones_do_not() {
        assert!(InspectionResult::from_findings(vec![finding(ThreatLevel::Low, 1.0)]).safe);
        assert!(!InspectionResult::from_findings(vec![finding(ThreatLevel::Medium, 0.1)]).safe);
        assert!(InspectionResult::from_findings(vec![]).safe);
    }

    #[test]
    fn score_grows_with_evidence_and_stays_below_one() {
        let one = InspectionResult::from_findings(vec![finding(ThreatLevel::High, 0.5)]);
        let many = InspectionResult::from_findings(vec![finding(ThreatLevel::Critical, 1.0); 50]);
        assert!(one.score > 0.4 && one.score < 0.45, "{}", one.score);
        assert!(many.score > one.score && many.score <= 1.0);
    }

    #[test]
    fn levels_are_ordered_and_print_in_capitals() {
        assert!(ThreatLevel::None < ThreatLevel::Low && ThreatLevel::High < ThreatLevel::Critical);
        assert_eq!(ThreatLevel::Critical.to_string(), "CRITICAL");
        assert_eq!(ThreatLevel::Critical.raised(), ThreatLevel::Critical);
    }
}
