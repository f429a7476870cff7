//! What a command costs in a session that is open, next to a bare one and to `bwrap`, all in one
//! run; what it costs to open a session; and how much memory an open session holds.
//!
//! `cargo bench -p stockade --bench session`; `STOCKADE_HELPER` names the helper, which ought to be
//! the static one. Without it this program is its own helper, and larger.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::collections::HashSet;
use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use stockade::{Sandbox, Session};

const RUNS: usize = 300;
const OPEN_SESSIONS: u64 = 200;

/// What the specification allows.
const MAX_OF_BARE: f64 = 2.0;
const MAX_OF_BWRAP: f64 = 0.25;
const MAX_OPENING: Duration = Duration::from_micros(500);
const MAX_KIB: u64 = 3 << 10;
const MAX_GROWTH_KIB: u64 = 64;
const MAX_BESIDE_OUTPUT: f64 = 1.1;

/// How many commands run before memory is measured for the first time, and until the second time.
const WARM_UP_COMMANDS: usize = 100;
const COMMANDS: usize = 1000;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<ExitCode> {
    stockade::init();
    let mut builder = Sandbox::builder();
    if let Some(helper) = env::var_os("STOCKADE_HELPER") {
        builder.helper(helper);
    }
    let sandbox = builder.build()?;
    let helper = sandbox.helper().display();
    println!("helper {helper}, p50 of {RUNS} runs");
    commands(&sandbox)?;
    opening(&sandbox)?;
    growth(&sandbox)?;
    beside_output(&sandbox)?;
    memory(&sandbox)?;
    Ok(ExitCode::SUCCESS)
}

fn commands(sandbox: &Sandbox) -> Outcome<()> {
    let session = sandbox.open()?;
    let mut bare = || silent(&mut Command::new("/bin/true"));
    let mut inside = || run_inside(&session);
    let mut bwrap = || {
        let arguments = ["--unshare-all", "--ro-bind", "/", "/", "/bin/true"];
        silent(Command::new("bwrap").args(arguments))
    };
    let has_bwrap = bwrap().is_ok();
    let mut ways: Vec<&mut dyn FnMut() -> Outcome<()>> = vec![&mut bare, &mut inside];
    if has_bwrap {
        ways.push(&mut bwrap);
    }
    let medians = medians(&mut ways)?;
    let [bare, inside] = [medians[0], medians[1]];
    println!("bare {bare:?}, in a session {inside:?}");
    promise(
        "of bare",
        inside.as_secs_f64() / bare.as_secs_f64(),
        MAX_OF_BARE,
    );
    if let Some(bwrap) = medians.get(2) {
        println!("bwrap {bwrap:?}");
        let added = inside.saturating_sub(bare).as_secs_f64();
        let ratio = added / bwrap.saturating_sub(bare).as_secs_f64();
        promise("of what bwrap adds", ratio, MAX_OF_BWRAP);
    }
    Ok(())
}

fn opening(sandbox: &Sandbox) -> Outcome<()> {
    let mut run = || {
        let mut command = sandbox.command("/bin/true");
        let finished = command.stdin(stockade::Stdio::Null).status()?;
        succeeded(finished.status_code())
    };
    let mut opened = Vec::with_capacity(RUNS);
    let mut whole = || {
        let begun = Instant::now();
        let session = sandbox.open()?;
        opened.push(begun.elapsed());
        run_inside(&session)?;
        session.close()?;
        Ok(())
    };
    let medians = medians(&mut [&mut run, &mut whole])?;
    let opened = median(opened);
    println!(
        "run {:?}, opening {opened:?}, session for one command {:?}",
        medians[0], medians[1]
    );
    let more = opened.saturating_sub(medians[0]);
    promise("ms to open over a run", millis(more), millis(MAX_OPENING));
    Ok(())
}

/// What 1,000 commands leave in the memory of the session's processes.
fn growth(sandbox: &Sandbox) -> Outcome<()> {
    let session = sandbox.open()?;
    let run = |count: usize| (0..count).try_for_each(|_| run_inside(&session));
    run(WARM_UP_COMMANDS)?;
    let before = held_kib()?;
    run(COMMANDS)?;
    let more = held_kib()?.saturating_sub(before);
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    promise(
        "KiB more after 1000 commands",
        more as f64,
        MAX_GROWTH_KIB as f64,
    );
    Ok(())
}

