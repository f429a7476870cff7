//! Ordinary work, bare and sandboxed: what it costs once the sandbox stands.
//!
//! Each piece of work is done bare and sandboxed in turn, so that whatever else the machine does
//! hits both alike. What counts is the p50 inside, less what starting a sandbox costs, over the p50
//! outside. `STOCKADE_BIN` names the program; `STOCKADE_BENCH_ROUNDS` sets the number of rounds;
//! with `STOCKADE_BENCH_STRICT=1` a missed budget is a failure.
#![cfg(target_os = "linux")]

mod project;

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use project::Project;

const ROUNDS: usize = 15;
const STATS: usize = 100_000;
/// As this program's first argument: do nothing but ask for the metadata of the second.
const STAT: &str = "--stat";

/// A piece of work, and how many times as long it may take inside.
struct Work {
    name: &'static str,
    argv: Vec<String>,
    directory: PathBuf,
    budget: Option<f64>,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    if arguments.next().as_deref() == Some(STAT) {
        return Ok(stat(Path::new(&arguments.next().unwrap_or_default())));
    }
    let project = Project::make()?;
    let works = works(&project)?;
    let stockade = env::var_os("STOCKADE_BIN").map_or_else(
        || PathBuf::from(env!("CARGO_BIN_EXE_stockade")),
        PathBuf::from,
    );
    let rounds = env::var("STOCKADE_BENCH_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(ROUNDS);
    let mut times = vec![[Vec::new(), Vec::new()]; works.len()];
    for _ in 0..rounds {
        for (work, [bare, inside]) in works.iter().zip(&mut times) {
            bare.push(work.once(None)?);
            inside.push(work.once(Some(&stockade))?);
        }
    }
    let kept = print(&works, times, rounds);
    let strict = env::var_os("STOCKADE_BENCH_STRICT").is_some_and(|value| value == "1");
    Ok(if strict && !kept {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn works(project: &Project) -> Result<Vec<Work>, Box<dyn Error>> {
    let shell = |script: &str| ["sh", "-ec", script].map(str::to_owned).to_vec();
    let this = env::current_exe()?.display().to_string();
    let work = |name, argv, directory: &Path, budget| Work {
        name,
        argv,
        directory: directory.to_owned(),
        budget,
    };
    Ok(vec![
        // First: the others are measured against it.
        work("start", shell("true"), project.repository(), None),
        work(
            "100,000 stat calls",
            vec![this, STAT.to_owned(), project.file()],
            project.repository(),
            Some(1.02),
        ),
        work(
            "git status, 20,000 files",
            shell("git status --porcelain >/dev/null"),
            project.repository(),
            Some(1.02),
        ),
        work(
            "git checkout, 10,000 files, twice",
            shell("git checkout -q other; git checkout -q main"),
            project.repository(),
            Some(1.5),
        ),
        work(
            "cargo build, small",
            shell(&project.build_script()),
            project.package(),
            Some(1.03),
        ),
    ])
}

/// The work of [`STAT`].
fn stat(file: &Path) -> ExitCode {
    for _ in 0..STATS {
        if black_box(fs::symlink_metadata(file)).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

impl Work {
    /// Milliseconds.
    fn once(&self, stockade: Option<&Path>) -> Result<f64, Box<dyn Error>> {
        let launcher = stockade.map_or_else(Vec::new, |program| {
            [program.as_os_str(), OsStr::new("run"), OsStr::new("--")].to_vec()
        });
        let argv = self.argv.iter().map(OsStr::new);
        let argv: Vec<&OsStr> = launcher.into_iter().chain(argv).collect();
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]);
        command.current_dir(&self.directory).stdin(Stdio::null());
        let begin = Instant::now();
        let output = command.output()?;
        let time = begin.elapsed();
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}: {text}", self.name, output.status).into());
        }
        Ok(time.as_secs_f64() * 1e3)
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its result")]
fn print(works: &[Work], times: Vec<[Vec<f64>; 2]>, rounds: usize) -> bool {
    println!(
        "p50 of {rounds} rounds, bare and sandboxed in turn; a start of its own is left out\n"
    );
    println!(
        "{:<36} {:>9} {:>9} {:>8} {:>7}",
        "", "bare ms", "inside ms", "ratio", "budget"
    );
    let mut kept = true;
    let mut start = 0.0;
    for (work, [bare, inside]) in works.iter().zip(times) {
        let (bare, inside) = (p50(bare), p50(inside));
        let Some(budget) = work.budget else {
            start = inside - bare;
            println!("{:<36} {bare:>9.2} {inside:>9.2}", work.name);
            continue;
        };
        let ratio = (inside - start) / bare;
        let verdict = if ratio <= budget { "kept" } else { "MISSED" };
        kept &= ratio <= budget;
        println!(
            "{:<36} {bare:>9.1} {inside:>9.1} {ratio:>7.3}× {budget:>6.2}× {verdict}",
            work.name
        );
    }
    kept
}

fn p50(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
