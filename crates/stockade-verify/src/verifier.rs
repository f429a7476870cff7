//! The verifier: its configuration and its verdict.

use std::collections::BTreeSet;

use regex_lite::Regex;

use crate::analysis::Analysis;
use crate::findings::{Finding, Findings};
use crate::language::Language;
use crate::lines::Lines;
use crate::result::{Severity, Span, VerificationResult, Violation};
use crate::rule::Rule;
use crate::suppress;

/// Whether comments in the code may silence rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Suppressions {
    /// `stockade: allow(rule-id)` in a comment silences that rule for its line and the next.
    #[default]
    Honour,
    /// Comments change nothing: for code whose author is not trusted.
    Ignore,
}

/// Analyses code before it runs. Advice for a person or an agent, not a boundary.
///
/// The four lists are the configuration. Modules and functions are compared by their full name
/// after aliases, imports and constant lookups are resolved: `subprocess`, `os.system`, `curl`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CodeVerifier {
    /// Modules, packages or programs whose use is an error. An entry covers what is below it.
    pub blocked_modules: Vec<String>,
    /// Functions or commands whose call is an error.
    pub blocked_functions: Vec<String>,
    /// Expressions that no line outside comments may match.
    pub blocked_patterns: Vec<Regex>,
    /// Absolute directories where files may be written and deleted, besides the working directory.
    pub allowed_paths: Vec<String>,
    /// Ids of rules that are switched off.
    pub disabled_rules: BTreeSet<String>,
    /// Whether comments may silence rules.
    pub suppressions: Suppressions,
    /// Bytes of a text that are analysed; the rest is left out, with a warning.
    pub max_bytes: usize,
}

impl Default for CodeVerifier {
    fn default() -> Self {
        Self::new()
    }
}

/// Why a pattern could not be added.
#[derive(Debug, thiserror::Error)]
#[error("pattern {pattern:?} is not a regular expression")]
#[non_exhaustive]
pub struct PatternError {
    /// The pattern as given.
    pub pattern: String,
    /// What is wrong with it.
    pub source: regex_lite::Error,
}

impl CodeVerifier {
    /// A verifier with all rules on, nothing blocked by name, and `/tmp` and `/var/tmp` writable.
    pub fn new() -> Self {
        Self {
            blocked_modules: Vec::new(),
            blocked_functions: Vec::new(),
            blocked_patterns: Vec::new(),
            allowed_paths: vec!["/tmp".to_owned(), "/var/tmp".to_owned()],
            disabled_rules: BTreeSet::new(),
            suppressions: Suppressions::Honour,
            max_bytes: 8 << 20,
        }
    }

    /// Blocks a module, package or program.
    pub fn add_blocked_module(&mut self, module: impl Into<String>) {
        self.blocked_modules.push(module.into());
    }

    /// Blocks a function or command.
    pub fn add_blocked_function(&mut self, function: impl Into<String>) {
        self.blocked_functions.push(function.into());
    }

    /// Blocks lines that match a regular expression.
    ///
    /// # Errors
    ///
    /// If the pattern is not a regular expression.
    pub fn add_blocked_pattern(&mut self, pattern: &str) -> Result<(), PatternError> {
        let regex = Regex::new(pattern).map_err(|source| PatternError {
            pattern: pattern.to_owned(),
            source,
        })?;
        self.blocked_patterns.push(regex);
        Ok(())
    }

    /// Analyses code. The language is one of `python`, `go`, `bash`, `javascript`, `typescript` or
    /// a usual short name; with another name, it is told from the code.
    pub fn verify(&self, code: &str, language: &str) -> VerificationResult {
        let known = Language::from_name(language).or_else(|| Language::from_content(code));
        match known {
            Some(language) => self.verify_as(code, language),
            None => self.verify_unknown(code, language),
        }
    }

    /// As [`Self::verify`], for bytes that may not be UTF-8. Offsets stay those of the bytes.
    pub fn verify_bytes(&self, code: &[u8], language: Language) -> VerificationResult {
        self.verify_head(code, code.len(), language)
    }

    /// As [`Self::verify_bytes`], for a text of which only the first bytes were read. No more than
    /// `max_bytes` of them are needed.
    pub fn verify_head(&self, head: &[u8], whole: usize, language: Language) -> VerificationResult {
        let head = &head[..head.len().min(self.max_bytes.saturating_add(4))];
        let (text, clean) = crate::lines::to_text(head);
        let mut result = self.verify_text(&text, language, whole);
        if !clean {
            result
                .warnings
                .push("the source is not UTF-8: other bytes were read as `?`".to_owned());
        }
        result
    }

    /// Analyses code in a given language.
    pub fn verify_as(&self, code: &str, language: Language) -> VerificationResult {
        self.verify_text(code, language, code.len())
    }

