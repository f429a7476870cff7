//! Laws, tried on random profiles.

use proptest::prelude::*;
use stockade_rules::{Access, Pattern};

use super::*;
use crate::host::Host;

const PATHS: &[&str] = &[
    "/",
    "/usr",
    "/usr/lib",
    "/home",
    "/home/u",
    "/home/u/ws",
    "/home/u/ws/a",
    "/home/u/ws/a/.env",
    "/home/u/ws/.git",
    "/home/u/ws/.git/hooks",
    "/home/u/ws/.vscode",
    "/home/u/.ssh",
    "/home/u/.ssh/id",
    "/srv",
    "/srv/x",
    "/srv/x/.env",
];
const PATTERNS: &[&str] = &[
    "**/.env",
    "a",
    "*",
    "/srv/*",
    "~/.ssh",
    ".",
    "**/.git/*",
    "/usr/**",
];
const HOSTS: &[&str] = &["a.test", "b.a.test", "c.test", "127.0.0.1"];
const HOST_PATTERNS: &[&str] = &["a.test", "*.a.test", "b.a.test:22", "c.test", "127.0.0.1"];

fn list(of: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(of), 0..4).prop_map(|list| format!("{list:?}"))
}

fn paths() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![prop::sample::select(PATHS), prop::sample::select(PATTERNS)],
        0..4,
    )
    .prop_map(|list| format!("{list:?}"))
}

/// One line or none.
fn maybe(key: &'static str, words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::option::of(prop::sample::select(words)).prop_map(move |word| match word {
        Some(word) => format!("{key} = {word}\n"),
        None => String::new(),
    })
}

fn narrowing_file() -> impl Strategy<Value = String> {
    let top = (
        maybe(
            "extends",
            &[
                "\"read-only\"",
                "\"minimal\"",
                "\"workspace-write\"",
                "\"danger-full-access\"",
            ],
        ),
        maybe(
            "level",
            &["\"off\"", "\"default\"", "\"enhanced\"", "\"maximum\""],
        ),
        maybe("git_config", &["true", "false"]),
        maybe("best_effort", &["true", "false"]),
        maybe("seccomp", &["\"strict\"", "\"permissive\""]),
    );
    let paths = (
        maybe("base", &["\"host\"", "\"minimal\""]),
        paths(),
        paths(),
        paths(),
    );
    let network = (
        maybe("mode", &["\"off\"", "\"allowlist\"", "\"open\""]),
        list(HOST_PATTERNS),
    );
    let limits = (
        maybe("mem", &["\"1M\"", "\"4G\"", "\"unlimited\""]),
        maybe("pids", &["1", "100"]),
    );
    (top, paths, network, limits).prop_map(|(top, paths, network, limits)| {
        let (extends, level, git, effort, seccomp) = top;
        let (base, deny, deny_read, deny_write) = paths;
        let ((mode, block), (mem, pids)) = (network, limits);
        format!(
            "{extends}{level}{git}{effort}{seccomp}[filesystem]\n{base}deny = {deny}\n\
             deny_read = {deny_read}\ndeny_write = {deny_write}\n[network]\n{mode}block = {block}\n\
             [limits]\n{mem}{pids}"
        )
    })
}

fn any_file() -> impl Strategy<Value = String> {
    (narrowing_file(), paths(), paths(), list(HOST_PATTERNS)).prop_map(
        |(narrow, read, write, allow)| {
            narrow
                .replace(
                    "[network]\n",
                    &format!("read = {read}\nwrite = {write}\n[network]\n"),
                )
                .replace("block = ", &format!("allow = {allow}\nblock = "))
        },
    )
}

/// What is wider in `new` than in `old`.
fn widened(old: &Profile, new: &Profile) -> Option<String> {
    for path in PATHS
        .iter()
        .copied()
        .flat_map(|path| [path.to_owned(), format!("{path}/x")])
    {
        if readable(new, &path) && !readable(old, &path) {
            return Some(format!("read {path}"));
        }
        if writable(new, &path) && !writable(old, &path) {
            return Some(format!("write {path}"));
        }
    }
    for host in HOSTS {
        for port in [22, 80, 443] {
            let host = Host::parse(host).unwrap();
            let allowed = |profile: &Profile| profile.network.decide(&host, port).is_allowed();
            if allowed(new) && !allowed(old) {
                return Some(format!("connect {host}:{port}"));
            }
        }
    }
    for key in LimitKey::ALL {
        let amount = |profile: &Profile| profile.limits.get(*key).value.unwrap_or(u64::MAX);
        if amount(new) > amount(old) {
            return Some(format!("limit {key}"));
        }
    }
    let weaker = new.level.value < old.level.value
        || new.seccomp.mode.value > old.seccomp.mode.value
        || (new.best_effort.value && !old.best_effort.value)
        || (new.git_config.value && !old.git_config.value)
        || new.require.len() < old.require.len();
    weaker.then(|| "a choice".to_owned())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_project_never_widens(user_text in any_file(), project in narrowing_file()) {
        if let (Ok(old), Ok(new)) = (user(&user_text), both(&user_text, &project)) {
            prop_assert_eq!(widened(&old, &new), None);
        }
    }

    /// The same with whole random files as the project's: what is not refused only narrows.
    #[test]
    fn whatever_a_project_says_is_refused_or_narrows(user_text in any_file(), project in any_file()) {
        if let (Ok(old), Ok(new)) = (user(&user_text), both(&user_text, &project)) {
            prop_assert_eq!(widened(&old, &new), None);
        }
    }
}

