//! What git runs, or where it looks for what it runs: judged on the result of a commit.
//!
//! What holds afterwards is what holds after a direct run: a directory that git would take hooks
//! and configuration from has none but those that were there before, and those that were judged.
//! So a redirect to such a directory brings nothing that would not have run otherwise.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use stockade_rules::AbsPath;
use stockade_rules::protected::git::link::{directory_of_link, is_written_by_git};
use stockade_rules::protected::git::{ConfigContext, config, redirect};
use stockade_rules::protected::jujutsu::is_repository;
use stockade_rules::protected::mercurial::is_shared_store;
use stockade_rules::protected::{
    Anchor, Judge, Outcome, PROTECTED, ProtectedName, completes_git_directory, is_hook,
    is_same_name,
};
use stockade_workspace::{FileFacts, FileKind, FileTree, ProposedChange};

use super::{ProtectedNames, reason};

/// Nobody's configuration, redirect or list of commits is longer.
const MAX_BYTES: u64 = 1 << 20;

/// More entries of a directory that becomes a repository are not searched for links.
const MAX_ENTRIES: usize = 1 << 20;

const ACTIVATES: &str = "it turns a directory with hooks, settings or links into a repository";
const LINK: &str = "git writes to what a link in a git directory leads to";
const ROOT_LINK: &str = "a link takes the place of a repository";

pub(super) fn is_called_git(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| is_same_name(".git", name.as_encoded_bytes()))
}

/// Whether git would take hooks and configuration from a directory, now or after the commit.
pub(super) fn is_git_directory(change: &ProposedChange<'_>, directory: &Path) -> bool {
    let is_storage = directory
        .parent()
        .is_some_and(|above| above.ends_with("worktrees"));
    let around = directory.ancestors().nth(2);
    is_called_git(directory)
        || is_module(directory)
        || is_complete(change, directory)
        || is_storage && around.is_some_and(|git| is_called_git(git) || is_complete(change, git))
}

/// Whether a directory has `objects` and `refs`, each now or after the commit.
fn is_complete(change: &ProposedChange<'_>, directory: &Path) -> bool {
    ["objects", "refs"].iter().all(|name| {
        let path = directory.join(name);
        change.after.facts(&path).is_some() || change.before.facts(&path).is_some()
    })
}

/// Whether a directory is where git keeps a submodule's git directory: it may not be complete yet.
/// Branches may have any name.
fn is_module(path: &Path) -> bool {
    let mut parts = path.iter();
    parts.any(|part| is_same_name(".git", part.as_encoded_bytes()))
        && parts.next().is_some_and(|part| part == "modules")
        && parts.all(|part| part != "refs" && part != "logs" && part != "objects")
}

/// A link where a repository was: whoever works there would be elsewhere.
pub(super) fn replaces_repository(
    change: &ProposedChange<'_>,
    new: FileFacts,
) -> Option<&'static str> {
    let is_link = new.kind == FileKind::Symlink;
    let was_repository = || change.before.facts(&change.path.join(".git")).is_some();
    (is_link && was_repository()).then_some(ROOT_LINK)
}

/// A link in a git directory: git writes to what it leads to, and takes hooks and settings from there.
pub(super) fn link_in_git_directory(
    guard: &ProtectedNames,
    change: &ProposedChange<'_>,
    new: FileFacts,
) -> Option<&'static str> {
    let is_in = |paths: &[PathBuf], at: &Path| paths.iter().any(|path| path == at);
    let is_tree = |at: &Path| is_in(&guard.anchors, at) && !is_in(&guard.own_git, at);
    let is_repository = |at: &Path| is_git_directory(change, at);
    let found = || directory_of_link(change.path, is_repository, is_tree);
    (new.kind == FileKind::Symlink && found().is_some()).then_some(LINK)
}

/// Whether a directory has links where git would write, at any depth below `directory`.
fn has_links(tree: &dyn FileTree, directory: &Path, is_repository: bool) -> bool {
    let mut left = MAX_ENTRIES;
    let mut found = vec![(directory.to_owned(), is_repository)];
    while let Some((directory, is_repository)) = found.pop() {
        for name in tree.names(&directory) {
            let path = directory.join(&name);
            left -= 1;
            let Some(facts) = tree.facts(&path) else {
                continue;
            };
            // A directory that can't be read today may be made readable tomorrow.
            let is_closed = facts.is_directory() && facts.mode & 0o500 != 0o500;
            if left == 0 || is_closed || facts.kind == FileKind::Symlink {
                return true;
            }
            if facts.is_directory() && (!is_repository || is_written_by_git(&name)) {
                found.push((path, false));
            }
        }
    }
    false
}

