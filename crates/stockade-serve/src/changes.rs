//! What commands changed in an overlay, and what of it reaches the workspace.

use std::path::PathBuf;

use stockade::overlay::{Change, ChangeKind, Diff, Resolve, SnapshotName};
use stockade_workspace::Text;

use crate::api;
use crate::error::{Failure, Kind};
use crate::session::{ServedSession, opened, shown};

impl ServedSession {
    /// What commands changed; they may run meanwhile.
    ///
    /// # Errors
    /// If the session has no overlay.
    pub fn diff(&self, with_text: bool) -> Result<api::Changes, Failure> {
        let open = self.read();
        let open = opened(open.as_ref())?;
        api::Changes::of(&open.session.diff(&open.sandbox)?, with_text)
    }

    /// Applies changes to the workspace.
    ///
    /// # Errors
    /// If a command runs, or the changes can't be applied.
    pub fn commit(
        &self,
        paths: &[String],
        conflicts: api::Conflicts,
    ) -> Result<api::Committed, Failure> {
        let top = PathBuf::from(self.workspace()?);
        let paths: Vec<PathBuf> = paths.iter().map(|path| top.join(path)).collect();
        let resolve = match conflicts {
            api::Conflicts::Refuse => Resolve::Refuse,
            api::Conflicts::Ours => Resolve::Ours,
            api::Conflicts::Theirs => Resolve::Theirs,
        };
        let done = self.while_closed(|sandbox| Ok(sandbox.commit_paths(&paths, resolve)?))?;
        let kept_back = done.kept_back.iter().map(|kept| api::KeptBack {
            path: shown(&kept.path),
            reason: kept.reason.clone(),
        });
        Ok(api::Committed {
            written: done.written,
            removed: done.removed,
            adjusted: done.adjusted,
            kept: done.kept.iter().map(|path| shown(path)).collect(),
            kept_back: kept_back.collect(),
        })
    }

    /// Drops what commands changed.
    ///
    /// # Errors
    /// If a command runs, or the session has no overlay.
    pub fn discard(&self) -> Result<(), Failure> {
        self.while_closed(|sandbox| Ok(sandbox.discard()?))
    }

    /// Keeps what the overlay has now under a name; a snapshot of that name is replaced.
    ///
    /// # Errors
    /// If a command runs, the name can't be one, or the overlay can't be copied.
    pub fn snapshot(&self, name: &str) -> Result<(), Failure> {
        checked(name)?;
        self.while_closed(|sandbox| Ok(sandbox.snapshot(name)?))
    }

    /// Returns the overlay to a snapshot.
    ///
    /// # Errors
    /// If a command runs, or there is no such snapshot.
    pub fn restore(&self, name: &str) -> Result<(), Failure> {
        checked(name)?;
        if let Ok(known) = self.snapshots()
            && !known.snapshots.iter().any(|one| one == name)
        {
            let text = format!("the overlay has no snapshot `{name}`");
            return Err(Failure::new(Kind::NoSuchSnapshot, text));
        }
        self.while_closed(|sandbox| Ok(sandbox.restore(name)?))
    }

    /// The names of the overlay's snapshots; commands may run meanwhile.
    ///
    /// # Errors
    /// If the session has no overlay.
    pub fn snapshots(&self) -> Result<api::SnapshotList, Failure> {
        let open = self.read();
        let names = opened(open.as_ref())?.session.snapshots()?;
        Ok(api::SnapshotList {
            snapshots: names.iter().map(ToString::to_string).collect(),
        })
    }

    /// Removes a snapshot of the overlay; commands may run meanwhile.
    ///
    /// # Errors
    /// If there is no such snapshot.
    pub fn remove_snapshot(&self, name: &str) -> Result<(), Failure> {
        let open = self.read();
        Ok(opened(open.as_ref())?.session.remove_snapshot(name)?)
    }
}

/// A bad name must not cost the sandbox that is open.
fn checked(name: &str) -> Result<(), Failure> {
    let parsed = name.parse::<SnapshotName>();
    parsed
        .map(drop)
        .map_err(|error| Failure::new(Kind::InvalidParams, error.to_string()))
}

impl api::Changes {
    /// The changes of an overlay, with their lines if `with_text`.
    ///
    /// # Errors
    /// If a changed file can't be read.
    pub fn of(diff: &Diff, with_text: bool) -> Result<Self, Failure> {
        let mut changes = Vec::new();
        for change in &diff.changes {
            changes.push(api::Change {
                path: shown(&change.path),
                from: change.from.as_deref().map(shown),
                kind: name_of(change.kind),
                text: if with_text {
                    lines_of(diff, change)?
                } else {
                    None
                },
            });
        }
        Ok(Self { changes })
    }
}

fn name_of(kind: ChangeKind) -> String {
    let name = serde_json::to_value(kind).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

/// A change in lines, as a unified diff without the names of the files.
fn lines_of(diff: &Diff, change: &Change) -> Result<Option<String>, Failure> {
    Ok(match diff.text(change).map_err(stockade::Error::from)? {
        Text::Lines { hunks, .. } => Some(hunks),
        _ => None,
    })
}
