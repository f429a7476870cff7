//! Foreign suites end inside as they do outside, but for what docs/compatibility.md lists.
//!
//! `scripts/conformance` does the work. The quick part of Python's suite, which needs no build, runs
//! here if `STOCKADE_REQUIRE` has the word `conformance`: it takes minutes, and needs Debian's
//! libpython3.11-testsuite. `make conformance` runs everything.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use stockade_test::need::is_required_word;

const NEED: &str = "conformance";
/// How a case ends.
const ENDS: [&str; 4] = ["ok", "not", "skip", "missing"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_quick_part_differs_only_as_documented() {
    let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
    if !is_required_word(NEED, &required) {
        // Nowhere to report that standard error is closed.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: STOCKADE_REQUIRE does not have `{NEED}`"
        );
        return;
    }
    let program = std::env::var_os("STOCKADE_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_stockade").into(), PathBuf::from);
    let output = Command::new(root().join("scripts/conformance"))
        .args(["--quick", "--check", "python"])
        .env("STOCKADE_BIN", program)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn every_documented_difference_is_one_and_has_a_reason() {
    let text = fs::read_to_string(root().join("docs/compatibility.md")).unwrap();
    let suites = ["python", "coreutils", "git"];
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if !suites.contains(&cells[0]) {
            continue;
        }
        let [_, case, bare, inside, reason] = cells[..] else {
            panic!("five cells expected: {line}");
        };
        assert!(case.starts_with('`') && case.ends_with('`'), "{line}");
        assert!(ENDS.contains(&bare) && ENDS.contains(&inside), "{line}");
        assert_ne!(bare, inside, "no difference: {line}");
        assert!(reason.len() > 10, "no reason: {line}");
    }
}
