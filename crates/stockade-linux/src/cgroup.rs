//! Control groups: limits of the whole sandbox, and its end.
//!
//! Works on any hierarchy, version 1 or 2: a group is a directory, a limit is a file in it
//! (`cgroups(7)`). In version 2 a controller has to be handed down by the parent first. The outer helper makes the groups and removes them when the sandbox is gone,
//! also when the launcher was killed. By then it sees the sandbox's read-only view, so it holds
//! what it needs open from the start.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::plan::{Cgroup, CgroupDir};
use crate::stage::{At, Failure, Stage};

/// The groups of a run; removed by [`Entered::remove`].
pub(crate) struct Entered(Vec<Group>);

/// One group that this process is in.
struct Group {
    parent: OwnedFd,
    /// The list of processes of the group that this process was in: writing to it is how to leave.
    way_out: File,
    name: OsString,
}

/// Makes the groups, sets their limits and moves the calling process in.
pub(crate) fn enter(cgroup: Option<&Cgroup>) -> Result<Entered, Failure> {
    let mut entered = Entered(Vec::new());
    for directory in cgroup.iter().flat_map(|cgroup| &cgroup.groups) {
        if let Err(failure) = entered.add(directory) {
            entered.remove();
            return Err(failure);
        }
    }
    Ok(entered)
}

impl Entered {
    fn add(&mut self, directory: &CgroupDir) -> Result<(), Failure> {
        let path = directory.path.as_path();
        let Some((parent, name)) = path.parent().zip(path.file_name()) else {
            return Err(Errno::INVAL).at_path(Stage::MakeCgroup, path);
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let procs = directory.origin.as_path().join("cgroup.procs");
        let group = Group {
            parent: rustix::fs::open(parent, flags, Mode::empty())
                .at_path(Stage::MakeCgroup, parent)?,
            way_out: File::options()
                .write(true)
                .open(&procs)
                .at_path(Stage::MakeCgroup, &procs)?,
            name: name.to_owned(),
        };
        if !directory.enable.is_empty() {
            // Stays so: another run may rely on it by the time this one ends.
            let names: Vec<String> = directory
                .enable
                .iter()
                .map(|name| format!("+{name}"))
                .collect();
            let control = parent.join("cgroup.subtree_control");
            fs::write(&control, names.join(" ")).at_path(Stage::LimitCgroup, &control)?;
        }
        rustix::fs::mkdirat(&group.parent, &group.name, Mode::from(0o755))
            .at_path(Stage::MakeCgroup, path)?;
        self.0.push(group);
        for (file, value) in &directory.settings {
            let path = path.join(file);
            fs::write(&path, value).at_path(Stage::LimitCgroup, &path)?;
        }
        fs::write(path.join("cgroup.procs"), MYSELF).at_path(Stage::EnterCgroup, path)
    }

    /// Whether the kernel killed a process because the memory of these groups was used up. Both
    /// versions count such kills (`oom_kill`), version 1 since Linux 4.13.
    pub(crate) fn was_out_of_memory(&self) -> bool {
        self.0.iter().any(|group| {
            let files = ["memory.events", "memory.oom_control"];
            files.iter().any(|file| group.memory_kills(file) > 0)
        })
    }

    /// Leaves the groups and removes them; whatever else ran in them is dead by now.
    pub(crate) fn remove(self) {
        for mut group in self.0 {
            // A process that can't leave keeps its group alive, and there is nobody to tell.
            let attempts = match group.way_out.write_all(MYSELF) {
                Ok(()) => REMOVAL_ATTEMPTS,
                Err(_) => 1,
            };
            group.remove_when_empty(attempts);
        }
    }
}

impl Group {
    /// Zero where there is no such file or count.
    fn memory_kills(&self, file: &str) -> u64 {
        let path = Path::new(&self.name).join(file);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mut text = String::new();
        let read = rustix::fs::openat(&self.parent, path, flags, Mode::empty())
            .map(File::from)
            .map(|mut file| file.read_to_string(&mut text));
        if !matches!(read, Ok(Ok(_))) {
            return 0;
        }
        kills(&text)
    }

    /// The dead leave their group only when the kernel has finished with them, a moment after
    /// they were reaped.
    fn remove_when_empty(&self, attempts: u32) {
        for _ in 0..attempts {
            // Without those of a session's commands a group can't be removed.
            let _ = self.remove_children();
            match rustix::fs::unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR) {
                Err(Errno::BUSY) => std::thread::sleep(REMOVAL_PAUSE),
                _ => return,
            }
        }
    }

    /// Removes the groups in this one that are empty.
    fn remove_children(&self) -> Result<(), Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&self.parent, &self.name, flags, Mode::empty())?;
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if entry.file_type().is_dir() && !name.to_bytes().starts_with(b".") {
                // What is in use is tried again with the group itself.
                let _ = rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR);
            }
        }
        Ok(())
    }
}

fn kills(events: &str) -> u64 {
    events
        .lines()
        .filter_map(|line| line.strip_prefix("oom_kill "))
        .filter_map(|count| count.trim().parse::<u64>().ok())
        .sum()
}

/// What stands for the writing process in a list of processes.
pub(crate) const MYSELF: &[u8] = b"0";

/// Ten seconds in all: on a busy machine the dead wait for their turn, too.
const REMOVAL_ATTEMPTS: u32 = 5000;
const REMOVAL_PAUSE: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::kills;

    #[test]
    fn kills_are_counted_in_both_versions() {
        assert_eq!(kills("low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\n"), 3);
        assert_eq!(kills("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"), 1);
        assert_eq!(kills("oom_kill_disable 1\nunder_oom 1\n"), 0);
    }
}
