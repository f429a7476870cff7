//! What holds for every text in every language.

use stockade_verify::{CodeVerifier, FileResult, Language, Severity};

pub fn check(data: &[u8], language: Language) {
    let mut verifier = CodeVerifier::new();
    verifier.add_blocked_module("blocked");
    verifier.add_blocked_function("blocked");
    verifier.add_blocked_pattern("bl[o]cked").expect("an expression");
    let result = verifier.verify_bytes(data, language);
    let errors = result
        .violations
        .iter()
        .any(|violation| violation.severity == Severity::Error);
    assert_eq!(result.safe, !errors);
    let lines = data.iter().filter(|byte| **byte == b'\n').count() + 1;
    for violation in &result.violations {
        assert!(violation.span.start <= violation.span.end);
        assert!(violation.span.end <= data.len());
        assert!(violation.line >= 1 && violation.line <= lines);
        assert!(violation.column >= 1);
    }
    let text = String::from_utf8_lossy(data);
    let _ = stockade_verify::format_text("file", &text, &result);
    let _ = stockade_verify::format_result(&result);
    let file = FileResult {
        file: "file".to_owned(),
        result,
    };
    let _ = stockade_verify::to_sarif(&[file]);
}
