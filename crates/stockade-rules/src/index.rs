//! The rules in an order in which those that speak about a path are found without asking all.
//!
//! Planning decides about every path that a rule names, which is quadratic if each decision asks
//! every rule. Here a decision looks up the path and each of its ancestors, and asks only the
//! patterns besides. It decides as [`RuleSet::decide`] does, which the tests hold it to.

use std::hash::Hasher;
use std::path::Path;

use crate::decide::{Best, Decision, RuleSet};
use crate::hash::PathHash;
use crate::path::{components, same};
use crate::rule::{Kind, PathRule, Pattern};

/// A [`RuleSet`] made ready for many decisions.
#[derive(Debug)]
pub struct Index<'a> {
    /// By path.
    subtrees: Named<'a>,
    /// Whether any of those paths is so long, up to the longest: most lengths are no rule's.
    lengths: Vec<bool>,
    /// By what they begin with: most begin with the workspace, and most paths are elsewhere.
    patterns: Vec<Patterns<'a>>,
}

/// Patterns that begin alike.
#[derive(Debug)]
struct Patterns<'a> {
    prefix: &'a [u8],
    /// Those that need some name behind it, by those names.
    named: Named<'a>,
    others: Vec<&'a PathRule>,
}

/// Rules under a text each, found by the texts' hashes: hundreds of paths begin alike, so that to
/// compare two of them takes longer than to hash one.
#[derive(Debug, Default)]
struct Named<'a> {
    rules: Vec<(u64, &'a [u8], &'a PathRule)>,
    /// One more than the place of a rule, where its hash says or at the next free one; twice as
    /// many as there are rules, or more.
    places: Vec<u32>,
}

impl<'a> Index<'a> {
    /// Sorts the rules.
    pub fn new(rules: &'a RuleSet) -> Self {
        let mut subtrees = Named::default();
        subtrees.rules.reserve(rules.iter().len());
        let mut patterns: Vec<Patterns<'_>> = Vec::new();
        for rule in rules {
            match &rule.pattern {
                Pattern::Subtree(path) => subtrees.add(path.as_bytes(), rule),
                Pattern::Glob(glob) => {
                    let prefix = glob.prefix();
                    let known = patterns.iter().position(|group| group.prefix == prefix);
                    let at = known.unwrap_or(patterns.len());
                    if known.is_none() {
                        patterns.push(Patterns {
                            prefix,
                            named: Named::default(),
                            others: Vec::new(),
                        });
                    }
                    match glob.needed_name() {
                        Some(name) => patterns[at].named.add(name, rule),
                        None => patterns[at].others.push(rule),
                    }
                }
            }
        }
        let longest = subtrees.rules.iter().map(|(_, path, _)| path.len()).max();
        let mut lengths = vec![false; longest.unwrap_or(0) + 1];
        for (_, path, _) in &subtrees.rules {
            lengths[path.len()] = true;
        }
        subtrees.arrange();
        for group in &mut patterns {
            group.named.arrange();
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
        for (depth, (hash, ancestor)) in ancestors(bytes).enumerate() {
            if self.lengths.get(ancestor.len()) == Some(&true) {
                for rule in self.subtrees.at(hash, ancestor) {
                    weigh(&mut best, rule, depth);
                }
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
            let named = components(below).flat_map(|name| group.named.at(PathHash::of(name), name));
            for rule in named.chain(group.others.iter().copied()) {
                if let Some(depth) = rule.pattern.depth_at(path) {
                    weigh(&mut best, rule, depth);
                }
            }
        }
        best.map(Into::into)
    }
}

impl<'a> Named<'a> {
    fn add(&mut self, text: &'a [u8], rule: &'a PathRule) {
        self.rules.push((PathHash::of(text), text, rule));
    }

    /// To be called when all are there.
    fn arrange(&mut self) {
        let size = (2 * self.rules.len()).next_power_of_two();
        self.places = vec![FREE; size];
        for (number, (hash, ..)) in (FREE + 1..).zip(&self.rules) {
            let mut place = place(*hash, size);
            while self.places[place] != FREE {
                place = (place + 1) % size;
            }
            self.places[place] = number;
        }
    }

    /// The rules under a text.
    fn at(&self, hash: u64, text: &[u8]) -> impl Iterator<Item = &'a PathRule> {
        let size = self.places.len();
        let places = (place(hash, size)..).map(move |place| self.places[place % size]);
        let taken = places.take_while(|number| *number != FREE);
        let rules = taken.filter_map(|number| self.rules.get(number as usize - 1));
        let alike = rules.filter(move |(other, ..)| *other == hash);
        alike.filter_map(move |(_, other, rule)| same(other, text).then_some(*rule))
    }
}

const FREE: u32 = 0;

/// A number below `size`, which must be a power of two.
#[expect(clippy::cast_possible_truncation, reason = "the lower bits will do")]
fn place(hash: u64, size: usize) -> usize {
    hash as usize & (size - 1)
}

/// The root and every directory on the way to a normalised path, and the path itself, with their
/// hashes.
fn ancestors(path: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut hash = PathHash::default();
    path.iter().enumerate().filter_map(move |(at, byte)| {
        hash.add(*byte);
        let end = at + 1;
        let is_end = at == 0 || path.get(end).is_none_or(|next| *next == b'/');
        is_end.then(|| (hash.finish(), &path[..end]))
    })
}
