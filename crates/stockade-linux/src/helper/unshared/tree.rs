//! Ending everything below a process, without a pid namespace that would do it.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, Signal, getpid, getppid, kill_process, test_kill_process};

use crate::helper::supervisor::shows_own_pids;
use crate::sys;

/// Ends everything below the supervisor, whose parent is outside the command's domain.
pub(super) fn end_domain(parent_outside: Pid) {
    if kill_domain(parent_outside) {
        while sys::process::wait(-1, true).is_ok() {}
    }
    end_descendants();
}

/// Kills every process of the caller's Landlock domain and the domains inside it, in one step
/// that no fork can outrun: `kill(-1)` reaches whatever the caller may signal, under one lock.
///
/// That it may signal nothing else is tried first, on its own parent outside the domain, whom it
/// could signal otherwise. Before ABI 6 there is no such scope, and this does nothing: it would
/// end all that the user runs.
fn kill_domain(parent_outside: Pid) -> bool {
    let is_parent = getppid() == Some(parent_outside);
    let is_scoped = test_kill_process(parent_outside) == Err(rustix::io::Errno::PERM);
    // An error means that there is nobody to signal.
    is_parent && is_scoped && sys::signal::kill_everybody_else().is_ok()
}

/// Kills and reaps everything below the caller, a subreaper, until nothing is left.
pub(super) fn end_descendants() {
    // No child, nobody below: mostly so, and cheaper than looking at every process there is.
    while has_children() {
        if !shows_own_pids() {
            // The numbers there are those of strangers.
            return;
        }
        for pid in descendants() {
            // Whoever ended meanwhile needs no signal.
            let _ = kill_process(pid, Signal::KILL);
        }
        // Some child ends now, and those that were below it come up.
        let _ = sys::process::wait(-1, true);
    }
}

/// Whether any child is left, once those that have ended are reaped.
fn has_children() -> bool {
    loop {
        match sys::process::wait(-1, false) {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Every process whose chain of parents leads to the caller, parents before their children: whoever
/// outlived a child by a moment would go on as if it had ended by itself. The first process of a
/// pid namespace takes all others in it along.
fn descendants() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero().get();
    let parents = parents();
    let depth = |mut pid: i32| {
        // As long as the longest chain can be; what was read is a moment's blur and may loop.
        for depth in 0..=parents.len() {
            match parents.get(&pid) {
                Some(parent) if *parent == own => return Some(depth),
                Some(parent) => pid = *parent,
                None => return None,
            }
        }
        None
    };
    let below = parents.keys().copied();
    let mut below: Vec<(usize, Pid)> = below
        .filter_map(|pid| Some((depth(pid)?, Pid::from_raw(pid)?)))
        .collect();
    below.sort_by_key(|(depth, _)| *depth);
    below.into_iter().map(|(_, pid)| pid).collect()
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
