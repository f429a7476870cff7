//! What only the file system can tell about a protected name.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use stockade_rules::protected::{
    self, Anchor, Candidate, Extent, Guard, ProtectedName, candidates, is_same_name,
};
use stockade_rules::{Access, Kind, Rank};

use super::Protected;
use super::pin::is_private;
use crate::mediator::Worker;
use crate::mediator::place::{Name, lies_below};

/// Where a path lies with respect to a protected name.
#[derive(Clone, Copy)]
pub(super) enum Relation {
    /// On the way to it; what is still missing.
    Above(&'static str),
    Below,
    Exact,
}

/// The git directory of the workspace.
pub(super) static OWN_REPOSITORY: ProtectedName = ProtectedName::special(
    Guard::GitConfig,
    "the workspace's repository keeps its hooks and configuration",
);

/// The git directory of any repository that was there when the run began.
pub(super) static OLD_REPOSITORY: ProtectedName = ProtectedName::special(
    Guard::GitRedirect,
    "a repository that was there at the start keeps its place",
);

/// The record of the first run that wrote objects.
pub(super) static RECORD: ProtectedName = ProtectedName::special(
    Guard::GitConfig,
    "it keeps since when sandboxed commands write objects",
);

/// Where a git directory keeps those of its submodules and worktrees.
pub(super) static GIT_STORAGE: ProtectedName = ProtectedName::special(
    Guard::GitHooks,
    "git takes hooks, configuration and the state of a rebase from directories there",
);

/// A symbolic link in a git directory.
pub(super) static GIT_LINK: ProtectedName = ProtectedName::special(
    Guard::GitRedirect,
    "git on the host would write to what a symbolic link there leads to",
);

/// The workspace, the home directory, and the directories around them.
pub(super) static PROJECT: ProtectedName = ProtectedName::special(
    Guard::Startup,
    "the home directory and the workspace keep their place",
);

/// The copy of a protected file on its way to its name.
pub(super) static COPY: ProtectedName = ProtectedName::special(
    Guard::GitConfig,
    "it is about to take the place of a protected file",
);

impl Worker<'_, '_> {
    /// Whether names are protected there: on the host, and writable.
    pub(super) fn in_reach(&self, path: &Path) -> bool {
        let Some(protection) = &self.shared.plan.protection else {
            return false;
        };
        let below = |root: &stockade_rules::AbsPath| lies_below(path, root.as_path());
        protection.roots.iter().any(below)
    }

    /// The protected name that a path is or lies below.
    pub(super) fn protected(&self, path: &Path) -> Option<Protected> {
        if !self.in_reach(path) {
            return None;
        }
        let special = |row| Protected {
            row,
            relation: Relation::Exact,
        };
        if is_copy(path) {
            return Some(special(&COPY));
        }
        candidates(path)
            .filter(|candidate| is_at_or_below(candidate) && !candidate.is_excepted())
            .find_map(|candidate| self.applying(&candidate, path))
            .or_else(|| self.linked(path))
            .or_else(|| self.hook_elsewhere(path).map(special))
    }

    /// The protected name that is a link to a path, or to a directory around it.
    fn linked(&self, path: &Path) -> Option<Protected> {
        let target = self.shared.memory.link_targets.around(path)?;
        let lifted = self.is_row_lifted(target.row) || self.is_lifted(&target.path, path);
        let relation = if path == target.path {
            Relation::Exact
        } else {
            Relation::Below
        };
        (!lifted).then_some(Protected {
            row: target.row,
            relation,
        })
    }

    /// Whether a path could be protected, without a look at the file system.
    pub(super) fn may_be_protected(&self, path: &Path) -> bool {
        may_be_protected(path) || self.shared.memory.link_targets.around(path).is_some()
    }

    /// As [`Worker::protected`], for a directory: one that has the name of a protected file has no
    /// effect, unless it is called `.git`.
    pub(super) fn protected_directory(&self, path: &Path) -> Option<Protected> {
        let found = self.protected(path)?;
        let is_name = matches!(found.relation, Relation::Exact);
        let matters = found.row.extent == Extent::Subtree
            || found.row.guard == Guard::GitRedirect && is_called_git(path);
        (!is_name || matters).then_some(found)
    }

    /// The protected names that a path is on the way to.
    pub(super) fn protected_below(&self, path: &Path) -> impl Iterator<Item = Protected> {
        let reach = self.in_reach(path);
        candidates(path)
            .filter(move |candidate| {
                reach && matches!(candidate.relation, protected::Relation::Above { .. })
            })
            .filter_map(move |candidate| self.applying(&candidate, path))
    }

