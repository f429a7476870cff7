//! One root while a commit changes it: each step, and its reverse.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::copy::copy_tree;
use super::journal::{Discard, RootJournal};
use super::layer::{self, by_descriptor, on_host, stat_if_any};
use super::plan::{Mark, RootPlan, Taken};
use super::step::{Attributes, From, InodeId, Step};
use crate::error::{Error, Trying};
use crate::files::{self, Stat};
use crate::identity;
use crate::restore::set_attributes_at;
use crate::tree::{Meta, Time};

/// A root while it is changed.
pub(super) struct Work {
    root: PathBuf,
    host: OwnedFd,
    upper: OwnedFd,
    /// In the store.
    stage: OwnedFd,
    /// At the top of the root, if the store is on another file system.
    tree_stage: Option<OwnedFd>,
}

impl Work {
    pub(super) fn open(directory: &Path, root: &RootJournal) -> Result<Self, Error> {
        let host = identity::open(&root.path, root.identity.as_ref())?;
        let tree_stage = match &root.tree_stage {
            None => None,
            Some(name) => match rustix::fs::mkdirat(&host, &**name, Mode::from(0o700)) {
                Ok(()) | Err(Errno::EXIST) => Some(
                    files::open_dir_below(host.as_fd(), name.as_bytes())
                        .trying("open", root.path.join(name))?,
                ),
                Err(error) => return Err(error).trying("make a directory in", &root.path),
            },
        };
        Ok(Self {
            root: root.path.clone(),
            host,
            upper: files::open_top(&directory.join(&root.layer).join("upper"))?,
            stage: files::open_top(&directory.join(&root.stage))?,
            tree_stage,
        })
    }

    fn full(&self, path: &[u8]) -> PathBuf {
        files::full(&self.root, path)
    }