/// Whether git takes a file for a hook because a repository below the workspace names its directory
/// (`core.hooksPath`), or a link leads there. For the workspace's own repository that is a rule.
pub(super) fn is_hook_elsewhere(change: &ProposedChange<'_>, root: &Path, new: FileFacts) -> bool {
    let is_link = new.kind == FileKind::Symlink;
    if new.is_directory() || !is_link && !change.path.file_name().is_some_and(is_hook) {
        return false;
    }
    let above = change.path.ancestors().skip(1);
    let mut repositories = above.take_while(|directory| directory.starts_with(root));
    let trees = [change.before, change.after];
    let is_repository = |directory: &&Path| {
        trees
            .iter()
            .any(|tree| tree.facts(&directory.join(".git")).is_some())
    };
    let Some(top) = repositories.find(is_repository) else {
        return false;
    };
    trees.iter().any(|tree| {
        let hooks = hooks_path(*tree, change, top);
        hooks.is_some_and(|hooks| {
            change.path.starts_with(&hooks) || is_link && hooks.starts_with(change.path)
        })
    })
}

/// The directory that the configuration of a repository names for hooks.
fn hooks_path(tree: &dyn FileTree, change: &ProposedChange<'_>, top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    let directory = if tree.facts(&git)?.is_directory() {
        git
    } else {
        let text = tree.read(&git, MAX_BYTES).ok()?;
        let directory = resolved(change, &git, redirect::git_file(&text)?)?;
        let pointer = directory.join("commondir");
        match tree.read(&pointer, MAX_BYTES) {
            Ok(text) => resolved(change, &pointer, redirect::path_line(&text)?)?,
            Err(_) => directory,
        }
    };
    let settings = config::parse(&tree.read(&directory.join("config"), MAX_BYTES).ok()?)?;
    let mut settings = settings.into_iter().rev();
    let setting = settings.find(|setting| setting.key == b"core.hookspath")?;
    let value = String::from_utf8(setting.value?).ok()?;
    let hooks = AbsPath::new(top.join(value)).ok()?.into_path_buf();
    // The hooks that husky puts into `.husky/_` run those of the same name in `.husky`.
    let holds_husky = hooks.file_name().is_some_and(|name| name == "_");
    let hooks = if holds_husky { hooks.parent()? } else { &hooks };
    Some(hooks.to_owned())
}

/// Whether hooks or configuration of the host that nobody judged become git's.
pub(super) fn activates(
    guard: &ProtectedNames,
    change: &ProposedChange<'_>,
) -> Option<&'static str> {
    if !change.path.file_name().is_some_and(completes_git_directory) {
        return None;
    }
    let directory = change.path.parent()?;
    let was_one = ["objects", "refs"]
        .iter()
        .all(|name| change.before.facts(&directory.join(name)).is_some());
    if was_one || is_called_git(directory) || !is_complete(change, directory) {
        return None;
    }
    let is_clean = git_rows().all(|row| guard.is_clean(change.before, change, directory, row));
    (!is_clean || has_links(change.before, directory, true)).then_some(ACTIVATES)
}

/// Why the content of a protected file must not reach the host.
pub(super) fn content(
    guard: &ProtectedNames,
    change: &ProposedChange<'_>,
    row: &ProtectedName,
) -> Option<String> {
    let unreadable = || Some(format!("{}, and it can't be read", reason(row.guard)));
    let Ok(new) = change.after.read(change.path, row.judge.max_bytes()) else {
        return unreadable();
    };
    let old = match change.old {
        Some(old) if old.kind == FileKind::File => {
            let Ok(old) = change.before.read(change.path, row.judge.max_bytes()) else {
                return unreadable();
            };
            old
        }
        _ => Vec::new(),
    };
    guard.refuse(change, change.path, row, &old, &new)
}

