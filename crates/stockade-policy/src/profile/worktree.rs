//! The rules for the repository that the workspace belongs to.
//!
//! Where the workspace is a linked worktree, a submodule, or a directory inside a repository, the
//! git directory lies outside the workspace, and without grants there `git commit` fails. Granted
//! is the git directory. Kept in that of another working tree are hooks, configuration, other
//! worktrees, and what belongs to the main one: its index, its head and its rebase in progress.
//!
//! What the repository's configuration already runs is kept wherever it lies.

use stockade_rules::{AbsPath, Access, Origin, PathRule, Pattern, Rank};

use super::protected::Guard;
use super::repository::{Link, OwnRepository};

/// What is kept in the repository of a linked worktree. The patterns for protected names say most
/// of it once more, but only of a directory that is called `.git`.
const KEPT: &[(&str, Guard)] = &[
    ("HEAD", Guard::GitWorktree),
    ("branches", Guard::GitConfig),
    ("commondir", Guard::GitRedirect),
    ("config", Guard::GitConfig),
    ("config.worktree", Guard::GitConfig),
    ("hooks", Guard::GitHooks),
    ("index", Guard::GitWorktree),
    ("modules", Guard::GitWorktree),
    ("rebase-apply", Guard::GitSequence),
    ("rebase-merge", Guard::GitSequence),
    ("remotes", Guard::GitConfig),
    ("sequencer", Guard::GitSequence),
    ("worktrees", Guard::GitWorktree),
];

/// What a path is kept for that the configuration names.
const CODE: &str = "built-in: the repository's git config runs or reads it";

/// The rules for the repository of `workspace`.
pub(super) fn rules(
    repository: &OwnRepository,
    workspace: &AbsPath,
    git_config: bool,
) -> Vec<PathRule> {
    let code = repository.code_paths.iter();
    let mut rules: Vec<PathRule> = code.map(|path| keep(path.clone(), CODE)).collect();
    let common = repository.common_directory();
    let Some(common) = common.filter(|common| !common.is_within(workspace)) else {
        return rules;
    };
    let what = match repository.link {
        Link::Directory => "repository around the workspace",
        Link::Submodule => "submodule in",
        Link::Worktree => "worktree of",
    };
    rules.extend(repository.git_directories.iter().map(|path| PathRule {
        pattern: Pattern::Subtree(path.clone()),
        access: Access::Write,
        rank: Rank::Default,
        origin: Origin::flag(format!("{what} {common}")),
    }));
    let mut keep_name = |directory: &AbsPath, name: &str, guard: Guard| {
        let lifted = git_config && guard == Guard::GitConfig;
        if let Ok(path) = directory.join(name)
            && !lifted
        {
            rules.push(keep(path, guard.reason()));
        }
    };
    // A git directory called `.git` has the patterns for protected names.
    if repository.link != Link::Directory {
        keep_name(&repository.root, ".git", Guard::GitRedirect);
        for (name, guard) in KEPT {
            if repository.link == Link::Worktree || !belongs_to_another(*guard) {
                keep_name(common, name, *guard);
            }
        }
    }
    if let (Link::Worktree, Some(own)) = (repository.link, repository.git_directories.first()) {
        keep_name(own, "gitdir", Guard::GitRedirect);
        keep_name(own, "commondir", Guard::GitRedirect);
    }
    rules
}

/// Whether a linked worktree has a file of its own in place of this one.
fn belongs_to_another(guard: Guard) -> bool {
    matches!(guard, Guard::GitSequence | Guard::GitWorktree)
}

fn keep(path: AbsPath, reason: &'static str) -> PathRule {
    PathRule {
        pattern: Pattern::Subtree(path),
        access: Access::DenyWrite,
        rank: Rank::Default,
        origin: Origin::fixed(reason),
    }
}
