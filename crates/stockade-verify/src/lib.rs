//! Judges what code does before it runs.
//!
//! [`CodeVerifier`] reads Python, Go, Bash, JavaScript and TypeScript, follows imports, aliases,
//! constants and quoting, and judges the functions and commands that are reached, not the text:
//! process execution, dynamic code, file access, credentials, network, privileges, persistence,
//! destruction, and hiding any of these. Each finding has a stable rule, a place, a severity and a
//! confidence; `docs/rules.md` describes them all.
//!
//! It is advice for a person or an agent before code runs. It protects from mistakes and from
//! the obvious; whoever wants to hide from it can. The sandbox is the boundary, with or without it.
//! Nothing is executed or opened, and work is bounded for any input.
//!
//! ```
//! use stockade_verify::{CodeVerifier, Severity};
//!
//! let verifier = CodeVerifier::new();
//! let result = verifier.verify("import os as o\ngetattr(o, 'sys' + 'tem')('rm -rf ~')\n", "python");
//! assert!(!result.safe);
//! assert_eq!(result.violations[0].line, 2);
//! assert!(verifier.verify("model.eval()\n", "python").safe);
//! ```

// Without the grammars only shell scripts are judged, and much of what is known goes unused.
#![cfg_attr(not(feature = "grammars"), allow(dead_code))]

mod analysis;
mod command;
mod context;
mod facts;
mod files;
mod findings;
mod hosts;
mod language;
mod lines;
mod paths;
mod payload;
mod program;
mod report;
mod result;
mod rule;
mod shell;
mod suppress;
mod verifier;
mod words;

pub use command::script_word;
pub use language::Language;
pub use report::{FileResult, JSON_VERSION, format_result, format_text, to_json, to_sarif};
pub use result::{Confidence, Severity, Span, VerificationResult, Violation, ViolationType};
pub use rule::{RuleInfo, Setting, rules};
pub use verifier::{CodeVerifier, PatternError, Suppressions};
