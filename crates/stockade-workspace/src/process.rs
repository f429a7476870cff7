//! Processes that were left running in a workspace: whether they still are, freezing them, ending
//! them.
//!
//! They are frozen by a control group, version 2 or 1, that the first of them entered before it
//! started anything. Where none can be made, every one of them is stopped by a signal, again and
//! again until none is found that is not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, Trying};
use crate::files;
use crate::state::{Process, WorkspaceState};

/// A control group that can be frozen.
#[derive(Clone, Debug)]
pub struct Freezer {
    path: PathBuf,
}

/// Where control groups are, usually.
const CGROUPS: &str = "/sys/fs/cgroup";
/// How long the kernel may take to freeze everybody.
const FREEZE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the dead may take to leave.
const LINGERING: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

impl Freezer {
    /// Makes a group; none where that is not allowed.
    pub fn make() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let below = |mount: &str, key: &str| {
            let line = groups.lines().find_map(|line| line.strip_prefix(key))?;
            let own = line.split_once(':').map_or(line, |(_, path)| path);
            Some(Path::new(mount).join(own.trim_start_matches('/')))
        };
        let name = format!("stockade-ws-{}", files::random_name());
        let version_2 = |mount: &str| Some((below(mount, "0:")?, "cgroup.freeze"));
        let version_1 = groups.lines().find_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let key = format!("{number}:freezer");
            rest.starts_with("freezer:")
                .then(|| Some((below("/sys/fs/cgroup/freezer", &key)?, "freezer.state")))?
        });
        let places = [
            version_2(CGROUPS),
            version_2("/sys/fs/cgroup/unified"),
            version_1,
        ];
        places.into_iter().flatten().find_map(|(parent, file)| {
            let path = parent.join(&name);
            fs::create_dir(&path).ok()?;
            if path.join(file).exists() {
                return Some(Self { path });
            }
            let _ = fs::remove_dir(&path);
            None
        })
    }

    /// The group at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has the calling process, and all that it starts from here on, be in the group.
    ///
    /// # Errors
    /// If the kernel does not allow it.
    pub fn enter(&self) -> Result<(), Error> {
        let path = self.path.join("cgroup.procs");
        fs::write(&path, "0").trying("enter the control group", &path)
    }

    /// Has the calling process leave the group for the one above it.
    pub fn leave(&self) {
        if let Some(parent) = self.path.parent() {
            let _ = fs::write(parent.join("cgroup.procs"), "0");
        }
    }

    /// Removes the group, if nobody is in it. The dead leave it only when the kernel has finished
    /// with them.
    pub fn remove(&self) {
        let since = Instant::now();
        while let Err(error) = fs::remove_dir(&self.path) {
            if error.kind() != std::io::ErrorKind::ResourceBusy || since.elapsed() > LINGERING {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn set(&self, frozen: bool) -> Result<(), Error> {
        let second = self.path.join("cgroup.freeze");
        let (path, wanted) = if second.exists() {
            (second, if frozen { "1" } else { "0" })
        } else {
            let word = if frozen { "FROZEN" } else { "THAWED" };
            (self.path.join("freezer.state"), word)
        };
        fs::write(&path, wanted).trying("write", &path)?;
        let since = Instant::now();
        while !self.is(frozen)? {
            if since.elapsed() > FREEZE_TIMEOUT {
                let _ = fs::write(&path, if wanted == "1" { "0" } else { "THAWED" });
                return Err(std::io::Error::from(std::io::ErrorKind::TimedOut))
                    .trying("freeze the control group", &self.path);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn is(&self, frozen: bool) -> Result<bool, Error> {
        let events = self.path.join("cgroup.events");
        if let Ok(text) = fs::read_to_string(&events) {
            let wanted = format!("frozen {}", u8::from(frozen));
            return Ok(text.lines().any(|line| line == wanted));
        }
        let path = self.path.join("freezer.state");
        let text = fs::read_to_string(&path).trying("read", &path)?;
        Ok(text.trim() == if frozen { "FROZEN" } else { "THAWED" })
    }
}

/// This start of the machine, by name.
fn boot() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// When a process was started, in clock ticks; none if there is none, or it has ended.
fn started(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in brackets and may contain anything (proc_pid_stat(5)).
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

impl Process {
    /// What is known about the process of this number.
    pub fn look(pid: u32, command: Vec<String>) -> Option<Self> {
        Some(Self::new(pid, started(pid)?, boot(), command))
    }

    /// Whether it is still the same process, and has not ended.
    pub fn is_alive(&self) -> bool {
        self.boot == boot() && started(self.supervisor) == Some(self.started_ticks)
    }
}

impl WorkspaceState {
    /// Whether anything runs in the workspace.
    pub fn is_alive(&self) -> bool {
        self.processes.iter().any(Process::is_alive)
    }
}

/// Does something with every process that is alive.
pub(crate) fn each_alive(
    state: &WorkspaceState,
    act: impl Fn(&Process) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut alive = state.processes.iter().filter(|process| process.is_alive());
    alive.try_for_each(act)
}

pub(crate) fn freeze(process: &Process) -> Result<(), Error> {
    match &process.freezer {
        Some(path) => Freezer::at(path).set(true),
        None => stop_all(process),
    }
}

pub(crate) fn thaw(process: &Process) -> Result<(), Error> {
    if let Some(path) = &process.freezer {
        return Freezer::at(path).set(false);
    }
    let mut family = family(process.supervisor).into_iter();
    family.try_for_each(|pid| signal(pid, Signal::CONT))
}

/// Ends a process with all that it watches over: the sandbox ends with its supervisor.
pub(crate) fn end(process: &Process) -> Result<(), Error> {
    signal(process.supervisor, Signal::KILL)?;
    if process.freezer.is_some() {
        thaw(process)?;
    }
    let since = Instant::now();
    while process.is_alive() && since.elapsed() < FREEZE_TIMEOUT {
        std::thread::sleep(PAUSE);
    }
    if let Some(path) = &process.freezer {
        Freezer::at(path).remove();
    }
    Ok(())
}

/// Stops everybody; whoever was started meanwhile is found in the next round.
fn stop_all(process: &Process) -> Result<(), Error> {
    let mut stopped = BTreeSet::new();
    loop {
        let family = family(process.supervisor);
        let new: Vec<u32> = family.difference(&stopped).copied().collect();
        if new.is_empty() {
            return Ok(());
        }
        for pid in new {
            signal(pid, Signal::STOP)?;
            stopped.insert(pid);
        }
    }
}

/// A process and all its descendants.
fn family(first: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![first];
    while let Some(pid) = waiting.pop() {
        if !found.insert(pid) {
            continue;
        }
        let tasks = fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            waiting.extend(
                children
                    .split_ascii_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
    }
    found
}

fn signal(pid: u32, signal: Signal) -> Result<(), Error> {
    let Some(known) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    match kill_process(known, signal) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        other => other.trying("signal the process", pid.to_string()),
    }
}
