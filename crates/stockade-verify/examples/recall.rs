//! Measures the verifier on labelled code: `recall [--misses | --markdown] FILE…`.
//!
//! Each file holds gzipped JSON lines with `code` (or `text`), `label` (1: should be found) and
//! `lang`. A text counts as found when it has a violation of severity error. `--misses` shows what
//! was judged otherwise than its label says; `--markdown` prints one row for each file
//! and one for each of its sources with at least 20 texts.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use serde::Deserialize;
use stockade_verify::{CodeVerifier, Language, Severity};

/// Sources with fewer rows have no row of their own in the document.
const MIN_SOURCE_ROWS: usize = 20;

#[derive(Deserialize)]
struct Row {
    #[serde(alias = "text")]
    code: String,
    label: u8,
    #[serde(default)]
    lang: Option<String>,
    #[serde(default)]
    source: String,
    #[serde(default)]
    category: String,
}

#[derive(Default)]
struct Score {
    dangerous: usize,
    found: usize,
    ordinary: usize,
    accused: usize,
}

fn main() -> ExitCode {
    let mut files: Vec<_> = std::env::args_os().skip(1).collect();
    let show = files.first().is_some_and(|first| first == "--misses");
    let markdown = files.first().is_some_and(|first| first == "--markdown");
    files.drain(..usize::from(show || markdown));
    let mut out = std::io::stdout().lock();
    if files.is_empty() {
        let _ = writeln!(out, "usage: recall [--misses | --markdown] FILE…");
        return ExitCode::from(2);
    }
    let verifier = CodeVerifier::new();
    let _ = if markdown {
        writeln!(
            out,
            "| file, source | dangerous | found | ordinary | accused |\n|---|---:|---:|---:|---:|"
        )
    } else {
        heading(&mut out)
    };
    for file in &files {
        let path = Path::new(file);
        let Some(rows) = read(path) else {
            let _ = writeln!(
                out,
                "{}: skipped, not there or not readable",
                path.display()
            );
            continue;
        };
        let total = path.file_name().unwrap_or_default().to_string_lossy();
        let mut scores: BTreeMap<String, Score> = BTreeMap::new();
        for row in rows {
            let language = row.lang.as_deref().and_then(Language::from_name);
            let language = language.unwrap_or(Language::Bash);
            let result = verifier.verify_as(&row.code, language);
            // `owner/repository:path`: the files of a repository are one source.
            let source = match row.source.split_once(':') {
                Some((repository, _)) if repository.contains('/') => repository,
                _ => &row.source,
            };
            for key in [
                format!("  {source} {}", language.as_str()),
                total.clone().into_owned(),
            ] {
                let score = scores.entry(key).or_default();
                if row.label == 1 {
                    score.dangerous += 1;
                    score.found += usize::from(!result.safe);
                } else {
                    score.ordinary += 1;
                    score.accused += usize::from(!result.safe);
                }
            }
            if show && (row.label == 1) == result.safe {
                let rules: Vec<_> = result
                    .violations
                    .iter()
                    .filter(|violation| row.label == 1 || violation.severity == Severity::Error)
                    .map(|violation| {
                        format!(
                            "{}:{} {} [{}]",
                            violation.line, violation.rule, violation.reason, violation.code
                        )
                    })
                    .collect();
                let code: String = row
                    .code
                    .chars()
                    .take(if row.label == 1 { 400 } else { 90 })
                    .collect();
                let kind = if row.label == 1 { "MISSED" } else { "ACCUSED" };
                let _ = writeln!(
                    out,
                    "{kind} {} {} | {}\n      {}",
                    row.source,
                    row.category,
                    code.replace('\n', "⏎"),
                    rules.join("\n      ")
                );
            }
        }
        if markdown {
            let _ = write_rows(&mut out, &total, scores);
            continue;
        }
        for (key, score) in &scores {
            let _ = writeln!(
                out,
                "{key:<34} {:>9} {:>7} {:>9} {:>8} {:>9}",
                score.dangerous,
                share(score.found, score.dangerous),
                score.ordinary,
                score.accused,
                share(score.accused, score.ordinary),
            );
        }
    }
    ExitCode::SUCCESS
}

fn heading(out: &mut impl std::io::Write) -> std::io::Result<()> {
    writeln!(
        out,
        "{:<34} {:>9} {:>7} {:>9} {:>8} {:>9}",
        "file and source", "dangerous", "recall", "ordinary", "accused", "rate"
    )
}

/// The rows of a file and of its larger sources.
fn write_rows(
    out: &mut impl std::io::Write,
    total: &str,
    mut scores: BTreeMap<String, Score>,
) -> std::io::Result<()> {
    if let Some(score) = scores.remove(total) {
        row(out, total.trim_end_matches(".jsonl.gz"), &score)?;
    }
    let several = scores.len() > 1;
    for (source, score) in scores.iter().filter(|_| several) {
        if score.dangerous + score.ordinary >= MIN_SOURCE_ROWS {
            row(out, &format!("· {}", source.trim()), score)?;
        }
    }
    Ok(())
}

fn row(out: &mut impl std::io::Write, name: &str, score: &Score) -> std::io::Result<()> {
    writeln!(
        out,
        "| {name} | {} | {} | {} | {} |",
        score.dangerous,
        share(score.found, score.dangerous),
        score.ordinary,
        share(score.accused, score.ordinary),
    )
}

fn share(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!(
        "{}.{} %",
        part * 1000 / whole / 10,
        part * 1000 / whole % 10
    )
}

fn read(path: &Path) -> Option<Vec<Row>> {
    let output = Command::new("gzip").arg("-dc").arg(path).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8(output.stdout).ok()?;
    Some(
        text.lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect(),
    )
}
