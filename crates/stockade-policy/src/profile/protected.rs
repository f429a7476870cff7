//! Names that are not writable inside a writable root: files that run code later, outside.
//!
//! Protects the person who works in the same tree: a command in the sandbox may write the
//! project, but not what git, a shell, an editor or an agent will execute on the host after it.
//! What is protected and why is in the table of `stockade_rules`; here its rows become path
//! rules. They hold on every backend, for `.git` directories at any depth and for other names at
//! the root of the project. The mediator knows more: it judges content and sees which directories
//! are git directories. A stated grant of the very path lifts a rule (`--write .vscode`).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;

use stockade_rules::protected::{Anchor, PROTECTED, ProtectedName};
use stockade_rules::{AbsPath, Access, Origin, PathGlob, PathRule, Pattern, Rank};

use super::Profile;

pub use stockade_rules::protected::Guard;

impl Profile {
    /// Keeps the program that enforces policies from being changed by what it confines, where it
    /// lies in a directory that may be written: the next run would be confined by whatever took
    /// its place. `program` is its real path.
    pub fn protect_program(&mut self, program: &AbsPath) {
        let mut roots = self.writable_roots.iter();
        if roots.any(|root| program.is_within(root)) {
            self.rules.push(PathRule::built_in(
                Pattern::Subtree(program.clone()),
                Access::DenyWrite,
                "built-in: the program that confines",
            ));
        }
    }
}

/// A protected name as a path rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Protected {
    /// A pattern below a directory of the project.
    pub name: &'static str,
    /// Why it is protected.
    pub guard: Guard,
    /// Which directories the pattern hangs in: for [`Anchor::Root`] the root of a project and the
    /// home directory, else any directory.
    pub anchor: Anchor,
}

/// Every protected name that a path rule can stand for.
pub const PROTECTED_NAMES: &[Protected] = &from_table();

const COUNT: usize = {
    let (mut count, mut row) = (0, 0);
    while row < PROTECTED.len() {
        count += match PROTECTED[row].anchor {
            Anchor::Root => 1,
            _ => PROTECTED[row].patterns.len(),
        };
        row += 1;
    }
    count
};

const fn from_table() -> [Protected; COUNT] {
    let mut names = [Protected {
        name: "",
        guard: Guard::Policy,
        anchor: Anchor::Root,
    }; COUNT];
    let (mut count, mut row) = (0, 0);
    while row < PROTECTED.len() {
        let ProtectedName {
            name,
            guard,
            anchor,
            patterns,
            ..
        } = PROTECTED[row];
        let patterns = match anchor {
            Anchor::Root => &[name],
            _ => patterns,
        };
        let mut pattern = 0;
        while pattern < patterns.len() {
            names[count] = Protected {
                name: patterns[pattern],
                guard,
                anchor,
            };
            count += 1;
            pattern += 1;
        }
        row += 1;
    }
    names
}

/// At most so many places below which the names are protected one by one.
///
/// The mediator tries every rule on every write, so the number of rules must not grow with the
/// number of grants.
const MAX_BASES: usize = 8;

/// Whether a rule stands for a row of the table: the mediator judges those names by itself, by
/// content.
pub fn is_protection(rule: &PathRule) -> bool {
    let Pattern::Glob(glob) = &rule.pattern else {
        return false;
    };
    let stands_for = |name: &Protected| {
        let base = glob.as_str().strip_suffix(name.name);
        base.is_some_and(|base| base.ends_with('/'))
            && rule.origin == Origin::fixed(name.guard.reason())
    };
    rule.access == Access::DenyWrite
        && rule.rank == Rank::Default
        && PROTECTED_NAMES.iter().any(stands_for)
}

/// The protections for these writable roots; `git_config` leaves git's configuration out.
/// `projects` are the workspace, its repository and the home directory.
pub(super) fn rules(roots: &[AbsPath], projects: &[AbsPath], git_config: bool) -> Vec<PathRule> {
    let names = PROTECTED_NAMES
        .iter()
        .filter(|protected| !(git_config && protected.guard == Guard::GitConfig));
    let bases = protection_bases(roots);
    let tops = project_roots(roots, projects);
    let mut rules = Vec::with_capacity((bases.len() + tops.len()) * PROTECTED_NAMES.len());
    for protected in names {
        let places = match protected.anchor {
            Anchor::Root => &tops,
            _ => &bases,
        };
        for place in places {
            if let Some(pattern) = pattern(place, protected) {
                let reason = protected.guard.reason();
                rules.push(PathRule::built_in(pattern, Access::DenyWrite, reason));
            }
        }
    }
    rules
}

