//! The report that `--report FILE` writes, as far as the suite reads it.
//!
//! Every field name the suite relies on is here and nowhere else.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// The array of denial records.
pub const DENIALS: &str = "denials";
/// Where the report of a case goes, as a template for [`Flag::Report`](crate::Flag::Report).
pub const FILE: &str = "@W@/report.json";

/// Reads the report of a fixture.
pub fn read(witness: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(witness.join("report.json")).ok()?).ok()
}

/// The denial records of a report.
pub fn denials(report: &Value) -> Vec<Denial> {
    let records = report
        .get(DENIALS)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    records.iter().map(Denial::of).collect()
}

/// One denial record; what a record does not say is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denial {
    /// What was tried: `write`, `read`, `connect`, …
    pub operation: String,
    /// The absolute path, for files and Unix sockets.
    pub path: String,
    /// The host, for connections.
    pub host: String,
    /// The port, for connections.
    pub port: u64,
    /// The rule that decided; empty where nothing denies it and nothing grants it either.
    pub rule: String,
    /// The smallest grant that would let it pass.
    pub grant: String,
    /// What the program was told.
    pub errno: u64,
    /// Who tried.
    pub pid: u64,
    /// What that program called itself.
    pub argv0: String,
}

impl Denial {
    fn of(record: &Value) -> Self {
        let text = |name: &str| match record.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        let number = |name: &str| record.get(name).and_then(Value::as_u64).unwrap_or_default();
        Self {
            operation: text("operation"),
            path: text("path"),
            host: text("host"),
            port: number("port"),
            rule: text("rule"),
            grant: text("grant"),
            errno: number("errno"),
            pid: number("pid"),
            argv0: text("argv0"),
        }
    }
}
