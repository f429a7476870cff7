//! Making a directory what a snapshot has.
//!
//! In two phases. First everything that the directory does not have is written beside it, in a
//! directory of its own at the workspace's top; if that fails, nothing has happened. Then each
//! piece changes places with what is there, in one step (`RENAME_EXCHANGE`): a file is the old one
//! or the new one, never half of either. If one of these steps fails, those before it are taken
//! back.
//!
//! A journal in the store says which phase it is. After a crash the next one who wants to use the
//! workspace either removes what was prepared or finishes what was begun.
//!
//! No path is followed out of the directory: all are opened beneath its top, without links.

mod apply;
mod make;
mod plan;

use std::os::fd::AsFd;

use rustix::fs::Mode;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Trying};
use crate::exclude::STAGE_PREFIX;
use crate::files;
use crate::id::SnapshotId;
use crate::progress::Progress;
use crate::snapshot;
use crate::store::Session;
use crate::survey::Surveyor;
use crate::tree::Time;
use crate::workspace::{Held, SnapshotRecord, read_json, write_json};

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
}

/// What is under way, for whoever comes after a crash.
#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    /// The directory at the top with what was prepared.
    stage: String,
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
    progress: &dyn Progress,
) -> Result<RestoreReport, Error> {
    let dir = &held.state.dir;
    let top = files::open_top(dir)?;
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
    let plan = plan::Plan::new(session, record, &survey, mode, careful)?;
    if plan.is_empty() {
        return Ok(RestoreReport::default());
    }
    let before = survey.root.meta.mtime;
    let prefix = String::from_utf8_lossy(STAGE_PREFIX);
    let mut journal = Journal {
        stage: format!("{prefix}{}", files::random_name()),
        target: record.id.clone(),
        mode,
        top_mtime: (before.seconds, before.nanos),
        applying: false,
    };
    let journal_file = held.place.journal();
    write_json(&journal_file, &journal)?;
    rustix::fs::mkdirat(&top, &*journal.stage, Mode::from(0o700))
        .trying("make a directory in", dir)?;
    let stage = files::open_dir_below(top.as_fd(), journal.stage.as_bytes())
        .trying("open", dir.join(&journal.stage))?;

    progress.begin("writing", Some(plan.bytes()));
    let prepared = make::prepare(session, &plan, stage.as_fd(), record.xattrs, dir, progress);
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            forget(held, &journal.stage, Some(before))?;
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
            forget(held, &journal.stage, Some(before))?;
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
                kept: dir.join(&journal.stage),
            });
        }
    };
    forget(held, &journal.stage, None)?;
    Ok(RestoreReport {
        skipped: prepared.skipped,
        ..report
    })
}

/// Removes what was prepared or replaced, and then the journal. The top gets this time, or keeps
/// the one it has: the directory in it came and went.
fn forget(held: &Held, stage: &str, time: Option<Time>) -> Result<(), Error> {
    let dir = &held.state.dir;
    let top = files::open_top(dir)?;
    let now = files::stat_of(&top).trying("look at", dir)?;
    files::remove_tree(&dir.join(stage))?;
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
    let named_well = journal.stage.as_bytes().starts_with(STAGE_PREFIX);
    if !named_well || !crate::tree::is_component(journal.stage.as_bytes()) {
        return Err(Error::damaged(&path, "it names no directory of a restore"));
    }
    let (seconds, nanos) = journal.top_mtime;
    let mut time = Some(Time { seconds, nanos });
    if journal.applying {
        let record = held.place.record(journal.target.as_str())?;
        // Writes a journal of its own; the old files are still in the first one's directory.
        restore(session, held, &record, journal.mode, progress)?;
        time = None;
    }
    forget(held, &journal.stage, time)?;
    Ok(true)
}
