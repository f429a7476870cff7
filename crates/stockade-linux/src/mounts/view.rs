//! What each kind of view is made of.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;

use super::overlay::shared_temporary;
use super::{
    HIDDEN_DIRECTORY, HIDDEN_FILE, Kind, Tree, attach, clone_tree, mount_of, open_beneath,
    temporary,
};
use crate::plan::{FileCopy, Mount, PlacedFile, View};
use crate::stage::{At, Failure, Stage};
use crate::sys::mount::Lock;

/// Places of `/proc` that could change or betray the kernel. Root without capabilities still
/// owns them, so their modes alone do not protect them.
const PROC_READ_ONLY: &[&str] = &["bus", "fs", "irq", "sys", "sysrq-trigger"];
const PROC_HIDDEN: &[(&str, Kind)] = &[
    ("acpi", Kind::Directory),
    ("asound", Kind::Directory),
    ("kcore", Kind::File),
    ("keys", Kind::File),
    ("kmsg", Kind::File),
    ("scsi", Kind::Directory),
    ("timer_list", Kind::File),
];

impl Tree<'_> {
    pub(super) fn add(&mut self, mount: &Mount) -> Result<(), Failure> {
        let path = mount.path.as_path();
        match &mount.view {
            View::Devices {
                granted,
                shared_memory,
            } => self.add_devices(path, granted, *shared_memory),
            View::Empty => {
                let place = self.place(path, Kind::Directory)?;
                let name = format!("empty-{}", self.unsealed.len());
                let empty = self.directory(&name, 0o555, Stage::TemporaryMount)?;
                attach(empty.as_fd(), place.as_fd(), "", Stage::AttachMount)?;
                self.seal_later(empty);
                Ok(())
            }
            View::Hidden => self.hide(path),
            View::KeptLayer { layer } => self.add_kept_layer(path, layer.as_path()),
            View::Overlay { layer } => self.add_overlay(path, layer.as_path()),
            View::PrivateLayer { size } => self.add_private_layer(path, *size),
            View::Proc => self.add_proc(path),
            View::ReadOnly => self.show(path, Lock::TreeReadOnly),
            View::Symlink(target) => {
                let Some((parent, name)) = path.parent().zip(path.file_name()) else {
                    return Err(Errno::EXIST).at_path(Stage::MountTarget, path);
                };
                let parent = self.place(parent, Kind::Directory)?;
                rustix::fs::symlinkat(target.as_path(), parent, name)
                    .at_path(Stage::MountTarget, path)
            }
            View::Temporary { size } => {
                let place = self.place(path, Kind::Directory)?;
                let mount = match &self.memory {
                    Some(memory) => shared_temporary(memory)?,
                    None => self.temporary_of(*size)?,
                };
                attach(mount.as_fd(), place.as_fd(), "", Stage::AttachMount)
            }
            View::Writable => self.show(path, Lock::Tree),
        }
    }

    /// A tmpfs for everyone, limited to so many bytes.
    pub(super) fn temporary_of(&mut self, size: u64) -> Result<OwnedFd, Failure> {
        let size = size.to_string();
        let mount = temporary(&[("mode", "1777"), ("size", &size)], Stage::TemporaryMount)?;
        self.own_file_system(mount.as_fd())?;
        Ok(mount)
    }

    /// Shows the host's file or directory.
    fn show(&mut self, path: &Path, access: Lock) -> Result<(), Failure> {
        let source = open_beneath(
            host_root().at(Stage::OpenSource)?.as_fd(),
            super::below_root(path),
        )
        .at_path(Stage::OpenSource, path)?;
        let stat = rustix::fs::fstat(&source).at_path(Stage::OpenSource, path)?;
        let clone = clone_tree(source.as_fd(), Path::new(""), Stage::CloneSource)?;
        let place = self.place(path, Kind::of(&stat))?;
        let (clone, at) = (clone.as_fd(), place.as_fd());
        self.locker
            .attach(clone, access, at, "", Stage::AttachMount)
    }

    /// Makes a file that is the sandbox's own; a mount of itself, so that nobody inside can write
    /// or replace it.
    pub(super) fn put(&mut self, file: &PlacedFile) -> Result<(), Failure> {
        let stage = Stage::TemporaryMount;
        let name = format!("file-{}", self.placed);
        self.placed += 1;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&self.staging, &name, flags, Mode::from(0o444));
        let written = std::fs::File::from(made.at(stage)?).write_all(file.content.as_bytes());
        written
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            .at(stage)?;
        for path in &file.paths {
            let clone = clone_tree(self.staging.as_fd(), Path::new(&name), Stage::CloneSource)?;
            let place = self.place(path.as_path(), Kind::File)?;
            let (clone, at) = (clone.as_fd(), place.as_fd());
            let access = Lock::TreeReadOnly;
            self.locker
                .attach(clone, access, at, "", Stage::AttachMount)?;
        }
        Ok(())
    }

    /// Shows another text in place of a file of the host.
    pub(super) fn put_copy(&mut self, copy: &FileCopy) -> Result<(), Failure> {
        if !copy.through_layer {
            return self.put(&PlacedFile {
                paths: vec![copy.path.clone()],
                content: copy.content.clone(),
            });
        }
        let path = copy.path.as_path();
        // The layer refuses to take a file over whose owner has no number inside.
        match self.write_through(path, copy.content.as_bytes()) {
            Ok(()) => Ok(()),
            Err(_) => self.hide(path),
        }
    }

    /// Gives a file in a layer another content.
    fn write_through(&mut self, path: &Path, content: &[u8]) -> std::io::Result<()> {
        let name = path.file_name().unwrap_or_default();
        let parent = self.find(path.parent().unwrap_or(Path::new("/")))?;
        let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&parent, name, flags, Mode::empty())?;
        std::fs::File::from(file).write_all(content)
    }

    /// Puts something over `path` that can be neither read nor entered.
    ///
    /// An earlier run may have removed or replaced the name in a kept layer. The host's file can't
    /// be reached by any other name of the layer then, and there is nothing to put something over.
    fn hide(&mut self, path: &Path) -> Result<(), Failure> {
        match self.cover_host(path) {
            Err(failure) if failure.stage == Stage::MountTarget && self.is_replaced(path) => Ok(()),
            covered => covered,
        }
    }

    fn cover_host(&mut self, path: &Path) -> Result<(), Failure> {
        let name = path.file_name().unwrap_or_default();
        let parent = self.parent(path)?;
        let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
            .at_path(Stage::MountTarget, path)?;
        if FileType::from_raw_mode(stat.st_mode).is_symlink() {
            // It was none when the plan was made.
            return Err(Errno::LOOP).at_path(Stage::MountTarget, path);
        }
        let cover = self.cover(Kind::of(&stat))?;
        attach(cover.as_fd(), self.parent(path)?, name, Stage::AttachMount)
    }

    /// A copy of what hides others.
    fn cover(&self, kind: Kind) -> Result<OwnedFd, Failure> {
        let name = match kind {
            Kind::Directory => HIDDEN_DIRECTORY,
            Kind::File => HIDDEN_FILE,
        };
        clone_tree(self.staging.as_fd(), Path::new(name), Stage::CloneSource)
    }

    fn add_proc(&mut self, path: &Path) -> Result<(), Failure> {
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let context = self.init.take_proc().at(Stage::ProcMount)?;
        let proc = mount_of(&context, attributes, Stage::ProcMount)?;
        let place = self.place(path, Kind::Directory)?;
        attach(proc.as_fd(), place.as_fd(), "", Stage::ProcMount)?;
        // Not every kernel has every one of them.
        for name in PROC_READ_ONLY {
            match clone_tree(proc.as_fd(), Path::new(name), Stage::ProcMount) {
                Ok(clone) => {
                    let (clone, at) = (clone.as_fd(), proc.as_fd());
                    let access = Lock::TreeReadOnly;
                    self.locker
                        .attach(clone, access, at, name, Stage::ProcMount)?;
                }
                Err(failure) if failure.errno == libc::ENOENT => {}
                Err(failure) => return Err(failure),
            }
        }
        for (name, kind) in PROC_HIDDEN {
            // Looked at first: a cover that is not put anywhere is unmounted when it is closed,
            // for which the kernel waits until every processor has passed a quiet point. That
            // was 60 µs each on an idle machine, and 4 ms on a busy one.
            match rustix::fs::statat(&proc, *name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => {}
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno).at(Stage::ProcMount),
            }
            let cover = self.cover(*kind)?;
            attach(cover.as_fd(), proc.as_fd(), name, Stage::ProcMount)?;
        }
        Ok(())
    }

    /// Makes a mount read-only once everything below it is in place.
    pub(super) fn seal_later(&mut self, mount: OwnedFd) {
        self.unsealed.push(mount);
    }
}

/// The host's root: until the pivot it is still this process's root.
pub(super) fn host_root() -> rustix::io::Result<OwnedFd> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    rustix::fs::openat(CWD, "/", flags, rustix::fs::Mode::empty())
}