impl ProtectedNames {
    /// Why content must not be put at a protected path.
    fn refuse(
        &self,
        change: &ProposedChange<'_>,
        path: &Path,
        row: &ProtectedName,
        old: &[u8],
        new: &[u8],
    ) -> Option<String> {
        let no = || Some(reason(row.guard).to_owned());
        if old == new {
            return None;
        }
        if row.judge == Judge::Config && self.is_own(path) && !old.is_empty() && new.is_empty() {
            // As good as removing it.
            return no();
        }
        let leads = matches!(row.judge, Judge::Redirect | Judge::CommonDirectory);
        if leads && !old.is_empty() {
            // What redirected git before keeps doing so.
            return no();
        }
        // git sets `core.worktree` where the git directory is not in the working tree.
        let apart = path.parent().is_some_and(|parent| !is_called_git(parent));
        let stays = |value: &[u8]| {
            apart && resolved(change, path, value).is_some_and(|place| self.in_reach(&place))
        };
        let context = ConfigContext::new().with_worktree(&stays);
        match row.judge.content(old, new, &context) {
            Ok(Outcome::LeadsTo(target)) => {
                let place = resolved(change, path, target);
                let is_safe = place.is_some_and(|place| match row.judge {
                    Judge::CommonDirectory => is_worktree_of(path, &place),
                    Judge::JujutsuRepository => is_repository(&place) && self.in_reach(&place),
                    Judge::MercurialShare => is_shared_store(&place) && self.in_reach(&place),
                    _ => self.is_safe_target(change, &place),
                });
                if is_safe { None } else { no() }
            }
            Ok(_) => None,
            Err(refusal) => Some(format!("{}: {refusal}", reason(row.guard))),
        }
    }

    /// Whether git may be sent to a git directory: it is the workspace's own, or it lies in what is
    /// committed and holds nothing that runs code.
    fn is_safe_target(&self, change: &ProposedChange<'_>, directory: &Path) -> bool {
        let file = directory.join("commondir");
        let common = match change.after.read(&file, MAX_BYTES) {
            Ok(text) => match redirect::path_line(&text) {
                Some(target) => resolved(change, &file, target),
                None => Some(directory.to_owned()),
            },
            Err(_) if change.after.facts(&file).is_some() => None,
            Err(_) => Some(directory.to_owned()),
        };
        let Some(common) = common else {
            return false;
        };
        if self.own_git.iter().any(|own| common.starts_with(own)) {
            return true;
        }
        let is_clean = |tree| git_rows().all(|row| self.is_clean(tree, change, &common, row));
        self.in_reach(directory)
            && self.in_reach(&common)
            && is_git_directory(change, &common)
            && is_clean(change.before)
            && is_clean(change.after)
    }

    /// Whether a directory has nothing at a protected name that would not be judged harmless.
    fn is_clean(
        &self,
        tree: &dyn FileTree,
        change: &ProposedChange<'_>,
        directory: &Path,
        row: &ProtectedName,
    ) -> bool {
        let path = directory.join(row.name);
        let Some(facts) = tree.facts(&path) else {
            return true;
        };
        match facts.kind {
            FileKind::File if row.judge != Judge::Never => {
                let content = tree.read(&path, row.judge.max_bytes());
                content
                    .is_ok_and(|content| self.refuse(change, &path, row, &[], &content).is_none())
            }
            FileKind::Directory => tree.names(&path).iter().all(|name| {
                let is_file = |facts: FileFacts| facts.kind == FileKind::File;
                row.excepts(name.as_bytes()) && tree.facts(&path.join(name)).is_some_and(is_file)
            }),
            _ => false,
        }
    }
}

/// What git takes from a git directory.
fn git_rows() -> impl Iterator<Item = &'static ProtectedName> {
    let rows = PROTECTED.iter();
    rows.filter(|row| row.anchor == Anchor::GitDirectory)
}

/// Whether a `commondir` file is that of `REPOSITORY/worktrees/NAME` (gitrepository-layout(5)).
fn is_worktree_of(path: &Path, repository: &Path) -> bool {
    let mut above = path.ancestors().skip(2);
    let is_place = above
        .next()
        .is_some_and(|above| above.ends_with("worktrees"));
    is_place && above.next() == Some(repository)
}

/// Where a path in a file leads; none if a link is on the way, now or after the commit: it could
/// lead elsewhere by then.
fn resolved(change: &ProposedChange<'_>, file: &Path, target: &[u8]) -> Option<PathBuf> {
    let path = file.parent()?.join(OsStr::from_bytes(target));
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            part => {
                whole.push(part);
                let is_link = |facts: FileFacts| facts.kind == FileKind::Symlink;
                let in_trees = [change.after, change.before].map(|tree| tree.facts(&whole));
                if in_trees.into_iter().flatten().any(is_link)
                    || whole.symlink_metadata().is_ok_and(|data| data.is_symlink())
                {
                    return None;
                }
            }
        }
    }
    Some(whole)
}
