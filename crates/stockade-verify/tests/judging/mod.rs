//! How the tests ask for a verdict.

use stockade_verify::{CodeVerifier, Severity};

/// Rules of severity error.
pub(crate) fn errors(language: &str, code: &str) -> Vec<&'static str> {
    let result = CodeVerifier::new().verify(code, language);
    let errors = result.violations.iter();
    errors
        .filter(|violation| violation.severity == Severity::Error)
        .map(|violation| violation.rule)
        .collect()
}

#[track_caller]
pub(crate) fn is_unsafe(language: &str, code: &str, rule: &str) {
    let found = errors(language, code);
    assert!(
        found.contains(&rule),
        "{code:?}: wanted {rule}, found {found:?}"
    );
}

#[track_caller]
pub(crate) fn all_safe(language: &str, cases: &[&str]) {
    for code in cases {
        let found = errors(language, code);
        assert!(found.is_empty(), "{code:?}: found {found:?}");
    }
}
