//! Finds the sequences of the rules in the words of a text.

use std::ops::Range;

use super::lexicon::Class;
use super::rules::{RULES, Rule};
use super::words::Word;

/// A rule that matched.
#[derive(Clone, Debug)]
pub(super) struct Signal {
    pub(super) rule: &'static Rule,
    pub(super) weight: f32,
    /// Number of the first and the last word.
    pub(super) words: Range<u32>,
    /// Bytes of the view.
    pub(super) bytes: Range<usize>,
}

/// Known words looked at after the first of a sequence.
const HORIZON: usize = 32;

/// A set of rules by number.
type RuleSet = [u64; RULES.len().div_ceil(64)];

/// For each bit of a class, the rules that a word of it may begin, may be the second of and may
/// end. A rule of one word needs no other: any word is its second and last.
static BEGINS: [RuleSet; 128] = by_bit(Place::First);
static SECOND: [RuleSet; 128] = by_bit(Place::Second);
static LAST: [RuleSet; 128] = by_bit(Place::Last);

/// A place in the sequence of a rule.
#[derive(Clone, Copy)]
enum Place {
    First,
    Second,
    Last,
}

const fn by_bit(place: Place) -> [RuleSet; 128] {
    let mut table = [[0; RULES.len().div_ceil(64)]; 128];
    let mut bit = 0;
    while bit < 128 {
        let mut rule = 0;
        while rule < RULES.len() {
            let steps = RULES[rule].steps;
            let step = match place {
                Place::First => 0,
                Place::Second => 1,
                Place::Last => steps.len() - 1,
            };
            let alone = steps.len() == 1 && !matches!(place, Place::First);
            if alone || steps[step].any >> bit & 1 == 1 {
                table[bit][rule / 64] |= 1 << (rule % 64);
            }
            rule += 1;
        }
        bit += 1;
    }
    table
}

/// Every class that begins some rule.
const FIRST: Class = {
    let mut classes = 0;
    let mut rule = 0;
    while rule < RULES.len() {
        classes |= RULES[rule].steps[0].any;
        rule += 1;
    }
    classes
};

/// Every sequence in the words, at most one for each rule and first word; and all meanings that
/// the words have.
pub(super) fn signals(words: &[Word]) -> (Vec<Signal>, Class) {
    let mut found = Vec::new();
    let mut all = 0;
    // For each block of words, its meanings: two blocks hold all that a sequence can reach.
    let mut blocks = words.chunks(HORIZON).map(meanings).peekable();
    for (number, block) in words.chunks(HORIZON).enumerate() {
        let here = blocks.next().unwrap_or_default();
        all |= here;
        if here & FIRST == 0 {
            continue;
        }
        let around = here | blocks.peek().copied().unwrap_or_default();
        let mut possible = rules_of(&SECOND, around);
        keep(&mut possible, &rules_of(&LAST, around));
        for (at, word) in (number * HORIZON..).zip(block) {
            let first = word.classes & FIRST;
            if first == 0 {
                continue;
            }
            let mut rules = rules_of(&BEGINS, first);
            keep(&mut rules, &possible);
            if rules != RuleSet::default() {
                begun(words, at, *word, &rules, &mut found);
            }
        }
    }
    (found, all)
}

/// Tries the rules that the word at this place begins.
fn begun(words: &[Word], at: usize, word: Word, rules: &RuleSet, found: &mut Vec<Signal>) {
    let ahead = words
        .get(at + 1..words.len().min(at + 1 + HORIZON))
        .unwrap_or_default();
    let near = ahead
        .iter()
        .take_while(|next| next.index - word.index <= REACH)
        .fold(0, |near, next| near | next.classes);
    for (part, set) in rules.iter().enumerate() {
        let mut left = *set;
        while left != 0 {
            let number = part * 64 + left.trailing_zeros() as usize;
            left &= left - 1;
            let Some(rule) = RULES.get(number) else {
                continue;
            };
            let possible = rule.steps.iter().skip(1).all(|step| step.any & near != 0);
            if possible && let Some(last) = sequence(rule, word, ahead) {
                found.push(Signal {
                    rule,
                    weight: rule.weight,
                    words: word.index..last.index + 1,
                    bytes: word.range().start..last.range().end,
                });
            }
        }
    }
}

/// All meanings of some words.
fn meanings(words: &[Word]) -> Class {
    words.iter().fold(0, |any, word| any | word.classes)
}

/// Leaves in `rules` what is in `others` too.
fn keep(rules: &mut RuleSet, others: &RuleSet) {
    for (rules, others) in rules.iter_mut().zip(others) {
        *rules &= others;
    }
}

/// The rules that some of the meanings have in this table.
fn rules_of(table: &[RuleSet; 128], classes: Class) -> RuleSet {
    let mut rules = RuleSet::default();
    let mut left = classes;
    while left != 0 {
        let bit = left.trailing_zeros() as usize;
        left &= left - 1;
        for (rules, more) in rules.iter_mut().zip(&table[bit]) {
            *rules |= more;
        }
    }
    rules
}

/// No sequence is longer than this many words.
const REACH: u32 = {
    let mut longest = 0;
    let mut rule = 0;
    while rule < RULES.len() {
        let mut length = 0;
        let mut step = 1;
        while step < RULES[rule].steps.len() {
            length += RULES[rule].steps[step].gap + 1;
            step += 1;
        }
        if length > longest {
            longest = length;
        }
        rule += 1;
    }
    longest
};

/// The last word of the shortest match that begins with `first`.
fn sequence(rule: &Rule, first: Word, ahead: &[Word]) -> Option<Word> {
    let (head, steps) = rule.steps.split_first()?;
    if first.classes & head.any == 0 || first.classes & head.all != head.all {
        return None;
    }
    let mut reached: u32 = 0;
    let mut last = first;
    // Bit n of `reached` is set if the sequence so far can end at ahead[n]; the first step ends
    // at `first` itself.
    for (number, step) in steps.iter().enumerate() {
        let mut next: u32 = 0;
        for (at, word) in ahead.iter().enumerate() {
            if word.classes & step.any == 0 || word.classes & step.all != step.all {
                continue;
            }
            let within =
                |from: Word| (1..=step.gap + 1).contains(&word.index.wrapping_sub(from.index));
            let reachable = if number == 0 {
                within(first)
            } else {
                (0..at).any(|before| {
                    reached >> before & 1 == 1
                        && ahead.get(before).is_some_and(|from| within(*from))
                })
            };
            if reachable {
                next |= 1 << at;
                if next.is_power_of_two() {
                    last = *word;
                }
            }
        }
        if next == 0 {
            return None;
        }
        reached = next;
    }
    Some(last)
}
