//! Starting commands, side by side: bare, with Stockade, with the alternative.
//!
//! Every row is started once per round, so that whatever else the machine does hits all rows
//! alike. What counts is the p50 of each row minus that of bare `/bin/true`. `STOCKADE_BIN` names
//! the program; `make bench` sets it to the static one. `STOCKADE_BENCH_RUNS` sets the number of
//! rounds; with `STOCKADE_BENCH_STRICT=1` a missed budget is a failure.

mod sample;
mod table;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use sample::{Row, Samples};
use table::{Budget, Line};

const ROUNDS: usize = 400;

/// Bubblewrap doing less than Stockade does: no masks, no Landlock, no filter, no limits.
const BWRAP: &[&str] = &[
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

fn main() -> ExitCode {
    let stockade = program();
    let rows = [
        Row::new("/bin/true", &["/bin/true"]),
        Row::new("stockade --version", &[&stockade, "--version"]),
        Row::new(
            "stockade run --danger-full-access -- true",
            &[&stockade, "run", "--danger-full-access", "--", "/bin/true"],
        ),
        Row::new(
            "stockade run -- true",
            &[&stockade, "run", "--", "/bin/true"],
        ),
        Row::new("bwrap --unshare-all … true", BWRAP),
    ];
    let samples = sample::interleaved(&rows, rounds());
    let lines = lines(&samples);
    table::print(&stockade, rounds(), &samples, &lines);
    let strict = env::var_os("STOCKADE_BENCH_STRICT").is_some_and(|value| value == "1");
    if strict && lines.iter().any(Line::is_over) {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The promises of SPECIFICATION.md that this program measures.
fn lines(samples: &[Samples]) -> Vec<Line> {
    let added = |name: &str| {
        let find = |name: &str| samples.iter().find(|row| row.name == name)?.p50();
        Some(find(name)? - find("/bin/true")?)
    };
    let bwrap = added("bwrap --unshare-all … true");
    let run = added("stockade run -- true");
    vec![
        Line::new(
            "the program itself adds",
            added("stockade --version"),
            Budget::Milliseconds(0.6),
        ),
        Line::new("full isolation adds", run, Budget::Milliseconds(1.5)),
        Line::new(
            "full isolation, relative to what bwrap adds",
            run.zip(bwrap).map(|(run, bwrap)| run / bwrap),
            Budget::Ratio(0.4),
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
