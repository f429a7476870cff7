//! What a verification says: violations, their place and weight.

use serde::{Deserialize, Serialize};

pub use stockade_shell::Span;

/// How much a violation weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// Worth knowing; the code still counts as safe.
    Warning,
    /// The code counts as unsafe.
    Error,
}

/// How sure a rule is of what it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Confidence {
    /// The construct is there; its meaning depends on values not known.
    Low,
    /// Probably as described.
    Medium,
    /// As described, whatever the unknown values.
    High,
}

/// The kind of thing a violation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ViolationType {
    /// A module that is blocked or dangerous in itself.
    BlockedModule,
    /// A function that is blocked or runs code.
    BlockedFunction,
    /// A pattern of use that only attacks have, or one configured as blocked.
    DangerousPattern,
    /// A file read, written or deleted where it should not be.
    FileAccess,
    /// Network access.
    NetworkAccess,
    /// Processes, privileges, the system's state.
    SystemCall,
}

impl ViolationType {
    /// The name used in JSON and SARIF.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BlockedModule => "blocked_module",
            Self::BlockedFunction => "blocked_function",
            Self::DangerousPattern => "dangerous_pattern",
            Self::FileAccess => "file_access",
            Self::NetworkAccess => "network_access",
            Self::SystemCall => "system_call",
        }
    }
}

impl Severity {
    /// `error` or `warning`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Confidence {
    /// `low`, `medium` or `high`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A dangerous construct.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Violation {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: ViolationType,
    /// Stable id of the rule, as in `docs/rules.md`.
    pub rule: &'static str,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Bytes of the source.
    #[serde(serialize_with = "pair")]
    pub span: Span,
    /// The source at the span, shortened.
    pub code: String,
    /// Why it is reported.
    pub reason: String,
    /// Its weight.
    pub severity: Severity,
    /// How sure the rule is.
    pub confidence: Confidence,
}

fn pair<S: serde::Serializer>(span: &Span, serializer: S) -> Result<S::Ok, S::Error> {
    [span.start, span.end].serialize(serializer)
}

/// The outcome of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VerificationResult {
    /// No violation has severity error.
    pub safe: bool,
    /// Errors and warnings, in source order.
    pub violations: Vec<Violation>,
    /// Reasons of the warnings, and notes about what could not be analysed.
    pub warnings: Vec<String>,
    /// The language as it was understood.
    pub language: String,
}
