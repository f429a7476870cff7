//! The proxy beside what else there is: bytes through one tunnel, small requests, many tunnels,
//! the start of a sandbox with a list of hosts.
//!
//! Every figure is the best of some rounds, in which all rows take turns, since the machine does
//! other things too. `STOCKADE_BIN` names the program; `make bench` sets it to the static one.
//! Debian's tinyproxy and squid are measured if they are installed.

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

mod client;
mod host;
mod relay;
mod rivals;

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rivals::Rival;

/// Bytes through the tunnel.
const BYTES: u64 = 1 << 30;
const ROUNDS: usize = 5;
/// Connections and requests on each.
const CLIENTS: usize = 8;
const REQUESTS: usize = 4000;
const TUNNELS: usize = 2000;
const STARTS: usize = 300;

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn main() -> ExitCode {
    // The client is this very program, inside a sandbox or not.
    if let Some(code) = client::dispatch() {
        return code;
    }
    let Some(stockade) = program() else {
        println!("network: set STOCKADE_BIN to the program");
        return ExitCode::FAILURE;
    };
    let source = host::source(BYTES);
    let web = host::web();
    let rivals = Rival::start_all();
    tunnels(&stockade, source, &rivals);
    requests(&stockade, web, &rivals);
    many(&stockade);
    starts(&stockade);
    ExitCode::SUCCESS
}

fn program() -> Option<PathBuf> {
    std::env::var_os("STOCKADE_BIN").map(PathBuf::from)
}

/// A client inside a sandbox that may reach `a.test` on this port.
fn boxed(stockade: &PathBuf, port: u16, words: &[String]) -> Command {
    let mut command = Command::new(stockade);
    command
        .args(["run", "-q", "--allow", &format!("a.test:{port}")])
        .args(["--resolve", "a.test=127.0.0.1", "--"])
        .arg(own_path())
        .args(words);
    command
}

fn bare(words: &[String]) -> Command {
    let mut command = Command::new(own_path());
    command.args(words);
    command
}

fn own_path() -> PathBuf {
    std::env::current_exe().unwrap_or_default()
}

/// Runs a client; the figure that it prints.
fn figure(mut command: Command) -> f64 {
    let output = command.stderr(Stdio::inherit()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0.0)
}

/// The best of all rounds for each row, the rows taking turns.
fn best(rows: &Rows<'_>) -> Vec<f64> {
    let mut best = vec![0.0f64; rows.len()];
    for _ in 0..ROUNDS {
        for (figures, (_, command)) in best.iter_mut().zip(rows) {
            *figures = figures.max(figure(command()));
        }
    }
    best
}

type Rows<'a> = Vec<(&'a str, Box<dyn Fn() -> Command + 'a>)>;

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn tunnels(stockade: &PathBuf, port: u16, rivals: &[Rival]) {
    let words = |proxy: &str, host: &str| {
        ["--client", "read", proxy, host, &port.to_string()].map(str::to_owned)
    };
    let relay = relay::to(port).to_string();
    let through = ["--client", "read", "-", "127.0.0.1", &relay].map(str::to_owned);
    let mut rows: Rows<'_> = vec![
        ("direct", Box::new(|| bare(&words("-", "127.0.0.1")))),
        ("a bare splice relay", Box::new(|| bare(&through))),
        (
            "stockade, CONNECT from inside",
            Box::new(|| boxed(stockade, port, &words("env", "a.test"))),
        ),
        (
            "stockade, transparent from inside",
            Box::new(|| boxed(stockade, port, &words("-", "a.test"))),
        ),
    ];
    for rival in rivals {
        let proxy = &rival.address;
        rows.push((
            rival.name,
            Box::new(move || bare(&words(proxy, "127.0.0.1"))),
        ));
    }
    println!(
        "one tunnel, MB/s, best of {ROUNDS} rounds of {} MiB",
        BYTES >> 20
    );
    let figures = best(&rows);
    for ((name, _), figure) in rows.iter().zip(&figures) {
        println!(
            "  {name:<36} {figure:>8.0}  {:>5.2} of direct, {:>5.2} of the relay",
            figure / figures[0],
            figure / figures[1]
        );
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn requests(stockade: &PathBuf, port: u16, rivals: &[Rival]) {
    let words = |proxy: &str, host: &str| {
        let port = port.to_string();
        let (clients, requests) = (CLIENTS.to_string(), REQUESTS.to_string());
        ["--client", "get", proxy, host, &port, &clients, &requests].map(str::to_owned)
    };
    let mut rows: Rows<'_> = vec![
        ("direct", Box::new(|| bare(&words("-", "127.0.0.1")))),
        (
            "stockade, from inside",
            Box::new(|| boxed(stockade, port, &words("env", "a.test"))),
        ),
    ];
    for rival in rivals {
        let proxy = &rival.address;
        rows.push((
            rival.name,
            Box::new(move || bare(&words(proxy, "127.0.0.1"))),
        ));
    }
    println!("small requests over {CLIENTS} kept connections, per second");
    let figures = best(&rows);
    for ((name, _), figure) in rows.iter().zip(&figures) {
        println!("  {name:<36} {figure:>8.0}");
    }
}

/// The resident size of a proxy with so many tunnels through it.
#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn many(stockade: &PathBuf) {
    let port = host::echo();
    let mut command = Command::new(stockade);
    command
        .args([
            "proxy",
            "--no-upstream",
            "--allow",
            &format!("a.test:{port}"),
        ])
        .args(["--resolve", "a.test=127.0.0.1"])
        .stdout(Stdio::piped());
    let Ok(mut proxy) = command.spawn() else {
        return;
    };
    let held = client::hold(&mut proxy, port, TUNNELS);
    let size = std::fs::read_to_string(format!("/proc/{}/status", proxy.id())).unwrap_or_default();
    let kib: u64 = size
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().split(' ').next()?.parse().ok())
        .unwrap_or(0);
    println!(
        "{} tunnels at one time: {:.1} MB resident",
        held.len(),
        kib as f64 / 1000.0
    );
    let _ = proxy.kill();
    let _ = proxy.wait();
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn starts(stockade: &PathBuf) {
    let run = |flags: &[&str]| {
        let started = Instant::now();
        let mut command = Command::new(stockade);
        command.arg("run").args(["-q"]).args(flags);
        let _ = command.args(["--", "/bin/true"]).status();
        started.elapsed()
    };
    let (mut off, mut list) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        off.push(run(&[]));
        list.push(run(&["--allow", "a.test"]));
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1000.0
    };
    let (off, list) = (median(&mut off), median(&mut list));
    println!(
        "start, median of {STARTS}: {off:.2} ms without network, {list:.2} ms with a list, {:+.2} ms",
        list - off
    );
}
