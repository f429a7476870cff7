//! What a sandbox adds to starting `/bin/true` from a program that embeds the library, small and
//! large: if the library forked its host, the price would grow with the host's memory.
//!
//! `cargo bench -p stockade --bench spawn`; `STOCKADE_HELPER` or `STOCKADE_BIN` names the helper,
//! which ought to be the static one. Without it this program is its own, and starts slower.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::env;
use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use stockade::Sandbox;

const RUNS: usize = 300;
const THREADS: usize = 4;
const RESIDENT: usize = 1 << 30;

/// What the specification lets a sandbox add.
const PROMISE: Duration = Duration::from_micros(1500);

fn main() -> Result<ExitCode, Box<dyn Error>> {
    stockade::init();
    let stated = env::var_os("STOCKADE_HELPER").or_else(|| env::var_os("STOCKADE_BIN"));
    let path = stated.map_or_else(env::current_exe, |path| Ok(PathBuf::from(path)))?;
    println!("helper {}, p50 of {RUNS} runs", path.display());
    println!(
        "{:<22} {:>9} {:>9} {:>9}",
        "host", "bare", "sandbox", "added"
    );
    let sandbox = Sandbox::builder().helper(path).build()?;

    let small = measure(&sandbox)?;
    print("small, 1 thread", small);

    let memory = black_box(vec![1_u8; RESIDENT]);
    let barrier = Arc::new(Barrier::new(THREADS));
    let others: Vec<_> = (1..THREADS)
        .map(|_| {
            let barrier = Arc::clone(&barrier);
            std::thread::spawn(move || barrier.wait().is_leader())
        })
        .collect();
    let large = measure(&sandbox)?;
    print("1 GiB, 4 threads", large);
    barrier.wait();
    for thread in others {
        thread.join().map_err(|_| "a thread panicked")?;
    }
    drop(black_box(memory));

    let added = added(large);
    let grown = added.as_secs_f64() / self::added(small).as_secs_f64();
    println!("added in the large host / in the small one: {grown:.2}");
    let verdict = if added <= PROMISE { "kept" } else { "broken" };
    println!("promise: at most {PROMISE:?} added: {verdict}");
    Ok(ExitCode::SUCCESS)
}

/// The medians of both, taken in turns so that the machine's moods hit both alike.
fn measure(sandbox: &Sandbox) -> Result<[Duration; 2], Box<dyn Error>> {
    let mut times = [Vec::with_capacity(RUNS), Vec::with_capacity(RUNS)];
    for _ in 0..RUNS {
        let begun = Instant::now();
        let status = Command::new("/bin/true")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        times[0].push(begun.elapsed());
        let begun = Instant::now();
        let finished = sandbox
            .command("/bin/true")
            .stdin(stockade::Stdio::Null)
            .stdout(stockade::Stdio::Null)
            .stderr(stockade::Stdio::Null)
            .status()?;
        times[1].push(begun.elapsed());
        if !status.success() || finished.status_code() != 0 {
            return Err("/bin/true failed".into());
        }
    }
    Ok(times.map(|mut times| {
        times.sort_unstable();
        times[RUNS / 2]
    }))
}

fn added([bare, sandbox]: [Duration; 2]) -> Duration {
    sandbox.saturating_sub(bare)
}

fn print(host: &str, medians: [Duration; 2]) {
    let millis = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1000.0);
    let [bare, sandbox] = medians.map(millis);
    let added = millis(added(medians));
    println!("{host:<22} {bare:>9} {sandbox:>9} {added:>9}");
}
