//! Findings as text, JSON or SARIF, written as they come.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};
use stockade_inspect::{Finding, Tally, ThreatLevel};

use super::InspectFormat;
use super::lines::Lines;
use crate::output::{SCHEMA, printable};

/// Where findings come from.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) path: &'a Path,
    /// The commit that brought the text in, in a repository's history.
    pub(super) commit: Option<&'a str>,
}

/// A report in the making.
pub(super) struct Report<W: Write> {
    format: InspectFormat,
    out: W,
    count: u64,
    files: Vec<Value>,
    /// What of a repository's history was read.
    history: Option<Value>,
    /// Rules that had a finding, with what it said.
    rules: BTreeMap<&'static str, String>,
}

impl<W: Write> Report<W> {
    /// Begins a report.
    pub(super) fn begin(format: InspectFormat, mut out: W) -> io::Result<Self> {
        match format {
            InspectFormat::Json => write!(out, "{{\"schema\":{SCHEMA},\"findings\":[")?,
            InspectFormat::Sarif => out.write_all(SARIF_HEAD.as_bytes())?,
            InspectFormat::Text => {}
        }
        Ok(Self {
            format,
            out,
            count: 0,
            files: Vec::new(),
            history: None,
            rules: BTreeMap::new(),
        })
    }

    /// Prints findings of a file at once: whoever waits for them should not wait longer.
    pub(super) fn findings(
        &mut self,
        origin: Origin<'_>,
        findings: &[Finding],
        lines: &Lines,
    ) -> io::Result<()> {
        for finding in findings {
            let place = lines.place(finding.span.start);
            if self.format != InspectFormat::Text && self.count > 0 {
                self.out.write_all(b",")?;
            }
            self.count += 1;
            match self.format {
                InspectFormat::Text => writeln!(
                    self.out,
                    "{}{}:{}:{}: {} {}: {} [{}]",
                    origin
                        .commit
                        .map_or_else(String::new, |id| format!("{id:.12}:")),
                    printable(&origin.path.to_string_lossy()),
                    place.line,
                    place.column,
                    finding.level.name(),
                    finding.rule,
                    finding.message,
                    finding.content,
                )?,
                InspectFormat::Json => {
                    let mut value = serde_json::to_value(finding)?;
                    value["file"] = json!(origin.path.to_string_lossy());
                    if let Some(commit) = origin.commit {
                        value["commit"] = json!(commit);
                    }
                    value["line"] = json!(place.line);
                    value["column"] = json!(place.column);
                    write!(self.out, "\n  {value}")?;
                }
                InspectFormat::Sarif => {
                    self.rules
                        .entry(finding.rule)
                        .or_insert_with(|| finding.message.clone());
                    write!(self.out, "\n{}", sarif_result(origin, finding, place.line))?;
                }
            }
        }
        if !findings.is_empty() {
            self.out.flush()?;
        }
        Ok(())
    }

    /// Notes the end of a file.
    pub(super) fn file(&mut self, path: &Path, size: u64, tally: &Tally) {
        if self.format == InspectFormat::Json {
            self.files.push(json!({
                "file": path.to_string_lossy(),
                "bytes": size,
                "findings": tally.count(),
                "safe": tally.is_safe(),
                "level": tally.level(),
                "score": tally.score(),
            }));
        }
    }

    /// Notes how much of a repository's history was read.
    pub(super) fn history(&mut self, blobs: u64, bytes: u64) {
        self.history = Some(json!({ "blobs": blobs, "bytes": bytes }));
    }

    /// Ends the report with the totals. Nothing is known about what was not read, so that is not safe.
    pub(super) fn end(mut self, total: &Tally, all_read: bool) -> io::Result<()> {
        match self.format {
            InspectFormat::Json => writeln!(
                self.out,
                "\n],\"files\":{}{},\"safe\":{},\"level\":\"{}\",\"score\":{}}}",
                Value::from(self.files),
                self.history
                    .map_or_else(String::new, |read| format!(",\"history\":{read}")),
                all_read && total.is_safe(),
                total.level().name(),
                total.score(),
            )?,
            InspectFormat::Sarif => {
                let rules: Vec<Value> = self
                    .rules
                    .iter()
                    .map(|(id, text)| json!({ "id": id, "shortDescription": { "text": text } }))
                    .collect();
                let driver = json!({
                    "name": "stockade",
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "informationUri": env!("CARGO_PKG_REPOSITORY"),
                    "rules": rules,
                });
                writeln!(self.out, "\n],\"tool\":{{\"driver\":{driver}}}}}]}}")?;
            }
            InspectFormat::Text => {}
        }
        self.out.flush()
    }
}

const SARIF_HEAD: &str = "{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\
    \"version\":\"2.1.0\",\"runs\":[{\"results\":[";

fn sarif_result(origin: Origin<'_>, finding: &Finding, line: u64) -> Value {
    let level = match finding.level {
        ThreatLevel::None | ThreatLevel::Low => "note",
        ThreatLevel::Medium => "warning",
        ThreatLevel::High | ThreatLevel::Critical => "error",
    };
    json!({
        "ruleId": finding.rule,
        "level": level,
        "message": { "text": format!("{}: {}", finding.message, finding.content) },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": { "uri": uri(origin.path) },
                "region": {
                    "startLine": line,
                    "byteOffset": finding.span.start,
                    "byteLength": finding.span.end - finding.span.start,
                },
            },
        }],
        "properties": {
            "type": finding.kind,
            "threatLevel": finding.level,
            "confidence": finding.confidence,
            "commit": origin.commit,
        },
    })
}

/// A relative reference (RFC 3986) for a path; `-` is standard input.
fn uri(path: &Path) -> String {
    if path == Path::new("-") {
        return "stdin".to_owned();
    }
    path.as_os_str()
        .as_encoded_bytes()
        .iter()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                char::from(*byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}
