//! Where rules put what they find.

use std::collections::HashMap;

use crate::result::{Confidence, Severity, Span};
use crate::rule::Rule;

/// A finding before it is placed in lines and columns.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) rule: Rule,
    pub(crate) span: Span,
    pub(crate) reason: String,
    pub(crate) severity: Severity,
    pub(crate) confidence: Confidence,
    /// Weighs the same wherever it stands.
    pub(crate) firm: bool,
}

/// Findings of one text, one for each rule and place.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    items: Vec<Finding>,
    places: HashMap<(Rule, usize, usize), usize>,
    /// What could not be analysed, in words.
    pub(crate) notes: Vec<String>,
}

/// More findings than this in one text say nothing new.
const MOST: usize = 2_000;

impl Findings {
    /// Adds a finding with the rule's own weight.
    pub(crate) fn add(&mut self, rule: Rule, span: Span, reason: impl Into<String>) {
        let info = rule.info();
        self.push(rule, span, reason.into(), info.severity, info.confidence);
    }

    /// Adds a finding that is worth a warning only.
    pub(crate) fn warn(&mut self, rule: Rule, span: Span, reason: impl Into<String>) {
        let confidence = rule.info().confidence.min(Confidence::Medium);
        self.push(rule, span, reason.into(), Severity::Warning, confidence);
    }

    /// Adds a finding that is an error here, whatever the rule's own weight.
    pub(crate) fn raise(&mut self, rule: Rule, span: Span, reason: impl Into<String>) {
        let confidence = rule.info().confidence;
        self.push(rule, span, reason.into(), Severity::Error, confidence);
    }

    /// Adds an error that no script is long or official enough for.
    pub(crate) fn firm(&mut self, rule: Rule, span: Span, reason: impl Into<String>) {
        self.raise(rule, span, reason);
        if let Some(at) = self.places.get(&(rule, span.start, span.end)) {
            self.items[*at].firm = true;
        }
    }

    /// Adds an error if `certain`, else a warning.
    pub(crate) fn weigh(
        &mut self,
        certain: bool,
        rule: Rule,
        span: Span,
        reason: impl Into<String>,
    ) {
        if certain {
            self.raise(rule, span, reason);
        } else {
            self.warn(rule, span, reason);
        }
    }

    fn push(
        &mut self,
        rule: Rule,
        span: Span,
        reason: String,
        severity: Severity,
        confidence: Confidence,
    ) {
        let finding = Finding {
            rule,
            span,
            reason,
            severity,
            confidence,
            firm: false,
        };
        let key = (rule, span.start, span.end);
        if let Some(at) = self.places.get(&key) {
            if severity > self.items[*at].severity {
                self.items[*at] = finding;
            }
            return;
        }
        if self.items.len() < MOST {
            self.places.insert(key, self.items.len());
            self.items.push(finding);
        }
    }

    /// Takes over the findings of a text inside this one: at `base` if it stands there unchanged,
    /// else all at `span`.
    pub(crate) fn absorb(&mut self, inner: Self, span: Span, base: Option<usize>) {
        for finding in inner.items {
            let span = base.map_or(span, |base| {
                Span::new(finding.span.start + base, finding.span.end + base)
            });
            if finding.firm {
                self.firm(finding.rule, span, finding.reason);
                continue;
            }
            self.push(
                finding.rule,
                span,
                finding.reason,
                finding.severity,
                finding.confidence,
            );
        }
        for note in inner.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Turns errors of some rules into warnings.
    pub(crate) fn soften(&mut self, rules: &[Rule]) {
        for finding in &mut self.items {
            if rules.contains(&finding.rule) && !finding.firm {
                finding.severity = Severity::Warning;
            }
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.items.len()
    }

    /// Whether any finding is an error.
    pub(crate) fn has_errors(&self) -> bool {
        self.items
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }

    /// In source order. A general remark is dropped where an error says more of the same place.
    pub(crate) fn into_sorted(mut self) -> (Vec<Finding>, Vec<String>) {
        let errors: Vec<Span> = self
            .items
            .iter()
            .filter(|f| f.severity == Severity::Error)
            .map(|f| f.span)
            .collect();
        let errors: std::collections::HashSet<(usize, usize)> =
            errors.iter().map(|span| (span.start, span.end)).collect();
        self.items.retain(|finding| {
            let general = matches!(
                finding.rule,
                Rule::ExecProcess
                    | Rule::ExecShell
                    | Rule::NetworkAccess
                    | Rule::AccountRead
                    | Rule::CodeDynamic
            );
            let covered = errors.contains(&(finding.span.start, finding.span.end));
            finding.severity == Severity::Error || !general || !covered
        });
        self.items
            .sort_by_key(|finding| (finding.span.start, finding.span.end, finding.rule));
        (self.items, self.notes)
    }
}
