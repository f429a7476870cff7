//! Making a directory what a snapshot has.
//!
//! In two phases. First everything that the directory does not have is written in the store, where
//! no sandbox can reach it, or in a directory of its own at the workspace's top if the store is on
//! another file system; if that fails, nothing has happened. Then each
//! piece changes places with what is there, in one step (`RENAME_EXCHANGE`): a file is the old one
//! or the new one, never half of either. If one of these steps fails, those before it are taken
//! back.
//!
//! A journal in the store says which phase it is. After a crash the next one who wants to use the
//! workspace either removes what was prepared or finishes what was begun.
//!
//! No path is followed out of the directory: all are opened beneath its top, without links.

mod apply;
mod guarded;
mod make;
mod plan;
mod stage;

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Trying};
use crate::files;
use crate::guard::{CommitGuard, KeptBack};
use crate::id::SnapshotId;
use crate::progress::Progress;
use crate::snapshot;
use crate::store::{Lock, Session};
use crate::survey::Surveyor;
use crate::tree::Time;
use crate::workspace::{Held, Place, SnapshotRecord, read_json, write_json};

use self::guarded::{Decided, Guarded};
use self::stage::StagePlace;

pub(crate) use make::{set_attributes, set_attributes_at, set_times};

/// What becomes of files that the snapshot does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "they stay or they go")]
pub enum RestoreMode {
    /// They are removed: the directory is what it was.
    Exact,
    /// They stay.
    Merge,
}

/// What a restore changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Files that were written.
    pub written: u64,
    /// Files and directories that were removed.
    pub removed: u64,
    /// Files and directories of which only attributes changed.
    pub adjusted: u64,
    /// Devices that could not be made without privileges.
    pub skipped: Vec<String>,
    /// Changes that the guard did not let pass.
    pub kept_back: Vec<KeptBack>,
}

/// What is under way, for whoever comes after a crash.
#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    /// Directories with what was prepared, or replaced.
    stages: Vec<StagePlace>,
    /// What was kept back.
    #[serde(default)]
    kept: Vec<Vec<u8>>,
    target: SnapshotId,
    mode: RestoreMode,
    /// The top's time before all this, in seconds and nanoseconds.
    top_mtime: (i64, u32),
    /// Everything was prepared, and the directory is being changed.
    applying: bool,
}

/// Makes the workspace's directory what the snapshot has.
pub(crate) fn restore(
    session: &Session,
    held: &Held,
    record: &SnapshotRecord,
    mode: RestoreMode,
    guard: &dyn CommitGuard,
    progress: &dyn Progress,
) -> Result<RestoreReport, Error> {
    held.state.check_quiet()?;
    let _quiet = held.place.keep_quiet()?;
    let _neighbours = keep_neighbours_quiet(session, held)?;
    restore_over(session, held, record, mode, guard, Vec::new(), progress)
}

/// Keeps runs from starting in other workspaces whose directories have, or are in, the one that is
/// restored; refused while something runs there.
fn keep_neighbours_quiet(session: &Session, held: &Held) -> Result<Vec<Lock>, Error> {
    let dir = &held.state.dir;
    let mut locks = Vec::new();
    for name in session.store().names()? {
        // One that is damaged or just being removed runs nothing that is known.
        let Ok(place) = Place::find(session, &name) else {
            continue;
        };
        let Ok(state) = place.state() else {
            continue;
        };
        let shares = state.dir.starts_with(dir) || dir.starts_with(&state.dir);
        if name == held.place.name || !shares {
            continue;
        }
        let quiet = state.check_quiet().and_then(|()| place.keep_quiet());
        locks.push(quiet.map_err(|error| match error {
            Error::Busy(name) => Error::BusyDirectory(name),
            other => other,
        })?);
    }
    Ok(locks)
}

