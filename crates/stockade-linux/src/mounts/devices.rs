//! A fresh `/dev`: the nodes that can do no harm, the user's grants, terminals, shared memory.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{CWD, Mode};
use rustix::mount::MountAttrFlags;
use stockade_rules::AbsPath;

use super::{Kind, Tree, attach, clone_tree, file_system, make_file};
use crate::stage::{At, Failure, Stage};
use crate::sys::mount::Lock;

const NODES: &[&str] = &["full", "null", "random", "tty", "urandom", "zero"];

const LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("ptmx", "pts/ptmx"),
    ("stderr", "/proc/self/fd/2"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
];

/// POSIX semaphores and shared memory live here (`shm_overview(7)`).
const SHARED_MEMORY: &str = "shm";

impl Tree<'_> {
    pub(super) fn add_devices(
        &mut self,
        path: &Path,
        granted: &[AbsPath],
        shared_memory: u64,
    ) -> Result<(), Failure> {
        let stage = Stage::DeviceMount;
        let place = self.place(path, Kind::Directory)?;
        let directory = self.directory("dev", 0o755, stage)?;
        attach(directory.as_fd(), place.as_fd(), "", stage)?;

        for name in NODES {
            make_file(directory.as_fd(), *name, 0o444).at(stage)?;
            let node = clone_tree(CWD, &path.join(name), stage)?;
            attach(node.as_fd(), directory.as_fd(), name, stage)?;
        }
        for device in granted {
            let node = clone_tree(CWD, device.as_path(), stage)?;
            let place = self.place(device.as_path(), Kind::File)?;
            attach(node.as_fd(), place.as_fd(), "", stage)?;
        }
        for (name, target) in LINKS {
            rustix::fs::symlinkat(*target, &directory, *name).at(stage)?;
        }

        rustix::fs::mkdirat(&directory, "pts", Mode::from(0o755)).at(stage)?;
        let options = [("ptmxmode", "0666"), ("mode", "0620")];
        let terminals = file_system("devpts", &options, MountAttrFlags::MOUNT_ATTR_NOSUID, stage)?;
        attach(terminals.as_fd(), directory.as_fd(), "pts", stage)?;

        rustix::fs::mkdirat(&directory, SHARED_MEMORY, Mode::from(0o755)).at(stage)?;
        let shared = self.temporary_of(shared_memory)?;
        attach(shared.as_fd(), directory.as_fd(), SHARED_MEMORY, stage)?;

        self.locker.lock(directory.as_fd(), Lock::Devices)?;
        self.seal_later(directory);
        Ok(())
    }
}
