//! The adversary that nobody scripts: random operations on names, and git and shells on the host as
//! the oracle.
//!
//! `sequence.py` runs inside and tries to plant a program in random ways; `oracle.py` makes the
//! repositories, runs real git and shell starts afterwards, and fails if the planted program ran or
//! anything outside changed. The control runs the same sequences bare, where they must succeed.
//!
//! `STOCKADE_ADVERSARY` is the number of sequences for each user (60 unless said);
//! `STOCKADE_ADVERSARY_SEED` the first seed (the clock decides unless said). To see one again:
//! `STOCKADE_ADVERSARY=1 STOCKADE_ADVERSARY_SEED=… cargo test -p stockade-cli --test adversary`.
//! With `STOCKADE_ADVERSARY_BARE=1` the oracle also runs git inside bare repositories that the
//! sequence made, a known gap (docs/attacks.md).

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stockade_test::{Case, Need, Suite, attack, host};

const SEQUENCES: u32 = 60;
/// Enough for a control: most sequences succeed bare.
const CONTROL_SEQUENCES: u32 = 20;
const WORKERS: u32 = 2;
/// Against hanging, for each sequence.
const SECONDS_EACH: u64 = 10;

fn main() -> ExitCode {
    let count = number("STOCKADE_ADVERSARY").unwrap_or(SEQUENCES);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = number("STOCKADE_ADVERSARY_SEED")
        .unwrap_or_else(|| now.map_or(1, |since| since.subsec_micros() * 1000));
    // Nowhere to report that standard error is closed.
    let _ = writeln!(
        std::io::stderr(),
        "{count} sequences for each user from seed {first}"
    );
    stockade_test::main(Suite {
        program: env!("CARGO_BIN_EXE_stockade").into(),
        cases: vec![
            case(
                "A01",
                "random sequences that plant a program",
                "direct",
                first,
                count,
            ),
            case(
                "A02",
                "random sequences that plant a program over an overlay that is committed",
                "overlay",
                first,
                count,
            ),
        ],
        prepare,
        checks: Vec::new(),
        library: None,
    })
}

fn case(id: &'static str, title: &'static str, way: &str, first: u32, count: u32) -> Case {
    let bare = u32::from(std::env::var_os("STOCKADE_ADVERSARY_BARE").is_some_and(|v| v == "1"));
    attack(id, title)
        .needs(Need::Tool("git"))
        .needs(Need::Tool("python3"))
        .needs(Need::Tool("bash"))
        .launcher(format!(
            "echo @MARK@; set -- @RUN@
             if test $# = 0; then count={CONTROL_SEQUENCES}; else count={count}; fi
             /usr/bin/python3 @ADVERSARY@/oracle.py @P@ @ADVERSARY@/sequence.py @W@/findings {first} $count {WORKERS} \"$1\" {bare} {way}"
        ))
        .cli_only("the sequences run with flags of their own")
        .bound(Duration::from_secs(
            300 + SECONDS_EACH * u64::from(count.max(CONTROL_SEQUENCES)),
        ))
        .works(host("test -e @W@/findings"))
        .leak(host("test -s @W@/findings"))
}

/// Writes the two programs where every user can read them.
fn prepare(dir: &Path) -> Vec<(&'static str, String)> {
    let place = dir.join("adversary");
    let written = fs::create_dir(&place)
        .and_then(|()| fs::write(place.join("oracle.py"), include_str!("oracle.py")))
        .and_then(|()| fs::write(place.join("sequence.py"), include_str!("sequence.py")));
    match written {
        Ok(()) => vec![("ADVERSARY", place.display().to_string())],
        Err(_) => Vec::new(),
    }
}

fn number(variable: &str) -> Option<u32> {
    std::env::var(variable).ok()?.parse().ok()
}
