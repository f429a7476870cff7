use proptest::prelude::*;

use super::*;
use crate::glob::PathGlob;
use crate::index::Index;
use crate::rule::{Origin, Pattern};

fn abs(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

fn rule(access: Access, path: &str) -> PathRule {
    PathRule::stated(Pattern::Subtree(abs(path)), access, Origin::fixed("test"))
}

fn glob(access: Access, text: &str) -> PathRule {
    let glob = PathGlob::new(text, &AbsPath::root()).unwrap();
    PathRule::stated(Pattern::Glob(glob), access, Origin::fixed("test"))
}

fn allowed(rules: &[PathRule], kind: Kind, path: &str) -> bool {
    RuleSet::new(rules.to_vec())
        .decide(kind, Path::new(path))
        .allowed
}

#[test]
fn nothing_is_allowed_without_a_rule() {
    assert!(!allowed(&[], Kind::Read, "/etc/hosts"));
}

#[test]
fn a_child_reopens_and_is_denied_again_below() {
    let rules = [
        rule(Access::Read, "/"),
        rule(Access::Write, "/p"),
        rule(Access::DenyRead, "/p/a"),
        rule(Access::Write, "/p/a/b"),
        rule(Access::DenyRead, "/p/a/b/c"),
    ];
    assert!(!allowed(&rules, Kind::Read, "/p/a/x"));
    assert!(allowed(&rules, Kind::Write, "/p/a/b/y"));
    assert!(!allowed(&rules, Kind::Read, "/p/a/b/c/z"));
}

#[test]
fn denial_wins_a_tie() {
    let rules = [
        rule(Access::Read, "/h"),
        rule(Access::DenyRead, "/h"),
        rule(Access::Write, "/h/p"),
    ];
    assert!(!allowed(&rules, Kind::Read, "/h/x"));
    assert!(allowed(&rules, Kind::Write, "/h/p/t"));
}

#[test]
fn what_is_stated_beats_what_ships_on_the_same_path_only() {
    let shipped = PathRule::built_in(
        Pattern::Glob(PathGlob::new("/p/**/.git/hooks", &AbsPath::root()).unwrap()),
        Access::DenyWrite,
        "test",
    );
    let base = [rule(Access::Write, "/p"), shipped];
    assert!(!allowed(&base, Kind::Write, "/p/.git/hooks/pre-commit"));
    let mut opened = base.to_vec();
    opened.push(rule(Access::Write, "/p/.git/hooks"));
    assert!(allowed(&opened, Kind::Write, "/p/.git/hooks/pre-commit"));
    assert!(!allowed(
        &opened,
        Kind::Write,
        "/p/sub/.git/hooks/pre-commit"
    ));
}

#[test]
fn a_read_grant_does_not_touch_writing() {
    let rules = [rule(Access::Write, "/p"), rule(Access::Read, "/p/sub")];
    assert!(allowed(&rules, Kind::Write, "/p/sub/f"));
}

#[test]
fn globs_count_by_the_path_they_match() {
    let rules = [
        rule(Access::Write, "/p"),
        glob(Access::DenyRead, "/p/**/*.env"),
        rule(Access::Read, "/p/a/ok.env"),
        rule(Access::Write, "/p/conf.env/open"),
    ];
    assert!(!allowed(&rules, Kind::Read, "/p/a/prod.env"));
    assert!(
        !allowed(&rules, Kind::Read, "/p/a/ok.env"),
        "tie: the denial wins"
    );
    assert!(allowed(&rules, Kind::Write, "/p/conf.env/open/x"));
}

/// The oracle: walk from the path up to the root; the first directory that any rule names
/// decides; there the higher rank, then the denial wins.
fn oracle(rules: &[PathRule], kind: Kind, path: &AbsPath) -> bool {
    let mut at = Some(path.clone());
    while let Some(here) = at {
        for rank in [Rank::Stated, Rank::Default] {
            let opinions: Vec<bool> = rules
                .iter()
                .filter(|rule| rule.rank == rank)
                .filter(|rule| match &rule.pattern {
                    Pattern::Subtree(root) => *root == here,
                    Pattern::Glob(glob) => naive_glob(glob.as_str(), &here.to_string()),
                })
                .filter_map(|rule| rule.access.allows(kind))
                .collect();
            if !opinions.is_empty() {
                return opinions.iter().all(|allows| *allows);
            }
        }
        at = here.parent();
    }
    false
}

/// What a rule was chosen by: two of equal weight are told apart by nothing.
fn weight(decision: Decision<'_>, path: &AbsPath) -> Option<(Option<usize>, Rank)> {
    decision
        .rule
        .map(|rule| (rule.pattern.depth_at(path.as_path()), rule.rank))
}

/// Exponential and obvious.
fn naive_glob(pattern: &str, path: &str) -> bool {
    fn split(text: &str) -> Vec<&str> {
        text.split('/').filter(|part| !part.is_empty()).collect()
    }
    fn names(pattern: &[u8], name: &[u8]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((b'*', rest)) => (0..=name.len()).any(|skip| names(rest, &name[skip..])),
            Some((b'?', rest)) => !name.is_empty() && names(rest, &name[1..]),
            Some((byte, rest)) => name.first() == Some(byte) && names(rest, &name[1..]),
        }
    }
    fn parts(pattern: &[&str], path: &[&str]) -> bool {
        match pattern.split_first() {
            None => path.is_empty(),
            Some((&"**", [])) => !path.is_empty(),
            Some((&"**", rest)) => (0..=path.len()).any(|skip| parts(rest, &path[skip..])),
            Some((name, rest)) => path.split_first().is_some_and(|(first, tail)| {
                names(name.as_bytes(), first.as_bytes()) && parts(rest, tail)
            }),
        }
    }
    parts(&split(pattern), &split(path))
}