/// Always a pattern, also for a single path: it holds for what does not exist yet, and needs no
/// mount.
fn pattern(place: &AbsPath, protected: &Protected) -> Option<Pattern> {
    let base = expressible(place);
    let glob = if protected.anchor == Anchor::Root && base == *place {
        PathGlob::new(protected.name, &base)
    } else {
        PathGlob::new(&format!("**/{}", protected.name), &base)
    };
    // Can't fail: the base is UTF-8 and short, and a test reads every name.
    glob.ok().map(Pattern::Glob)
}

/// The directories that are roots of projects: those that are known to be, where they are
/// writable, and the writable roots themselves if they are few.
fn project_roots(roots: &[AbsPath], projects: &[AbsPath]) -> Vec<AbsPath> {
    let writable = |path: &&AbsPath| roots.iter().any(|root| path.is_within(root));
    let few = if roots.len() > MAX_BASES { &[] } else { roots };
    let known = projects.iter().filter(writable);
    let mut tops: Vec<AbsPath> = known.chain(few).cloned().collect();
    tops.sort();
    tops.dedup();
    tops
}

/// The directories to protect names below: few, in no other's reach, fit for a pattern.
///
/// Going up to a parent protects more, never less: beside the roots nothing is writable anyway.
pub fn protection_bases(roots: &[AbsPath]) -> Vec<AbsPath> {
    // The directories that names of several parts begin with, such as `.git`.
    let beginnings = PROTECTED_NAMES
        .iter()
        .filter_map(|protected| Some(OsStr::new(protected.name.split_once('/')?.0)))
        .collect();
    let outside = |root| outside(root, &beginnings);
    let mut bases: Vec<AbsPath> = roots.iter().map(outside).collect();
    for base in &mut bases {
        *base = expressible(base);
    }
    keep_outermost(&mut bases);
    while bases.len() > MAX_BASES {
        let deepest = bases.iter().map(AbsPath::depth).max().unwrap_or_default();
        for base in &mut bases {
            if base.depth() == deepest {
                *base = base.parent().unwrap_or_else(AbsPath::root);
            }
        }
        keep_outermost(&mut bases);
    }
    bases
}

/// The nearest directory at or above `root` below which a protected name lies as a whole: for
/// `/ws/.git` that is `/ws`, or `.git/hooks` would not be found below it.
fn outside(root: &AbsPath, beginnings: &BTreeSet<&OsStr>) -> AbsPath {
    let parts = root.as_path().iter();
    let before: PathBuf = parts
        .take_while(|part| !beginnings.contains(part))
        .collect();
    AbsPath::new(before).unwrap_or_else(|_| root.clone())
}

/// The nearest directory at or above `root` that a pattern can be written below.
fn expressible(root: &AbsPath) -> AbsPath {
    /// Leaves room for the names within the number of components that a pattern may have.
    const MAX_DEPTH: usize = 48;
    let mut base = root.clone();
    while base.as_path().to_str().is_none() || base.depth() > MAX_DEPTH {
        let Some(parent) = base.parent() else { break };
        base = parent;
    }
    base
}

