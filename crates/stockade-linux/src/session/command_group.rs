//! The control group of one command of a session. Everything that the command starts is in it, also
//! what left the command's session and lost its parents: so that all of it can be killed, and its
//! CPU time counted.
//!
//! The launcher makes the group and hands its list of processes to the supervisor, which is confined
//! and could not open it. The outer helper removes what is left when the sandbox ends.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::plan::LinuxPlan;
use crate::socket_owners::CommandId;
use crate::spawn::SpawnError;
use crate::stage::Stage;

/// Where the groups of a session's commands are made.
#[derive(Debug)]
pub(super) struct CommandGroups {
    parent: OwnedFd,
    /// Groups of commands that have ended. The dead leave a group a moment after they were reaped,
    /// and processes in the background stay in it.
    left: Mutex<Vec<String>>,
}

/// The group of one command.
#[derive(Debug)]
pub(super) struct CommandGroup {
    groups: Arc<CommandGroups>,
    name: String,
    processes: OwnedFd,
}

/// User and system time in microseconds.
pub(super) type CpuTime = (u64, u64);

impl CommandGroups {
    /// `None` if the plan has no place for such groups.
    pub(super) fn open(plan: &LinuxPlan) -> Result<Option<Arc<Self>>, SpawnError> {
        let commands = plan
            .cgroup
            .as_ref()
            .and_then(|cgroup| cgroup.commands.as_ref());
        let Some(path) = commands else {
            return Ok(None);
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = rustix::fs::open(path.as_path(), flags, Mode::empty());
        let parent = parent.map_err(|errno| failed(errno.into()))?;
        Ok(Some(Arc::new(Self {
            parent,
            left: Mutex::default(),
        })))
    }

    pub(super) fn make(self: &Arc<Self>, id: CommandId) -> Result<CommandGroup, SpawnError> {
        self.remove_left();
        let name = id.to_string();
        rustix::fs::mkdirat(&self.parent, &name, Mode::from(0o755))
            .map_err(|errno| failed(errno.into()))?;
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let path = format!("{name}/cgroup.procs");
        match rustix::fs::openat(&self.parent, path, flags, Mode::empty()) {
            Ok(processes) => Ok(CommandGroup {
                groups: Arc::clone(self),
                name,
                processes,
            }),
            Err(errno) => {
                self.remove(name);
                Err(failed(errno.into()))
            }
        }
    }

    /// Removes a group as soon as it is empty.
    fn remove(&self, name: String) {
        self.left
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(name);
        self.remove_left();
    }

    fn remove_left(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|name| {
            let removed = rustix::fs::unlinkat(&self.parent, name, AtFlags::REMOVEDIR);
            removed == Err(Errno::BUSY)
        });
    }
}

impl CommandGroup {
    /// The list of processes: whoever writes `0` to it enters the group.
    pub(super) fn processes(&self) -> BorrowedFd<'_> {
        self.processes.as_fd()
    }

    /// The CPU time of everything that was or is in the group.
    pub(super) fn cpu_time(&self) -> io::Result<CpuTime> {
        // Version 2 counts it in every group; version 1 where the hierarchy is that of `cpuacct`.
        if let Ok(text) = self.read("cpu.stat")
            && let Some(time) = cpu_time(&text)
        {
            return Ok(time);
        }
        let micros = |file| -> io::Result<u64> {
            let text = self.read(file)?;
            let nanos: u64 = text.trim().parse().map_err(io::Error::other)?;
            Ok(nanos / 1000)
        };
        Ok((micros("cpuacct.usage_user")?, micros("cpuacct.usage_sys")?))
    }

    fn read(&self, file: &str) -> io::Result<String> {
        let path = format!("{}/{file}", self.name);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.groups.parent, path, flags, Mode::empty())?;
        let mut text = String::new();
        File::from(file).read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Drop for CommandGroup {
    fn drop(&mut self) {
        self.groups.remove(std::mem::take(&mut self.name));
    }
}

fn cpu_time(stat: &str) -> Option<CpuTime> {
    let value = |name: &str| {
        let mut lines = stat.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        value.parse().ok()
    };
    Some((value("user_usec")?, value("system_usec")?))
}

fn failed(source: io::Error) -> SpawnError {
    SpawnError::Stage {
        stage: Stage::MakeCgroup,
        subject: None,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::cpu_time;

    #[test]
    fn cpu_time_is_read_from_the_file_of_version_2() {
        let stat = "usage_usec 30\nuser_usec 20\nsystem_usec 10\nnice_usec 0\n";
        assert_eq!(cpu_time(stat), Some((20, 10)));
        assert_eq!(cpu_time("nr_periods 0\nnr_throttled 0\n"), None);
    }
}
