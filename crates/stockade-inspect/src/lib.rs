//! Finds prompt injection, data leaving and secrets in text and commands.
mod egress;
mod engine;
mod finding;
mod hosts;
mod injection;
mod inspector;
mod normalize;
mod peek;
pub mod redact;
mod redactor;
mod secrets;
mod trigger;
mod window;

pub use engine::Kinds;
pub use finding::{Finding, FindingType, InspectionResult, Span, Tally, ThreatLevel};
pub use inspector::{AdversaryInspector, EgressInspector, StreamInspector, inspect_all};
pub use redactor::Redactor;
