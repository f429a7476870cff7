//! A policy as path rules: the form in which it is decided about and enforced.

use std::path::Path;

use stockade_rules::protected::{Anchor, PROTECTED, ProtectedName};
use stockade_rules::{AbsPath, Access, Decision, Kind, Origin, PathRule, Pattern, RuleSet};

use super::sandbox_policy::SandboxPolicy;
use super::sensitive::{SensitivePath, default_sensitive_paths};
use super::surroundings::Surroundings;
use super::writable_root::WritableRoot;

/// Names at the top of a writable root that stay read-only: what others run or obey later.
///
/// From the table of protected names. A commit works: of `.git` only what makes git run programs
/// is protected. Repositories deeper down, and a `.git` that is a file, are the engine's business:
/// it sees the tree, this does not.
pub const PROTECTED_IN_ROOTS: &[&str] = &from_table();

const COUNT: usize = {
    let (mut count, mut row) = (0, 0);
    while row < PROTECTED.len() {
        if at_the_top(&PROTECTED[row]).is_some() {
            count += 1;
        }
        row += 1;
    }
    count
};

const fn from_table() -> [&'static str; COUNT] {
    let mut names = [""; COUNT];
    let (mut count, mut row) = (0, 0);
    while row < PROTECTED.len() {
        if let Some(name) = at_the_top(&PROTECTED[row]) {
            names[count] = name;
            count += 1;
        }
        row += 1;
    }
    names
}

/// The path of a row in a directory that is a project: the first pattern is that of its own
/// repository.
const fn at_the_top(row: &ProtectedName) -> Option<&'static str> {
    match (row.anchor, row.patterns) {
        (Anchor::Root, _) => Some(row.name),
        (_, [first, ..]) => Some(first),
        (_, []) => None,
    }
}

/// Whether the working directory is a root although nobody named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImplicitCwd {
    Include,
    LeaveOut,
}

impl SandboxPolicy {
    /// The rules that this policy stands for, in these surroundings.
    ///
    /// Everything that judges or enforces the policy's paths uses these rules.
    pub fn path_rules(&self, place: &Surroundings) -> RuleSet {
        self.path_rules_with(place, ImplicitCwd::Include)
    }

    pub(super) fn path_rules_with(&self, place: &Surroundings, cwd: ImplicitCwd) -> RuleSet {
        let everything = || Pattern::Subtree(AbsPath::root());
        let (Self::ReadOnly { readable_paths, .. } | Self::WorkspaceWrite { readable_paths, .. }) =
            self
        else {
            let origin = "policy without a sandbox";
            return RuleSet::new(vec![PathRule::built_in(
                everything(),
                Access::Write,
                origin,
            )]);
        };
        let mut rules = RuleSet::new(vec![PathRule::built_in(
            everything(),
            Access::Read,
            "everything may be read",
        )]);
        for path in readable_paths.iter().map(WritableRoot::new) {
            if let Some(path) = path.resolve(&place.cwd) {
                rules.push(PathRule::stated(
                    Pattern::Subtree(path),
                    Access::Read,
                    Origin::fixed("policy readable_paths"),
                ));
            }
        }
        let (entries, stated) = match self.stated_sensitive_paths() {
            Some(entries) => (entries.to_vec(), true),
            None => (default_sensitive_paths(), false),
        };
        for home in place.other_homes.iter().filter(|_| !stated) {
            for entry in &entries {
                if let (Some(pattern), Some(access)) = (entry.pattern_in_home(home), entry.access())
                {
                    rules.push(PathRule::built_in(pattern, access, "sensitive paths"));
                }
            }
        }
        for entry in &entries {
            let (Some(pattern), Some(access)) =
                (entry.pattern(place.home.as_ref()), entry.access())
            else {
                continue;
            };
            rules.push(if stated {
                PathRule::stated(pattern, access, Origin::fixed("policy sensitive_paths"))
            } else {
                PathRule::built_in(pattern, access, "sensitive paths")
            });
        }
        self.push_roots(&mut rules, place, cwd);
        rules
    }

