//! `docs/rules.md`: every rule is there, as it is, and its examples do what the page says.
#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

use std::collections::BTreeSet;

use stockade_verify::{CodeVerifier, RuleInfo, Severity, rules};

const PAGE: &str = include_str!("../../../docs/rules.md");

struct Example<'p> {
    language: &'p str,
    code: &'p str,
}

/// The text below a rule's heading.
fn section(id: &str) -> &'static str {
    let heading = format!("\n## {id}\n");
    let (_, rest) = PAGE
        .split_once(&heading)
        .unwrap_or_else(|| panic!("{id} has no section"));
    rest.split("\n## ").next().unwrap_or(rest)
}

/// The blocks of a section whose fences end with `mark`.
fn examples<'p>(rule: &RuleInfo, section: &'p str, mark: &str) -> Vec<Example<'p>> {
    let fence = format!(" {mark}\n");
    let mut found = Vec::new();
    for (at, _) in section.match_indices(&fence) {
        let after = &section[at + fence.len()..];
        found.push(Example {
            language: section[..at].rsplit("```").next().unwrap_or_default(),
            code: after.split("\n```").next().unwrap_or(after),
        });
    }
    assert!(!found.is_empty(), "{} has no example that {mark}", rule.id);
    found
}

/// As the page says for the rules about the configuration.
fn configured() -> CodeVerifier {
    let mut verifier = CodeVerifier::new();
    verifier.add_blocked_function("json.loads");
    verifier.add_blocked_module("requests");
    verifier.add_blocked_pattern("prod-[a-z]+-[0-9]").unwrap();
    verifier
}

#[test]
fn every_rule_is_described_as_it_is() {
    let described: BTreeSet<_> = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let known: BTreeSet<_> = rules().map(|rule| rule.id).collect();
    assert_eq!(described, known);
    for rule in rules() {
        let text = section(rule.id);
        let facts = format!(
            "{}. Severity {}, confidence {}, type `{}`.",
            rule.title,
            rule.severity.as_str(),
            rule.confidence.as_str(),
            rule.kind.as_str()
        );
        assert!(text.contains(&facts), "{}: {facts}", rule.id);
        assert!(text.contains(&rule.advice), "{}", rule.id);
    }
}

#[test]
fn every_example_does_what_the_page_says() {
    let mut wrong = Vec::new();
    for rule in rules() {
        let verifier = if rule.id.starts_with("blocked-") {
            configured()
        } else {
            CodeVerifier::new()
        };
        let text = section(rule.id);
        for fires in examples(rule, text, "fires") {
            let found = verifier.verify(fires.code, fires.language).violations;
            if !found.iter().any(|violation| violation.rule == rule.id) {
                wrong.push(format!("{}: {} does not fire", rule.id, fires.code));
            }
        }
        for passes in examples(rule, text, "passes") {
            let found = verifier.verify(passes.code, passes.language).violations;
            let bad = |v: &&stockade_verify::Violation| {
                v.rule == rule.id || v.severity == Severity::Error
            };
            if let Some(violation) = found.iter().find(bad) {
                wrong.push(format!("{} is not passed: {violation:#?}", rule.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
