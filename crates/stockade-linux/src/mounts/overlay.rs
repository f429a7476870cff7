//! A copy-on-write view: overlayfs in the user namespace (Linux 5.11).
//!
//! The host's directory is the lower layer and is never written; every change goes to the layer,
//! which belongs to the user or lies in memory. What the layer records about itself is in
//! `user.overlay.*` attributes, the only ones that a user namespace may write. Directories are not
//! redirected: renaming one of the host's fails with `EXDEV`, and programs copy it instead. Nothing
//! is synced: whoever keeps layers must know that a power failure may leave them incomplete.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};

use super::view::host_root;
use super::{Kind, Tree, attach, clone_tree, open_beneath, temporary};
use crate::stage::{At, Failure, Stage};
use crate::sys::mount::Lock;

impl Tree<'_> {
    /// Whether `path` is in a root with a layer, and not that root itself.
    pub(super) fn has_layer(&self, path: &Path) -> bool {
        let mut roots = self.overlays.iter();
        roots.any(|root| path.starts_with(root) && path != root)
    }

    pub(super) fn add_overlay(&mut self, path: &Path, layer: &Path) -> Result<(), Failure> {
        let stage = Stage::OverlayMount;
        let number = self.overlays.len();
        let lock = Lock::TreeReadOnly;
        let (lower, _) = self.stage_host(&format!("lower-{number}"), path, lock, stage)?;
        let (layer, _) = self.stage_host(&format!("layer-{number}"), layer, Lock::Tree, stage)?;
        self.mount_overlay(path, &lower, &layer, stage).map(drop)
    }

    /// A layer that earlier runs may have filled with names of their choice.
    pub(super) fn add_kept_layer(&mut self, path: &Path, layer: &Path) -> Result<(), Failure> {
        let stage = Stage::HomeLayer;
        let number = self.overlays.len();
        let lock = Lock::TreeReadOnly;
        let (lower, _) = self.stage_host(&format!("lower-{number}"), path, lock, stage)?;
        let (layer, _) = self.stage_host(&format!("layer-{number}"), layer, Lock::Tree, stage)?;
        let device = self.mount_overlay(path, &lower, &layer, stage)?;
        // A mount point that an earlier run removed is made again, in the layer.
        self.own.push(device);
        self.kept = Some(device);
        Ok(())
    }

    /// Whether a run replaced `path`, or a directory above it, in a kept layer by something else
    /// than a directory, or removed it.
    pub(super) fn is_replaced(&self, path: &Path) -> bool {
        let mut above = path.ancestors().skip(1);
        let nearest = above.find_map(|path| {
            let stat = rustix::fs::fstat(self.find(path).ok()?).ok()?;
            FileType::from_raw_mode(stat.st_mode)
                .is_dir()
                .then_some(stat.st_dev)
        });
        self.kept.is_some() && nearest == self.kept
    }

    /// A layer in the memory that it shares with `/tmp`.
    pub(super) fn add_private_layer(&mut self, path: &Path, size: u64) -> Result<(), Failure> {
        let stage = Stage::HomeLayer;
        let number = self.overlays.len();
        let lock = Lock::TreeReadOnly;
        let (lower, directory) = self.stage_host(&format!("lower-{number}"), path, lock, stage)?;
        let memory = self.memory_of(size, stage)?;
        let name = format!("layer-{number}");
        let own = Mode::from(0o700);
        rustix::fs::mkdirat(memory, &*name, own).at(stage)?;
        let layer = open_beneath(memory, Path::new(&name)).at(stage)?;
        for part in [UPPER, WORK] {
            rustix::fs::mkdirat(&layer, part, own).at(stage)?;
        }
        // The upper directory is what the attributes of the whole are taken from.
        let host = rustix::fs::fstat(&directory).at(stage)?;
        rustix::fs::chmodat(
            &layer,
            UPPER,
            Mode::from_raw_mode(host.st_mode),
            AtFlags::empty(),
        )
        .at(stage)?;
        let layer = format!("{STAGING}/{MEMORY}/{name}");
        self.mount_overlay(path, &lower, &layer, stage).map(drop)
    }

    /// Mounts a directory of the host in the staging area: the kernel takes paths of 255 bytes only
    /// (`fsconfig(2)`), and looks them up once more, so both layers are mounted where nobody else
    /// is, under short names. Returns the path there and the directory.
    fn stage_host(
        &mut self,
        name: &str,
        source: &Path,
        lock: Lock,
        stage: Stage,
    ) -> Result<(String, OwnedFd), Failure> {
        let found = open_beneath(host_root().at(stage)?.as_fd(), super::below_root(source))
            .at_path(stage, source)?;
        let clone = clone_tree(found.as_fd(), Path::new(""), stage)?;
        rustix::fs::mkdirat(&self.staging, name, Mode::from(0o700)).at(stage)?;
        let (clone, at) = (clone.as_fd(), self.staging.as_fd());
        self.locker.attach(clone, lock, at, name, stage)?;
        Ok((format!("{STAGING}/{name}"), found))
    }

    /// Returns the device number of its directories.
    fn mount_overlay(
        &mut self,
        path: &Path,
        lower: &str,
        layer: &str,
        stage: Stage,
    ) -> Result<u64, Failure> {
        let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).at_path(stage, path)?;
        let options = [
            ("lowerdir", lower),
            ("upperdir", &format!("{layer}/{UPPER}")),
            ("workdir", &format!("{layer}/{WORK}")),
        ];
        for (key, value) in options {
            fsconfig_set_string(&context, key, value).at_path(stage, path)?;
        }
        // Without `volatile` (Linux 5.10) the end of the run would wait until the disk has all
        // that the layer's whole file system has to write.
        for flag in ["userxattr", "volatile"] {
            fsconfig_set_flag(&context, flag).at_path(stage, path)?;
        }
        fsconfig_create(&context).at_path(stage, path)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).at(stage)?;
        let place = self.place(path, Kind::Directory)?;
        attach(mount.as_fd(), place.as_fd(), "", stage)?;
        self.overlays.push(path.to_owned());
        Ok(rustix::fs::fstat(&mount).at(stage)?.st_dev)
    }

    /// The tmpfs that private layers and `/tmp` share, made when the first of them needs it.
    fn memory_of(&mut self, size: u64, stage: Stage) -> Result<BorrowedFd<'_>, Failure> {
        if self.memory.is_none() {
            let size = size.to_string();
            let memory = temporary(&[("mode", "0755"), ("size", &size)], stage)?;
            rustix::fs::mkdirat(&self.staging, MEMORY, Mode::from(0o700)).at(stage)?;
            attach(memory.as_fd(), self.staging.as_fd(), MEMORY, stage)?;
            rustix::fs::mkdirat(&memory, EVERYONES, Mode::from(0o700)).at(stage)?;
            let mode = Mode::from(0o1777);
            rustix::fs::chmodat(&memory, EVERYONES, mode, AtFlags::empty()).at(stage)?;
            self.own_file_system(memory.as_fd())?;
            self.memory = Some(memory);
        }
        match &self.memory {
            Some(memory) => Ok(memory.as_fd()),
            None => Err(rustix::io::Errno::NOENT).at(stage),
        }
    }
}

/// The part of the shared memory that is a directory for everyone's temporary files.
pub(super) fn shared_temporary(memory: &OwnedFd) -> Result<OwnedFd, Failure> {
    clone_tree(memory.as_fd(), Path::new(EVERYONES), Stage::TemporaryMount)
}

/// Where the staging area is mounted until the new root is entered.
const STAGING: &str = "/proc";
/// The shared tmpfs, in the staging area.
const MEMORY: &str = "memory";
/// In the shared tmpfs.
const EVERYONES: &str = "tmp";
/// In a layer: what was changed, and the kernel's workshop.
const UPPER: &str = "upper";
const WORK: &str = "work";
