//! What moving a directory or planting a link would do to the names that rules protect.
//!
//! [`RuleSet::decide`] judges one name. But a protected name can be freed by renaming a directory
//! above it, filled by moving a prepared directory into its place, and redirected by a symbolic
//! link in the middle of its path. These are judged here, by the same patterns.

use std::path::Path;

use crate::decide::RuleSet;
use crate::rule::{Kind, PathRule, Pattern};

impl RuleSet {
    /// The rule that moving a directory from `from` to `to` would break: something that is
    /// protected below the old name would not be below the new one, or something unprotected
    /// would come to lie where things are protected.
    pub fn broken_by_move(&self, from: &Path, to: &Path) -> Option<&PathRule> {
        self.denials().find(|rule| match &rule.pattern {
            Pattern::Subtree(root) => {
                root.as_path().starts_with(from) || root.as_path().starts_with(to)
            }
            Pattern::Glob(glob) => {
                let (before, after) = (glob.positions_after(from), glob.positions_after(to));
                before != after
            }
        })
    }

    /// The rule that a symbolic link at `path` would redirect: it protects something below this
    /// very name.
    pub fn redirected_by_link(&self, path: &Path) -> Option<&PathRule> {
        self.denials().find(|rule| match &rule.pattern {
            // Comparing components takes much longer, and most paths are too long for it.
            Pattern::Subtree(root) => {
                root.as_path().as_os_str().len() > path.as_os_str().len()
                    && root.as_path().starts_with(path)
            }
            Pattern::Glob(glob) => glob.positions_by_name(path) != 0,
        })
    }

    fn denials(&self) -> impl Iterator<Item = &PathRule> {
        self.iter()
            .filter(|rule| rule.access.allows(Kind::Write) == Some(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AbsPath, Access, Origin, PathGlob};

    fn rules(globs: &[&str], paths: &[&str]) -> RuleSet {
        let globs = globs
            .iter()
            .map(|text| Pattern::Glob(PathGlob::new(text, &AbsPath::root()).unwrap()));
        let paths = paths
            .iter()
            .map(|text| Pattern::Subtree(AbsPath::new(text).unwrap()));
        let denial = |pattern| PathRule::stated(pattern, Access::DenyWrite, Origin::fixed("test"));
        RuleSet::new(globs.chain(paths).map(denial).collect())
    }

    fn moves(rules: &RuleSet, from: &str, to: &str) -> bool {
        rules
            .broken_by_move(Path::new(from), Path::new(to))
            .is_none()
    }

    fn links(rules: &RuleSet, path: &str) -> bool {
        rules.redirected_by_link(Path::new(path)).is_none()
    }

    #[test]
    fn ordinary_directories_move_freely() {
        let set = rules(&["/p/**/.git/hooks", "/p/**/*.env"], &["/home/u/.ssh"]);
        assert!(moves(&set, "/p/a", "/p/b/c"));
        assert!(
            moves(&set, "/p/repo", "/p/renamed"),
            "hooks stay hooks at any depth"
        );
    }

    #[test]
    fn a_protected_directory_can_be_neither_freed_nor_planted() {
        let set = rules(&["/p/**/.git/hooks"], &[]);
        assert!(!moves(&set, "/p/r/.git", "/p/r/git"));
        assert!(!moves(&set, "/p/r/git", "/p/r/.git"));
        assert!(
            !moves(&set, "/q/r", "/p/r"),
            "what was outside the pattern's reach comes into it"
        );
    }

    #[test]
    fn an_ancestor_of_a_protected_path_stays() {
        let set = rules(&[], &["/p/sub/.git/config"]);
        for from in ["/p/sub", "/p/sub/.git", "/p/sub/.git/config"] {
            assert!(!moves(&set, from, "/p/x"), "{from}");
        }
        assert!(!moves(&set, "/p/evil", "/p/sub"));
        assert!(moves(&set, "/p/sub/src", "/p/src"));
    }

    #[test]
    fn a_link_must_not_stand_in_a_protected_path() {
        let set = rules(
            &["/p/**/.claude/settings.json", "/p/**/*.env"],
            &["/p/a/b/c"],
        );
        assert!(!links(&set, "/p/.claude"));
        assert!(!links(&set, "/p/deep/.claude"));
        assert!(!links(&set, "/p/a"));
        assert!(links(&set, "/p/other"));
        assert!(links(&set, "/p/.claude2"));
    }
}
