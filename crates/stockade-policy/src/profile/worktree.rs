//! Linked git worktrees: a commit in one writes to the repository that it belongs to.
//!
//! Where the workspace is a linked worktree (`git worktree add`), its `.git` is a file that names
//! a directory in the main repository, outside the workspace. Without grants there `git commit`
//! fails. Granted is the repository's directory (objects, refs, logs, packed refs) and therein
//! the worktree's own; kept are hooks, configuration, other worktrees, and what belongs to the
//! main one: its index and head.
//!
//! Protects other repositories from a `.git` file that code inside wrote: the directory it names
//! must name the workspace in turn, which only someone who can write there could have arranged.
//! Submodules, whose pointers are not mutual, get no grant.

use std::ffi::OsStr;

use stockade_rules::{AbsPath, Access, Origin, PathRule, Pattern, Rank};

use super::protected::Guard;
use super::sources::Loader;

/// What is kept in the repository. The patterns for protected names say most of it once more, but
/// only of a directory that is called `.git`.
const KEPT: &[(&str, Guard)] = &[
    ("HEAD", Guard::GitWorktree),
    ("commondir", Guard::GitRedirect),
    ("config", Guard::GitConfig),
    ("config.worktree", Guard::GitConfig),
    ("hooks", Guard::GitHooks),
    ("index", Guard::GitWorktree),
    ("info", Guard::GitConfig),
    ("modules", Guard::GitWorktree),
    ("worktrees", Guard::GitWorktree),
];

/// The rules for a linked worktree; none if `workspace` is not one.
pub(super) fn rules(workspace: &AbsPath, git_config: bool, loader: &dyn Loader) -> Vec<PathRule> {
    find(workspace, git_config, loader).unwrap_or_default()
}

fn find(workspace: &AbsPath, git_config: bool, loader: &dyn Loader) -> Option<Vec<PathRule>> {
    let pointer = workspace.join(".git").ok()?;
    let own = read_line(&pointer, loader)?;
    let own = workspace.join(own.strip_prefix("gitdir: ")?).ok()?;
    let (back, common) = (own.join("gitdir").ok()?, own.join("commondir").ok()?);
    if own.join(read_line(&back, loader)?).ok()? != pointer {
        return None;
    }
    // `REPOSITORY/worktrees/NAME`, as git lays it out; see gitrepository-layout(5).
    let worktrees = own.parent()?;
    let repository = own.join(read_line(&common, loader)?).ok()?;
    if worktrees.as_path().file_name() != Some(OsStr::new("worktrees"))
        || worktrees.parent()? != repository
    {
        return None;
    }
    let rule = |path: AbsPath, access, origin| PathRule {
        pattern: Pattern::Subtree(path),
        access,
        rank: Rank::Default,
        origin,
    };
    let grant = |path| {
        let origin = Origin::flag(format!("worktree of {repository}"));
        rule(path, Access::Write, origin)
    };
    let keep = |path, guard: Guard| rule(path, Access::DenyWrite, Origin::fixed(guard.reason()));
    let mut rules = vec![
        grant(repository.clone()),
        grant(own),
        keep(pointer, Guard::GitRedirect),
        keep(back, Guard::GitRedirect),
        keep(common, Guard::GitRedirect),
    ];
    for (name, guard) in KEPT {
        if !(git_config && *guard == Guard::GitConfig) {
            rules.push(keep(repository.join(name).ok()?, *guard));
        }
    }
    Some(rules)
}

/// The only line of one of git's small files.
fn read_line(path: &AbsPath, loader: &dyn Loader) -> Option<String> {
    /// A path and a few words.
    const LONGEST: usize = 8192;
    let bytes = loader
        .read(path)
        .ok()
        .filter(|bytes| bytes.len() <= LONGEST)?;
    let text = String::from_utf8(bytes).ok()?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    (!line.is_empty() && !line.contains(['\n', '\0'])).then(|| line.to_owned())
}
