//! The table of protected names, applied to one change.

use std::path::Path;

use stockade_rules::protected::{
    Anchor, Candidate, Extent, Guard, Judge, ProtectedName, Relation, candidates,
};
use stockade_workspace::{FileFacts, FileKind, ProposedChange, ProposedKind};

use super::{ProtectedNames, git, reason};

/// Why a change of a protected name, or on the way to one, must not reach the host.
pub(super) fn objection(
    guard: &ProtectedNames,
    change: &ProposedChange<'_>,
    root: &Path,
) -> Option<String> {
    let applying = candidates(change.path)
        .filter(|candidate| guard.applies(candidate, change, root))
        .filter(|candidate| !candidate.is_excepted());
    if change.kind == ProposedKind::Remove {
        let mut applying = applying;
        return applying.find_map(|candidate| guard.keeps(&candidate, change));
    }
    let new = change.new?;
    for candidate in applying {
        if let Some(why) = guard.object(&candidate, change, new) {
            return Some(why);
        }
    }
    if git::is_hook_elsewhere(change, root, new) {
        return Some(reason(Guard::GitHooks).to_owned());
    }
    let found = git::replaces_repository(change, new)
        .or_else(|| git::link_in_git_directory(guard, change, new))
        .or_else(|| git::activates(guard, change));
    found.map(str::to_owned)
}

impl ProtectedNames {
    /// Whether the row of a candidate holds where the path is.
    fn applies(&self, candidate: &Candidate<'_>, change: &ProposedChange<'_>, root: &Path) -> bool {
        let row = candidate.row;
        if row.guard == Guard::GitConfig && self.profile.git_config.value {
            return false;
        }
        let anchor = candidate.anchor(change.path);
        // Whoever grants a directory inside a protected name means it.
        if candidate.relation != Relation::Exact && root.starts_with(anchor.join(row.name)) {
            return false;
        }
        match row.anchor {
            Anchor::GitDirectory => git::is_git_directory(change, anchor),
            Anchor::Root => {
                self.anchors.iter().any(|known| known == anchor)
                    || change.before.facts(&anchor.join(".git")).is_some()
            }
            _ => true,
        }
    }

    /// Removing is not planting, but hooks and settings of the workspace's own repository stay.
    fn keeps(&self, candidate: &Candidate<'_>, change: &ProposedChange<'_>) -> Option<String> {
        const OWN: &str = "it belongs to the repository of the workspace";
        let is_kept = matches!(
            candidate.row.guard,
            Guard::GitHooks | Guard::GitConfig | Guard::GitRedirect
        );
        let is_directory = change.old.is_some_and(|old| old.is_directory());
        let above = matches!(candidate.relation, Relation::Above { .. });
        (is_kept && !above && !is_directory && self.is_own(change.path)).then(|| OWN.to_owned())
    }

    /// Why something new at, above or below a protected name must not reach the host.
    fn object(
        &self,
        candidate: &Candidate<'_>,
        change: &ProposedChange<'_>,
        new: FileFacts,
    ) -> Option<String> {
        let row = candidate.row;
        let no = || Some(reason(row.guard).to_owned());
        if change.kind == ProposedKind::Attributes {
            return if gains_execute(change, new, row) {
                no()
            } else {
                None
            };
        }
        match (candidate.relation, new.kind) {
            // A link in place of a directory on the way.
            (Relation::Above { .. }, FileKind::Symlink) => no(),
            (Relation::Above { .. }, _) => None,
            (Relation::Exact, FileKind::Directory) if row.extent == Extent::File => {
                // A directory of this name has no effect; that it takes the place of a file has.
                let replaces = change.old.is_some_and(|old| !old.is_directory());
                (replaces && self.is_own(change.path)).then(no)?
            }
            // What is in it is judged by itself; told as a whole where nothing in it can pass.
            (_, FileKind::Directory) => {
                let is_whole = row.anchor == Anchor::Root && row.judge == Judge::Never;
                (is_whole && !change.after.names(change.path).is_empty()).then(no)?
            }
            (Relation::Exact, FileKind::File) if row.judge != Judge::Never => {
                if new.links > 1 {
                    return Some(format!("{}, and it has a second name", reason(row.guard)));
                }
                git::content(self, change, row)
            }
            _ => no(),
        }
    }
}

/// Whether a hook becomes a program: that is as good as writing it.
fn gains_execute(change: &ProposedChange<'_>, new: FileFacts, row: &ProtectedName) -> bool {
    let had = change.old.map_or(0, |old| old.mode);
    let is_hook = row.guard == Guard::GitHooks && new.kind == FileKind::File;
    is_hook && new.mode & !had & 0o111 != 0
}
