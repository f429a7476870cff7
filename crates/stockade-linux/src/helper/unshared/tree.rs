//! Ending everything below a process, without a pid namespace that would do it.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, Signal, getpid, getppid, kill_process, test_kill_process};

use crate::sys;

/// Kills every process of the caller's Landlock domain and the domains inside it, in one step
/// that no fork can outrun: `kill(-1)` reaches whatever the caller may signal, under one lock.
///
/// That it may signal nothing else is tried first, on its own parent outside the domain, whom it
/// could signal otherwise. Before ABI 6 there is no such scope, and this does nothing.
pub(super) fn end_domain(parent_outside: Pid) {
    let is_parent = getppid() == Some(parent_outside);
    if is_parent && test_kill_process(parent_outside) == Err(rustix::io::Errno::PERM) {
        // Nobody to signal is no failure.
        let _ = sys::process::kill_all_in_reach();
    }
}

/// Kills and reaps everything below the caller, a subreaper, until nothing is left.
pub(super) fn end_descendants() {
    loop {
        let found = descendants();
        if found.is_empty() {
            return;
        }
        for pid in found {
            // Whoever ended meanwhile needs no signal.
            let _ = kill_process(pid, Signal::KILL);
        }
        // Something was below, so there is a child, and it ends: what stood between comes up.
        if sys::process::wait(-1, true).is_err() {
            return;
        }
        while let Ok(Some(_)) = sys::process::wait(-1, false) {}
    }
}

/// Every process whose chain of parents leads to the caller.
fn descendants() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero().get();
    let parents = parents();
    let is_below = |mut pid: i32| {
        // As long as the longest chain can be; what was read is a moment's blur and may loop.
        for _ in 0..=parents.len() {
            match parents.get(&pid) {
                Some(parent) if *parent == own => return true,
                Some(parent) => pid = *parent,
                None => return false,
            }
        }
        false
    };
    let below = parents.keys().copied().filter(|pid| is_below(*pid));
    below.filter_map(Pid::from_raw).collect()
}

/// The parent of each process.
fn parents() -> HashMap<i32, i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| Some((pid, parent(pid)?)))
        .collect()
}

fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; state and parent follow the last one.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}
