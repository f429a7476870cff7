//! The rules that ship: what is readable to begin with, and where the workspace is.

use std::path::Path;

use stockade_rules::{AbsPath, Access, Kind, Origin, PathRule, Pattern, Rank, RuleSet};

use super::choice::{Base, BasePolicy};
use super::sourced::Sourced;

/// What the minimal base makes readable: programs, libraries and their configuration.
///
/// A directory that does not exist here costs nothing. `/proc`, `/sys`, `/dev` and `/tmp` are
/// made by the engine; homes, `/var`, `/run`, `/srv`, `/mnt` and `/media` are what the minimal
/// base is meant to keep out.
pub const SYSTEM_DIRECTORIES: &[&str] = &[
    "/bin",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/sbin",
    "/usr",
    // Where NixOS keeps its programs, and the link to the current set of them.
    "/nix/store",
    "/run/current-system",
    // macOS.
    "/Library/Developer",
    "/System",
    "/private/etc",
];

/// Adds what the base makes readable.
///
/// A system directory that `rules` already deny with the host as base stays denied: a smaller
/// base never opens anything.
pub(super) fn add_base(rules: &mut RuleSet, base: &Sourced<Base>) {
    let host = shipped(AbsPath::root(), Access::Read, Origin::fixed("base host"));
    match base.value {
        Base::Host => rules.push(host),
        Base::Minimal => {
            let mut whole = rules.clone();
            whole.push(host);
            for directory in system_directories() {
                if whole.decide(Kind::Read, directory.as_path()).allowed {
                    rules.push(shipped(
                        directory,
                        Access::Read,
                        Origin::fixed("base minimal"),
                    ));
                }
            }
        }
    }
}

/// What the base policy makes of a workspace.
pub(super) fn workspace_rule(policy: BasePolicy, workspace: Sourced<AbsPath>) -> PathRule {
    let access = match policy {
        BasePolicy::ReadOnly => Access::Read,
        BasePolicy::WorkspaceWrite | BasePolicy::DangerFullAccess | BasePolicy::External => {
            Access::Write
        }
    };
    shipped(workspace.value, access, workspace.origin)
}

/// Why the working directory, though nobody named it, should not be writable as a whole.
pub(super) fn unfit_workspace(cwd: &AbsPath, home: Option<&AbsPath>) -> Option<&'static str> {
    if *cwd == AbsPath::root() {
        Some("it is the root of the file system")
    } else if home.is_some_and(|home| home != cwd && home.is_within(cwd)) {
        Some("home directories lie below it")
    } else if system_directories().any(|system| system == *cwd) {
        Some("it belongs to the system")
    } else {
        None
    }
}

fn system_directories() -> impl Iterator<Item = AbsPath> {
    SYSTEM_DIRECTORIES
        .iter()
        .filter_map(|path| AbsPath::new(Path::new(path)).ok())
}

fn shipped(path: AbsPath, access: Access, origin: Origin) -> PathRule {
    PathRule {
        pattern: Pattern::Subtree(path),
        access,
        rank: Rank::Default,
        origin,
    }
}