/// What a command takes while another one writes without end to somebody who reads.
fn beside_output(sandbox: &Sandbox) -> Outcome<()> {
    let session = sandbox.open()?;
    let mut alone = || run_inside(&session);
    let quiet = medians(&mut [&mut alone])?[0];
    let mut writer = session.command("/bin/sh");
    let script = "exec head -c 1073741824 /dev/zero";
    writer.args(["-c", script]).stdin(stockade::Stdio::Null);
    let mut writer = writer.stdout(stockade::Stdio::Piped).spawn()?;
    let output = writer.stdout.take();
    let reader = std::thread::spawn(move || {
        output.map_or(Ok(0), |mut output| io::copy(&mut output, &mut io::sink()))
    });
    let mut beside = Vec::new();
    while !reader.is_finished() {
        let begun = Instant::now();
        run_inside(&session)?;
        beside.push(begun.elapsed());
    }
    let written = reader.join().map_err(|_| "the reader failed")??;
    writer.wait()?;
    beside.sort_unstable();
    let busy = beside.get(beside.len() / 2).copied().unwrap_or(quiet);
    println!(
        "{quiet:?} alone, {busy:?} while {} MiB were written, {} commands",
        written >> 20,
        beside.len()
    );
    let ratio = busy.as_secs_f64() / quiet.as_secs_f64();
    promise("of alone", ratio, MAX_BESIDE_OUTPUT);
    Ok(())
}

/// The proportional memory of the helpers and supervisors of all open sessions. Init shares its
/// supervisor's memory.
fn held_kib() -> Outcome<u64> {
    let mut held = 0;
    let mut above = HashSet::from([std::process::id()]);
    for _ in 0..2 {
        above = children(&above)?;
        held += above
            .iter()
            .filter_map(|pid| proportional_kib(*pid))
            .sum::<u64>();
    }
    Ok(held)
}

fn memory(sandbox: &Sandbox) -> Outcome<()> {
    let sessions: Vec<Session> = (0..OPEN_SESSIONS)
        .map(|_| sandbox.open())
        .collect::<Result<_, _>>()?;
    let each = held_kib()? / OPEN_SESSIONS;
    println!("{} sessions open", sessions.len());
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    promise("KiB each", each as f64, MAX_KIB as f64);
    Ok(())
}

fn children(parents: &HashSet<u32>) -> Outcome<HashSet<u32>> {
    let mut found = HashSet::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let pid: Option<u32> = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let parent = fields.split_ascii_whitespace().nth(1);
        let parent = parent.and_then(|text| text.parse().ok());
        if parent.is_some_and(|parent| parents.contains(&parent)) {
            found.extend(pid);
        }
    }
    Ok(found)
}

fn proportional_kib(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn silent(command: &mut Command) -> Outcome<()> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    succeeded(command.stderr(Stdio::null()).status()?.code().unwrap_or(-1))
}

fn run_inside(session: &Session) -> Outcome<()> {
    let mut command = session.command("/bin/true");
    command.stdin(stockade::Stdio::Null);
    command.stdout(stockade::Stdio::Null);
    let finished = command.stderr(stockade::Stdio::Null).status()?;
    succeeded(finished.status_code())
}

fn succeeded(code: i32) -> Outcome<()> {
    if code == 0 {
        Ok(())
    } else {
        Err("/bin/true failed".into())
    }
}

/// Taken in turns, so that the machine's load hits all alike.
fn medians(ways: &mut [&mut dyn FnMut() -> Outcome<()>]) -> Outcome<Vec<Duration>> {
    let mut times = vec![Vec::with_capacity(RUNS); ways.len()];
    for _ in 0..RUNS {
        for (way, times) in ways.iter_mut().zip(&mut times) {
            let begun = Instant::now();
            way()?;
            times.push(begun.elapsed());
        }
    }
    Ok(times.into_iter().map(median).collect())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn promise(what: &str, found: f64, limit: f64) {
    let verdict = if found <= limit { "kept" } else { "broken" };
    println!("promise: {found:.2} {what}, at most {limit}: {verdict}");
}
