//! The file-system view: built from mounts made through descriptors, then entered.
//!
//! No path of the host is created or written to build it, and none is looked up twice: a mount
//! point inside the view is opened with `openat2(2)` without following a link (the sandboxed
//! project may have planted one; compare CVE-2026-87766 of bubblewrap), and only on file systems
//! made here may a missing mount point be made.
//!
//! Needs Linux 5.8; before 5.12 [`lock`] remounts each mount by itself. Not protected here: names that don't exist yet, which is the mediator's work.

mod devices;
mod lock;
mod overlay;
mod view;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};

use self::lock::Locker;
use crate::plan::{LinuxPlan, Root, View};
use crate::stage::{At, Failure, Stage};
use crate::sys::init_process::Init;
use crate::sys::mount::Lock;

/// Builds the view and makes it the root of every process in this mount namespace. `/proc` shows
/// the pid namespace of `init`.
pub(crate) fn enter(plan: &LinuxPlan, init: &Init) -> Result<(), Failure> {
    let mut tree = Tree::new(plan.root, init)?;
    for mount in &plan.mounts {
        match tree.add(mount) {
            // What an earlier run removed in its layer needs no mount to protect it; the name is
            // the mediator's. Nor does what was to be hidden and has gone meanwhile, as a file in
            // the home of another user may.
            Err(failure)
                if failure.errno == Errno::NOENT.raw_os_error()
                    && (mount.view == View::Hidden || tree.has_layer(mount.path.as_path())) => {}
            added => added?,
        }
    }
    for file in &plan.files {
        tree.put(file)?;
    }
    for copy in &plan.copies {
        tree.put_copy(copy)?;
    }
    tree.seal()?;
    tree.pivot()
}

/// A view under construction.
struct Tree<'a> {
    init: &'a Init,
    locker: Locker,
    /// Holds the mount point of the new root and the two things that hide others.
    staging: OwnedFd,
    root: OwnedFd,
    /// File systems made here: only on these may a mount point be made.
    own: Vec<u64>,
    /// Mounts that become read-only once everything is in place.
    unsealed: Vec<OwnedFd>,
    /// Roots that have a layer of their own, in which names of the host may be missing.
    overlays: Vec<PathBuf>,
    /// The device number of a layer that earlier runs filled.
    kept: Option<u64>,
    /// The tmpfs that `/tmp` and private layers share, and with it one limit.
    memory: Option<OwnedFd>,
    /// How many files were put in.
    placed: usize,
    /// The directory that something was last put into: hundreds of denied names are siblings.
    last: Option<(PathBuf, OwnedFd)>,
}

const ROOT: &str = "root";
/// A directory that nobody may enter or list.
const HIDDEN_DIRECTORY: &str = "directory";
/// A file that nobody may open.
const HIDDEN_FILE: &str = "file";

impl<'a> Tree<'a> {
    fn new(kind: Root, init: &'a Init) -> Result<Self, Failure> {
        let slash = Path::new("/");
        let locker = Locker::new()?;
        let root_mount = match kind {
            // Cloned before the staging area is mounted, so that it does not show in it.
            Root::Host => clone_tree(CWD, slash, Stage::CloneRoot)?,
            Root::Empty => temporary(&[("mode", "0755")], Stage::CloneRoot)?,
        };
        // `/proc` is sure to exist, and nothing on it is needed any more.
        let staging = temporary(&[("mode", "0700")], Stage::StageMount)?;
        attach(staging.as_fd(), CWD, "/proc", Stage::StageMount)?;
        for (name, mode) in [(ROOT, 0o755), (HIDDEN_DIRECTORY, 0)] {
            rustix::fs::mkdirat(&staging, name, Mode::from(mode)).at(Stage::StageMount)?;
        }
        make_file(staging.as_fd(), HIDDEN_FILE, 0).at(Stage::StageMount)?;
        // Read-only mounts of themselves: what is cloned from them is read-only from the start.
        for name in [HIDDEN_DIRECTORY, HIDDEN_FILE] {
            let cover = clone_tree(staging.as_fd(), Path::new(name), Stage::StageMount)?;
            let (cover, at) = (cover.as_fd(), staging.as_fd());
            locker.attach(cover, Lock::TreeReadOnly, at, name, Stage::StageMount)?;
        }
        let (root, at, stage) = (root_mount.as_fd(), staging.as_fd(), Stage::AttachRoot);
        match kind {
            Root::Host => locker.attach(root, Lock::TreeReadOnly, at, ROOT, stage)?,
            Root::Empty => attach(root, at, ROOT, stage)?,
        }
        let mut tree = Self {
            init,
            locker,
            staging,
            root: root_mount,
            own: Vec::new(),
            unsealed: Vec::new(),
            overlays: Vec::new(),
            kept: None,
            memory: None,
            placed: 0,
            last: None,
        };
        let staging = tree.staging.try_clone().at(Stage::StageMount)?;
        tree.own_file_system(staging.as_fd())?;
        if kind == Root::Empty {
            let root = tree.root.try_clone().at(Stage::AttachRoot)?;
            tree.own_file_system(root.as_fd())?;
            tree.unsealed.push(root);
        }
        Ok(tree)
    }

    /// Remembers that mount points may be made on this file system.
    fn own_file_system(&mut self, mount: BorrowedFd<'_>) -> Result<(), Failure> {
        self.own
            .push(rustix::fs::fstat(mount).at(Stage::MountTarget)?.st_dev);
        Ok(())
    }

