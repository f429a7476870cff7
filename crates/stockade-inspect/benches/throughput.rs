//! How fast each kind of inspection reads clean text, and how soon a short text is answered.
//!
//! `throughput [--check] [FILE…]`: with files, reads those; else text made of this crate's own
//! sources. With `--check` or `STOCKADE_BENCH_STRICT`, fails if a target is missed.
//!
//! How long the program that `STOCKADE_BIN` names takes for 1 KB is measured in turn with
//! `/bin/true`, so that both see the same machine.

use std::error::Error;
use std::io::Write as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use stockade_inspect::{Kinds, inspect_all};

/// Kind, name, and the bytes per second that are promised.
const KINDS: [(&str, Kinds, f64); 4] = [
    ("secrets", Kinds::SECRETS, 300e6),
    ("egress", Kinds::EGRESS, 300e6),
    ("injection", Kinds::INJECTION, 100e6),
    ("all", Kinds::ALL, 0.0),
];

const CLEAN: [&str; 6] = [
    include_str!("../src/finding.rs"),
    include_str!("../src/window.rs"),
    include_str!("../src/trigger.rs"),
    include_str!("../src/normalize/mod.rs"),
    include_str!("../src/inspector.rs"),
    include_str!("../../../LICENSE-APACHE"),
];

#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^52")]
fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let check = arguments.iter().any(|argument| argument == "--check")
        || std::env::var_os("STOCKADE_BENCH_STRICT").is_some_and(|value| value == "1");
    let files: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let mut text = Vec::new();
    for file in &files {
        text.extend(std::fs::read(file)?);
    }
    if files.is_empty() {
        while text.len() < 16 << 20 {
            for part in CLEAN {
                text.extend_from_slice(part.as_bytes());
            }
        }
    }
    let mut out = std::io::stdout().lock();
    let mut met = true;
    let only = arguments
        .iter()
        .find_map(|argument| argument.strip_prefix("--only="));
    for (name, kinds, promised) in KINDS
        .into_iter()
        .filter(|kind| only.is_none_or(|only| only == kind.0))
    {
        let best = best_of(5, || inspect_all(kinds, [""; 0], &text).findings.len());
        let rate = text.len() as f64 / best.as_secs_f64();
        writeln!(
            out,
            "{name:<10} {:>7.0} MB/s (promised {:.0})",
            rate / 1e6,
            promised / 1e6
        )?;
        met &= rate >= promised;
    }
    let short = text.get(..1024.min(text.len())).unwrap_or_default();
    let start = Instant::now();
    std::hint::black_box(inspect_all(Kinds::ALL, [""; 0], short));
    writeln!(out, "1 KB, all kinds, first call: {:?}", start.elapsed())?;
    match std::env::var_os("STOCKADE_BIN") {
        Some(program) => met &= program_start(&mut out, &program, short)?,
        None => writeln!(out, "skipped: 1 KB by the program: STOCKADE_BIN is not set")?,
    }
    Ok(if met || !check {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The middle of many runs of the program on 1 KB, and of as many of `/bin/true` in between.
fn program_start(
    out: &mut impl std::io::Write,
    program: &std::ffi::OsStr,
    short: &[u8],
) -> Result<bool, Box<dyn Error>> {
    const RUNS: usize = 300;
    const PROMISED: Duration = Duration::from_millis(3);
    let file = std::env::temp_dir().join(format!("stockade-inspect-{}", std::process::id()));
    std::fs::write(&file, short)?;
    let time = |command: &mut Command| {
        let begun = Instant::now();
        let ended = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        ended.map(|_| begun.elapsed())
    };
    let mut ours = Vec::with_capacity(RUNS);
    let mut nothing = Vec::with_capacity(RUNS);
    let mut failed = None;
    for _ in 0..RUNS {
        let pair = time(&mut Command::new("/bin/true")).and_then(|empty| {
            Ok((
                empty,
                time(Command::new(program).arg("inspect").arg(&file))?,
            ))
        });
        match pair {
            Ok((empty, full)) => {
                nothing.push(empty);
                ours.push(full);
            }
            Err(error) => failed = Some(error),
        }
    }
    std::fs::remove_file(&file)?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    ours.sort();
    nothing.sort();
    let (ours, nothing) = (ours[RUNS / 2], nothing[RUNS / 2]);
    writeln!(
        out,
        "1 KB, all kinds, by the program: p50 {ours:?}, /bin/true {nothing:?} (promised {PROMISED:?})"
    )?;
    Ok(ours <= PROMISED)
}

fn best_of(times: usize, mut work: impl FnMut() -> usize) -> Duration {
    (0..times)
        .map(|_| {
            let start = now();
            std::hint::black_box(work());
            now().saturating_sub(start)
        })
        .min()
        .unwrap_or_default()
}

/// Time that this thread spent on a processor: the promise is for each core, and other work on the
/// machine must not count.
fn now() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or_default();
    Duration::from_nanos(nanoseconds)
}
