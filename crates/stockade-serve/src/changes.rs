//! What commands changed in an overlay, and what of it reaches the workspace.

use std::path::PathBuf;

use stockade::overlay::{Change, ChangeKind, Diff, Resolve};
use stockade_workspace::Text;

use crate::api;
use crate::error::Failure;
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
