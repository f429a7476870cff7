//! The verifier: how fast it reads real code, how fast it starts, and how it compares with bandit.
//!
//! All of it is of the program that `STOCKADE_BIN` names, so it does not matter how this harness
//! was built. Throughput is on one core (`taskset`), over the source files of this machine below
//! `STOCKADE_BENCH_CODE` (a list separated by `:`), in processor time. Bandit is installed into a
//! directory below `target/` if it can be; both read the same files, one run each, in turn. With
//! `STOCKADE_BENCH_STRICT=1` a missed budget is a failure.
#![expect(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark prints its figures"
)]

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use stockade_verify::Language;

const CODE: &str = "/usr/lib/python3:/usr/lib/python3.11:/usr/lib/go/src:/usr/share:/usr/bin:/usr/lib/node_modules";
/// Of each language, at most this much is read.
const MAX_BYTES_PER_LANGUAGE: usize = 24 << 20;
/// Units of processor time in a second, on every architecture.
const TICKS: f64 = 100.0;
/// Files given to one run of the program.
const ARGUMENTS: usize = 4_000;
/// Python files that bandit has to read as well.
const COMPARED: usize = 400;

/// Files of one language with their contents.
type Files = Vec<(PathBuf, Vec<u8>)>;

fn main() -> ExitCode {
    let code = env::var("STOCKADE_BENCH_CODE").unwrap_or_else(|_| CODE.to_owned());
    let files = gather(code.split(':').map(PathBuf::from).collect());
    let program =
        env::var("STOCKADE_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_stockade").into());
    let mut missed = 0;
    for (name, files) in &files {
        missed += usize::from(!throughput(&program, name, files));
    }
    missed += usize::from(!startup(&program));
    if let Some(python) = files.get("python") {
        missed += usize::from(!bandit(&program, python));
    }
    let strict = env::var_os("STOCKADE_BENCH_STRICT").is_some_and(|value| value == "1");
    if strict && missed > 0 {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn gather(mut stack: Vec<PathBuf>) -> BTreeMap<&'static str, Files> {
    let mut files: BTreeMap<&'static str, Files> = BTreeMap::new();
    let mut sizes: BTreeMap<&'static str, usize> = BTreeMap::new();
    while let Some(path) = stack.pop() {
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            stack.extend(entries.map(|entry| entry.path()));
        } else if let Some((language, bytes)) = load(&path) {
            let size = sizes.entry(language.as_str()).or_default();
            if *size < MAX_BYTES_PER_LANGUAGE {
                *size += bytes.len();
                files
                    .entry(language.as_str())
                    .or_default()
                    .push((path, bytes));
            }
        }
    }
    files
}

fn load(path: &Path) -> Option<(Language, Vec<u8>)> {
    let name = path.file_name()?.to_str()?;
    let named = Language::from_file_name(name);
    if named.is_none() && name.contains('.') {
        return None;
    }
    let bytes = std::fs::read(path).ok()?;
    let language = named.or_else(|| {
        let head = std::str::from_utf8(bytes.get(..256.min(bytes.len()))?).ok()?;
        let script = head.starts_with("#!");
        script.then(|| Language::from_content(head)).flatten()
    })?;
    (bytes.len() < 1 << 20).then_some((language, bytes))
}

/// Megabytes in a second of processor time, of the program on one core.
fn throughput(program: &str, name: &str, files: &Files) -> bool {
    let bytes: usize = files.iter().map(|(_, code)| code.len()).sum();
    let paths: Vec<&PathBuf> = files.iter().map(|(path, _)| path).collect();
    let Some(seconds) = on_one_core(program, name, &paths) else {
        println!(
            "verify {name}: throughput skipped: `taskset -c 0 {program} verify` does not work"
        );
        return true;
    };
    let speed = bytes as f64 / 1e6 / seconds.max(1e-2);
    let wanted = if matches!(name, "python" | "bash") {
        2.0
    } else {
        0.0
    };
    let verdict = if speed >= wanted { "" } else { "  OVER BUDGET" };
    println!(
        "verify {name:<12} {:>6} files {speed:>7.2} MB/s on one core (at least {wanted:.1}){verdict}",
        files.len()
    );
    speed >= wanted
}

/// Seconds of processor time over files, start included, the least of three runs: what others do
/// on the machine meanwhile is not the program's doing.
fn on_one_core(program: &str, language: &str, files: &[&PathBuf]) -> Option<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let before = children_ticks()?;
        for some in files.chunks(ARGUMENTS) {
            let mut command = Command::new("taskset");
            command.args(["-c", "0", program, "verify", "--json", "--lang", language]);
            if !quiet(command.args(some)) {
                return None;
            }
        }
        let ticks = children_ticks()? - before;
        best = best.min(ticks as f64 / TICKS);
    }
    Some(best)
}

/// Processor time of the children waited for: `cutime` and `cstime` of proc(5).
fn children_ticks() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(13);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// p50 of starts on a script of one kilobyte.
fn startup(program: &str) -> bool {
    let script = "import os\nfor name in os.listdir('.'):\n    print(name)\n\n"
        .repeat(19)
        .into_bytes();
    let Ok(directory) = tempfile::tempdir() else {
        return true;
    };
    let file = directory.path().join("script.py");
    if std::fs::write(&file, &script).is_err() {
        return true;
    }
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..300 {
        let begun = Instant::now();
        if !quiet(Command::new(program).arg("verify").arg(&file)) {
            println!("verify: start-up skipped: `{program} verify` does not work");
            return true;
        }
        times.push(begun.elapsed());
    }
    times.sort();
    let middle = times[times.len() / 2];
    let within = middle <= Duration::from_millis(3);
    let verdict = if within { "" } else { "  OVER BUDGET" };
    println!("verify of 1 kB, from start to end: p50 {middle:?} (at most 3ms){verdict}");
    within
}

fn bandit(program: &str, files: &Files) -> bool {
    let Some(bandit) = installed() else {
        println!("verify against bandit: skipped: bandit can't be installed");
        return true;
    };
    let step = (files.len() / COMPARED).max(1);
    let paths: Vec<&PathBuf> = files.iter().step_by(step).map(|(path, _)| path).collect();
    let time = |command: &mut Command| {
        let begun = Instant::now();
        quiet(command);
        begun.elapsed().as_secs_f64()
    };
    let theirs = time(Command::new(bandit).args(["-q", "-f", "json"]).args(&paths));
    let ours = time(
        Command::new(program)
            .args(["verify", "--json"])
            .args(&paths),
    );
    let factor = theirs / ours.max(1e-9);
    let verdict = if factor >= 20.0 { "" } else { "  OVER BUDGET" };
    println!(
        "verify of {} Python files: {ours:.3} s, bandit {theirs:.3} s: {factor:.0} × (at least 20){verdict}",
        paths.len()
    );
    factor >= 20.0
}

/// Bandit's path, in an environment of its own.
fn installed() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench-bandit");
    let bandit = root.join("bin/bandit");
    if !bandit.exists() {
        let made = quiet(Command::new("python3").args(["-m", "venv"]).arg(&root));
        let pip = root.join("bin/pip");
        if !made || !quiet(Command::new(pip).args(["install", "-q", "bandit"])) {
            return None;
        }
    }
    bandit.exists().then_some(bandit)
}

/// Whether a command runs and ends with a verdict, not with a failure.
fn quiet(command: &mut Command) -> bool {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| matches!(status.code(), Some(0 | 1)))
}
