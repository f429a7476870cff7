//! The rules in an order in which those that speak about a path are found without asking all.
//!
//! Planning decides about every path that a rule names, which is quadratic if each decision asks
//! every rule. Here a decision looks up the path and each of its ancestors, and asks only the
//! patterns besides. It decides as [`RuleSet::decide`] does, which the tests hold it to.

use std::path::Path;

use crate::decide::{Best, Decision, RuleSet};
use crate::path::components;
use crate::rule::{Kind, PathRule, Pattern};

/// A [`RuleSet`] made ready for many decisions.
#[derive(Debug)]
pub struct Index<'a> {
    /// By path, shorter ones first.
    subtrees: Vec<(&'a [u8], &'a PathRule)>,
    /// Whether any of those paths is so long, up to the longest: most lengths are no rule's.
    lengths: Vec<bool>,
    /// By what they begin with: most begin with the workspace, and most paths are elsewhere.
    patterns: Vec<Patterns<'a>>,
}

/// Patterns that begin alike.
#[derive(Debug)]
struct Patterns<'a> {
    prefix: &'a [u8],
    /// Those that need some name behind it, in the order of those names.
    named: Vec<(&'a [u8], &'a PathRule)>,
    others: Vec<&'a PathRule>,
}

impl<'a> Index<'a> {
    /// Sorts the rules.
    pub fn new(rules: &'a RuleSet) -> Self {
        let mut subtrees = Vec::with_capacity(rules.iter().len());
        let mut patterns: Vec<Patterns<'_>> = Vec::new();
        for rule in rules {
            match &rule.pattern {
                Pattern::Subtree(path) => subtrees.push((path.as_bytes(), rule)),
                Pattern::Glob(glob) => {
                    let prefix = glob.prefix();
                    let known = patterns.iter().position(|group| group.prefix == prefix);
                    let at = known.unwrap_or(patterns.len());
                    if known.is_none() {
                        patterns.push(Patterns {
                            prefix,
                            named: Vec::new(),
                            others: Vec::new(),
                        });
                    }
                    match glob.needed_name() {
                        Some(name) => patterns[at].named.push((name, rule)),
                        None => patterns[at].others.push(rule),
                    }
                }
            }
        }
        subtrees.sort_by_key(|(path, _)| by_length(path));
        for group in &mut patterns {
            group.named.sort_by_key(|(name, _)| by_length(name));
        }
        let longest = subtrees.last().map_or(0, |(path, _)| path.len());
        let mut lengths = vec![false; longest + 1];
        for (path, _) in &subtrees {
            lengths[path.len()] = true;
        }
        Self {
            subtrees,
            lengths,
            patterns,
        }
    }

    /// Decides about one kind of access to `path`, which must be absolute and normalised.
    pub fn decide(&self, kind: Kind, path: &Path) -> Decision<'a> {
        let [read, write] = self.decide_both(path);
        match kind {
            Kind::Read => read,
            Kind::Write => write,
        }
    }

    /// Decides about reading and about writing.
    pub fn decide_both(&self, path: &Path) -> [Decision<'a>; 2] {
        let mut best = [Best::default(), Best::default()];
        let weigh = |best: &mut [Best<'a>; 2], rule, depth| {
            best[0].weigh(Kind::Read, rule, depth);
            best[1].weigh(Kind::Write, rule, depth);
        };
        let bytes = path.as_os_str().as_encoded_bytes();
        let mut deepest = 0;
        for (depth, ancestor) in ancestors(bytes).enumerate() {
            for rule in self.at(ancestor) {
                weigh(&mut best, rule, depth);
            }
            deepest = depth;
        }
        if best.iter().all(|best| best.is_beyond_doubt(deepest)) {
            return best.map(Into::into);
        }
        for group in &self.patterns {
            let Some(below) = bytes.strip_prefix(group.prefix) else {
                continue;
            };
            let named = components(below).flat_map(|name| equal(&group.named, name));
            for rule in named.chain(group.others.iter().copied()) {
                if let Some(depth) = rule.pattern.depth_at(path) {
                    weigh(&mut best, rule, depth);
                }
            }
        }
        best.map(Into::into)
    }

    /// The rules on this very path.
    fn at(&self, path: &[u8]) -> impl Iterator<Item = &'a PathRule> {
        let is_one = self.lengths.get(path.len()).copied().unwrap_or(false);
        let among: &[_] = if is_one { &self.subtrees } else { &[] };
        equal(among, path)
    }
}

/// An order in which most comparisons are of two numbers.
fn by_length(text: &[u8]) -> (usize, &[u8]) {
    (text.len(), text)
}

/// The rules under a text, among those that are sorted by it.
fn equal<'a>(sorted: &[(&[u8], &'a PathRule)], text: &[u8]) -> impl Iterator<Item = &'a PathRule> {
    let begin = sorted.partition_point(|(other, _)| by_length(other) < by_length(text));
    let from = sorted[begin..].iter();
    from.take_while(move |(other, _)| *other == text)
        .map(|(_, rule)| *rule)
}

/// The root and every directory on the way to a normalised path, and the path itself.
fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().skip(1);
    let ends = slashes.filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let itself = (path.len() > 1).then_some(path.len());
    let below = ends.chain(itself).map(|end| &path[..end]);
    [&path[..path.len().min(1)]].into_iter().chain(below)
}
