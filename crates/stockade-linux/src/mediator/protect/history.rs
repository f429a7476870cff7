//! Content that no sandboxed command can have written: it stood under the same protected name when
//! the run began, or the workspace's repository has held it since before the first sandboxed
//! command wrote an object.
//!
//! `git checkout`, `stash pop` and `rebase` across files of editors and agents put such content in
//! place. The age of an object is the change time of its file, which nobody can set. It is compared
//! with the first run that wrote objects, not with this one: otherwise one run could store content
//! and the next check it out. The file [`WRITTEN_SINCE`] among the objects keeps the time of that run. It can't
//! be removed or replaced, and its birth is compared besides what it says, so git may link and copy it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, statx,
};
use rustix::io::Errno;
use stockade_rules::protected::git::object::{BlobIds, WRITTEN_SINCE, pack_index_has};
use stockade_rules::protected::{Judge, ProtectedName};

use super::place::read_all;
use crate::mediator::caller::Caller;
use crate::mediator::files::open_at;
use crate::mediator::place::Name;
use crate::mediator::{Worker, locked};
use crate::plan::Protection;

/// Nobody has more packs; git packs them together at 50 (`gc.autoPackLimit`).
const MAX_PACKS: usize = 1024;

/// What may be kept of files that were removed.
const MAX_KEPT_BYTES: usize = 8 << 20;

type Time = (i64, u32);

/// Where old content is known from.
#[derive(Default)]
pub(in crate::mediator) struct History {
    store: Option<Store>,
    /// Whether the time of the first run that wrote objects is on record.
    marked: AtomicBool,
    /// What protected files held when this run removed them.
    removed: Mutex<HashMap<PathBuf, Vec<u8>>>,
}

/// The objects of the workspace's repository.
struct Store {
    /// The root of the working tree.
    root: PathBuf,
    objects: OwnedFd,
    objects_path: PathBuf,
}

impl History {
    /// The directories are opened before the command runs: nothing can have been put in their place.
    pub(in crate::mediator) fn new(protection: Option<&Protection>) -> Self {
        let store = protection.and_then(Store::open);
        Self {
            store,
            ..Self::default()
        }
    }

    /// What a file held when this run removed it.
    pub(super) fn removed(&self, path: &Path) -> Option<Vec<u8>> {
        locked(&self.removed).get(path).cloned()
    }
}

impl Store {
    fn open(protection: &Protection) -> Option<Self> {
        let root = protection.own_root.as_ref()?.as_path().to_owned();
        let git = protection.own_git.last()?.as_path();
        let objects_path = git.join("objects");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS;
        let objects = openat2(CWD, &objects_path, flags, Mode::empty(), resolve);
        Some(Self {
            root,
            objects: objects.ok()?,
            objects_path,
        })
    }

    /// Since when sandboxed commands may have written objects; none if none ever did. A time that
    /// can't be told leaves no object old enough.
    fn first_written(&self) -> Option<Time> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.objects, WRITTEN_SINCE, flags, Mode::empty()) {
            Err(Errno::NOENT) => None,
            file => Some(file.ok().and_then(time_on_record).unwrap_or((i64::MIN, 0))),
        }
    }

    fn record_first_written(&self, time: Time) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let file = match openat(&self.objects, WRITTEN_SINCE, flags, mode) {
            Err(Errno::EXIST) => return Ok(()),
            other => other?,
        };
        let (seconds, part) = time;
        rustix::io::write(file, format!("{seconds}.{part}\n").as_bytes())?;
        Ok(())
    }

    fn has_blob(&self, content: &[u8], before: Time) -> bool {
        let ids = BlobIds::of(content);
        let ids: [&[u8]; 2] = [&ids.sha1, &ids.sha256];
        ids.iter().any(|id| self.has_loose(id, before)) || self.has_packed(&ids, before)
    }

    fn has_loose(&self, id: &[u8], before: Time) -> bool {
        let mut path = String::new();
        for (number, byte) in id.iter().enumerate() {
            let slash = if number == 1 { "/" } else { "" };
            // Writing to a string does not fail.
            let _ = write!(path, "{slash}{byte:02x}");
        }
        self.open_old(&path, before).is_some()
    }

    fn has_packed(&self, ids: &[&[u8]], before: Time) -> bool {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let listed = openat(&self.objects, c"pack", flags, Mode::empty());
        let Ok(entries) = listed.and_then(Dir::read_from) else {
            return false;
        };
        let names = entries.filter_map(|entry| {
            let name = entry.ok()?.file_name().to_str().ok()?.to_owned();
            name.strip_suffix(".idx").map(str::to_owned)
        });
        names.take(MAX_PACKS).any(|name| {
            let index = self.open_old(&format!("pack/{name}.idx"), before);
            let pack = || self.open_old(&format!("pack/{name}.pack"), before);
            index.is_some_and(|index| {
                ids.iter()
                    .any(|id| pack_index_has(id, |at, buffer| read_at(&index, at, buffer)))
                    && pack().is_some()
            })
        })
    }

    /// Opens a file of the store that nobody has changed, moved or linked since `before`.
    fn open_old(&self, path: &str, before: Time) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH | ResolveFlags::NO_XDEV;
        let file = openat2(&self.objects, path, flags, Mode::empty(), resolve).ok()?;
        let wanted = StatxFlags::CTIME | StatxFlags::TYPE;
        let stat = statx(&file, c"", AtFlags::EMPTY_PATH, wanted).ok()?;
        let changed = (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec);
        let is_file = FileType::from_raw_mode(stat.stx_mode.into()).is_file();
        (is_file && changed < before).then_some(file)
    }
}

