//! The decision: the longest path wins, what was stated beats what ships on the same path, and
//! a denial wins what is still a tie. The order of rules never matters.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::path::AbsPath;
use crate::rule::{Access, Kind, PathRule, Rank, depth};

/// All path rules of one sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RuleSet {
    rules: Vec<PathRule>,
}

/// What was decided about a path, and by which rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Whether the access is allowed.
    pub allowed: bool,
    /// The rule that decided; none if no rule speaks about the path, which denies.
    pub rule: Option<&'a PathRule>,
}

/// The smallest change that would turn a denial into a permission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "callers print each kind in its own words"
)]
pub enum Grant {
    /// Add a rule for this path.
    Add {
        /// What to grant.
        access: Access,
        /// On which path.
        path: AbsPath,
    },
    /// A stated denial names this very path: no grant can beat it, it has to be taken back.
    Remove(PathRule),
}

impl RuleSet {
    /// A set of rules, in any order.
    pub fn new(rules: Vec<PathRule>) -> Self {
        Self { rules }
    }

    /// Adds a rule.
    pub fn push(&mut self, rule: PathRule) {
        self.rules.push(rule);
    }

    /// The rules, in the order in which they were added; it has no meaning.
    pub fn iter(&self) -> std::slice::Iter<'_, PathRule> {
        self.rules.iter()
    }

    /// Decides about one kind of access to `path`, which must be absolute and normalised.
    pub fn decide(&self, kind: Kind, path: &Path) -> Decision<'_> {
        Decision::among(&self.rules, kind, path)
    }

    /// The smallest change that would allow what was denied; none if it is allowed already.
    pub fn smallest_grant(&self, kind: Kind, path: &AbsPath) -> Option<Grant> {
        let decision = self.decide(kind, path.as_path());
        if decision.allowed {
            return None;
        }
        if let Some(rule) = decision.rule {
            let names_it_itself = rule.pattern.depth_at(path.as_path()) == Some(path.depth());
            if names_it_itself && rule.rank == Rank::Stated {
                return Some(Grant::Remove(rule.clone()));
            }
        }
        let access = match kind {
            Kind::Read => Access::Read,
            Kind::Write => Access::Write,
        };
        Some(Grant::Add {
            access,
            path: path.clone(),
        })
    }
}

/// The rule with the most weight so far.
#[derive(Default)]
pub(crate) struct Best<'a>(Option<((usize, Rank, bool), &'a PathRule)>);

impl<'a> Best<'a> {
    /// Takes a rule into account, with the depth of what it names on the way to the path.
    pub(crate) fn weigh(&mut self, kind: Kind, rule: &'a PathRule, depth: usize) {
        let Some(allows) = rule.access.allows(kind) else {
            return;
        };
        let weight = (depth, rule.rank, !allows);
        if self.0.is_none_or(|(heaviest, _)| weight > heaviest) {
            self.0 = Some((weight, rule));
        }
    }

    /// Whether no rule can outweigh this one about a path of that depth: it is a denial that a
    /// person stated about the path itself.
    pub(crate) fn is_beyond_doubt(&self, depth: usize) -> bool {
        self.0
            .is_some_and(|(weight, _)| weight == (depth, Rank::Stated, true))
    }
}

impl<'a> From<Best<'a>> for Decision<'a> {
    fn from(best: Best<'a>) -> Self {
        Self {
            allowed: best.0.is_some_and(|((_, _, denies), _)| !denies),
            rule: best.0.map(|(_, rule)| rule),
        }
    }
}

impl Extend<PathRule> for RuleSet {
    fn extend<Rules: IntoIterator<Item = PathRule>>(&mut self, rules: Rules) {
        self.rules.extend(rules);
    }
}

impl<'a> IntoIterator for &'a RuleSet {
    type Item = &'a PathRule;
    type IntoIter = std::slice::Iter<'a, PathRule>;

    fn into_iter(self) -> Self::IntoIter {
        self.rules.iter()
    }
}

impl<'a> Decision<'a> {
    /// Decides by these rules, as [`RuleSet::decide`] does by all of its own.
    pub fn among(rules: impl IntoIterator<Item = &'a PathRule>, kind: Kind, path: &Path) -> Self {
        let mut best = Best::default();
        for rule in rules {
            if let Some(depth) = rule.pattern.depth_at(path) {
                best.weigh(kind, rule, depth);
            }
        }
        best.into()
    }

    /// Whether the rule that decided names `path` itself rather than an ancestor.
    pub fn names(&self, path: &Path) -> bool {
        self.rule
            .is_some_and(|rule| rule.pattern.depth_at(path) == Some(depth(path)))
    }
}

/// As a flag that a person can paste.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add {
                access: Access::Write,
                path,
            } => write!(f, "--write {}", path.as_word()),
            Self::Add { path, .. } => write!(f, "--read {}", path.as_word()),
            Self::Remove(rule) => write!(f, "remove `{rule}` ({})", rule.origin),
        }
    }
}

#[cfg(test)]
mod tests;
