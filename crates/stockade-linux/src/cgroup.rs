//! Control groups: limits of the whole sandbox, and its end.
//!
//! Works on any hierarchy, version 1 or 2: a group is a directory, a limit is a file in it
//! (`cgroups(7)`). The outer helper makes the groups and removes them when the sandbox is gone,
//! also when the launcher was killed.

use std::fs;
use std::io;

use crate::plan::Cgroup;
use crate::stage::{At, Failure, Stage};

/// The groups of a run; removed by [`Entered::remove`].
pub(crate) struct Entered<'a>(Option<&'a Cgroup>);

/// Makes the groups, sets their limits and moves the calling process in.
pub(crate) fn enter(cgroup: Option<&Cgroup>) -> Result<Entered<'_>, Failure> {
    let entered = Entered(cgroup);
    for group in cgroup.iter().flat_map(|cgroup| &cgroup.groups) {
        let made = (|| {
            fs::create_dir(&group.path).at_path(Stage::MakeCgroup, group.path.as_path())?;
            for (file, value) in &group.settings {
                let path = group.path.as_path().join(file);
                fs::write(&path, value).at_path(Stage::LimitCgroup, &path)?;
            }
            join(group.path.as_path()).at_path(Stage::EnterCgroup, group.path.as_path())
        })();
        if let Err(failure) = made {
            entered.remove();
            return Err(failure);
        }
    }
    Ok(entered)
}

impl Entered<'_> {
    /// Leaves the groups and removes them; whatever ran in them is dead by now.
    pub(crate) fn remove(self) {
        for group in self.0.iter().flat_map(|cgroup| &cgroup.groups) {
            if let Some(parent) = group.path.parent() {
                // A process that can't leave keeps its group alive; there is nobody to tell
                // but the next run, which finds the directory.
                let _ = join(parent.as_path());
            }
            remove_when_empty(group.path.as_path());
        }
    }
}

/// The dead leave their group only when the kernel has finished with them, a moment after they
/// were reaped.
fn remove_when_empty(group: &std::path::Path) {
    for _ in 0..REMOVAL_ATTEMPTS {
        match fs::remove_dir(group) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                std::thread::sleep(REMOVAL_PAUSE);
            }
            _ => return,
        }
    }
}

const REMOVAL_ATTEMPTS: u32 = 500;
const REMOVAL_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

fn join(group: &std::path::Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}