impl Worker<'_, '_> {
    /// Whether content may stand under a protected name because it is old.
    pub(super) fn is_old_content(&self, path: &Path, row: &ProtectedName, content: &[u8]) -> bool {
        let history = &self.shared.history;
        if !row.accepts_old_content() {
            return false;
        }
        let stood_there = |old: Vec<u8>| old == content;
        history.removed(path).is_some_and(stood_there)
            || self.old_store(path, row).is_some_and(|store| {
                let first = store.first_written().unwrap_or(self.shared.started);
                store.has_blob(content, first.min(self.shared.started))
            })
    }

    /// Whether a program may write a file whose content is compared when it is complete. Only git:
    /// what others write is hardly ever old, and they shall learn at once that it is refused.
    pub(super) fn may_write_old(&self, caller: &Caller, path: &Path, row: &ProtectedName) -> bool {
        let program = || caller.program(self.shared.proc.as_fd());
        let is_git = |program: Vec<u8>| program.rsplit(|byte| *byte == b'/').next() == Some(b"git");
        row.accepts_old_content()
            && (self.old_store(path, row).is_some() || self.shared.history.removed(path).is_some())
            && is_git(program())
    }

    /// Keeps what a protected file holds that is about to go: the same may come back.
    pub(super) fn keep_removed(&self, name: &Name) {
        let _lock = locked(&self.shared.names);
        if let Some((path, content)) = self.old_content_at(name) {
            let mut removed = locked(&self.shared.history.removed);
            let kept: usize = removed.values().map(Vec::len).sum();
            if kept + content.len() <= MAX_KEPT_BYTES {
                removed.entry(path).or_insert(content);
            }
        }
    }

    /// Where a protected file is, and what it has held since before this run.
    fn old_content_at(&self, name: &Name) -> Option<(PathBuf, Vec<u8>)> {
        let path = name.current_path().ok()?;
        let accepts = self.protected(&path)?.row.accepts_old_content();
        if !accepts || !self.is_old(&name.directory, &*name.last) {
            return None;
        }
        let file = open_at(name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).ok()?;
        let content = read_all(file, Judge::Never).ok()?;
        // Under another name, to which another run may have moved the directory, anybody writes.
        (name.current_path().ok()? == path).then_some((path, content))
    }

    /// Whether a file is an object of the workspace's repository that must not be written before the
    /// time is on record.
    pub(super) fn is_unmarked_object(&self, path: &Path) -> bool {
        let history = &self.shared.history;
        !history.marked.load(Ordering::Acquire)
            && history
                .store
                .as_ref()
                .is_some_and(|store| path.starts_with(&store.objects_path))
    }

    /// Puts the time of this run on record if no run before wrote objects.
    pub(super) fn mark_objects(&self, path: &Path) -> Result<(), Errno> {
        let history = &self.shared.history;
        if let Some(store) = history
            .store
            .as_ref()
            .filter(|_| self.is_unmarked_object(path))
        {
            store.record_first_written(self.shared.started)?;
            history.marked.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Whether a directory holds objects of the workspace's repository, by a name that only git
    /// gives: files in a directory that moves there keep their age.
    pub(super) fn is_object_directory(&self, path: &Path) -> bool {
        let store = self.shared.history.store.as_ref();
        store.is_some_and(|store| path.starts_with(&store.objects_path))
    }

    /// Whether a path is the record of the first run that wrote objects.
    pub(super) fn is_record(&self, path: &Path) -> bool {
        let store = self.shared.history.store.as_ref();
        store.is_some_and(|store| {
            path.strip_prefix(&store.objects_path) == Ok(Path::new(WRITTEN_SINCE))
        })
    }

    /// The objects that may be checked out to a path: those of the repository at whose root it is.
    fn old_store(&self, path: &Path, row: &ProtectedName) -> Option<&Store> {
        let store = self.shared.history.store.as_ref()?;
        let below = path.strip_prefix(&store.root).ok()?;
        below.starts_with(OsStr::new(row.name)).then_some(store)
    }
}

/// What the file says, but no later than its birth: that can't be changed.
fn time_on_record(file: OwnedFd) -> Option<Time> {
    let stat = statx(&file, c"", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
    let is_known = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    let born = (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec);
    let text = String::from_utf8(read_all(file, Judge::Never).ok()?).ok()?;
    let (seconds, part) = text.trim_end().split_once('.')?;
    let said = (seconds.parse().ok()?, part.parse().ok()?);
    is_known.then(|| born.min(said))
}

fn read_at(file: &OwnedFd, offset: u64, buffer: &mut [u8]) -> bool {
    let wanted = buffer.len();
    rustix::io::pread(file, buffer, offset).is_ok_and(|got| got == wanted)
}
