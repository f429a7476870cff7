//! The dispositions of signals that the suite was started with.
//!
//! Whoever starts it in the background of a script, or with `nohup`, makes it ignore signals, and so
//! does everything that it starts: a command that waits for Ctrl-C would wait for ever, with and
//! without a sandbox.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// SIGPIPE, which Rust's own runtime ignores, and which it gives back to what it starts.
const OWN: u64 = 1 << 12;

/// Starts the suite anew with no signal ignored, if any is; comes back if none is, or it can't be.
pub(crate) fn by_default() {
    if ignored() & !OWN == 0 {
        return;
    }
    if std::env::var_os(ONCE).is_some() {
        return;
    }
    let Ok(own) = std::env::current_exe() else {
        return;
    };
    // Only `env` of coreutils 8.31 and later can; otherwise the suite goes on as it is.
    let able = Command::new("env")
        .args(["--default-signal", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    if able {
        let mut again = Command::new("env");
        again.arg("--default-signal").arg(own);
        // It comes back only if it failed.
        let _ = again.args(std::env::args_os().skip(1)).env(ONCE, "").exec();
    }
}

/// Set for the second start, so that there is no third.
const ONCE: &str = "STOCKADE_TEST_SIGNALS";

/// The signals that this process ignores, as in proc(5).
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or_default()
}
