//! Since when sandboxed commands write objects to the workspace's repository.
//!
//! A direct run may check out content that the repository held before any sandboxed command wrote
//! objects, also under protected names. What a commit brings was written by one, so the time of the
//! first such run is on record before the objects arrive.

use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use stockade_rules::AbsPath;
use stockade_rules::protected::git::object::WRITTEN_SINCE;
use stockade_workspace::{ProposedChange, ProposedKind, Time};

use super::ProtectedNames;

impl ProtectedNames {
    /// Whether a path is the record of the first run that wrote objects: nobody changes it.
    pub(super) fn is_record(&self, path: &Path) -> bool {
        let common = self.own_common();
        common.is_some_and(|git| path == git.join("objects").join(WRITTEN_SINCE))
    }

    /// Remembers that a change brings objects.
    pub(super) fn note_objects(&self, change: &ProposedChange<'_>) {
        let is_object = |git: &Path| change.path.starts_with(git.join("objects"));
        if change.kind != ProposedKind::Remove
            && !self.brings_objects.get()
            && self.own_common().is_some_and(is_object)
        {
            self.brings_objects.set(true);
        }
    }

    /// Puts the time of the first run on record, if the changes bring objects and no earlier one is.
    pub(super) fn record_objects(&self, since: Option<Time>) -> io::Result<()> {
        let Some(git) = self.own_common().filter(|_| self.brings_objects.get()) else {
            return Ok(());
        };
        let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let no_links = ResolveFlags::NO_SYMLINKS;
        let objects = git.join("objects");
        let objects = match rustix::fs::openat2(CWD, objects, directory, Mode::empty(), no_links) {
            Err(Errno::NOENT) => return Ok(()),
            objects => objects?,
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o644);
        let file = match rustix::fs::openat2(&objects, WRITTEN_SINCE, flags, mode, no_links) {
            Err(Errno::EXIST) => return Ok(()),
            file => file?,
        };
        // An unknown time leaves no object old enough.
        let (seconds, nanos) = since.map_or((0, 0), |since| (since.seconds, since.nanos));
        std::fs::File::from(file).write_all(format!("{seconds}.{nanos}\n").as_bytes())
    }

    /// The directory of the objects of the workspace's repository.
    fn own_common(&self) -> Option<&Path> {
        let own = self.profile.own_repository.as_ref()?;
        own.common_directory().map(AbsPath::as_path)
    }
}
