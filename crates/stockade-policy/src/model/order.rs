//! Which policy is wider: the order by which a policy may be replaced.
//!
//! `new` is at most `old` if nothing that `old` forbids is permitted by `new`. It is judged over
//! every field:
//!
//! | field | narrower or equal when |
//! |---|---|
//! | paths | every path that `new` lets read or write, `old` does, judged by the decision function |
//! | sensitive paths | each entry of `old` lies within an entry of `new` that blocks as much |
//! | flags | the working directory and `TMPDIR` are excluded if `old` excludes them |
//! | network | each entry of `new` lies within an entry of `old` with the same port |
//! | limits | each is at most that of `old`, 0 being the widest |
//! | system calls | each call that `old` refuses is refused, and no switch is on that was off |
//!
//! Full access is the widest. An external sandbox is unknown: it is narrower than full access,
//! equal only to itself, and wider than every policy that Stockade enforces.
//!
//! Paths are compared exactly, with and without the working directory, so the answer does not
//! depend on where later commands start; one thing does: the protected names at the top of a
//! root that is given up, seen from a directory above it.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use stockade_rules::{Kind, PathRule, Pattern, RuleSet};
use thiserror::Error;

use super::approval::{Approval, ApprovalError, ApprovalScope};
use super::paths::ImplicitCwd;
use super::sandbox_policy::SandboxPolicy;
use super::surroundings::Surroundings;
use crate::command::CommandSpec;

/// Something that one policy permits and another does not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Widening {
    /// Nothing is known about the external sandbox.
    #[error("nothing is known about an external sandbox")]
    External,
    /// The working directory or `TMPDIR` becomes writable.
    #[error("`{0}` is no longer set")]
    Flag(&'static str),
    /// All restrictions go.
    #[error("full access has no restrictions")]
    FullAccess,
    /// A limit grows or goes.
    #[error("the limit `{0}` is higher or gone")]
    Limit(&'static str),
    /// A host becomes reachable.
    #[error("{0} becomes reachable")]
    Network(String),
    /// A path becomes readable.
    #[error("`{}` becomes readable", .0.display())]
    Read(PathBuf),
    /// The filter lets something through.
    #[error("the system-call profile no longer restricts `{0}`")]
    Seccomp(String),
    /// A sensitive path is no longer blocked, or less.
    #[error("`{}` is no longer blocked as before", .0.display())]
    Sensitive(PathBuf),
    /// A path becomes writable.
    #[error("`{}` becomes writable", .0.display())]
    Write(PathBuf),
}

/// Why a policy may not be replaced by another.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CanSetError {
    /// The approval does not fit.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// The working directory, which policies depend on, is unknown.
    #[error("the working directory is unknown, so the policies can't be compared")]
    NoWorkingDirectory,
    /// The new policy is wider, and nobody approved.
    #[error("the new policy is wider than the one in force: {0}")]
    Wider(#[from] Widening),
}

impl CanSetError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Wider(_) => Some("ask the user to approve this command under the wider policy"),
            Self::Approval(_) => Some("ask again for the command that is to run"),
            Self::NoWorkingDirectory => None,
        }
    }
}

impl SandboxPolicy {
    /// Whether this policy permits nothing that `other` forbids, where this process stands.
    ///
    /// False if the process has no working directory.
    pub fn is_at_most(&self, other: &Self) -> bool {
        here().is_some_and(|place| self.is_at_most_in(other, &place))
    }

    /// Whether this policy permits nothing that `other` forbids.
    pub fn is_at_most_in(&self, other: &Self, place: &Surroundings) -> bool {
        self.widening_over(other, place).is_none()
    }

    /// The first thing that this policy permits and `other` does not.
    pub fn widening_over(&self, other: &Self, place: &Surroundings) -> Option<Widening> {
        match (self, other) {
            (_, Self::DangerFullAccess)
            | (Self::ReadOnly { .. } | Self::WorkspaceWrite { .. }, Self::ExternalSandbox { .. }) => {
                None
            }
            (Self::DangerFullAccess, _) => Some(Widening::FullAccess),
            (Self::ExternalSandbox { description }, Self::ExternalSandbox { description: old })
                if description == old =>
            {
                None
            }
            (Self::ExternalSandbox { .. }, _) => Some(Widening::External),
            (Self::ReadOnly { .. } | Self::WorkspaceWrite { .. }, _) => self
                .path_widening(other, place)
                .or_else(|| self.other_widening(other)),
        }
    }

    /// Checks that this policy may be replaced by `new`, where this process stands.
    ///
    /// # Errors
    /// If `new` is wider.
    pub fn can_set(&self, new: &Self) -> Result<(), CanSetError> {
        let place = here().ok_or(CanSetError::NoWorkingDirectory)?;
        self.can_set_in(new, &place)
    }

    /// Checks that this policy may be replaced by `new`.
    ///
    /// # Errors
    /// If `new` is wider.
    pub fn can_set_in(&self, new: &Self, place: &Surroundings) -> Result<(), CanSetError> {
        new.widening_over(self, place)
            .map_or(Ok(()), |widening| Err(widening.into()))
    }