/// The same, after one that was interrupted and left these directories.
fn restore_over(
    session: &Session,
    held: &Held,
    record: &SnapshotRecord,
    mode: RestoreMode,
    guard: &dyn CommitGuard,
    mut stages: Vec<StagePlace>,
    progress: &dyn Progress,
) -> Result<RestoreReport, Error> {
    let dir = &held.state.dir;
    let top = held.state.open_dir()?;
    let mut then = held.state.clone();
    then.excludes.clone_from(&record.excludes);
    let excludes = snapshot::excludes(session, &then)?;
    let cache = snapshot::usable_cache(&held.place);
    let survey = Surveyor {
        top: top.as_fd(),
        top_path: dir,
        excludes: &excludes,
        xattrs: record.xattrs,
        cache: cache.as_ref(),
        sink: None,
        progress,
    }
    .survey()?;
    let careful = !record.excludes.is_empty() || session.store().path().starts_with(dir);
    let mut guarded = Guarded::new(guard, session, record, dir, top.as_fd());
    let plan = plan::Plan::new(session, record, &survey, mode, careful, &mut guarded)?;
    let kept_back = guarded.kept;
    if plan.is_empty() {
        return Ok(RestoreReport {
            kept_back,
            ..RestoreReport::default()
        });
    }
    let before = survey.root.meta.mtime;
    stages.push(StagePlace::choose(held, &top)?);
    let mut journal = Journal {
        stages,
        kept: kept_back
            .iter()
            .map(|kept| kept.path.as_os_str().as_bytes().to_vec())
            .collect(),
        target: record.id.clone(),
        mode,
        top_mtime: (before.seconds, before.nanos),
        applying: false,
    };
    let journal_file = held.place.journal();
    write_json(&journal_file, &journal)?;
    let place = journal.stages.last().cloned().unwrap_or_default();
    let stage = place.make(held, &top)?;

    progress.begin("writing", Some(plan.bytes()));
    let prepared = make::prepare(session, &plan, stage.as_fd(), record.xattrs, dir, progress);
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            forget(held, &journal.stages, Some(before))?;
            return Err(Error::RolledBack(Box::new(error)));
        }
    };
    journal.applying = true;
    write_json(&journal_file, &journal)?;
    let applied =
        apply::Applier::new(&plan, top.as_fd(), stage.as_fd(), dir, record.xattrs).apply();
    let report = match applied {
        Ok(report) => report,
        Err(apply::Failed { cause, undo: None }) => {
            forget(held, &journal.stages, Some(before))?;
            return Err(Error::RolledBack(Box::new(cause)));
        }
        Err(apply::Failed {
            cause,
            undo: Some(undo),
        }) => {
            files::remove_file(&journal_file)?;
            return Err(Error::HalfRestored {
                cause: Box::new(cause),
                undo: Box::new(undo),
                kept: place.path(held),
            });
        }
    };
    forget(held, &journal.stages, None)?;
    Ok(RestoreReport {
        skipped: prepared.skipped,
        kept_back,
        ..report
    })
}

/// Removes what was prepared or replaced, and then the journal. The top gets this time, or keeps
/// the one it has: the directory in it came and went.
fn forget(held: &Held, stages: &[StagePlace], time: Option<Time>) -> Result<(), Error> {
    let dir = &held.state.dir;
    let top = held.state.open_dir()?;
    let now = files::stat_of(&top).trying("look at", dir)?;
    for stage in stages {
        files::remove_tree_of_others(&stage.path(held))?;
    }
    make::set_times(top.as_fd(), time.unwrap_or(now.mtime)).trying("set the times of", dir)?;
    files::remove_file(&held.place.journal())
}

/// Puts in order what a crash left behind: called before a workspace is used.
pub(crate) fn recover(
    session: &Session,
    held: &Held,
    progress: &dyn Progress,
) -> Result<bool, Error> {
    let path = held.place.journal();
    if !path.exists() {
        return Ok(false);
    }
    let journal: Journal = read_json(&path)?;
    if !journal.stages.iter().all(StagePlace::is_sound) {
        return Err(Error::damaged(&path, "it names no directory of a restore"));
    }
    let (seconds, nanos) = journal.top_mtime;
    let mut time = Some(Time { seconds, nanos });
    if journal.applying {
        let record = held.place.record(journal.target.as_str())?;
        let kept = journal
            .kept
            .iter()
            .map(|path| OsStr::from_bytes(path).into());
        let guard = Decided(kept.collect());
        // Its journal names the directories of this one too, which have the old files.
        let stages = journal.stages.clone();
        restore_over(
            session,
            held,
            &record,
            journal.mode,
            &guard,
            stages,
            progress,
        )?;
        time = None;
    }
    forget(held, &journal.stages, time)?;
    Ok(true)
}