    /// Where old files wait, and new ones that were copied.
    fn host_stage(&self) -> BorrowedFd<'_> {
        self.tree_stage.as_ref().unwrap_or(&self.stage).as_fd()
    }

    pub(super) fn sync(&self, durable: bool) -> Result<(), Error> {
        if durable {
            rustix::fs::syncfs(&self.host).trying("write", &self.root)
        } else {
            Ok(())
        }
    }

    /// Makes what the steps need, and fills them into the journal.
    pub(super) fn prepare(&self, root: &mut RootJournal, plan: &RootPlan) -> Result<(), Error> {
        for path in &plan.settled {
            if let Some(stat) =
                on_host(self.upper.as_fd(), path).trying("look at", self.full(path))?
            {
                root.discard.push(Discard {
                    path: path.clone(),
                    id: InodeId::of(&stat),
                });
            }
        }
        if self.tree_stage.is_none() {
            plan.marks.iter().try_for_each(|mark| self.unmark(mark))?;
        }
        let extracted: BTreeSet<&[u8]> = plan.steps.iter().filter_map(Step::extracted).collect();
        let steps = plan.steps.iter().chain(&plan.directories).cloned();
        for (number, mut step) in steps.enumerate() {
            self.prepare_step(&mut step, number, &extracted, root)?;
            root.steps.push(step);
        }
        Ok(())
    }

    fn prepare_step(
        &self,
        step: &mut Step,
        number: usize,
        extracted: &BTreeSet<&[u8]>,
        root: &mut RootJournal,
    ) -> Result<(), Error> {
        let (Step::Place { to, from, id }
        | Step::Exchange {
            to, from, new: id, ..
        }) = step
        else {
            return Ok(());
        };
        let full = self.full(to);
        match from {
            From::Made(name, attributes) => {
                rustix::fs::mkdirat(self.host_stage(), &**name, Mode::from(0o700))
                    .trying("make the directory", &full)?;
                set_attributes_at(
                    self.host_stage(),
                    name.as_bytes(),
                    &attributes.meta(None),
                    false,
                )
                .trying("set the attributes of", &full)?;
                *id = self.id_at(self.host_stage(), name.as_bytes(), to)?;
            }
            From::Layer(path) if self.tree_stage.is_some() => {
                root.discard.push(Discard {
                    path: path.clone(),
                    id: *id,
                });
                let name = format!("c{number}");
                let (parent, last) = files::split(path);
                let parent =
                    files::open_dir_below(self.upper.as_fd(), parent).trying("read", &full)?;
                copy_tree(
                    parent.as_fd(),
                    last,
                    self.host_stage(),
                    name.as_bytes(),
                    path,
                    extracted,
                )
                .trying("copy", &full)?;
                *id = self.id_at(self.host_stage(), name.as_bytes(), to)?;
                *from = From::Staged(name);
            }
            _ => {}
        }
        if let Step::Exchange {
            from: From::Layer(path),
            old,
            ..
        } = step
        {
            root.discard.push(Discard {
                path: path.clone(),
                id: *old,
            });
        }
        Ok(())
    }

    fn id_at(&self, at: BorrowedFd<'_>, name: &[u8], path: &[u8]) -> Result<InodeId, Error> {
        let stat = files::stat_at(at, name).trying("look at", self.full(path))?;
        Ok(InodeId::of(&stat))
    }

    /// Removes what only overlayfs needs from a tree that becomes the host's.
    fn unmark(&self, mark: &Mark) -> Result<(), Error> {
        let (Mark::Whiteout(path) | Mark::Attributes(path, _)) = mark;
        let full = self.full(path);
        let (parent, name) = files::split(path);
        let parent = files::open_dir_below(self.upper.as_fd(), parent).trying("open", &full)?;
        match mark {
            Mark::Whiteout(_) => rustix::fs::unlinkat(&parent, name, AtFlags::empty())
                .trying("remove the whiteout", full),
            Mark::Attributes(_, names) => names.iter().try_for_each(|attribute| {
                let path = by_descriptor(parent.as_fd(), name);
                match rustix::fs::lremovexattr(path, &attribute[..]) {
                    Ok(()) | Err(Errno::NODATA) => Ok(()),
                    Err(error) => Err(error).trying("remove an attribute of", &full),
                }
            }),
        }
    }

    /// The directory and the name that a step takes something from.
    fn source(&self, from: &From) -> rustix::io::Result<(OwnedFd, Vec<u8>)> {
        match from {
            From::Layer(path) => {
                let (parent, name) = files::split(path);
                let parent = files::open_dir_below(self.upper.as_fd(), parent)?;
                Ok((parent, name.to_vec()))
            }
            From::Staged(name) | From::Made(name, _) => {
                let stage = files::open_dir_below(self.host_stage(), b"")?;
                Ok((stage, name.clone().into_bytes()))
            }
        }
    }

    fn target<'p>(&self, path: &'p [u8]) -> Result<(OwnedFd, &'p [u8]), Error> {
        let (parent, name) = files::split(path);
        let fd = match files::open_dir_below(self.host.as_fd(), parent) {
            // The host moved or removed the directory meanwhile.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                return Err(Error::HostChanged(vec![self.full(path)]));
            }
            fd => fd.trying("open", self.full(parent))?,
        };
        Ok((fd, name))
    }

    /// Takes a step. What the host has must still be what was looked at.
    pub(super) fn take(&self, step: &Step, taken: Option<&Taken>) -> Result<(), Error> {
        match step {
            Step::Extract { path, aside } => {
                let full = self.full(path);
                let (from, name) = self
                    .source(&From::Layer(path.clone()))
                    .trying("open", &full)?;
                rename(
                    &from,
                    &name,
                    &self.stage,
                    aside.as_bytes(),
                    RenameFlags::NOREPLACE,
                )
                .trying("set aside", full)
            }
            Step::Place { to, from, id } => {
                let full = self.full(to);
                let (source, name) = self.source(from).trying("open", &full)?;
                self.check_source(&source, &name, *id, to, from)?;
                let (target, last) = self.target(to)?;
                match rename(&source, &name, &target, last, RenameFlags::NOREPLACE) {
                    Err(Errno::EXIST) => Err(Error::HostChanged(vec![full])),
                    placed => placed.trying("write", full),
                }
            }
            Step::Exchange { to, from, new, .. } => {
                let full = self.full(to);
                let (source, name) = self.source(from).trying("open", &full)?;
                self.check_source(&source, &name, *new, to, from)?;
                let (target, last) = self.target(to)?;
                self.check_host(&target, last, to, taken)?;
                match rename(&source, &name, &target, last, RenameFlags::EXCHANGE) {
                    Err(Errno::NOENT) => Err(Error::HostChanged(vec![full])),
                    exchanged => exchanged.trying("replace", full),
                }
            }
            Step::Remove { path, aside, .. } => {
                let full = self.full(path);
                let (target, last) = self.target(path)?;
                self.check_host(&target, last, path, taken)?;
                let stage = files::open_dir_below(self.host_stage(), b"").trying("open", &full)?;
                match rename(
                    &target,
                    last,
                    &stage,
                    aside.as_bytes(),
                    RenameFlags::NOREPLACE,
                ) {
                    Err(Errno::NOENT) => Err(Error::HostChanged(vec![full])),
                    removed => removed.trying("remove", full),
                }
            }
            Step::Adjust {
                path,
                id,
                before,
                after,
            } => self.adjust(path, *id, before, after),
        }
    }

    /// What is about to become the host's must be what was judged.
    fn check_source(
        &self,
        source: &OwnedFd,
        name: &[u8],
        id: InodeId,
        path: &[u8],
        from: &From,
    ) -> Result<(), Error> {
        let full = self.full(path);
        let mut is_same = self.id_at(source.as_fd(), name, path)? == id;
        if is_same && matches!(from, From::Staged(_)) {
            // A copy lies where a sandbox may reach it; the layer does not.
            let (parent, last) = files::split(path);
            let layer = files::open_dir_below(self.upper.as_fd(), parent).trying("open", &full)?;
            is_same =
                is_same_tree(source.as_fd(), name, layer.as_fd(), last).trying("compare", &full)?;
        }
        if is_same {
            return Ok(());
        }
        Err(Error::damaged(
            &self.full(path),
            "what was to be put here changed meanwhile",
        ))
    }

    fn check_host(
        &self,
        target: &OwnedFd,
        name: &[u8],
        path: &[u8],
        taken: Option<&Taken>,
    ) -> Result<(), Error> {
        let seen = taken.and_then(|taken| taken.files.first());
        let now = stat_if_any(target.as_fd(), name).trying("look at", self.full(path))?;
        if now.as_ref() == seen.map(|(_, stat)| stat) {
            Ok(())
        } else {
            Err(Error::HostChanged(vec![self.full(path)]))
        }
    }

    fn adjust(
        &self,
        path: &[u8],
        id: InodeId,
        before: &Attributes,
        after: &Attributes,
    ) -> Result<(), Error> {
        if before.same_owner_and_mode(after) && after.mtime.is_none() {
            return Ok(());
        }
        let full = self.full(path);
        let (parent, name) = self.target(path)?;
        let name = if name.is_empty() { b"." } else { name };
        let now = stat_if_any(parent.as_fd(), name).trying("look at", &full)?;
        let is_same = now.is_some_and(|now| {
            InodeId::of(&now) == id && Attributes::of(&now).same_owner_and_mode(before)
        });
        if !is_same {
            return Err(Error::HostChanged(vec![full]));
        }
        set_attributes_at(parent.as_fd(), name, &after.meta(now.as_ref()), false)
            .trying("set the attributes of", full)
    }

    /// Undoes a step, if it was taken. Answers with a path that the host uses again, so that what
    /// was there can't be put back.
    pub(super) fn undo(&self, step: &Step) -> Result<Option<PathBuf>, Error> {
        match step {
            Step::Extract { path, aside } => {
                let full = self.full(path);
                if stat_if_any(self.stage.as_fd(), aside.as_bytes())
                    .trying("look at", &full)?
                    .is_some()
                {
                    let (to, name) = self
                        .source(&From::Layer(path.clone()))
                        .trying("open", &full)?;
                    rename(
                        &self.stage,
                        aside.as_bytes(),
                        &to,
                        &name,
                        RenameFlags::NOREPLACE,
                    )
                    .trying("put back", full)?;
                }
            }
            Step::Place { to, from, id } => {
                let full = self.full(to);
                if self.id_on_host(to)? == Some(*id) {
                    let (target, last) = self.target(to)?;
                    let (source, name) = self.source(from).trying("open", &full)?;
                    rename(&target, last, &source, &name, RenameFlags::NOREPLACE)
                        .trying("take back", full)?;
                }
            }
            Step::Exchange { to, from, new, .. } => {
                let full = self.full(to);
                if self.id_on_host(to)? == Some(*new) {
                    let (target, last) = self.target(to)?;
                    let (source, name) = self.source(from).trying("open", &full)?;
                    rename(&source, &name, &target, last, RenameFlags::EXCHANGE)
                        .trying("put back", full)?;
                }
            }
            Step::Remove { path, aside, old } => {
                let full = self.full(path);
                let waiting =
                    stat_if_any(self.host_stage(), aside.as_bytes()).trying("look at", &full)?;
                if waiting.is_some_and(|waiting| InodeId::of(&waiting) == *old) {
                    let (target, last) = self.target(path)?;
                    let stage =
                        files::open_dir_below(self.host_stage(), b"").trying("open", &full)?;
                    match rename(
                        &stage,
                        aside.as_bytes(),
                        &target,
                        last,
                        RenameFlags::NOREPLACE,
                    ) {
                        Err(Errno::EXIST) => return Ok(Some(full)),
                        renamed => renamed.trying("put back", full)?,
                    }
                }
            }
            Step::Adjust {
                path,
                id,
                before,
                after,
            } => self.undo_adjust(path, *id, before, after)?,
        }
        Ok(None)
    }

    fn undo_adjust(
        &self,
        path: &[u8],
        id: InodeId,
        before: &Attributes,
        after: &Attributes,
    ) -> Result<(), Error> {
        let full = self.full(path);
        let Some(now) = on_host(self.host.as_fd(), path).trying("look at", &full)? else {
            return Ok(());
        };
        let ours = Attributes::of(&now).same_owner_and_mode(after)
            || Attributes::of(&now).same_owner_and_mode(before);
        if InodeId::of(&now) != id || !ours {
            return Ok(());
        }
        let (parent, name) = self.target(path)?;
        let name = if name.is_empty() { b"." } else { name };
        set_attributes_at(parent.as_fd(), name, &before.meta(Some(&now)), false)
            .trying("set the attributes of", full)
    }

    fn id_on_host(&self, path: &[u8]) -> Result<Option<InodeId>, Error> {
        let stat = on_host(self.host.as_fd(), path).trying("look at", self.full(path))?;
        Ok(stat.as_ref().map(InodeId::of))
    }

    /// What came out of the host must be what was looked at: an edit may have come in between, also
    /// through a descriptor that somebody held.
    pub(super) fn check_taken(&self, root: &RootJournal, taken: &[Taken]) -> Result<(), Error> {
        let mut changed = Vec::new();
        for taken in taken {
            let Some(step) = root.steps.get(taken.step) else {
                continue;
            };
            let (at, name) = match step {
                Step::Exchange { from, .. } => self.source(from),
                Step::Remove { aside, .. } => files::open_dir_below(self.host_stage(), b"")
                    .map(|stage| (stage, aside.clone().into_bytes())),
                _ => continue,
            }
            .trying("open", &self.root)?;
            let mut seen = taken.files.iter();
            self.compare(at.as_fd(), &name, &mut seen, &mut changed)?;
        }
        if changed.is_empty() {
            Ok(())
        } else {
            Err(Error::HostChanged(changed))
        }
    }

    /// Compares a tree with the list that was made of it, in the same order.
    fn compare<'t>(
        &self,
        at: BorrowedFd<'_>,
        name: &[u8],
        seen: &mut impl Iterator<Item = &'t (Vec<u8>, Stat)>,
        changed: &mut Vec<PathBuf>,
    ) -> Result<(), Error> {
        let Some((path, then)) = seen.next() else {
            return Ok(());
        };
        let full = self.full(path);
        let now = stat_if_any(at, name).trying("look at", &full)?;
        let is_same = now.is_some_and(|now| {
            // A rename sets the time of change.
            let now = Stat {
                ctime: then.ctime,
                ..now
            };
            now == *then
        });
        if !is_same {
            changed.push(full);
            return Ok(());
        }
        if then.is_dir() {
            let fd = files::open_dir_below(at, name).trying("read", &full)?;
            for name in layer::names(&fd).trying("read", &full)? {
                self.compare(fd.as_fd(), &name, seen, changed)?;
            }
        }
        Ok(())
    }
}

