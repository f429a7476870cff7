mod evaluator;

use std::path::Path;

use proptest::prelude::*;
use stockade_policy::profile::Profile;
use stockade_policy::{SandboxPolicy, Surroundings};
use stockade_rules::{AbsPath, Access, Kind, Origin, PathGlob, PathRule, Pattern, Rank, RuleSet};

use self::evaluator::Evaluator;
use super::statement::quoted;
use super::{SeatbeltError, SeatbeltNetwork, SeatbeltPolicy, generate_seatbelt_profile};

fn path(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

fn rule(access: Access, pattern: &str) -> PathRule {
    let pattern = if PathGlob::is_pattern(pattern) {
        Pattern::Glob(PathGlob::new(pattern, &AbsPath::root()).unwrap())
    } else {
        Pattern::Subtree(path(pattern))
    };
    PathRule::stated(pattern, access, Origin::flag("test"))
}

fn evaluator(rules: Vec<PathRule>) -> Evaluator {
    let policy = SeatbeltPolicy::new(RuleSet::new(rules));
    Evaluator::new(&generate_seatbelt_profile(&policy).unwrap())
}

#[test]
fn the_workspace_profile_reads_as_expected() {
    let around = Surroundings::from_env(Path::new("/Users/me/proj")).unwrap();
    let policy = SandboxPolicy::workspace_write(vec![]);
    let profile = Profile::from_policy(&policy, &around).unwrap();
    let policy = SeatbeltPolicy::from_profile(&profile, None).unwrap();
    let text = generate_seatbelt_profile(&policy).unwrap();
    let it = Evaluator::new(&text);
    assert!(it.allows("file-write-data", "/Users/me/proj/src/main.rs"));
    assert!(!it.allows("file-write-data", "/Users/me/proj/.git/hooks/pre-commit"));
    assert!(!it.allows("file-write-data", "/Users/me/proj/deep/er/.git/hooks/x"));
    assert!(!it.allows("file-write-data", "/Users/me/other"));
    assert!(it.allows("file-write-data", "/dev/null"));
    assert!(it.allows("file-ioctl", "/dev/ttys003"));
    assert!(!it.allows_network("203.0.113.9:443"));
    assert!(!it.allows_network("localhost:80"));
    assert!(text.starts_with("(version 1)\n(deny default)\n"));
    assert!(!text.contains("(allow mach-lookup)"), "services are listed");
}

#[test]
fn the_network_is_the_proxys_port_or_nothing() {
    let mut policy = SeatbeltPolicy::default_for(&path("/w"));
    let with =
        |policy: &SeatbeltPolicy| Evaluator::new(&generate_seatbelt_profile(policy).unwrap());
    assert!(!with(&policy).allows_network("localhost:3128"));
    policy.network = SeatbeltNetwork::Proxy(3128);
    assert!(with(&policy).allows_network("localhost:3128"));
    assert!(!with(&policy).allows_network("localhost:3129"));
    assert!(!with(&policy).allows_network("198.51.100.1:3128"));
    policy.network = SeatbeltNetwork::Open;
    assert!(with(&policy).allows_network("198.51.100.1:3128"));
}

#[test]
fn a_directory_s_name_writes_no_profile() {
    let evil = "/w/a\\\"))(allow file-write* (subpath \"/\"))(deny x (literal \"b";
    let it = evaluator(vec![rule(Access::Write, "/w"), {
        let pattern = Pattern::Subtree(path(evil));
        PathRule::stated(pattern, Access::Deny, Origin::flag("test"))
    }]);
    assert!(!it.allows("file-write-data", "/etc/passwd"));
    assert!(!it.allows("file-write-data", &format!("{evil}/x")));
    assert!(it.allows("file-write-data", "/w/b"));
}

#[test]
fn links_of_the_system_are_followed() {
    let it = evaluator(vec![
        rule(Access::Write, "/tmp/x"),
        rule(Access::Deny, "/var/db"),
    ]);
    assert!(it.allows("file-write-data", "/private/tmp/x/y"));
    assert!(!it.allows("file-write-data", "/tmp/x/y"));
    assert!(!it.allows("file-read-data", "/private/var/db/y"));
}

/// A project below `/tmp` keeps its protected names: the grant and the patterns must speak of the
/// same path.
#[test]
fn links_of_the_system_are_followed_in_patterns_too() {
    let it = evaluator(vec![
        rule(Access::Write, "/tmp/p"),
        rule(Access::DenyWrite, "/tmp/p/**/.git/hooks"),
        rule(Access::Deny, "/var/*/secret"),
    ]);
    assert!(it.allows("file-write-data", "/private/tmp/p/src/x"));
    for name in [".git/hooks/pre-commit", "a/b/.git/hooks"] {
        let name = format!("/private/tmp/p/{name}");
        assert!(!it.allows("file-write-data", &name), "{name}");
    }
    assert!(!it.allows("file-read-data", "/private/var/db/secret"));
}

#[test]
fn what_is_above_a_denied_path_can_t_be_renamed() {
    let it = evaluator(vec![
        rule(Access::Write, "/w"),
        rule(Access::Deny, "/w/a/b/secret"),
    ]);
    for name in ["/w", "/w/a", "/w/a/b"] {
        assert!(!it.allows("file-write-unlink", name), "{name}");
    }
    assert!(it.allows("file-write-unlink", "/w/a/other"));
    assert!(it.allows("file-write-create", "/w/a/b/new"));
    assert!(!it.allows("file-write-unlink", "/w/a/b/secret"));
}

#[test]
fn a_stated_grant_lifts_a_built_in_pattern_on_that_very_path() {
    let glob = Pattern::Glob(PathGlob::new("/w/**/.vscode", &AbsPath::root()).unwrap());
    let built_in = PathRule::built_in(glob, Access::DenyWrite, "built-in");
    let it = evaluator(vec![
        rule(Access::Write, "/w"),
        built_in,
        rule(Access::Write, "/w/.vscode"),
    ]);
    assert!(it.allows("file-write-data", "/w/.vscode/tasks.json"));
    assert!(!it.allows("file-write-data", "/w/sub/.vscode/tasks.json"));
    assert!(!it.allows("file-write-data", "/w/.vscode/a/.vscode/tasks.json"));
}

#[test]
fn lists_without_a_proxy_are_an_error() {
    let around = Surroundings::from_env(Path::new("/w")).unwrap();
    let mut profile = Profile::from_policy(&SandboxPolicy::read_only(), &around).unwrap();
    profile.network.mode.value = stockade_policy::profile::NetworkMode::Allowlist;
    assert!(SeatbeltPolicy::from_profile(&profile, None).is_ok());
    let pattern = stockade_policy::host::HostPattern::parse("a.test").unwrap();
    let listed = stockade_policy::profile::Sourced::built_in(pattern);
    profile.network.allow.push(listed);
    let refused = SeatbeltPolicy::from_profile(&profile, None);
    assert!(matches!(refused, Err(SeatbeltError::NoProxy)));
}

#[cfg(unix)]
#[test]
fn a_path_that_is_no_text_is_an_error() {
    use std::os::unix::ffi::OsStrExt;
    let odd = AbsPath::new(std::ffi::OsStr::from_bytes(b"/w/\xff")).unwrap();
    let policy = SeatbeltPolicy::default_for(&odd);
    let refused = generate_seatbelt_profile(&policy);
    assert!(matches!(refused, Err(SeatbeltError::NotText(_))));
}

#[cfg(not(target_os = "macos"))]
#[test]
fn elsewhere_it_is_not_there() {
    let policy = SeatbeltPolicy::default_for(&path("/w"));
    assert!(!super::seatbelt_available());
    let refused = super::run_seatbelted("true", &policy);
    assert!(matches!(refused, Err(SeatbeltError::Unavailable(_))));
}

/// Names out of few letters, so that rules and paths meet.
fn a_path() -> impl Strategy<Value = String> {
    // Not the root: what is in it may always be listed, since every program does so to start.
    prop::collection::vec("[ab\"\\\\(][ab.]?", 1..5)
        .prop_map(|names| format!("/{}", names.join("/")))
}

fn a_glob() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("**".to_owned()),
        Just("*".to_owned()),
        Just("a*".to_owned()),
        Just("?".to_owned()),
        Just("[ab]".to_owned()),
        Just("[!a]".to_owned()),
        Just("a".to_owned()),
        Just("b.".to_owned()),
    ];
    prop::collection::vec(name, 1..5).prop_map(|names| format!("/{}", names.join("/")))
}

