//! Judges what code does before it runs.

mod analysis;
mod files;
mod findings;
mod hosts;
mod language;
mod lines;
mod paths;
mod program;
mod result;
mod rule;
mod shell;
mod suppress;
mod verifier;

pub use language::Language;
pub use result::{Confidence, Severity, Span, VerificationResult, Violation, ViolationType};
pub use rule::{RuleInfo, rules};
pub use verifier::{CodeVerifier, PatternError, Suppressions};