    fn applying(&self, candidate: &Candidate<'_>, path: &Path) -> Option<Protected> {
        let anchor = candidate.anchor(path);
        let row = candidate.row;
        let applies = match row.anchor {
            Anchor::GitDirectory => {
                is_called_git(anchor)
                    || is_module(anchor)
                    || is_worktree_state(anchor)
                    || is_git_directory(anchor)
            }
            Anchor::Root => self.is_root(anchor),
            // A kind of anchor that is not known here holds anywhere.
            _ => true,
        };
        let relation = match candidate.relation {
            protected::Relation::Above { rest } => Relation::Above(rest),
            protected::Relation::Below { .. } => Relation::Below,
            _ => Relation::Exact,
        };
        if !applies || self.is_row_lifted(row) || self.is_lifted(&anchor.join(row.name), path) {
            return None;
        }
        Some(Protected { row, relation })
    }

    fn is_row_lifted(&self, row: &ProtectedName) -> bool {
        let protection = self.shared.plan.protection.as_ref();
        let lifted = protection.is_some_and(|protection| protection.git_config_allowed);
        lifted && row.guard == Guard::GitConfig
    }

    /// Whether a person granted the protected name, or something below it that holds the path.
    pub(super) fn is_lifted(&self, name: &Path, path: &Path) -> bool {
        let decision = self.shared.rules.decide(Kind::Write, path);
        let depth = name.components().count() - 1;
        decision.rule.is_some_and(|rule| {
            rule.rank == Rank::Stated
                && rule.access == Access::Write
                && rule
                    .pattern
                    .depth_at(path)
                    .is_some_and(|stated| stated >= depth)
        })
    }

    /// The workspace, the home directory, or the root of a repository that was there before.
    fn is_root(&self, directory: &Path) -> bool {
        self.is_anchor(directory)
            || self.is_old_repository(directory)
            || self.shared.memory.was_root(directory)
    }

    /// The workspace, the home directory, or the root of the workspace's repository.
    pub(super) fn is_anchor(&self, directory: &Path) -> bool {
        let protection = self.shared.plan.protection.as_ref();
        let anchors = protection.map_or(&[][..], |protection| &protection.anchors);
        anchors.iter().any(|anchor| anchor.as_path() == directory)
    }

    fn is_old_repository(&self, directory: &Path) -> bool {
        let git = directory.join(".git");
        is_there(CWD, &git) && (self.was_there(directory) || self.was_there(&git))
    }

    /// Whether something is older than this run. What can't be told counts as older.
    pub(super) fn was_there(&self, path: &Path) -> bool {
        self.is_old(CWD, path)
    }

    /// As [`Worker::was_there`], for a name in a directory that is held open.
    pub(super) fn is_old(&self, directory: impl AsFd, name: impl rustix::path::Arg) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC;
        let Ok(stat) = rustix::fs::statx(directory, name, flags, StatxFlags::BTIME) else {
            return true;
        };
        let born = (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec);
        !StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME)
            || born < self.shared.started
    }

    /// Whether a path lies in the git directory of the workspace, or is the file that leads there.
    pub(super) fn is_own(&self, path: &Path) -> bool {
        let Some(protection) = &self.shared.plan.protection else {
            return false;
        };
        let mut directories = protection.own_git.iter();
        directories.any(|own| path.starts_with(own.as_path())) || self.is_own_redirect(path)
    }

    pub(super) fn is_own_git_directory(&self, path: &Path) -> bool {
        let protection = self.shared.plan.protection.as_ref();
        let directories = protection.map_or(&[][..], |protection| &protection.own_git);
        directories.iter().any(|own| own.as_path() == path)
    }

    /// Whether a path is the workspace's git directory, or a directory around it.
    pub(super) fn is_above_own(&self, path: &Path) -> bool {
        let Some(protection) = &self.shared.plan.protection else {
            return false;
        };
        let mut directories = protection.own_git.iter();
        directories.any(|own| lies_below(own.as_path(), path) && is_there(CWD, own.as_path()))
    }

    /// Whether a path is the workspace or the home directory, or a directory around one of them.
    pub(super) fn is_above_anchor(&self, path: &Path) -> bool {
        let protection = self.shared.plan.protection.as_ref();
        let anchors = protection.map_or(&[][..], |protection| &protection.anchors);
        anchors
            .iter()
            .any(|anchor| lies_below(anchor.as_path(), path))
    }

    fn is_own_redirect(&self, path: &Path) -> bool {
        let protection = self.shared.plan.protection.as_ref();
        let anchors = protection.map_or(&[][..], |protection| &protection.anchors);
        is_called_git(path)
            && anchors
                .iter()
                .any(|anchor| path.parent() == Some(anchor.as_path()))
    }
}