    /// Checks that this policy may be replaced by `new` for one command, with an approval.
    ///
    /// The approval is used up, also where it would not have been needed.
    ///
    /// # Errors
    /// If the approval is for another command or another policy.
    pub fn can_set_with(
        &self,
        new: &Self,
        command: &CommandSpec,
        approval: Approval,
    ) -> Result<(), CanSetError> {
        approval.consume(&ApprovalScope::new(command, new))?;
        Ok(())
    }

    fn path_widening(&self, old: &Self, place: &Surroundings) -> Option<Widening> {
        let home = place.home.as_ref();
        let kept = self.sensitive_paths();
        let mut lost = old.sensitive_paths().into_iter();
        if let Some(entry) =
            lost.find(|old| !kept.contains(old) && !kept.iter().any(|new| new.covers(old, home)))
        {
            return Some(Widening::Sensitive(entry.path));
        }
        let flags = [
            ("exclude_cwd", self.uses_cwd(), old.uses_cwd()),
            (
                "exclude_tmpdir_env_var",
                self.uses_tmpdir(),
                old.uses_tmpdir(),
            ),
        ];
        if let Some((name, _, _)) = flags.into_iter().find(|(_, new, old)| *new && !*old) {
            return Some(Widening::Flag(name));
        }
        [ImplicitCwd::LeaveOut, ImplicitCwd::Include]
            .into_iter()
            .find_map(|cwd| {
                rules_widening(
                    &self.path_rules_with(place, cwd),
                    &old.path_rules_with(place, cwd),
                )
            })
    }

    fn other_widening(&self, old: &Self) -> Option<Widening> {
        let network = || {
            self.network()
                .wider_than(old.network())
                .map(Widening::Network)
        };
        let limits = || {
            let limit = self.resource_limits().wider_than(&old.resource_limits());
            limit.map(Widening::Limit)
        };
        let calls = || {
            let call = self.seccomp_profile().wider_than(&old.seccomp_profile());
            call.map(Widening::Seccomp)
        };
        network().or_else(limits).or_else(calls)
    }

    fn uses_cwd(&self) -> bool {
        matches!(
            self,
            Self::WorkspaceWrite {
                exclude_cwd: false,
                ..
            }
        )
    }

    fn uses_tmpdir(&self) -> bool {
        matches!(
            self,
            Self::WorkspaceWrite {
                exclude_tmpdir_env_var: false,
                ..
            }
        )
    }
}

/// The first path that `new` permits and `old` does not, given that `new` has kept each pattern
/// by which `old` forbids.
///
/// Between the paths that rules name, a decision changes only where a pattern matches. So it is
/// enough to ask at each named path: one that `new` permits lies below a named path that it
/// permits, and whatever forbids it in `old` is then either a rule at that path, which was asked,
/// or a pattern that matches further down, which `new` has too.
fn rules_widening(new: &RuleSet, old: &RuleSet) -> Option<Widening> {
    let (new, old) = (ByPath::new(new), ByPath::new(old));
    let root = OsStr::new("/");
    let points: BTreeSet<&OsStr> = new
        .at
        .keys()
        .chain(old.at.keys())
        .copied()
        .chain([root])
        .collect();
    points.into_iter().map(Path::new).find_map(|path| {
        let (new, old) = (new.about(path), old.about(path));
        if new == old {
            return None;
        }
        let (new, old) = (rule_set(&new), rule_set(&old));
        let wider = |kind| new.decide(kind, path).allowed && !old.decide(kind, path).allowed;
        if wider(Kind::Write) {
            Some(Widening::Write(path.to_owned()))
        } else if wider(Kind::Read) {
            Some(Widening::Read(path.to_owned()))
        } else {
            None
        }
    })
}

/// Rules by the path they name, so that those about a path are found without asking each.
struct ByPath<'a> {
    at: HashMap<&'a OsStr, Vec<&'a PathRule>>,
    patterns: Vec<&'a PathRule>,
}

impl<'a> ByPath<'a> {
    fn new(rules: &'a RuleSet) -> Self {
        let mut at: HashMap<_, Vec<_>> = HashMap::new();
        let mut patterns = Vec::new();
        for rule in rules {
            match &rule.pattern {
                Pattern::Subtree(path) => {
                    at.entry(path.as_path().as_os_str()).or_default().push(rule);
                }
                Pattern::Glob(_) => patterns.push(rule),
            }
        }
        Self { at, patterns }
    }

    /// The rules that can speak about a path: those at it or above it, and every pattern.
    fn about(&self, path: &Path) -> Vec<&'a PathRule> {
        path.ancestors()
            .filter_map(|above| self.at.get(above.as_os_str()))
            .flatten()
            .chain(&self.patterns)
            .copied()
            .collect()
    }
}

fn rule_set(rules: &[&PathRule]) -> RuleSet {
    RuleSet::new(rules.iter().copied().cloned().collect())
}

fn here() -> Option<Surroundings> {
    let cwd = std::env::current_dir().ok()?;
    Surroundings::from_env(&cwd).ok()
}

#[cfg(test)]
mod tests;
