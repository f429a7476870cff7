//! A result as text, JSON or SARIF.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use crate::lines::Lines;
use crate::result::{Severity, VerificationResult, Violation};
use crate::rule::{Rule, rules};

/// A short summary: a verdict, one line for each violation, and the counts.
pub fn format_result(result: &VerificationResult) -> String {
    let verdict = if result.safe { "SAFE" } else { "UNSAFE" };
    let mut out = format!("Code verification ({}): {verdict}\n", result.language);
    out.push_str("-------------------------\n");
    for violation in &result.violations {
        let mark = match violation.severity {
            Severity::Error => '✗',
            Severity::Warning => '!',
        };
        out.push_str(&format_line(mark, violation));
    }
    let about_violations = |note: &&String| !note.starts_with("line ");
    for note in result.warnings.iter().filter(about_violations) {
        out.push_str("  note: ");
        out.push_str(note);
        out.push('\n');
    }
    out.push_str(&counts(result));
    out
}

fn format_line(mark: char, violation: &Violation) -> String {
    format!(
        "{mark} L{}: {} [{}]\n",
        violation.line, violation.reason, violation.rule
    )
}

fn counts(result: &VerificationResult) -> String {
    let errors = count(result, Severity::Error);
    let warnings = count(result, Severity::Warning);
    if errors + warnings == 0 {
        return "no violations\n".to_owned();
    }
    let mut parts = Vec::new();
    if errors > 0 {
        parts.push(plural(errors, "violation"));
    }
    if warnings > 0 {
        parts.push(plural(warnings, "warning"));
    }
    let blocked = if errors > 0 { ": not safe to run" } else { "" };
    format!("\n{}{blocked}\n", parts.join(", "))
}

fn plural(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn count(result: &VerificationResult, severity: Severity) -> usize {
    result
        .violations
        .iter()
        .filter(|violation| violation.severity == severity)
        .count()
}

/// A file's result with the source shown: each violation with its line, a caret, the reason and what
/// would be safe.
pub fn format_text(name: &str, source: &str, result: &VerificationResult) -> String {
    let lines = Lines::new(source);
    let mut out = String::new();
    for violation in &result.violations {
        let (line, column) = (violation.line, violation.column);
        let shown = lines.line(line);
        let margin = line.to_string().len().max(2);
        let advice = Rule::from_id(violation.rule).map_or("", |rule| rule.info().advice.as_str());
        let _ = writeln!(
            out,
            "{name}:{line}:{column}: {}[{}]: {}",
            violation.severity.as_str(),
            violation.rule,
            violation.reason,
        );
        out.push_str(&caret(shown, line, column, violation, margin));
        if !advice.is_empty() {
            let _ = writeln!(out, "{:margin$} = safe: {advice}", "");
        }
    }
    let about_violations = |note: &&String| !note.starts_with("line ");
    for note in result.warnings.iter().filter(about_violations) {
        let _ = writeln!(out, "{name}: note: {note}");
    }
    out
}

/// The line with a caret under the construct. Long lines are cut around it.
fn caret(shown: &str, line: usize, column: usize, violation: &Violation, margin: usize) -> String {
    const WIDTH: usize = 100;
    let start = (column - 1).saturating_sub(if column > WIDTH { WIDTH / 2 } else { column });
    let visible: String = shown
        .chars()
        .skip(start)
        .take(WIDTH)
        .map(|c| if c == '\t' || c.is_control() { ' ' } else { c })
        .collect();
    let before = column - 1 - start;
    let length = violation.span.end.saturating_sub(violation.span.start);
    let length = length
        .min(visible.chars().count().saturating_sub(before))
        .max(1);
    format!(
        "{:margin$} |\n{line:>margin$} | {visible}\n{:margin$} | {}{}\n",
        "",
        "",
        " ".repeat(before),
        "^".repeat(length)
    )
}

/// One file's result in a report.
#[derive(Clone, Debug, Serialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "what a caller puts into a report, built by hand"
)]
pub struct FileResult {
    /// The file's name as it was given.
    pub file: String,
    /// What was found.
    #[serde(flatten)]
    pub result: VerificationResult,
}

/// The version of the JSON report's form.
pub const JSON_VERSION: u32 = 1;