/// Whether a path could be protected, from its text alone.
fn may_be_protected(path: &Path) -> bool {
    let hit = |candidate: Candidate<'_>| is_at_or_below(&candidate) && !candidate.is_excepted();
    candidates(path).any(hit) || is_copy(path)
}

/// Whether a path could be protected or on the way to what is, from its text alone.
pub(super) fn is_candidate(path: &Path) -> bool {
    candidates(path).next().is_some() || is_copy(path)
}

/// Whether git would take hooks and configuration from a directory.
pub(super) fn is_git_directory(directory: &Path) -> bool {
    ["objects", "refs"]
        .iter()
        .all(|name| is_there(CWD, directory.join(name)))
}

/// As [`is_git_directory`], of a directory that is held open.
pub(super) fn is_git_directory_at(directory: impl AsFd) -> bool {
    let directory = directory.as_fd();
    ["objects", "refs"]
        .iter()
        .all(|name| is_there(directory, *name))
}

/// Whether a directory has an entry of this name. So it has if nobody may look: whoever took the
/// right to search a directory away can give it back.
pub(super) fn is_there(directory: impl AsFd, name: impl rustix::path::Arg) -> bool {
    let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    !matches!(stat, Err(Errno::NOENT | Errno::NOTDIR))
}

/// Whether making a name makes its directory a git directory.
pub(super) fn would_complete(name: &Name) -> bool {
    let other = if is_same_name("objects", name.last.as_bytes()) {
        "refs"
    } else {
        "objects"
    };
    is_there(&name.directory, other)
}

/// Whether a directory holds nothing but what the row leaves out (sample hooks).
pub(super) fn has_only_excepted(name: &Name, row: &ProtectedName) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let listed = rustix::fs::openat(&name.directory, &name.last, flags, Mode::empty());
    let Ok(entries) = listed.and_then(Dir::read_from) else {
        return false;
    };
    entries.into_iter().all(|entry| {
        entry.is_ok_and(|entry| {
            let last = entry.file_name().to_bytes();
            let is_file = || entry.file_type() == FileType::RegularFile;
            matches!(last, b"." | b"..") || is_file() && row.excepts(last)
        })
    })
}

/// Whether a directory can hold the git directories of others: they move with it.
pub(super) fn holds_repositories(path: &Path) -> bool {
    let names = ["hooks", "modules", "worktrees"];
    path.file_name()
        .is_some_and(|name| names.iter().any(|known| is_called(name, known)))
}

/// Whether a path lies where git could take the state of a rebase from.
pub(super) fn is_in_git(path: &Path) -> bool {
    let names = [".git", "modules", "worktrees"];
    let is_known = |part: &OsStr| names.iter().any(|name| is_called(part, name));
    path.iter().any(is_known) || path.parent().is_some_and(is_git_directory)
}

/// Whether a path is, or lies below, the `modules` or `worktrees` of a git directory.
pub(super) fn is_git_storage(path: &Path) -> bool {
    let is_storage = |at: &Path| {
        let last = at.file_name();
        last.is_some_and(|last| is_called(last, "modules") || is_called(last, "worktrees"))
    };
    let mut around = path.ancestors().filter(|at| is_storage(at));
    around.any(|at| {
        let git = at.parent();
        git.is_some_and(|git| is_called_git(git) || is_git_directory(git))
    })
}

fn is_called(name: &OsStr, known: &str) -> bool {
    is_same_name(known, name.as_encoded_bytes())
}

pub(super) fn is_called_git(path: &Path) -> bool {
    path.file_name().is_some_and(|name| is_called(name, ".git"))
}

/// Whether a directory is where git keeps a submodule's git directory: it may not be complete yet.
/// Branches may have any name.
fn is_module(path: &Path) -> bool {
    let mut parts = path.iter();
    parts.any(|part| is_called(part, ".git"))
        && parts.next().is_some_and(|part| is_called(part, "modules"))
        && parts.all(|part| part != "refs" && part != "logs" && part != "objects")
}

/// Whether a directory is where a git directory keeps the index and state of a worktree.
fn is_worktree_state(path: &Path) -> bool {
    let is_storage = |above: &&Path| {
        above
            .file_name()
            .is_some_and(|name| is_called(name, "worktrees"))
    };
    let storage = path.parent().filter(is_storage);
    storage
        .and_then(Path::parent)
        .is_some_and(|git| is_called_git(git) || is_git_directory(git))
}

fn is_copy(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| is_private(name.as_encoded_bytes()))
}

fn is_at_or_below(candidate: &Candidate<'_>) -> bool {
    !matches!(candidate.relation, protected::Relation::Above { .. })
}