    fn push_roots(&self, rules: &mut RuleSet, place: &Surroundings, cwd: ImplicitCwd) {
        let Self::WorkspaceWrite {
            writable_roots,
            exclude_cwd,
            exclude_tmpdir_env_var,
            exclude_slash_tmp,
            ..
        } = self
        else {
            return;
        };
        for root in writable_roots {
            let Some(root) = root.resolve(&place.cwd) else {
                continue;
            };
            protect(rules, &root);
            rules.push(PathRule::stated(
                Pattern::Subtree(root),
                Access::Write,
                Origin::fixed("policy writable_roots"),
            ));
        }
        let slash_tmp = (!exclude_slash_tmp).then(|| AbsPath::new("/tmp").ok());
        let tmpdir = (!exclude_tmpdir_env_var).then(|| place.tmpdir.clone());
        if let Some(root) = slash_tmp.flatten() {
            push_unnamed(rules, root, "/tmp");
        }
        if let Some(root) = tmpdir.flatten() {
            push_unnamed(rules, root, "TMPDIR");
        }
        match (cwd, exclude_cwd) {
            (ImplicitCwd::Include, false) => {
                push_unnamed(rules, place.cwd.clone(), "working directory");
            }
            // Its names stay protected, or leaving it out would open them to a root above.
            (ImplicitCwd::Include, true) => protect(rules, &place.cwd),
            (ImplicitCwd::LeaveOut, _) => {}
        }
    }

    /// The writable roots, the working directory and, if not excluded, the temporary directories.
    pub fn writable_roots_in(&self, place: &Surroundings) -> Vec<WritableRoot> {
        match self {
            Self::ReadOnly { .. } => Vec::new(),
            Self::DangerFullAccess | Self::ExternalSandbox { .. } => {
                vec![place.cwd.clone().into()]
            }
            Self::WorkspaceWrite { .. } => {
                let mut roots: Vec<WritableRoot> = Vec::new();
                for rule in &self.path_rules(place) {
                    if let (Access::Write, Pattern::Subtree(root)) = (rule.access, &rule.pattern) {
                        let root = WritableRoot::from(root.clone());
                        if !roots.contains(&root) {
                            roots.push(root);
                        }
                    }
                }
                roots
            }
        }
    }

    /// The sensitive paths and, for each writable root, what is protected in it.
    pub fn sensitive_paths_in(&self, place: &Surroundings) -> Vec<SensitivePath> {
        let mut entries = self.sensitive_paths();
        if let Self::WorkspaceWrite { .. } = self {
            for root in self.writable_roots_in(place) {
                for name in PROTECTED_IN_ROOTS {
                    let entry = SensitivePath::write_only(root.root.join(name));
                    if !entries.contains(&entry) {
                        entries.push(entry);
                    }
                }
            }
        }
        entries
    }

    /// Whether a path may be read. A path that can't exist may not.
    pub fn is_path_readable_in(&self, path: &Path, place: &Surroundings) -> bool {
        resolve(path, place).is_some_and(|path| {
            let rules = self.path_rules(place);
            rules.decide(Kind::Read, path.as_path()).allowed
        })
    }

    /// Whether a path may be written. A path that can't exist may not.
    pub fn is_path_writable_in(&self, path: &Path, place: &Surroundings) -> bool {
        resolve(path, place).is_some_and(|path| {
            let rules = self.path_rules(place);
            rules.decide(Kind::Write, path.as_path()).allowed
        })
    }

    /// Whether a rule forbids writing to a path, as opposed to no rule permitting it.
    pub fn is_path_write_blocked_in(&self, path: &Path, place: &Surroundings) -> bool {
        resolve(path, place).is_none_or(|path| {
            let rules = self.path_rules(place);
            is_closed(rules.decide(Kind::Write, path.as_path()))
        })
    }
}

/// A path as a command in these surroundings would mean it: relative to its working directory.
fn resolve(path: &Path, place: &Surroundings) -> Option<AbsPath> {
    WritableRoot::new(path).resolve(&place.cwd)
}

fn is_closed(decision: Decision<'_>) -> bool {
    !decision.allowed && decision.rule.is_some()
}

/// Opens a root that nobody named. It must not reopen what a rule closes: a command that happens
/// to start in `~/.ssh/sub` does not get it.
fn push_unnamed(rules: &mut RuleSet, root: AbsPath, origin: &'static str) {
    let closed = is_closed(rules.decide(Kind::Write, root.as_path()));
    protect(rules, &root);
    if !closed {
        rules.push(PathRule::built_in(
            Pattern::Subtree(root),
            Access::Write,
            origin,
        ));
    }
}

fn protect(rules: &mut RuleSet, root: &AbsPath) {
    for name in PROTECTED_IN_ROOTS {
        if let Ok(path) = root.join(name) {
            rules.push(PathRule::built_in(
                Pattern::Subtree(path),
                Access::DenyWrite,
                "protected names",
            ));
        }
    }
}
