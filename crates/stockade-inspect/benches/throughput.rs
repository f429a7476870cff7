//! How fast each kind of inspection reads clean text, and how soon a short text is answered.
//!
//! `throughput [--check] [--only=KIND] [FILE…]`: with files, reads those; else text made of this
//! crate's own sources and a licence, in which nothing may be found. With `--check` or
//! `STOCKADE_BENCH_STRICT`, fails if a target is missed. Each rate is also given in parts of what a
//! count of the words takes, byte by byte: that tells a slow machine from a slow inspector.
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

/// Text without a finding.
const CLEAN: [&str; 6] = [
    include_str!("../src/finding.rs"),
    include_str!("../src/window.rs"),
    include_str!("../src/trigger.rs"),
    include_str!("../src/engine.rs"),
    include_str!("../src/normalize/view.rs"),
    include_str!("../../../LICENSE-APACHE"),
];

/// Sources with samples of attacks, commands and other scripts in them.
const MIXED: [&str; 6] = [
    include_str!("../src/finding.rs"),
    include_str!("../src/window.rs"),
    include_str!("../src/trigger.rs"),
    include_str!("../src/normalize/mod.rs"),
    include_str!("../src/inspector.rs"),
    include_str!("../../../LICENSE-APACHE"),
];

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
        text = repeated(&CLEAN);
    }
    let mut out = std::io::stdout().lock();
    let mut met = true;
    let only = arguments
        .iter()
        .find_map(|argument| argument.strip_prefix("--only="));
    let chosen = |kind: &&(&str, Kinds, f64)| only.is_none_or(|only| only == kind.0);
    for (name, kinds, promised) in KINDS.iter().filter(chosen) {
        let measured = measure(*kinds, &text);
        if measured.findings > 0 && files.is_empty() {
            return Err(format!("{name}: the text is not clean").into());
        }
        writeln!(
            out,
            "{name:<10} {measured} (promised {:.0})",
            promised / 1e6
        )?;
        met &= measured.rate >= *promised;
    }
    if files.is_empty() {
        let mixed = repeated(&MIXED);
        for (name, kinds, _) in KINDS.iter().filter(chosen) {
            let measured = measure(*kinds, &mixed);
            writeln!(out, "{name:<10} {measured} on text with findings")?;
        }
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

/// The parts over and over, to 16 MB.
fn repeated(parts: &[&str]) -> Vec<u8> {
    let mut text = Vec::new();
    while text.len() < 16 << 20 {
        for part in parts {
            text.extend_from_slice(part.as_bytes());
        }
    }
    text
}

/// How fast a text was read.
struct Measured {
    /// Bytes in a second.
    rate: f64,
    /// The same for a count of its words.
    counting: f64,
    findings: usize,
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let share = self.rate / self.counting;
        write!(
            f,
            "{:>7.0} MB/s, {share:.2} of counting words",
            self.rate / 1e6
        )
    }
}

/// The best of five, in turn with counting, so that both see the same machine.
#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^52")]
fn measure(kinds: Kinds, text: &[u8]) -> Measured {
    let mut findings = 0;
    let (mut best, mut counted) = (Duration::MAX, Duration::MAX);
    for _ in 0..5 {
        best = best.min(spent(|| {
            findings = inspect_all(kinds, [""; 0], text).findings.len();
        }));
        counted = counted.min(spent(|| {
            std::hint::black_box(count_words(text));
        }));
    }
    let rate = |time: Duration| text.len() as f64 / time.as_secs_f64();
    Measured {
        rate: rate(best),
        counting: rate(counted),
        findings,
    }
}

fn spent(work: impl FnOnce()) -> Duration {
    let start = now();
    work();
    now().saturating_sub(start)
}

/// What `wc -w` counts, one byte after the other.
fn count_words(text: &[u8]) -> usize {
    let mut inside = false;
    let mut words = 0;
    for byte in text {
        let blank = byte.is_ascii_whitespace();
        words += usize::from(inside && blank);
        inside = !blank;
    }
    words
}

/// Time that this thread spent on a processor: the promise is for each core, and other work on the
/// machine must not count. To yield brings the kernel's account up to date, which otherwise moves
/// in steps of some milliseconds.
fn now() -> Duration {
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or_default();
    Duration::from_nanos(nanoseconds)
}