fn a_rule(globs: &'static [Access]) -> impl Strategy<Value = PathRule> {
    let access = prop_oneof![
        Just(Access::Deny),
        Just(Access::DenyRead),
        Just(Access::DenyWrite),
        Just(Access::Read),
        Just(Access::Write),
    ];
    let subtree =
        (a_path(), access).prop_map(|(text, access)| (Pattern::Subtree(path(&text)), access));
    let glob = (a_glob(), prop::sample::select(globs)).prop_map(|(text, access)| {
        let glob = PathGlob::new(&text, &AbsPath::root()).unwrap();
        (Pattern::Glob(glob), access)
    });
    let rank = prop_oneof![Just(Rank::Default), Just(Rank::Stated)];
    (prop_oneof![2 => subtree, 1 => glob], rank).prop_map(|((pattern, access), rank)| PathRule {
        pattern,
        access,
        rank,
        origin: Origin::flag("test"),
    })
}

const DENIALS: &[Access] = &[Access::Deny, Access::DenyRead, Access::DenyWrite];
const ALL: &[Access] = &[Access::Deny, Access::DenyWrite, Access::Read, Access::Write];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn strings_are_read_back_as_they_were(text in "\\PC*|[\"\\\\()]{0,8}") {
        prop_assert_eq!(evaluator::string(&quoted(&text)), text);
    }

    /// Patterns that deny: the profile decides exactly as the decision function does.
    #[test]
    fn it_decides_as_the_decision_function(
        rules in prop::collection::vec(a_rule(DENIALS), 0..7),
        paths in prop::collection::vec(a_path(), 24),
    ) {
        let set = RuleSet::new(rules.clone());
        let it = evaluator(rules);
        for text in paths {
            let at = path(&text);
            let read = set.decide(Kind::Read, at.as_path()).allowed;
            let write = set.decide(Kind::Write, at.as_path()).allowed;
            prop_assert_eq!(it.allows("file-read-data", &text), read, "read {}", text);
            prop_assert_eq!(it.allows("file-write-data", &text), write, "write {}", text);
        }
    }

    /// Whatever the patterns: nothing is allowed that the decision function denies.
    #[test]
    fn it_is_never_wider(
        rules in prop::collection::vec(a_rule(ALL), 0..7),
        paths in prop::collection::vec(a_path(), 24),
    ) {
        let set = RuleSet::new(rules.clone());
        let it = evaluator(rules);
        for text in paths {
            let at = path(&text);
            for (kind, operation) in [(Kind::Read, "file-read-data"), (Kind::Write, "file-write-data")] {
                let allowed = set.decide(kind, at.as_path()).allowed;
                prop_assert!(allowed || !it.allows(operation, &text), "{} {}", operation, text);
            }
        }
    }
}
