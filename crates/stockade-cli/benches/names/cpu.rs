//! Processor time of a cold start, of all processes together.
//!
//! Orphans come to this program, which counts them too: time is that of all children that were
//! waited for, as `proc_pid_stat(5)` has it.

use std::error::Error;
use std::fs;
use std::process::Stdio;

use rustix::process::{WaitOptions, set_child_subreaper, wait};

use crate::fixture::Fixture;
use crate::way::{Kind, Way};

const STARTS: u32 = 200;
/// Of what bwrap needs.
const GOAL: f64 = 1.3;
/// Linux shows times in hundredths of a second on every architecture, sysconf(3).
const TICK_MILLISECONDS: f64 = 10.0;

/// Prints the line of the table; whether the goal is met.
#[expect(clippy::print_stdout, reason = "a benchmark prints its result")]
pub(crate) fn starts(ways: &[Way], fixture: &Fixture) -> Result<bool, Box<dyn Error>> {
    set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut times = Vec::new();
    for way in ways
        .iter()
        .filter(|way| !matches!(way.kind, Kind::Floor | Kind::Transaction))
    {
        let before = children_ticks()?;
        for _ in 0..STARTS {
            let mut command = way.command(&["/bin/true"], &fixture.project());
            command.stdout(Stdio::null()).status()?;
            while let Ok(Some(_)) = wait(WaitOptions::empty()) {}
        }
        let ticks = children_ticks()? - before;
        times.push((way, ticks * TICK_MILLISECONDS / f64::from(STARTS)));
    }
    let of = |kind| {
        times
            .iter()
            .find(|(way, _)| way.kind == kind)
            .map(|(_, time)| *time)
    };
    print!("{:<34}", "processor time of a start, ms");
    for (way, time) in &times {
        print!("   {} {time:.2}", way.name);
    }
    let (Some(bwrap), Some(direct)) = (of(Kind::Bwrap), of(Kind::Direct)) else {
        println!();
        return Ok(true);
    };
    let ratio = direct / bwrap;
    let verdict = if ratio <= GOAL { "" } else { " MISSED" };
    println!("   direct to bwrap {ratio:.2}× [{GOAL}]{verdict}");
    Ok(ratio <= GOAL)
}

/// User and system time of all children so far.
fn children_ticks() -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may hold anything; cutime and cstime are the 14th and 15th behind it.
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    let mut fields = fields.split(' ').skip(13);
    let mut next = || fields.next().unwrap_or_default().parse::<f64>();
    Ok(next()? + next()?)
}
