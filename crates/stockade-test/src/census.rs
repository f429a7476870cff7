//! Which processes belong to a fixture, whatever namespace, session or parent they have now.
//!
//! A process is recognised by any of: the fixture's token in its environment or arguments, a
//! working directory below the fixture, or a root of its own in which something is mounted at the
//! fixture's path. Seen from the host, a sandboxed process keeps at least the last.
//!
//! A mount namespace of its own is not enough: each sandbox that starts while a case has something
//! mounted on the host has a copy of that mount until it leaves the host's root.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How long a process that was killed may take to be gone, on a machine that has other work.
pub const TO_DIE: Duration = Duration::from_secs(10);

/// A process of the fixture that was alive when counted.
#[derive(Debug)]
pub struct Member {
    description: String,
    pidfd: OwnedFd,
}

impl Member {
    /// Its id, name and command line, and its parent's, for messages.
    pub fn describe(&self) -> String {
        self.description.clone()
    }
}

/// Every live process that belongs to the fixture at `base` or carries `token`.
pub fn members(base: &Path, token: &str) -> Vec<Member> {
    let own = std::process::id().to_string();
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()) && *name != own)
        .filter_map(|name| {
            let proc = Path::new("/proc").join(&name);
            // Opened before it is judged, so that the pid can't come to mean another process.
            let pid: i32 = name.parse().ok()?;
            let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
            if is_zombie(&proc) || !belongs(&proc, base, token) {
                return None;
            }
            let parent = parent(&proc);
            let description = format!(
                "process {}, child of {}",
                named(&proc),
                named(&Path::new("/proc").join(parent))
            );
            Some(Member { description, pidfd })
        })
        .collect()
}

/// Waits until the processes have ended, at most for `bound`; returns those still alive.
pub fn outlive(members: Vec<Member>, bound: Duration) -> Vec<Member> {
    let deadline = Instant::now() + bound;
    members
        .into_iter()
        .filter(|member| {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(timeout) = Timespec::try_from(left) else {
                return true;
            };
            // A pidfd turns readable when its process ends.
            !matches!(
                poll(
                    &mut [PollFd::new(&member.pidfd, PollFlags::IN)],
                    Some(&timeout)
                ),
                Ok(1..)
            )
        })
        .collect()
}

/// Kills the processes and waits until they are gone; returns those that would not go.
pub fn end(members: Vec<Member>) -> Vec<Member> {
    for member in &members {
        // Already gone is as good.
        let _ = pidfd_send_signal(&member.pidfd, Signal::KILL);
    }
    outlive(members, TO_DIE)
}

/// Kills whoever belongs to the fixture, and whoever those had started before they were killed.
pub fn end_all(base: &Path, token: &str) {
    // Each round ends the parents of the next; no test has more generations.
    for _ in 0..16 {
        let found = members(base, token);
        if found.is_empty() {
            return;
        }
        end(found);
    }
}

fn belongs(proc: &Path, base: &Path, token: &str) -> bool {
    let holds = |file: &str, needle: &[u8]| {
        fs::read(proc.join(file)).is_ok_and(|bytes| contains(&bytes, needle))
    };
    if holds("environ", token.as_bytes()) || holds("cmdline", token.as_bytes()) {
        return true;
    }
    if fs::read_link(proc.join("cwd")).is_ok_and(|cwd| cwd.starts_with(base)) {
        return true;
    }
    has_own_mounts(proc) && has_own_root(proc) && mounts_at_or_below(proc, base)
}

fn has_own_mounts(proc: &Path) -> bool {
    let own = fs::read_link("/proc/self/ns/mnt").ok();
    fs::read_link(proc.join("ns/mnt")).is_ok_and(|mounts| Some(mounts) != own)
}

fn has_own_root(proc: &Path) -> bool {
    let own = fs::metadata("/").map(|root| (root.dev(), root.ino())).ok();
    fs::metadata(proc.join("root")).is_ok_and(|root| Some((root.dev(), root.ino())) != own)
}

/// Mount points are told as the process sees them: those of a root that it is about to leave are
/// below another path.
fn mounts_at_or_below(proc: &Path, base: &Path) -> bool {
    const MOUNT_POINT: usize = 4;
    let mounts = fs::read_to_string(proc.join("mountinfo")).unwrap_or_default();
    let mut points = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(MOUNT_POINT));
    points.any(|point| Path::new(point).starts_with(base))
}

fn is_zombie(proc: &Path) -> bool {
    state(proc).starts_with('Z')
}

/// What `stat` says behind the command's name, which is in parentheses and may hold anything.
fn state(proc: &Path) -> String {
    let stat = fs::read_to_string(proc.join("stat")).unwrap_or_default();
    stat.rsplit(") ").next().unwrap_or_default().to_owned()
}

fn parent(proc: &Path) -> String {
    let state = state(proc);
    state.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// `12 (sleep) sleep 100`.
fn named(proc: &Path) -> String {
    let id = proc.file_name().unwrap_or_default().to_string_lossy();
    let name = fs::read_to_string(proc.join("comm")).unwrap_or_default();
    let command = fs::read(proc.join("cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    let command: String = command.trim_end().chars().take(160).collect();
    format!("{id} ({}) {command}", name.trim_end())
        .trim_end()
        .to_owned()
}

pub(crate) fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    !needle.is_empty()
        && haystack
            .windows(needle.len())
            .any(|window| window == needle)
}
