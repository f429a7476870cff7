//! Linked git worktrees: a commit in one writes to the repository that it belongs to.
//!
//! Where the workspace is a linked worktree (`git worktree add`), its `.git` is a file that names
//! a directory in the main repository, outside the workspace. Without grants there `git commit`
//! fails. Granted are objects, refs, their logs and the worktree's own directory; hooks,
//! configuration, index and head of the main repository are not.
//!
//! Protects other repositories from a `.git` file that code inside wrote: the directory it names
//! must name the workspace in turn, which only someone who can write there could have arranged.
//! Submodules, whose pointers are not mutual, get no grant.

use std::ffi::OsStr;

use stockade_rules::{AbsPath, Access, Origin, PathRule, Pattern, Rank};

use super::protected::Guard;
use super::sources::Loader;

/// The rules for a linked worktree; none if `workspace` is not one.
pub(super) fn rules(workspace: &AbsPath, loader: &dyn Loader) -> Vec<PathRule> {
    find(workspace, loader).unwrap_or_default()
}

fn find(workspace: &AbsPath, loader: &dyn Loader) -> Option<Vec<PathRule>> {
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
    let shipped = |path: AbsPath, access, origin: &Origin| PathRule {
        pattern: Pattern::Subtree(path),
        access,
        rank: Rank::Default,
        origin: origin.clone(),
    };
    let origin = Origin::flag(format!("worktree of {repository}"));
    let redirect = Origin::fixed(Guard::GitRedirect.reason());
    let mut rules = vec![
        shipped(own, Access::Write, &origin),
        shipped(pointer, Access::DenyWrite, &redirect),
        shipped(back, Access::DenyWrite, &redirect),
        shipped(common, Access::DenyWrite, &redirect),
    ];
    for name in ["objects", "refs", "logs"] {
        rules.push(shipped(repository.join(name).ok()?, Access::Write, &origin));
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