/// A report in JSON.
pub fn to_json(files: &[FileResult]) -> Value {
    json!({
        "version": JSON_VERSION,
        "safe": files.iter().all(|file| file.result.safe),
        "files": files,
    })
}

/// A report in SARIF 2.1.0.
pub fn to_sarif(files: &[FileResult]) -> Value {
    let rules: Vec<Value> = rules()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": { "text": rule.title },
                "help": { "text": rule.advice },
                "defaultConfiguration": { "level": rule.severity.as_str() },
                "properties": { "precision": rule.confidence.as_str(), "tags": [rule.kind.as_str()] },
            })
        })
        .collect();
    let index = |id: &str| Rule::from_id(id).map(|rule| rule as usize);
    let results: Vec<Value> = files
        .iter()
        .flat_map(|file| {
            file.result
                .violations
                .iter()
                .map(move |violation| (file, violation))
        })
        .map(|(file, violation)| {
            json!({
                "ruleId": violation.rule,
                "ruleIndex": index(violation.rule),
                "level": violation.severity.as_str(),
                "message": { "text": violation.reason },
                "locations": [{
                    "physicalLocation": {
                        "artifactLocation": { "uri": uri(&file.file) },
                        "region": {
                            "startLine": violation.line,
                            "startColumn": violation.column,
                            "byteOffset": violation.span.start,
                            "byteLength": violation.span.end - violation.span.start,
                            "snippet": { "text": violation.code },
                        },
                    },
                }],
                "properties": { "confidence": violation.confidence.as_str() },
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "stockade verify",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// A file name as a relative reference, with what a URI can't hold escaped.
fn uri(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CodeVerifier;

    #[test]
    fn the_summary_counts_and_says_no() {
        let result = CodeVerifier::new().verify("rm -rf /\nsudo ls\n", "bash");
        let text = format_result(&result);
        assert!(
            text.starts_with("Code verification (bash): UNSAFE\n"),
            "{text}"
        );
        assert!(
            text.contains("✗ L1: deletes / and everything below [destroy-files]\n"),
            "{text}"
        );
        assert!(text.contains("! L2: "), "{text}");
        assert!(
            text.ends_with("\n1 violation, 1 warning: not safe to run\n"),
            "{text}"
        );
    }

    #[test]
    fn a_safe_summary_still_shows_warnings() {
        let result = CodeVerifier::new().verify("sudo ls\n", "bash");
        assert!(result.safe);
        assert!(format_result(&result).contains("! L1: "));
        let result = CodeVerifier::new().verify("ls\n", "bash");
        assert!(format_result(&result).ends_with("no violations\n"));
    }

    #[test]
    fn text_points_at_the_construct() {
        let source = "echo hi\n  rm -rf / # x\n";
        let result = CodeVerifier::new().verify(source, "bash");
        let text = format_text("x.sh", source, &result);
        let expected = "x.sh:2:3: error[destroy-files]: deletes / and everything below\n   |\n 2 |   rm -rf / # x\n   |   ^^^^^^^^\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains(" = safe: "), "{text}");
    }

    #[test]
    fn sarif_names_every_rule_and_place() {
        let result = CodeVerifier::new().verify("rm -rf /\n", "bash");
        let sarif = to_sarif(&[FileResult {
            file: "a b.sh".to_owned(),
            result,
        }]);
        let run = &sarif["runs"][0];
        assert_eq!(
            run["tool"]["driver"]["rules"].as_array().map(Vec::len),
            Some(Rule::ALL.len())
        );
        let found = &run["results"][0];
        assert_eq!(found["ruleId"], "destroy-files");
        let index = usize::try_from(found["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(run["tool"]["driver"]["rules"][index]["id"], "destroy-files");
        let place = &found["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a%20b.sh");
        assert_eq!(place["region"]["startLine"], 1);
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let source = format!("{}; rm -rf /; {}", "echo ".repeat(100), "x".repeat(500));
        let result = CodeVerifier::new().verify(&source, "bash");
        let text = format_text("-", &source, &result);
        assert!(
            text.lines().all(|line| line.chars().count() < 160),
            "{text}"
        );
        assert!(text.contains("rm -rf /"), "{text}");
    }
}