    /// Violations in Python code.
    pub fn verify_python(&self, code: &str) -> Vec<Violation> {
        self.verify_as(code, Language::Python).violations
    }

    /// Violations in Go code.
    pub fn verify_go(&self, code: &str) -> Vec<Violation> {
        self.verify_as(code, Language::Go).violations
    }

    /// Violations in a shell script.
    pub fn verify_bash(&self, code: &str) -> Vec<Violation> {
        self.verify_as(code, Language::Bash).violations
    }

    fn verify_text(&self, code: &str, language: Language, whole: usize) -> VerificationResult {
        let mut findings = Findings::default();
        let text = self.analysed_part(code, whole, &mut findings);
        let analysis = Analysis {
            verifier: self,
            depth: 0,
        };
        let comments = analysis.run(language, text, &mut findings);
        self.patterns(text, &comments, &mut findings);
        self.result(text, language.as_str(), &comments, findings)
    }

    /// Text in no known language: the configured patterns, and paths and commands in its strings.
    fn verify_unknown(&self, code: &str, language: &str) -> VerificationResult {
        let mut findings = Findings::default();
        let text = self.analysed_part(code, code.len(), &mut findings);
        let analysis = Analysis {
            verifier: self,
            depth: 0,
        };
        crate::shell::judge_foreign(None, text, &analysis, &mut findings);
        self.patterns(text, &[], &mut findings);
        findings.notes.push(format!(
            "language {language:?} is not known: analysed by its strings only"
        ));
        self.result(text, language, &[], findings)
    }

    fn analysed_part<'c>(&self, code: &'c str, whole: usize, findings: &mut Findings) -> &'c str {
        if code.len() <= self.max_bytes && whole <= self.max_bytes {
            return code;
        }
        let mut end = self.max_bytes.min(code.len());
        while !code.is_char_boundary(end) {
            end -= 1;
        }
        findings.notes.push(format!(
            "only the first {end} of {whole} bytes were analysed"
        ));
        &code[..end]
    }

    fn patterns(&self, text: &str, comments: &[Span], findings: &mut Findings) {
        if self.blocked_patterns.is_empty() {
            return;
        }
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            for pattern in &self.blocked_patterns {
                let found = pattern
                    .find_iter(line)
                    .map(|found| Span::new(start + found.start(), start + found.end()));
                let outside = |span: &Span| {
                    !comments
                        .iter()
                        .any(|comment| comment.start <= span.start && span.start < comment.end)
                };
                if let Some(span) = found.into_iter().find(outside) {
                    findings.add(
                        Rule::BlockedPattern,
                        span,
                        format!("matches the blocked pattern {:?}", pattern.as_str()),
                    );
                }
            }
            start += line.len();
        }
    }

    fn result(
        &self,
        text: &str,
        language: &str,
        comments: &[Span],
        findings: Findings,
    ) -> VerificationResult {
        let (found, notes) = findings.into_sorted();
        // Most texts have nothing to be placed.
        let lines = Lines::new(if found.is_empty() { "" } else { text });
        let allowed = match self.suppressions {
            Suppressions::Honour if !found.is_empty() => suppress::read(text, comments, &lines),
            Suppressions::Honour | Suppressions::Ignore => suppress::Allowed::default(),
        };
        let mut suppressed = 0usize;
        let mut violations = Vec::new();
        for finding in found {
            if self.disabled_rules.contains(finding.rule.id()) {
                continue;
            }
            let violation = place(&finding, text, &lines);
            if allowed.covers(finding.rule, violation.line) {
                suppressed += 1;
                continue;
            }
            violations.push(violation);
        }
        let mut warnings: Vec<String> = violations
            .iter()
            .filter(|violation| violation.severity == Severity::Warning)
            .map(|violation| format!("line {}: {}", violation.line, violation.reason))
            .collect();
        warnings.extend(notes);
        if suppressed > 0 {
            warnings.push(format!("{suppressed} silenced by comments in the code"));
        }
        let safe = violations
            .iter()
            .all(|violation| violation.severity != Severity::Error);
        VerificationResult {
            safe,
            violations,
            warnings,
            language: language.to_owned(),
        }
    }
}

fn place(finding: &Finding, text: &str, lines: &Lines<'_>) -> Violation {
    let start = finding.span.start.min(text.len());
    let end = finding.span.end.clamp(start, text.len());
    let span = Span::new(start, end);
    let (line, column) = lines.position(start);
    let info = finding.rule.info();
    Violation {
        kind: info.kind,
        rule: info.id,
        line,
        column,
        span,
        code: crate::lines::excerpt(text, span),
        reason: finding.reason.clone(),
        severity: finding.severity,
        confidence: finding.confidence,
    }
}
