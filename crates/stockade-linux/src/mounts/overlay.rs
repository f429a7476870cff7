//! A copy-on-write view: overlayfs in the user namespace (Linux 5.11).
//!
//! The host's directory is the lower layer and is never written; every change goes to the layer,
//! which belongs to the user. What the layer records about itself is in `user.overlay.*`
//! attributes, the only ones that a user namespace may write. Directories are not redirected:
//! renaming one of the host's fails with `EXDEV`, and programs copy it instead. Nothing is synced:
//! whoever keeps layers must know that a power failure may leave them incomplete.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};

use super::view::host_root;
use super::{Kind, Tree, attach, clone_tree, open_beneath};
use crate::stage::{At, Failure, Stage};
use crate::sys::mount::{Lock, lock};

impl Tree {
    /// Whether `path` is in a root with a layer, and not that root itself.
    pub(super) fn has_layer(&self, path: &Path) -> bool {
        let mut roots = self.overlays.iter();
        roots.any(|root| path.starts_with(root) && path != root)
    }

    pub(super) fn add_overlay(&mut self, path: &Path, layer: &Path) -> Result<(), Failure> {
        let stage = Stage::OverlayMount;
        let number = self.overlays.len();
        // The kernel takes paths of 255 bytes only (fsconfig(2)), and looks them up once more: so
        // both are mounted where nobody else is, under short names.
        let mut names = Vec::new();
        for (letter, source) in [("lower", path), ("layer", layer)] {
            let name = format!("{letter}-{number}");
            let found = open_beneath(host_root().at(stage)?.as_fd(), super::below_root(source))
                .at_path(stage, source)?;
            let clone = clone_tree(found.as_fd(), Path::new(""), stage)?;
            lock(clone.as_fd(), Lock::Tree).at(Stage::MountAttributes)?;
            rustix::fs::mkdirat(&self.staging, &*name, rustix::fs::Mode::from(0o700)).at(stage)?;
            attach(clone.as_fd(), self.staging.as_fd(), &name, stage)?;
            names.push(format!("{STAGING}/{name}"));
        }
        let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).at(stage)?;
        let options = [
            ("lowerdir", names[0].clone()),
            ("upperdir", format!("{}/upper", names[1])),
            ("workdir", format!("{}/work", names[1])),
        ];
        for (key, value) in &options {
            fsconfig_set_string(&context, *key, value).at_path(stage, path)?;
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
        Ok(())
    }
}

/// Where the staging area is mounted until the new root is entered.
const STAGING: &str = "/proc";