fn any_path() -> impl Strategy<Value = AbsPath> {
    prop::collection::vec(
        prop::sample::select(vec!["a", "b", "ab", ".env", "x.env"]),
        0..5,
    )
    .prop_map(|names| abs(&format!("/{}", names.join("/"))))
}

fn any_pattern() -> impl Strategy<Value = Pattern> {
    let glob = prop::collection::vec(
        prop::sample::select(vec!["a", "b", "*", "**", "?", "*.env", "a*"]),
        1..5,
    )
    .prop_map(|names| {
        Pattern::Glob(PathGlob::new(&format!("/{}", names.join("/")), &AbsPath::root()).unwrap())
    });
    prop_oneof![3 => any_path().prop_map(Pattern::Subtree), 1 => glob]
}

fn any_rules() -> impl Strategy<Value = Vec<PathRule>> {
    let access = prop::sample::select(vec![
        Access::Deny,
        Access::DenyRead,
        Access::DenyWrite,
        Access::Read,
        Access::Write,
    ]);
    let rank = prop::sample::select(vec![Rank::Default, Rank::Stated]);
    prop::collection::vec(
        (any_pattern(), access, rank).prop_map(|(pattern, access, rank)| PathRule {
            pattern,
            access,
            rank,
            origin: Origin::fixed("test"),
        }),
        0..12,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn agrees_with_the_oracle(rules in any_rules(), path in any_path()) {
        for kind in [Kind::Read, Kind::Write] {
            let set = RuleSet::new(rules.clone());
            let decision = set.decide(kind, path.as_path());
            prop_assert_eq!(decision.allowed, oracle(&rules, kind, &path));
            let indexed = Index::new(&set).decide(kind, path.as_path());
            prop_assert_eq!(indexed.allowed, decision.allowed);
            prop_assert_eq!(weight(indexed, &path), weight(decision, &path));
        }
    }
}

proptest! {
    #[test]
    fn order_never_matters(rules in any_rules(), path in any_path(), turn in 0_usize..12) {
        let mut turned = rules.clone();
        if !turned.is_empty() {
            let by = turn % turned.len();
            turned.rotate_left(by);
        }
        turned.reverse();
        for kind in [Kind::Read, Kind::Write] {
            prop_assert_eq!(
                RuleSet::new(rules.clone()).decide(kind, path.as_path()).allowed,
                RuleSet::new(turned.clone()).decide(kind, path.as_path()).allowed
            );
        }
    }

    #[test]
    fn what_may_be_written_may_be_read(rules in any_rules(), path in any_path()) {
        let set = RuleSet::new(rules);
        if set.decide(Kind::Write, path.as_path()).allowed {
            prop_assert!(set.decide(Kind::Read, path.as_path()).allowed);
        }
    }

    #[test]
    fn the_smallest_grant_suffices(rules in any_rules(), path in any_path()) {
        for kind in [Kind::Read, Kind::Write] {
            let mut set = RuleSet::new(rules.clone());
            // Each removal takes one stated denial away, so this ends.
            while let Some(grant) = set.smallest_grant(kind, &path) {
                match grant {
                    Grant::Add { access, path } => set.push(PathRule::stated(
                        Pattern::Subtree(path),
                        access,
                        Origin::fixed("grant"),
                    )),
                    Grant::Remove(denial) => {
                        let before = set.rules.len();
                        set.rules.retain(|rule| *rule != denial);
                        prop_assert!(set.rules.len() < before);
                    }
                }
            }
            prop_assert!(set.decide(kind, path.as_path()).allowed);
        }
    }
}
