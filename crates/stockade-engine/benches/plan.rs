//! How long a profile of 500 rules takes from text to plan: the budget is 2 ms.
//!
//! `cargo bench -p stockade-engine --bench plan`; with `STOCKADE_BENCH_STRICT=1` a median over the budget
//! is a failure.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use stockade_engine::{ExecPlan, Spec};
use stockade_policy::profile::{Loader, Profile, Sources};
use stockade_policy::{AbsPath, Surroundings};

const BUDGET: Duration = Duration::from_millis(2);
const ROUNDS: usize = 300;

struct OneFile(Vec<u8>);

impl Loader for OneFile {
    fn read(&self, _: &AbsPath) -> io::Result<Vec<u8>> {
        Ok(self.0.clone())
    }

    fn exists(&self, _: &AbsPath) -> bool {
        false
    }
}

/// 500 entries: denied files and patterns, readable and writable paths. The denied files exist.
fn profile_text(denied: &Path) -> Result<String, std::fmt::Error> {
    let denied = format!("{}/file-", denied.display());
    let mut text = String::from("version = 1\n[filesystem]\n");
    for (key, entry) in [
        ("deny", denied.as_str()),
        ("deny_write", "secret/dir-"),
        ("deny_read", "**/vault-"),
        ("read", "~/tools/lib-"),
        ("write", "/srv/cache/part-"),
    ] {
        writeln!(text, "{key} = [")?;
        for number in 0..100 {
            writeln!(text, "  \"{entry}{number}\",")?;
        }
        text.push_str("]\n");
    }
    Ok(text)
}

#[expect(
    clippy::print_stdout,
    reason = "the figures are what a benchmark is for"
)]
fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let scratch = tempfile::tempdir()?;
    let (workspace, denied) = (scratch.path().join("ws"), scratch.path().join("denied"));
    for directory in [&workspace, &denied] {
        std::fs::create_dir(directory)?;
    }
    for number in 0..100 {
        std::fs::write(denied.join(format!("file-{number}")), "")?;
    }
    let around = Surroundings::new(AbsPath::new(workspace)?).with_home(AbsPath::new("/home/u")?);
    let sources = Sources {
        policy: Some(AbsPath::new("/p.toml")?),
        ..Sources::new(around)
    };
    let file = OneFile(profile_text(&denied)?.into_bytes());
    let spec = Spec {
        argv: vec!["true".into()],
        env: std::env::vars_os().collect(),
        ..Spec::default()
    };
    let rules = Profile::resolve(&sources, &file)?.rules.iter().count();
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let profile = Profile::resolve(&sources, &file)?;
        std::hint::black_box(ExecPlan::new(&profile, &spec)?);
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let (p50, p95) = (times[ROUNDS / 2], times[ROUNDS * 95 / 100]);
    println!(
        "profile of 500 entries, {rules} rules: p50 {p50:.1?}, p95 {p95:.1?}, budget {BUDGET:?}"
    );
    let strict = std::env::var_os("STOCKADE_BENCH_STRICT").is_some_and(|value| value == "1");
    Ok(if strict && p50 > BUDGET {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    run()
}
