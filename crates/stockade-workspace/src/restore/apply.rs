//! Exchanging what is there for what was prepared, step by step, so that each can be taken back.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;

use super::RestoreReport;
use super::make::{open_for_attributes, set_attributes, staged};
use super::plan::{Change, Plan};
use crate::content;
use crate::error::{Error, Trying};
use crate::files::{self, Stat};
use crate::tree::Meta;

/// Why a restore failed, and why it could not be undone, if it could not.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) cause: Error,
    pub(super) undo: Option<Error>,
}

pub(super) struct Applier<'a> {
    plan: &'a Plan,
    top: BorrowedFd<'a>,
    stage: BorrowedFd<'a>,
    dir: &'a Path,
    xattrs: bool,
    done: Vec<Step<'a>>,
    /// The directory that was opened last.
    open: Option<(Vec<u8>, OwnedFd)>,
    report: RestoreReport,
}

/// What was done, as far as it has to be known to undo it.
enum Step<'a> {
    /// Exchanged with what waits under this name.
    Exchanged(&'a [u8], String),
    /// Put where nothing was.
    Placed(&'a [u8], String),
    /// Moved away.
    Removed(&'a [u8], String),
    /// Attributes changed; it had these.
    Adjusted(&'a [u8], Stat),
    /// An empty directory was removed; it had these attributes.
    Emptied(&'a [u8], Stat),
}

impl<'a> Applier<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        top: BorrowedFd<'a>,
        stage: BorrowedFd<'a>,
        dir: &'a Path,
        xattrs: bool,
    ) -> Self {
        Self {
            plan,
            top,
            stage,
            dir,
            xattrs,
            done: Vec::new(),
            open: None,
            report: RestoreReport::default(),
        }
    }

    pub(super) fn apply(mut self) -> Result<RestoreReport, Failed> {
        match self.forward() {
            Ok(()) => Ok(self.report),
            Err(cause) => {
                let undo = self.back().err();
                Err(Failed { cause, undo })
            }
        }
    }

    fn forward(&mut self) -> Result<(), Error> {
        let plan = self.plan;
        for (number, change) in plan.changes.iter().enumerate() {
            match change {
                Change::Remove { path } => self.remove(path, number)?,
                Change::RemoveIfEmpty { path } => self.remove_if_empty(path)?,
                Change::Put { path, .. } => {
                    if files::stat_at(self.stage, staged(number).as_bytes()).is_ok() {
                        self.put(path, staged(number))?;
                    }
                }
            }
        }
        for (number, (path, first)) in plan.links.iter().enumerate() {
            self.link(path, first, number)?;
        }
        for (path, meta, before) in &plan.files {
            self.adjust(path, meta)?;
            self.done.push(Step::Adjusted(path, *before));
            self.report.adjusted += 1;
        }
        // Deepest first: a change below a directory changes its time.
        for (path, (meta, before)) in plan.directories.iter().rev() {
            let (dir, xattrs) = (self.dir, self.xattrs);
            set_attributes(self.directory(path)?, meta, xattrs)
                .trying("set the attributes of", files::full(dir, path))?;
            if let Some(before) = before {
                self.done.push(Step::Adjusted(path, *before));
                self.report.adjusted += 1;
            }
        }
        Ok(())
    }

    /// Opens a directory below the top.
    fn directory(&mut self, path: &[u8]) -> Result<BorrowedFd<'_>, Error> {
        if self.open.as_ref().is_none_or(|(open, _)| open != path) {
            let fd = files::open_dir_below(self.top, path)
                .trying("open", files::full(self.dir, path))?;
            self.open = Some((path.to_vec(), fd));
        }
        Ok(self.open.as_ref().map_or(self.top, |(_, fd)| fd.as_fd()))
    }

    /// Opens the directory that holds `path`, so that it can be changed.
    fn parent<'p>(&mut self, path: &'p [u8]) -> Result<(BorrowedFd<'_>, &'p [u8]), Error> {
        let (parent, name) = files::split(path);
        let dir = self.dir;
        let fd = self.directory(parent)?;
        if !rustix::process::geteuid().is_root() {
            let act = "make writable";
            let stat = files::stat_of(fd).trying(act, files::full(dir, parent))?;
            let wanted = stat.permissions() | 0o700;
            if wanted != stat.permissions() {
                // It gets its own mode back with the other directories, at the end.
                rustix::fs::fchmod(fd, Mode::from_raw_mode(wanted))
                    .trying(act, files::full(dir, parent))?;
            }
        }
        Ok((fd, name))
    }

    fn put(&mut self, path: &'a [u8], from: String) -> Result<(), Error> {
        let stage = self.stage;
        let dir = self.dir;
        let (parent, name) = self.parent(path)?;
        let fresh = rustix::fs::renameat_with(stage, &*from, parent, name, RenameFlags::NOREPLACE);
        match fresh {
            Ok(()) => self.done.push(Step::Placed(path, from)),
            Err(Errno::EXIST) => {
                rustix::fs::renameat_with(stage, &*from, parent, name, RenameFlags::EXCHANGE)
                    .trying("replace", files::full(dir, path))?;
                self.done.push(Step::Exchanged(path, from));
            }
            Err(error) => return Err(error).trying("restore", files::full(dir, path)),
        }
        self.report.written += 1;
        Ok(())
    }

    fn remove(&mut self, path: &'a [u8], number: usize) -> Result<(), Error> {
        let stage = self.stage;
        let dir = self.dir;
        let to = format!("o{number}");
        let (parent, name) = self.parent(path)?;
        match rustix::fs::renameat(parent, name, stage, &*to) {
            Ok(()) => {
                self.done.push(Step::Removed(path, to));
                self.report.removed += 1;
            }
            // Somebody else was faster.
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error).trying("remove", files::full(dir, path)),
        }
        Ok(())
    }

    fn remove_if_empty(&mut self, path: &'a [u8]) -> Result<(), Error> {
        let dir = self.dir;
        let (parent, name) = self.parent(path)?;
        let before = match files::stat_at(parent, name) {
            Err(Errno::NOENT) => return Ok(()),
            before => before.trying("look at", files::full(dir, path))?,
        };
        match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) => {
                self.done.push(Step::Emptied(path, before));
                self.report.removed += 1;
            }
            // What is left in it is not part of the workspace.
            Err(Errno::NOTEMPTY | Errno::NOENT | Errno::BUSY) => {}
            Err(error) => return Err(error).trying("remove", files::full(dir, path)),
        }
        Ok(())
    }

    fn link(&mut self, path: &'a [u8], first: &[u8], number: usize) -> Result<(), Error> {
        let name = format!("l{number}");
        let (parent, last) = files::split(first);
        let stage = self.stage;
        let full = files::full(self.dir, first);
        let fd = self.directory(parent)?;
        rustix::fs::linkat(fd, last, stage, &*name, AtFlags::empty()).trying("link", full)?;
        self.put(path, name)
    }

    fn adjust(&mut self, path: &[u8], meta: &Meta) -> Result<(), Error> {
        let xattrs = self.xattrs;
        let full = files::full(self.dir, path);
        let (parent, name) = files::split(path);
        let parent = self.directory(parent)?;
        open_for_attributes(parent, name)
            .map_err(std::io::Error::from)
            .and_then(|fd| set_attributes(fd.as_fd(), meta, xattrs))
            .trying("set the attributes of", full)
    }

    /// Takes back what was done, the last step first.
    fn back(&mut self) -> Result<(), Error> {
        self.open = None;
        while let Some(step) = self.done.pop() {
            self.undo(&step)?;
        }
        for (path, (_, before)) in self.plan.directories.iter().rev() {
            if let Some(before) = before {
                let dir = self.dir;
                let fd = self.directory(path)?;
                set_attributes(fd, &content::meta(before, Vec::new()), false)
                    .trying("set the attributes of", files::full(dir, path))?;
            }
        }
        Ok(())
    }

    fn undo(&mut self, step: &Step<'_>) -> Result<(), Error> {
        let stage = self.stage;
        let dir = self.dir;
        match step {
            Step::Exchanged(path, from) => {
                let (parent, name) = self.parent(path)?;
                rustix::fs::renameat_with(stage, &**from, parent, name, RenameFlags::EXCHANGE)
                    .trying("put back", files::full(dir, path))
            }
            Step::Placed(path, from) => {
                let (parent, name) = self.parent(path)?;
                rustix::fs::renameat(parent, name, stage, &**from)
                    .trying("take back", files::full(dir, path))
            }
            Step::Removed(path, to) => {
                let (parent, name) = self.parent(path)?;
                rustix::fs::renameat(stage, &**to, parent, name)
                    .trying("put back", files::full(dir, path))
            }
            Step::Emptied(path, before) => {
                let (parent, name) = self.parent(path)?;
                rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(before.permissions()))
                    .trying("put back", files::full(dir, path))
            }
            Step::Adjusted(path, before) if before.is_dir() => {
                let meta = content::meta(before, Vec::new());
                let fd = self.directory(path)?;
                set_attributes(fd, &meta, false)
                    .trying("set the attributes of", files::full(dir, path))
            }
            Step::Adjusted(path, before) => {
                let meta = content::meta(before, Vec::new());
                let xattrs = std::mem::replace(&mut self.xattrs, false);
                let adjusted = self.adjust(path, &meta);
                self.xattrs = xattrs;
                adjusted
            }
        }
    }
}
