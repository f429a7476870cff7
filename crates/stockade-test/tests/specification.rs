//! SPECIFICATION.md may only name tests that exist.
#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of all tables: number, promise, who holds it.
fn rows() -> Vec<[String; 3]> {
    let text = fs::read_to_string(root().join("SPECIFICATION.md")).unwrap();
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [number, promise, held] = cells[..] else {
            panic!("three cells expected: {line}");
        };
        if number != "#" {
            rows.push([number.to_owned(), promise.to_owned(), held.to_owned()]);
        }
    }
    rows
}

/// Whether a row of the black-box suite exists.
fn has_contract_row(id: &str) -> bool {
    let suite = root().join("crates/stockade-cli/tests/contract");
    let mut sources = fs::read_dir(suite).into_iter().flatten().flatten();
    sources.any(|file| {
        let text = fs::read_to_string(file.path()).unwrap_or_default();
        text.contains(&format!("\"{id}\""))
    })
}

fn check(reference: &str) -> Result<(), String> {
    let reference = reference.trim().trim_matches('`');
    if let Some((file, test)) = reference.split_once("::") {
        let text =
            fs::read_to_string(root().join(file)).map_err(|error| format!("{file}: {error}"))?;
        let function = format!("fn {test}(");
        return if text.contains(&function) {
            Ok(())
        } else {
            Err(format!("{file} has no `{test}`"))
        };
    }
    if let Some(bench) = reference.strip_prefix("bench ") {
        let mut crates = fs::read_dir(root().join("crates")).unwrap().flatten();
        let exists = crates.any(|member| {
            let benches = member.path().join("benches");
            benches.join(bench).is_dir() || benches.join(format!("{bench}.rs")).is_file()
        });
        return exists.then_some(()).ok_or(format!("no benchmark {bench}"));
    }
    if reference.starts_with("scripts/bench-") {
        let exists = root().join(reference).is_file();
        return exists.then_some(()).ok_or(format!("no {reference}"));
    }
    let id = reference.strip_prefix("contract ").unwrap_or(reference);
    has_contract_row(id)
        .then_some(())
        .ok_or(format!("no contract row {id}"))
}

#[test]
fn every_promise_is_held_or_marked_pending() {
    let rows = rows();
    assert!(rows.len() > 30, "only {} rows were found", rows.len());
    let mut wrong = Vec::new();
    for [number, _, held] in &rows {
        if held.starts_with("pending") {
            continue;
        }
        for reference in held.split(", ") {
            if let Err(reason) = check(reference) {
                wrong.push(format!("{number}: {reason}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn numbers_are_unique_and_in_order() {
    let numbers: Vec<(u32, u32)> = rows()
        .iter()
        .map(|[number, ..]| {
            let (section, row) = number.split_once('.').unwrap();
            (section.parse().unwrap(), row.parse().unwrap())
        })
        .collect();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(numbers, sorted);
}

#[test]
fn a_wrong_reference_would_be_seen() {
    assert!(check("`crates/stockade-test/tests/specification.rs::no_such_test`").is_err());
    assert!(check("contract Q99").is_err());
    assert!(check("bench nothing").is_err());
    assert!(check("`scripts/bench-nothing`").is_err());
}
