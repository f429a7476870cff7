//! Work that makes, moves and removes many names: bare, in bwrap, under the least mediator that can
//! be (`floor.c`), directly and as a transaction.
//!
//! Every way does each piece of work once per round, so that whatever else the machine does hits
//! all alike. A ratio is the median of a way over the median of bare, starts included. As root the
//! files are on a tmpfs that only this program sees; `STOCKADE_BENCH_DIR` names another directory,
//! whose goals are those of a disk. `STOCKADE_BIN` names the program; `STOCKADE_BENCH_ROUNDS` sets
//! the number of rounds; with `STOCKADE_BENCH_STRICT=1` a missed goal is a failure.
#![cfg(target_os = "linux")]

mod cpu;
mod fixture;
mod way;
mod work;

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use fixture::Fixture;
use way::Way;
use work::{Measure, Work};

const ROUNDS: usize = 5;
/// Set in the process that has the tmpfs.
const INNER: &str = "STOCKADE_BENCH_INNER";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let on_disk = env::var_os("STOCKADE_BENCH_DIR").is_some();
    let is_root = rustix::process::geteuid().is_root();
    if is_root && !on_disk && env::var_os(INNER).is_none() {
        let status = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "--"])
            .arg(env::current_exe()?)
            .env(INNER, "1")
            .status()?;
        return Ok(status.code().map_or(ExitCode::FAILURE, |code| {
            ExitCode::from(u8::try_from(code).unwrap_or(1))
        }));
    }
    let stockade = env::var_os("STOCKADE_BIN").map_or_else(
        || PathBuf::from(env!("CARGO_BIN_EXE_stockade")),
        PathBuf::from,
    );
    let fixture = Fixture::make(is_root && !on_disk)?;
    let ways = Way::usable(&stockade, &fixture);
    let rounds = env::var("STOCKADE_BENCH_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(ROUNDS);
    let works = work::all();
    heading(&ways, rounds, on_disk || !is_root);
    let mut kept = true;
    for work in &works {
        kept &= measure(work, &ways, &fixture, rounds, on_disk)?;
    }
    kept &= cpu::starts(&ways, &fixture)?;
    let strict = env::var_os("STOCKADE_BENCH_STRICT").is_some_and(|value| value == "1");
    Ok(if strict && !kept {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its result")]
fn heading(ways: &[Way], rounds: usize, on_disk: bool) {
    let place = if on_disk {
        "a directory on disk"
    } else {
        "tmpfs"
    };
    println!(
        "median of {rounds} rounds on {place}, starts included; ratios to bare, goals in brackets"
    );
    for missing in Way::missing(ways) {
        println!("left out: {missing}");
    }
    println!();
}

/// One line of the table; whether the goals are met.
#[expect(clippy::print_stdout, reason = "a benchmark prints its result")]
fn measure(
    work: &Work,
    ways: &[Way],
    fixture: &Fixture,
    rounds: usize,
    on_disk: bool,
) -> Result<bool, Box<dyn Error>> {
    let mut values = vec![Vec::new(); ways.len()];
    for _ in 0..rounds {
        for (way, values) in ways.iter().zip(&mut values) {
            values.push(work.once(way, fixture)?);
        }
    }
    let medians: Vec<f64> = values.into_iter().map(median).collect();
    let unit = match work.measure {
        Measure::Milliseconds => "ms",
        Measure::PerSecond => "calls/s",
    };
    print!("{:<34} {:>9.0} {unit:<8}", work.name, medians[0]);
    let mut kept = true;
    for (way, median) in ways.iter().zip(&medians).skip(1) {
        let ratio = median / medians[0];
        let goal = work.goal(way.kind, on_disk);
        let met = goal.is_none_or(|goal| match work.measure {
            Measure::Milliseconds => ratio <= goal,
            Measure::PerSecond => ratio >= goal,
        });
        kept &= met;
        let verdict = match (goal, met) {
            (None, _) => String::new(),
            (Some(goal), true) => format!(" [{goal}]"),
            (Some(goal), false) => format!(" [{goal}] MISSED"),
        };
        print!("   {} {ratio:.2}×{verdict}", way.name);
    }
    println!();
    Ok(kept)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
