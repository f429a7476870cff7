//! On the host: boots the guests and judges what they print.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value;
use stockade_test::need::is_required_word;

use crate::PASSES;

const NEED: &str = "kernels";

/// Commands in hints of `doctor` that guests execute; then `doctor` no longer names them.
const FOLLOWED: [&str; 2] = [
    "modprobe overlay",
    "sysctl kernel.unprivileged_userns_clone=1",
];

/// Hints of `doctor`, and the only kernels or users that it gives them to.
const SHOWN: [(&str, &[&str]); 3] = [
    ("use Linux 5.11 or later", &["5.10"]),
    (
        "use Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK=y",
        &["5.10"],
    ),
    ("delegate a group to this user", &["somebody"]),
];

pub(crate) fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--list") {
        say("kernels: test");
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    if !filters.is_empty() && !filters.iter().any(|word| NEED.contains(word.as_str())) {
        return ExitCode::SUCCESS;
    }
    let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
    if !is_required_word(NEED, &required) {
        say("skipped: STOCKADE_REQUIRE does not have `kernels`");
        return ExitCode::SUCCESS;
    }
    match check() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            say(&reason);
            ExitCode::FAILURE
        }
    }
}

fn check() -> Result<(), String> {
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let program = std::env::var_os("STOCKADE_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_stockade").into(), PathBuf::from);
    let suite = std::env::current_exe().map_err(|error| error.to_string())?;
    let expected = documented()?;
    let series = expected.iter().map(|row| row.series.clone());
    let mut series: Vec<String> = series.collect();
    series.dedup();
    let mut boot = Command::new(root().join("scripts/test-kernels"))
        .arg(place.path())
        .args([program, suite])
        .args(&series)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("scripts/test-kernels: {error}"))?;
    // Closes when this process ends, however it ends: the script stops the guests then.
    let lifeline = boot.stdin.take();
    let status = boot.wait().map_err(|error| error.to_string())?;
    drop(lifeline);
    let mut faults = Vec::new();
    if !status.success() {
        faults.push(format!("scripts/test-kernels: {status}"));
    }
    for one in &series {
        let log = fs::read(place.path().join(format!("{one}.log"))).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).replace('\r', "");
        let rows: Vec<&Row> = expected.iter().filter(|row| row.series == *one).collect();
        let found = judge(&log, &rows);
        let kernel = lines(&log, "@kernel ").next().unwrap_or("did not start");
        let passed = log.lines().filter(|line| is_passed(line)).count();
        say(&format!("Linux {one} ({kernel}): {passed} tests passed"));
        if !found.is_empty() {
            say(&log);
            faults.extend(
                found
                    .into_iter()
                    .map(|fault| format!("Linux {one}: {fault}")),
            );
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults.join("\n"))
    }
}

fn is_passed(line: &str) -> bool {
    line.starts_with("test ") && line.ends_with(" ok")
}

/// What of a guest's words is not as it should be.
fn judge(log: &str, rows: &[&Row]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut rest = log;
    for (pass, ids) in PASSES {
        let end = format!("@end {pass} ");
        let Some((tests, after)) = rest.split_once(&end) else {
            faults.push(format!("the guest did not come to the end of `{pass}`"));
            break;
        };
        if !after.starts_with("0\n") {
            faults.push(format!("the suite failed: `{pass}`"));
        }
        for id in ids {
            let named = |line: &str| line.starts_with(&format!("test {id}/")) && is_passed(line);
            if !tests.lines().any(named) {
                faults.push(format!("{id} of `{pass}` was not tried"));
            }
        }
        rest = after;
    }
    for command in FOLLOWED {
        let wanted = format!("@hint {}: {command}: 0", command.trim_end_matches("=1"));
        if !log.lines().any(|line| line == wanted) {
            faults.push(format!("the hint `{command}` does not help"));
        }
    }
    for row in rows {
        let document = |mark: &str| -> Value {
            let prefix = format!("{mark} {} ", row.user);
            let text = lines(log, &prefix).next().unwrap_or_default();
            serde_json::from_str(text).unwrap_or_default()
        };
        let doctor = document("@doctor");
        if doctor["tier"] != row.backend.as_str() {
            faults.push(format!(
                "doctor of {} promises {}",
                row.user, doctor["tier"]
            ));
        }
        for (hint, of) in SHOWN {
            let is_shown = doctor.to_string().contains(hint);
            if is_shown != (of.contains(&row.series.as_str()) || of.contains(&row.user.as_str())) {
                faults.push(format!("doctor of {}: `{hint}`: {is_shown}", row.user));
            }
        }
        for (mark, partly) in [("@run", &row.partly), ("@limits", &row.partly_limits)] {
            let report = document(mark);
            if report["backend"] != row.backend.as_str() {
                faults.push(format!("{mark} of {}: {report}", row.user));
            }
            let clauses = report["enforcement"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let gaps: Vec<&str> = clauses
                .iter()
                .filter(|clause| clause["enforcement"] != "full")
                .filter_map(|clause| clause["clause"].as_str())
                .collect();
            if gaps != *partly {
                faults.push(format!("{mark} of {}: only partly {gaps:?}", row.user));
            }
        }
    }
    faults
}

fn lines<'a>(log: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    log.lines().filter_map(move |line| line.strip_prefix(mark))
}

/// A row of the table in docs/compatibility.md.
struct Row {
    series: String,
    user: String,
    backend: String,
    /// Clauses that the report of a default run calls partial.
    partly: Vec<String>,
    /// The same with limits for the whole sandbox.
    partly_limits: Vec<String>,
}

fn documented() -> Result<Vec<Row>, String> {
    let path = root().join("docs/compatibility.md");
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let section = text
        .split("\n## ")
        .find(|part| part.starts_with("Kernels\n"));
    let section = section.ok_or("docs/compatibility.md has no section `Kernels`")?;
    let rows = section.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| ")?.split('|').map(str::trim).collect();
        let [series, user, backend, partly, limits, ..] = cells[..] else {
            return None;
        };
        let clauses = |cell: &str| -> Vec<String> {
            let names = cell.split(", ").filter(|name| *name != "–");
            names
                .map(|name| name.trim_matches('`').to_owned())
                .collect()
        };
        let is_number = series.starts_with(|letter: char| letter.is_ascii_digit());
        is_number.then(|| Row {
            series: series.to_owned(),
            user: user.to_owned(),
            backend: backend.trim_matches('`').to_owned(),
            partly: clauses(partly),
            partly_limits: clauses(limits),
        })
    });
    let rows: Vec<Row> = rows.collect();
    if rows.is_empty() {
        return Err("the table of kernels has no rows".to_owned());
    }
    Ok(rows)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn say(text: &str) {
    // Nowhere to report that standard error is closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}