impl Attributes {
    fn same_owner_and_mode(&self, other: &Self) -> bool {
        (self.mode, self.uid, self.gid) == (other.mode, other.uid, other.gid)
    }

    /// With the time that a file has, unless these have one.
    fn meta(&self, now: Option<&Stat>) -> Meta {
        let mtime = self.mtime.map_or_else(
            || now.map(|now| now.mtime).unwrap_or_default(),
            |(seconds, nanos)| Time { seconds, nanos },
        );
        Meta {
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            mtime,
            xattrs: Vec::new(),
        }
    }
}

/// Whether a copy has what the layer has.
fn is_same_tree(
    copy: BorrowedFd<'_>,
    name: &[u8],
    layer: BorrowedFd<'_>,
    last: &[u8],
) -> std::io::Result<bool> {
    let (one, other) = (files::stat_at(copy, name)?, files::stat_at(layer, last)?);
    if (one.file_type(), one.permissions()) != (other.file_type(), other.permissions()) {
        return Ok(false);
    }
    match one.file_type() {
        FileType::RegularFile => {
            let open = |at, name| files::open_below(at, name, OFlags::RDONLY).map(File::from);
            layer::is_same_content(&open(copy, name)?, &open(layer, last)?)
        }
        FileType::Symlink => {
            let target = |at, name| rustix::fs::readlinkat(at, name, Vec::new());
            Ok(target(copy, name)? == target(layer, last)?)
        }
        FileType::Directory => {
            let copy = files::open_dir_below(copy, name)?;
            let layer = files::open_dir_below(layer, last)?;
            let mut names = files::names(&layer)?;
            let is_whiteout = |name: &Vec<u8>| {
                let said = layer::look(layer.as_fd(), name);
                matches!(said, Ok(layer::Said::Whiteout))
            };
            names.retain(|name| !is_whiteout(name));
            if files::names(&copy)? != names {
                return Ok(false);
            }
            for name in names {
                if !is_same_tree(copy.as_fd(), &name, layer.as_fd(), &name)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        _ => Ok(true),
    }
}

/// Renames, also where the owner took their own right to write: a directory that moves must be
/// writable itself, since its `..` changes (rename(2), EACCES).
fn rename(
    from: &OwnedFd,
    name: &[u8],
    to: &OwnedFd,
    new_name: &[u8],
    flags: RenameFlags,
) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(from, name, to, new_name, flags) {
        Err(Errno::ACCESS) if !rustix::process::geteuid().is_root() => {}
        renamed => return renamed,
    }
    let mut opened = Vec::new();
    for (at, name) in [(from, &b"."[..]), (to, b"."), (from, name), (to, new_name)] {
        let Ok(stat) = files::stat_at(at.as_fd(), name) else {
            continue;
        };
        if stat.is_dir() && stat.permissions() & 0o300 != 0o300 {
            let fd = files::open_below(at.as_fd(), name, OFlags::PATH)?;
            let path = by_descriptor(fd.as_fd(), b"");
            rustix::fs::chmod(&path, Mode::from_raw_mode(stat.permissions() | 0o700))?;
            opened.push((fd, stat));
        }
    }
    let renamed = rustix::fs::renameat_with(from, name, to, new_name, flags);
    for (fd, stat) in opened {
        let path = by_descriptor(fd.as_fd(), b"");
        rustix::fs::chmod(&path, Mode::from_raw_mode(stat.permissions()))?;
    }
    renamed
}