/// Sorted, what lies within another comes right after it.
fn keep_outermost(bases: &mut Vec<AbsPath>) {
    bases.sort();
    bases.dedup_by(|later, earlier| later.is_within(earlier));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use stockade_rules::{Kind, Origin, RuleSet};

    use super::*;

    fn abs(text: &str) -> AbsPath {
        AbsPath::new(text).unwrap()
    }

    fn writable(git_config: bool) -> RuleSet {
        let root = abs("/ws");
        let mut set = RuleSet::new(rules(std::slice::from_ref(&root), &[], git_config));
        set.push(PathRule::built_in(
            Pattern::Subtree(root),
            Access::Write,
            "workspace",
        ));
        set
    }

    #[test]
    fn every_name_holds_at_the_top_and_gits_below() {
        let set = writable(false);
        let allowed = |path: &str| set.decide(Kind::Write, Path::new(path)).allowed;
        for protected in PROTECTED_NAMES {
            let name = protected.name.replace("**", "a/b").replace('*', "w");
            assert!(!allowed(&format!("/ws/{name}")), "{name}");
            let is_root = protected.anchor == Anchor::Root;
            assert_eq!(allowed(&format!("/ws/a/b/{name}/x")), is_root, "{name}");
        }
        assert_eq!(set.iter().count(), PROTECTED_NAMES.len() + 1);
        let protections = set.iter().filter(|rule| is_protection(rule)).count();
        assert_eq!(protections, PROTECTED_NAMES.len());
    }

    #[test]
    fn projects_are_protected_where_they_are_writable() {
        let roots: Vec<_> = (0..500).map(|n| abs(&format!("/d/f{n}"))).collect();
        let tops = project_roots(&roots, &[abs("/d/f3/project"), abs("/elsewhere")]);
        assert_eq!(tops, [abs("/d/f3/project")]);
        let tops = project_roots(&roots[..2], &[abs("/d/f0")]);
        assert_eq!(tops, [abs("/d/f0"), abs("/d/f1")]);
    }

    #[test]
    fn ordinary_git_work_is_not_touched() {
        let set = writable(false);
        for path in [
            ".git/index",
            ".git/index.lock",
            ".git/HEAD",
            ".git/refs/heads/main",
            ".git/objects/ab/cdef",
            ".git/logs/HEAD",
            ".git/worktrees/w/gitdir",
            ".git/worktrees/w/commondir",
            ".git/worktrees/w/HEAD",
            ".git/info/attributes",
            ".git/info/exclude",
            ".git/rebase-merge/git-rebase-todo",
            "node_modules/x/.vscode/settings.json",
            ".gitmodules",
            ".gitattributes",
            ".gitignore",
            ".github/workflows/ci.yml",
            ".claude/worktrees/x",
            ".env",
        ] {
            let path = format!("/ws/{path}");
            assert!(set.decide(Kind::Write, Path::new(&path)).allowed, "{path}");
        }
    }

    #[test]
    fn git_config_lifts_the_configuration_and_nothing_else() {
        let set = writable(true);
        let allowed = |path: &str| set.decide(Kind::Write, Path::new(path)).allowed;
        assert!(allowed("/ws/.git/config"));
        assert!(allowed("/ws/sub/.git/modules/m/config"));
        assert!(!allowed("/ws/.git/hooks/pre-commit"));
        assert!(!allowed("/ws/.bashrc"));
    }

    #[test]
    fn many_roots_share_their_parents() {
        let roots: Vec<_> = (0..500).map(|n| abs(&format!("/ws/dir/f{n}"))).collect();
        assert_eq!(protection_bases(&roots), [abs("/ws/dir")]);
        let apart: Vec<_> = (0..9).map(|n| abs(&format!("/r{n}/x"))).collect();
        assert_eq!(protection_bases(&apart), [AbsPath::root()]);
        assert_eq!(
            protection_bases(&[abs("/a/b"), abs("/a"), abs("/ab")]),
            [abs("/a"), abs("/ab")]
        );
        assert!(protection_bases(&[]).is_empty());
    }

    #[test]
    fn a_root_inside_a_protected_name_is_protected_from_outside() {
        assert_eq!(protection_bases(&[abs("/ws/.git/modules/m")]), [abs("/ws")]);
        assert_eq!(
            protection_bases(&[abs("/home/u/.config")]),
            [abs("/home/u")]
        );
        assert_eq!(
            protection_bases(&[abs("/ws/.vscode/x")]),
            [abs("/ws/.vscode/x")]
        );
        let mut set = RuleSet::new(rules(&[abs("/ws/.git")], &[], false));
        set.push(PathRule::stated(
            Pattern::Subtree(abs("/ws/.git")),
            Access::Write,
            Origin::fixed("test"),
        ));
        let allowed = |path: &str| set.decide(Kind::Write, Path::new(path)).allowed;
        assert!(!allowed("/ws/.git/hooks/pre-commit"));
        assert!(!allowed("/ws/.git/config"));
        assert!(allowed("/ws/.git/index"));
    }

    #[cfg(unix)]
    #[test]
    fn a_root_that_is_not_text_or_very_deep_is_protected_from_above() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let odd = AbsPath::new(Path::new(OsStr::from_bytes(b"/a/\xff/p"))).unwrap();
        assert_eq!(protection_bases(&[odd]), [abs("/a")]);
        let deep = abs(&"/d".repeat(60));
        assert_eq!(protection_bases(std::slice::from_ref(&deep))[0].depth(), 48);
        assert_eq!(rules(&[deep], &[], false).len(), PROTECTED_NAMES.len());
    }
}
