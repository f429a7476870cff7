//! Where rules put what they find.

use std::collections::HashMap;

use crate::context::Context;
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
    /// Where it is an error.
    scope: Scope,
}

/// The texts in which a finding is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Scope {
    /// All of them.
    Any,
    /// Excerpts; elsewhere it is a warning.
    Excerpt,
    /// Excerpts; elsewhere it is dropped.
    OnlyExcerpt,
}

/// Findings of one text, one for each rule and place.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    items: Vec<Finding>,
    places: HashMap<(Rule, usize, usize, bool), usize>,
    /// What could not be analysed, in words.
    pub(crate) notes: Vec<String>,
}

/// More findings than this in one text say nothing new.
const MAX_FINDINGS: usize = 2_000;

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
        if let Some(at) = self.places.get(&(rule, span.start, span.end, false)) {
            self.items[*at].firm = true;
        }
    }

    /// Adds a finding that is an error in an excerpt, and elsewhere a warning.
    pub(crate) fn excerpt(&mut self, rule: Rule, span: Span, reason: impl Into<String>) {
        self.scoped(Scope::Excerpt, rule, span, reason.into());
    }

    /// Adds a finding that is an error in an excerpt, and elsewhere nothing.
    pub(crate) fn only_in_excerpt(&mut self, rule: Rule, span: Span, reason: impl Into<String>) {
        self.scoped(Scope::OnlyExcerpt, rule, span, reason.into());
    }

    fn scoped(&mut self, scope: Scope, rule: Rule, span: Span, reason: String) {
        self.keep(Finding {
            rule,
            span,
            reason,
            severity: Severity::Error,
            confidence: rule.info().confidence,
            firm: false,
            scope,
        });
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
            scope: Scope::Any,
        };
        self.keep(finding);
    }

    /// Keeps the heaviest finding of each rule and place.
    fn keep(&mut self, finding: Finding) {
        let apart = finding.scope == Scope::OnlyExcerpt;
        let key = (finding.rule, finding.span.start, finding.span.end, apart);
        if let Some(at) = self.places.get(&key) {
            let weight = |finding: &Finding| (finding.severity, finding.scope == Scope::Any);
            if weight(&finding) > weight(&self.items[*at]) {
                self.items[*at] = finding;
            }
            return;
        }
        if self.items.len() < MAX_FINDINGS {
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

    /// Weighs everything found in a text by what the text is. Nothing is added after this.
    pub(crate) fn weigh_in(&mut self, context: Context) {
        self.items
            .retain(|finding| context.excerpt || finding.scope != Scope::OnlyExcerpt);
        for finding in &mut self.items {
            let elsewhere = finding.scope == Scope::Excerpt && !context.excerpt;
            finding.scope = Scope::Any;
            let softened = &finding.rule.info().softened_in;
            let softened = softened.iter().any(|setting| context.is(*setting)) && !finding.firm;
            if elsewhere || softened {
                finding.severity = Severity::Warning;
            }
            if elsewhere {
                finding.confidence = finding.confidence.min(Confidence::Medium);
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
