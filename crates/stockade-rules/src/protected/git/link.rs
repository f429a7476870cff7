//! Symbolic links in a git directory: git on the host writes to what they lead to.
//!
//! `git commit` appends to `logs/HEAD` and replaces `COMMIT_EDITMSG`, `git fetch` writes
//! `FETCH_HEAD`, and lock files are made beside the target of a link (`lockfile.c`,
//! `resolve_symlink`). With a link in place of one of these, or of a directory on the way, a user
//! changes any file of theirs, with content that was chosen by whoever made the commits.

use std::ffi::OsStr;
use std::path::Path;

use crate::protected::is_same_name;

/// Directories that git and its usual companions write in. A repository that is called `.git` has
/// nothing but these; the directory of a bare one may also hold working trees.
const DIRECTORIES: &[&str] = &[
    "annex",
    "bisect",
    "branches",
    "common",
    "fsmonitor--daemon",
    "hooks",
    "info",
    "lfs",
    "logs",
    "modules",
    "notes_merge_worktree",
    "objects",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "reftable",
    "remotes",
    "rr-cache",
    "sequencer",
    "svn",
    "worktrees",
];

/// The git directory that a symbolic link of this path would lie in, if git writes there.
///
/// `is_repository` tells whether a directory has `objects` and `refs`. What lies in a working tree
/// that `is_working_tree` knows is not git's, even if a bare repository is around it.
pub fn directory_of_link(
    path: &Path,
    is_repository: impl Fn(&Path) -> bool,
    is_working_tree: impl Fn(&Path) -> bool,
) -> Option<&Path> {
    let mut below = path;
    for directory in path.ancestors().skip(1) {
        let is_called_git = |name: &OsStr| is_same_name(".git", name.as_encoded_bytes());
        if directory.file_name().is_some_and(is_called_git) {
            return Some(directory);
        }
        let is_entry = below == path || below.file_name().is_some_and(is_written_by_git);
        if is_entry && is_repository(directory) {
            return Some(directory);
        }
        if is_working_tree(directory) {
            return None;
        }
        below = directory;
    }
    None
}

/// Whether git writes below a directory of this name in a git directory.
pub fn is_written_by_git(name: &OsStr) -> bool {
    DIRECTORIES
        .iter()
        .any(|known| is_same_name(known, name.as_encoded_bytes()))
}

/// Whether a link is one that git makes and removes at once, to learn whether the file system has
/// links. Where it can't, it writes `core.symlinks = false` into a new repository.
///
/// Neither name means anything to git, so nothing is ever written through such a link.
pub fn is_probe(name: &[u8], target: &[u8]) -> bool {
    // `setup.c`: mkstemp(3) of `tXXXXXX`.
    let of_git = || {
        let random = name.strip_prefix(b"t").unwrap_or_default();
        random.len() == 6 && random.iter().all(u8::is_ascii_alphanumeric)
    };
    match target {
        b"testing" => of_git(),
        // The Rust implementation, gix.
        b"dangling" => name.starts_with(b"__file_link"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, repositories: &[&str], trees: &[&str]) -> Option<String> {
        let known = |list: &[&str], at: &Path| list.iter().any(|one| Path::new(one) == at);
        let directory = directory_of_link(
            Path::new(path),
            |at| known(repositories, at),
            |at| known(trees, at),
        );
        directory.map(|at| at.display().to_string())
    }

    #[test]
    fn everything_below_a_directory_called_git_counts() {
        for path in [
            "/p/.git/HEAD",
            "/p/.git/logs/HEAD",
            "/p/.GIT/tool/cache/x",
            "/p/.git/modules/a/logs/refs/heads/x",
        ] {
            let git = &path[..7];
            assert_eq!(found(path, &[], &["/p"]).as_deref(), Some(git), "{path}");
        }
        assert_eq!(found("/p/.git", &[], &[]), None);
        assert_eq!(found("/p/.github/x", &[], &[]), None);
    }

    #[test]
    fn a_bare_repository_may_hold_working_trees() {
        let at = |path| found(path, &["/p/b"], &["/p"]);
        assert_eq!(at("/p/b/FETCH_HEAD").as_deref(), Some("/p/b"));
        assert_eq!(at("/p/b/logs/refs/x").as_deref(), Some("/p/b"));
        assert_eq!(at("/p/b/worktrees/w/HEAD").as_deref(), Some("/p/b"));
        assert_eq!(at("/p/b/main/node_modules/.bin/x"), None);
        assert_eq!(at("/p/b"), None);
    }

    #[test]
    fn a_working_tree_inside_a_repository_is_not_part_of_it() {
        assert_eq!(found("/r/.git/w/x", &[], &["/r/.git/w"]), None);
        assert_eq!(found("/r/b/logs/x", &["/r/b"], &["/r/b/logs"]), None);
        assert_eq!(
            found("/r/b/HEAD", &["/r/b"], &["/r/b"]).as_deref(),
            Some("/r/b")
        );
    }

    #[test]
    fn only_probes_pass() {
        assert!(is_probe(b"tAb3xYz", b"testing"));
        assert!(is_probe(b"__file_link_17", b"dangling"));
        for (name, target) in [
            ("tAb3xYz", "config"),
            ("tAb3xYz", "../testing"),
            ("tAb3xYz1", "testing"),
            ("t../x/y", "testing"),
            ("HEAD", "testing"),
            ("logs", "dangling"),
        ] {
            assert!(!is_probe(name.as_bytes(), target.as_bytes()), "{name}");
        }
    }
}