    /// Where `path` is in the view under construction.
    fn find(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        open_beneath(self.root.as_fd(), below_root(path))
    }

    /// The directory that `path` is in.
    fn parent(&mut self, path: &Path) -> Result<BorrowedFd<'_>, Failure> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        if self.last.as_ref().is_none_or(|(last, _)| last != parent) {
            let directory = self.find(parent).at_path(Stage::MountTarget, path)?;
            self.last = Some((parent.to_owned(), directory));
        }
        match &self.last {
            Some((_, directory)) => Ok(directory.as_fd()),
            None => Err(Errno::NOENT).at_path(Stage::MountTarget, path),
        }
    }

    /// A new directory of the staging area as a mount that is ours to fill.
    fn directory(&self, name: &str, mode: u32, stage: Stage) -> Result<OwnedFd, Failure> {
        rustix::fs::mkdirat(&self.staging, name, Mode::from(mode)).at(stage)?;
        clone_tree(self.staging.as_fd(), Path::new(name), stage)
    }

    /// Where `path` is in the view, made if it does not exist and its parent is ours.
    fn place(&self, path: &Path, kind: Kind) -> Result<OwnedFd, Failure> {
        match self.find(path) {
            Ok(found) => return Ok(found),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error).at_path(Stage::MountTarget, path),
        }
        let Some((parent, name)) = path.parent().zip(path.file_name()) else {
            return Err(Errno::NOENT).at_path(Stage::MountTarget, path);
        };
        let parent = self.place(parent, Kind::Directory)?;
        let device = rustix::fs::fstat(&parent)
            .at_path(Stage::MountTarget, path)?
            .st_dev;
        if !self.own.contains(&device) {
            // The host's tree changed since the plan was made. Creating the name there would
            // litter; running without it would leave something open.
            return Err(Errno::NOENT).at_path(Stage::MountTarget, path);
        }
        match kind {
            Kind::Directory => rustix::fs::mkdirat(&parent, name, Mode::from(0o755)),
            Kind::File => make_file(parent.as_fd(), name, 0o444),
        }
        .at_path(Stage::MountTarget, path)?;
        open_beneath(parent.as_fd(), Path::new(name)).at_path(Stage::MountTarget, path)
    }

    fn seal(&mut self) -> Result<(), Failure> {
        for mount in self.unsealed.drain(..) {
            self.locker.lock(mount.as_fd(), Lock::Seal)?;
        }
        Ok(())
    }

    /// Makes the new root the root; `pivot_root(2)` explains the trick with two dots.
    fn pivot(self) -> Result<(), Failure> {
        rustix::process::fchdir(&self.root).at(Stage::PivotRoot)?;
        rustix::process::pivot_root(".", ".").at(Stage::PivotRoot)?;
        unmount(".", UnmountFlags::DETACH).at(Stage::DetachOldRoot)?;
        rustix::process::chdir("/").at(Stage::PivotRoot)
    }
}

/// What a mount point must be: a directory takes directories, a file takes everything else.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Directory,
    File,
}

impl Kind {
    fn of(stat: &rustix::fs::Stat) -> Self {
        if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() {
            Self::Directory
        } else {
            Self::File
        }
    }
}

/// A detached copy of the mount tree at `path`.
fn clone_tree(at: BorrowedFd<'_>, path: &Path, stage: Stage) -> Result<OwnedFd, Failure> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    open_tree(at, path, flags).at_path(stage, path)
}

/// A new tmpfs, not attached anywhere yet.
fn temporary(options: &[(&str, &str)], stage: Stage) -> Result<OwnedFd, Failure> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    file_system("tmpfs", options, attributes, stage)
}

/// A new file system, not attached anywhere yet.
fn file_system(
    name: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
    stage: Stage,
) -> Result<OwnedFd, Failure> {
    let context = fsopen(name, FsOpenFlags::FSOPEN_CLOEXEC).at(stage)?;
    for (key, value) in options {
        fsconfig_set_string(&context, *key, *value).at(stage)?;
    }
    mount_of(&context, attributes, stage)
}

/// A mount of a file system that is opened and configured.
fn mount_of(
    context: &OwnedFd,
    attributes: MountAttrFlags,
    stage: Stage,
) -> Result<OwnedFd, Failure> {
    fsconfig_create(context).at(stage)?;
    fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).at(stage)
}

/// Puts a mount at a name in a directory, or over the directory itself if the name is empty. A
/// link of that name is not followed.
fn attach(
    mount: BorrowedFd<'_>,
    at: BorrowedFd<'_>,
    name: impl AsRef<Path>,
    stage: Stage,
) -> Result<(), Failure> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    let name = name.as_ref();
    move_mount(mount, "", at, name, flags).at_path(stage, name)
}

/// Opens a place below `directory` without following any link and without leaving it.
fn open_beneath(directory: BorrowedFd<'_>, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(directory, path, flags, Mode::empty(), resolve)
}

fn make_file(
    directory: BorrowedFd<'_>,
    name: impl rustix::path::Arg,
    mode: u32,
) -> rustix::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::from(mode)).map(drop)
}

/// An absolute path as seen from the root's descriptor.
fn below_root(path: &Path) -> &Path {
    let mut components = path.components();
    if components.clone().next() == Some(Component::RootDir) {
        components.next();
    }
    let rest = components.as_path();
    if rest.as_os_str().is_empty() {
        Path::new(".")
    } else {
        rest
    }
}
