//! Linked worktrees: the repository that a writable root belongs to may lie outside of it.
//!
//! `git commit` in a linked worktree writes objects, refs and its own index into the main
//! repository's `.git`. That much is granted; its hooks, configuration and other worktrees are not.
//! The link is believed only if the repository points back, which a project can't forge.

use stockade_policy::profile::Profile;
use stockade_rules::{AbsPath, Access, PathRule, Pattern};

use crate::host::Host;

/// A repository outside of the writable roots that one of them is a worktree of.
pub(super) struct Linked {
    /// The main repository's `.git`.
    pub(super) common: AbsPath,
    /// The worktree's own directory in it.
    own: AbsPath,
}

const GRANT: &str = "built-in: the repository of this worktree";
const GUARD: &str = "built-in: git runs what it says";

pub(super) fn linked(profile: &Profile, host: &Host) -> Vec<Linked> {
    profile
        .writable_roots
        .iter()
        .filter_map(|root| of(root, profile, host))
        .collect()
}

pub(super) fn rules(profile: &Profile, host: &Host) -> Vec<PathRule> {
    let mut rules = Vec::new();
    for Linked { common, own } in linked(profile, host) {
        let mut add = |path: Option<AbsPath>, access, origin| {
            let pattern = path.map(Pattern::Subtree);
            rules.extend(pattern.map(|pattern| PathRule::built_in(pattern, access, origin)));
        };
        add(Some(common.clone()), Access::Write, GRANT);
        for name in [
            "hooks",
            "config",
            "config.worktree",
            "commondir",
            "info/attributes",
            "modules",
            "worktrees",
        ] {
            add(common.join(name).ok(), Access::DenyWrite, GUARD);
        }
        if own != common {
            add(Some(own.clone()), Access::Write, GRANT);
            for name in ["commondir", "gitdir", "config", "config.worktree", "hooks"] {
                add(own.join(name).ok(), Access::DenyWrite, GUARD);
            }
        }
    }
    rules
}

fn of(root: &AbsPath, profile: &Profile, host: &Host) -> Option<Linked> {
    let file = root.join(".git").ok()?;
    let own = pointed_to(&file, "gitdir: ", root, host)?;
    let within = |path: &AbsPath| {
        profile
            .writable_roots
            .iter()
            .any(|root| path.is_within(root))
    };
    // Inside a writable root everything has its rules already.
    if within(&own) {
        return None;
    }
    let back = pointed_to(&own.join("gitdir").ok()?, "", &own, host)?;
    if back != host.landing(&file) {
        return None;
    }
    let common = pointed_to(&own.join("commondir").ok()?, "", &own, host)?;
    let is_repository = own.is_within(&common) && Host::read(&common.join("HEAD").ok()?).is_some();
    (is_repository && !within(&common)).then_some(Linked { common, own })
}

/// The path that a file of one line names.
fn pointed_to(file: &AbsPath, prefix: &str, base: &AbsPath, host: &Host) -> Option<AbsPath> {
    let text = Host::read(file)?;
    let path = text.trim_end_matches(['\n', '\r']).strip_prefix(prefix)?;
    Some(host.landing(&base.join(path).ok()?))
}