proptest! {
    #[test]
    fn the_order_of_denials_does_not_matter(
        mut deny in prop::collection::vec(prop::sample::select(PATHS), 0..6),
        write in paths(),
    ) {
        let text = |deny: &[&str]| format!("[filesystem]\ndeny = {deny:?}\nwrite = {write}");
        let straight = user(&text(&deny)).unwrap();
        deny.reverse();
        let turned = user(&text(&deny)).unwrap();
        prop_assert_eq!(widened(&straight, &turned), None);
        prop_assert_eq!(widened(&turned, &straight), None);
    }

    #[test]
    fn a_denial_in_any_layer_is_the_same_denial(deny in paths(), text in any_file()) {
        // Of the user's or of `--policy`: the rules are one set.
        let layer = format!("version = 1\n[filesystem]\ndeny = {deny}");
        let other = format!("version = 1\n{text}");
        let config = "/home/u/.config/stockade/config.toml";
        let sources = Sources { policy: Some(abs("/p.toml")), ..sources() };
        let resolve = |low: &str, high: &str| {
            let files = Files::default().with(config, low).with("/p.toml", high);
            Profile::resolve(&sources, &files)
        };
        if let (Ok(low), Ok(high)) = (resolve(&layer, &other), resolve(&other, &layer)) {
            prop_assert_eq!(widened(&low, &high), None);
            prop_assert_eq!(widened(&high, &low), None);
        }
    }

    #[test]
    fn text_never_panics(text in "\\PC{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = user(&text);
        let config = "/home/u/.config/stockade/config.toml";
        for bytes in [bytes.clone(), [b"version = 1\n".to_vec(), bytes].concat()] {
            let _ = Profile::resolve(&sources(), &Files::default().with(config, bytes));
        }
    }

    /// What a profile says as a policy is at most what it says itself.
    #[test]
    fn a_policy_made_of_a_profile_is_no_wider(text in any_file()) {
        if let Ok(profile) = user(&text)
            && let Ok(policy) = profile.to_sandbox_policy()
        {
            let back = Profile::from_policy(&policy, &around()).unwrap();
            // The document has no level, and its own idea of git's configuration.
            let back = Profile {
                level: profile.level.clone(),
                git_config: profile.git_config.clone(),
                best_effort: profile.best_effort.clone(),
                require: profile.require.clone(),
                ..back
            };
            prop_assert_eq!(widened(&profile, &back), None);
        }
    }

    /// Near misses: valid files with a few bytes changed.
    #[test]
    fn damaged_files_never_panic(
        text in any_file(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = format!("version = 1\n{text}").into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let config = "/home/u/.config/stockade/config.toml";
        if let Err(error) = Profile::resolve(&sources(), &Files::default().with(config, bytes)) {
            let escapes = message(&error).contains('\u{1b}');
            prop_assert!(!escapes);
        }
    }

    #[test]
    fn writable_roots_are_the_writable_among_the_named(text in any_file()) {
        if let Ok(profile) = user(&text) {
            let named = profile.rules.iter().filter(|rule| rule.access == Access::Write);
            for rule in named {
                if let Pattern::Subtree(root) = &rule.pattern {
                    let allowed = profile.rules.decide(Kind::Write, root.as_path()).allowed;
                    prop_assert_eq!(profile.writable_roots.contains(root), allowed);
                }
            }
        }
    }

    #[test]
    fn what_is_shown_is_one_setting_to_a_line(text in any_file()) {
        if let Ok(profile) = user(&text) {
            for line in profile.show().to_string().lines() {
                prop_assert!(line.is_empty() || line.starts_with('[') || line.contains("  # "));
            }
        }
    }
}
