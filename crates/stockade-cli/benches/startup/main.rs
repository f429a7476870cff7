//! Starting commands, side by side: bare, with Stockade, with the alternative.
//!
//! Every row is started once per round, so that whatever else the machine does hits all rows
//! alike. What counts is the p50 of each row minus that of bare `/bin/true`. `STOCKADE_BIN` names
//! the program; `make bench` sets it to the static one. `STOCKADE_BENCH_RUNS` sets the number of
//! rounds; with `STOCKADE_BENCH_STRICT=1` a missed budget is a failure.

mod sample;
mod table;
mod tree;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use sample::{Row, Samples};
use table::{Budget, Line};
use tree::Trees;

const ROUNDS: usize = 400;

const BARE: &str = "/bin/true";
const VERSION: &str = "stockade --version";
const FULL_ACCESS: &str = "stockade run --danger-full-access -- true";
const RUN: &str = "stockade run -- true";
const WITHOUT_LAYER: &str = "stockade run --home read-only -- true";
const BWRAP: &str = "bwrap --unshare-all … true";
const UNSHARE: &str = "unshare --user --mount … --mount-proc true";
const LARGE: &str = "stockade run, in a tree of 300,000 files";
const DENIED: &str = "stockade run, 500 denied files";
const GLOB: &str = "stockade run, a glob that names 20,000 files";

/// Bubblewrap doing less than Stockade does: no masks, no Landlock, no filter, no limits.
const BWRAP_ARGV: &[&str] = &[
    "bwrap",
    "--unshare-all",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "/bin/true",
];

/// The namespaces and a `/proc`, nothing else: what no sandbox that makes them goes below by much.
const UNSHARE_ARGV: &[&str] = &[
    "unshare",
    "--user",
    "--map-root-user",
    "--mount",
    "--pid",
    "--fork",
    "--net",
    "--ipc",
    "--uts",
    "--cgroup",
    "--mount-proc",
    "/bin/true",
];

#[expect(clippy::print_stderr, reason = "a benchmark says why it can't run")]
fn main() -> ExitCode {
    let trees = match Trees::make() {
        Ok(trees) => trees,
        Err(error) => {
            eprintln!("the directories for the benchmark can't be made: {error}");
            return ExitCode::FAILURE;
        }
    };
    let stockade = program();
    let samples = sample::interleaved(&rows(&stockade, &trees), rounds());
    let lines = lines(&samples);
    table::print(&stockade, rounds(), &samples, &lines);
    let strict = env::var_os("STOCKADE_BENCH_STRICT").is_some_and(|value| value == "1");
    if strict && lines.iter().any(Line::is_over) {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn rows(stockade: &str, trees: &Trees) -> Vec<Row> {
    let (empty, large) = (trees.empty(), trees.large());
    let denied = trees.denied().display().to_string();
    let run = |flags: &[&str]| -> Vec<String> {
        let argv = [&[stockade, "run"], flags, &["--", "/bin/true"]].concat();
        argv.into_iter().map(str::to_owned).collect()
    };
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    vec![
        Row::new(BARE, owned(&[BARE]), &empty),
        Row::new(VERSION, owned(&[stockade, "--version"]), &empty),
        Row::new(FULL_ACCESS, run(&["--danger-full-access"]), &empty),
        Row::new(RUN, run(&[]), &empty),
        Row::new(WITHOUT_LAYER, run(&["--home", "read-only"]), &empty),
        Row::new(BWRAP, owned(BWRAP_ARGV), &empty),
        Row::new(UNSHARE, owned(UNSHARE_ARGV), &empty),
        Row::new(LARGE, run(&[]), &large),
        Row::new(DENIED, run(&["--policy", &denied]), &large),
        Row::new(GLOB, run(&["--deny-read", tree::GLOB]), &large),
    ]
}

/// The promises of SPECIFICATION.md that this program measures.
fn lines(samples: &[Samples]) -> Vec<Line> {
    let p50 = |name: &str| samples.iter().find(|row| row.name == name)?.p50();
    let between = |name: &str, base: &str| Some(p50(name)? - p50(base)?);
    let ratio = |value: Option<f64>, base: Option<f64>| Some(value? / base?);
    let run = between(RUN, BARE);
    vec![
        Line::new(
            "the program itself adds",
            between(VERSION, BARE),
            Budget::Milliseconds(0.6),
        ),
        Line::new("full isolation adds", run, Budget::Milliseconds(1.5)),
        Line::new(
            "the layer over the home directory adds",
            between(RUN, WITHOUT_LAYER),
            Budget::Milliseconds(1.0),
        ),
        Line::new(
            "full isolation, relative to what bwrap adds",
            ratio(run, between(BWRAP, BARE)),
            Budget::Ratio(0.4),
        ),
        Line::new(
            "a tree of 300,000 files, relative to none",
            ratio(between(LARGE, BARE), run),
            Budget::Ratio(1.1),
        ),
        Line::new(
            "500 denied files add",
            between(DENIED, LARGE),
            Budget::Milliseconds(2.0),
        ),
        Line::new(
            "a glob that names 20,000 files adds",
            between(GLOB, LARGE),
            Budget::Milliseconds(5.0),
        ),
    ]
}

fn rounds() -> usize {
    env::var("STOCKADE_BENCH_RUNS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(ROUNDS)
}

fn program() -> String {
    let path = env::var_os("STOCKADE_BIN").map_or_else(
        || PathBuf::from(env!("CARGO_BIN_EXE_stockade")),
        PathBuf::from,
    );
    path.display().to_string()
}
