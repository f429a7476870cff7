//! Names that are not writable inside a writable root: files that run code later, outside.
//!
//! Protects the person who works in the same tree: a command in the sandbox may write the
//! project, but not what git, a shell, an editor or an agent will execute on the host after it.
//! The protections are patterns, at any depth and also for files that do not exist yet; the
//! mediator enforces them. A stated grant of the very path lifts one (`--write .vscode`).
//!
//! Not protected, on purpose:
//! - `.gitmodules`: `git submodule add` writes it, and git asks before it runs anything from it.
//! - `.github/workflows` and other CI: people edit it all day; it runs elsewhere, after review.
//! - `Makefile`, `package.json`, `build.rs`, `.husky`, `.pre-commit-config.yaml`: the project's
//!   own code, which the person runs knowingly.
//! - Bare repositories: any directory can look like one. `safe.bareRepository = explicit` is
//!   git's own answer.
//! - `.git/worktrees/*/{gitdir,commondir}` and `.git` files: `git worktree add` must create
//!   them. Redirecting one that exists already is a rename or rewrite that only the mediator can
//!   tell from a creation; a pattern can't.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;

use stockade_rules::{AbsPath, Access, PathGlob, PathRule, Pattern};

use super::Profile;

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

/// Why a name is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Guard {
    /// Configuration of agents: commands, hooks, servers that they start.
    Agent,
    /// Configuration of editors: tasks and settings that run programs.
    Editor,
    /// Git's configuration, which names programs to run; `git_config = true` lifts these.
    GitConfig,
    /// Programs that git runs.
    GitHooks,
    /// Files that send git to another repository's hooks and configuration.
    GitRedirect,
    /// What belongs to another worktree or a submodule of the repository.
    GitWorktree,
    /// Stockade's own policy for the project.
    Policy,
    /// Files that a shell or a session runs when it starts.
    Startup,
    /// Configuration of tools, which names programs to run.
    Tool,
}

/// A protected name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protected {
    /// The pattern, below any directory of a writable root.
    pub name: &'static str,
    /// Why it is protected.
    pub guard: Guard,
}

impl Guard {
    /// The origin of the rules, as explanations print it.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Agent => "built-in: agents run what it says",
            Self::Editor => "built-in: editors run what it says",
            Self::GitConfig => "built-in: git config names programs to run; see git_config",
            Self::GitHooks => "built-in: git runs hooks",
            Self::GitRedirect => "built-in: it sends git to other hooks and config",
            Self::GitWorktree => "built-in: it belongs to another worktree or a submodule",
            Self::Policy => "built-in: a sandbox does not edit its own policy",
            Self::Startup => "built-in: shells run it when they start",
            Self::Tool => "built-in: a tool's config that names programs to run",
        }
    }
}

const fn all(guard: Guard, name: &'static str) -> Protected {
    Protected { name, guard }
}

/// Every protected name.
pub const PROTECTED_NAMES: &[Protected] = &[
    all(Guard::GitHooks, ".git/hooks"),
    all(Guard::GitHooks, ".git/modules/**/hooks"),
    all(Guard::GitConfig, ".git/config"),
    all(Guard::GitConfig, ".git/config.worktree"),
    all(Guard::GitConfig, ".git/modules/**/config"),
    all(Guard::GitConfig, ".git/worktrees/*/config"),
    all(Guard::GitConfig, ".git/worktrees/*/config.worktree"),
    all(Guard::GitHooks, ".git/worktrees/*/hooks"),
    // Attributes choose among the filters and drivers that the configuration defines.
    all(Guard::GitConfig, ".git/info/attributes"),
    all(Guard::GitConfig, ".gitconfig"),
    all(Guard::GitConfig, ".config/git"),
    all(Guard::GitRedirect, ".git/commondir"),
    all(Guard::Agent, ".agents"),
    all(Guard::Agent, ".claude.json"),
    all(Guard::Agent, ".claude/agents"),
    all(Guard::Agent, ".claude/commands"),
    all(Guard::Agent, ".claude/hooks"),
    all(Guard::Agent, ".claude/settings.json"),
    all(Guard::Agent, ".claude/settings.local.json"),
    all(Guard::Agent, ".claude/skills"),
    all(Guard::Agent, ".codex"),
    all(Guard::Agent, ".cursor"),
    all(Guard::Agent, ".gemini"),
    all(Guard::Agent, ".mcp.json"),
    all(Guard::Agent, ".vtcode"),
    all(Guard::Editor, ".exrc"),
    all(Guard::Editor, ".idea"),
    all(Guard::Editor, ".nvim.lua"),
    all(Guard::Editor, ".nvimrc"),
    all(Guard::Editor, ".vimrc"),
    all(Guard::Editor, ".vscode"),
    all(Guard::Editor, ".zed"),
    all(Guard::Startup, ".bash_login"),
    all(Guard::Startup, ".bash_logout"),
    all(Guard::Startup, ".bash_profile"),
    all(Guard::Startup, ".bashrc"),
    all(Guard::Startup, ".config/autostart"),
    all(Guard::Startup, ".config/fish"),
    all(Guard::Startup, ".config/systemd"),
    all(Guard::Startup, ".envrc"),
    all(Guard::Startup, ".inputrc"),
    all(Guard::Startup, ".profile"),
    all(Guard::Startup, ".zlogin"),
    all(Guard::Startup, ".zlogout"),
    all(Guard::Startup, ".zprofile"),
    all(Guard::Startup, ".zshenv"),
    all(Guard::Startup, ".zshrc"),
    all(Guard::Tool, ".ripgreprc"),
    all(Guard::Policy, ".stockade"),
    all(Guard::Policy, "stockade.toml"),
];

/// At most so many places below which the names are protected one by one.
///
/// The mediator tries every rule on every write, so the number of rules must not grow with the
/// number of grants.
const MAX_BASES: usize = 8;

/// The protections for these writable roots; `git_config` leaves git's configuration out.
pub(super) fn rules(roots: &[AbsPath], git_config: bool) -> Vec<PathRule> {
    let names = PROTECTED_NAMES
        .iter()
        .filter(|protected| !(git_config && protected.guard == Guard::GitConfig));
    let bases = protection_bases(roots);
    let mut rules = Vec::with_capacity(bases.len() * PROTECTED_NAMES.len());
    for protected in names {
        for base in &bases {
            // Can't fail: the base is UTF-8 and short, and a test reads every name.
            if let Ok(glob) = PathGlob::new(&format!("**/{}", protected.name), base) {
                rules.push(PathRule::built_in(
                    Pattern::Glob(glob),
                    Access::DenyWrite,
                    protected.guard.reason(),
                ));
            }
        }
    }
    rules
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
        let mut set = RuleSet::new(rules(std::slice::from_ref(&root), git_config));
        set.push(PathRule::built_in(
            Pattern::Subtree(root),
            Access::Write,
            "workspace",
        ));
        set
    }

    #[test]
    fn every_name_holds_at_the_top_and_below() {
        let set = writable(false);
        for protected in PROTECTED_NAMES {
            let name = protected.name.replace("**", "a/b").replace('*', "w");
            for path in [format!("/ws/{name}"), format!("/ws/a/b/{name}/x")] {
                let decision = set.decide(Kind::Write, Path::new(&path));
                assert!(!decision.allowed, "{path}");
            }
        }
        assert_eq!(set.iter().count(), PROTECTED_NAMES.len() + 1);
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
            ".git/info/exclude",
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
        let mut set = RuleSet::new(rules(&[abs("/ws/.git")], false));
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
        assert_eq!(rules(&[deep], false).len(), PROTECTED_NAMES.len());
    }
}
