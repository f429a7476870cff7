//! Ends a run that takes too much disk space.
//!
//! There is no quota that an ordinary user could set on a directory, so the launcher watches the
//! free space of every file system that the command can write. It sees all that takes space,
//! `fallocate(2)` included, and also what other programs take or free meanwhile. A run can pass the
//! limit for one [`INTERVAL`], and what it wrote stays where it is.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, fstat, fstatvfs, open};
use stockade_linux::plan::View;
use stockade_rules::AbsPath;

use crate::plan::ExecPlan;

/// How often the free space is looked at.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// The file systems that a command can write, and how much may be taken from each.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    limit: u64,
    file_systems: Vec<FileSystem>,
}

#[derive(Debug)]
struct FileSystem {
    place: OwnedFd,
    free_at_start: u64,
}

impl DiskWatch {
    /// From now on; none if the plan sets no limit.
    pub(crate) fn start(plan: &ExecPlan) -> Option<Self> {
        let limit = plan.disk?;
        let mut seen = BTreeSet::new();
        let mut file_systems = Vec::new();
        for path in writable_places(plan) {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            // What does not exist can't be written either.
            let Ok(place) = open(path, flags, Mode::empty()) else {
                continue;
            };
            let is_new = fstat(&place).is_ok_and(|found| seen.insert(found.st_dev));
            if let Some(free_at_start) = free(&place).filter(|_| is_new) {
                file_systems.push(FileSystem {
                    place,
                    free_at_start,
                });
            }
        }
        Some(Self {
            limit,
            file_systems,
        })
    }

    /// Whether too much has been taken from one of them.
    pub(crate) fn is_over(&self) -> bool {
        self.file_systems.iter().any(|system| {
            let free = free(&system.place).unwrap_or(system.free_at_start);
            system.free_at_start.saturating_sub(free) > self.limit
        })
    }
}

fn writable_places(plan: &ExecPlan) -> Vec<&Path> {
    let linux = &plan.linux;
    let mounted = linux.mounts.iter().filter_map(|mount| match &mount.view {
        View::Writable => Some(mount.path.as_path()),
        View::Overlay { layer } => Some(layer.as_path()),
        _ => None,
    });
    // Without mounts the rules name the host's own paths.
    let rules = linux.landlock.iter().filter(|_| !linux.own_namespaces);
    let granted = rules.flat_map(|rules| &rules.writable);
    let made = linux
        .scratch
        .iter()
        .filter_map(|path| path.as_path().parent());
    mounted
        .chain(granted.map(AbsPath::as_path))
        .chain(made)
        .collect()
}

fn free(place: &OwnedFd) -> Option<u64> {
    let found = fstatvfs(place).ok()?;
    Some(found.f_bfree.saturating_mul(found.f_frsize))
}
