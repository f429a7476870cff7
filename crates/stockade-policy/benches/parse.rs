//! How long a profile of 500 rules takes from text to merged rules: the budget is 2 ms.
//!
//! `cargo bench -p stockade-policy --bench parse`; fails when the median is over the budget.

use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

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

/// 500 entries: denied directories and patterns, readable and writable paths, hosts.
fn profile_text() -> Result<String, std::fmt::Error> {
    let mut text = String::from("version = 1\n[filesystem]\n");
    for (key, entry) in [
        ("deny", "secret/dir-"),
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
    text.push_str("[network]\nallow = [\n");
    for number in 0..100 {
        writeln!(text, "  \"*.host-{number}.example.org:8443\",")?;
    }
    text.push_str("]\n");
    Ok(text)
}

#[expect(
    clippy::print_stdout,
    reason = "the figures are what a benchmark is for"
)]
fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let around = Surroundings::new(AbsPath::new("/home/u/ws")?).with_home(AbsPath::new("/home/u")?);
    let sources = Sources {
        policy: Some(AbsPath::new("/p.toml")?),
        ..Sources::new(around)
    };
    let file = OneFile(profile_text()?.into_bytes());
    let rules = Profile::resolve(&sources, &file)?.rules.iter().count();
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        std::hint::black_box(Profile::resolve(&sources, &file)?);
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let (p50, p95) = (times[ROUNDS / 2], times[ROUNDS * 95 / 100]);
    println!(
        "profile of 500 entries, {rules} rules: p50 {p50:.1?}, p95 {p95:.1?}, budget {BUDGET:?}"
    );
    Ok(if p50 > BUDGET {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    run()
}
