//! A project's file may only narrow.

use super::*;

#[test]
fn what_narrows_applies() {
    let profile = both(
        "network = \"open\"\n[limits]\nmem = \"4G\"",
        r#"
        extends = "read-only"
        level = "maximum"
        require = ["network"]
        network = "off"
        seccomp = { profile = "strict", block = ["kcmp"] }
        [filesystem]
        base = "minimal"
        deny = ["secrets"]
        deny_read = ["**/.env"]
        deny_write = ["Cargo.lock"]
        [limits]
        mem = "1G"
        "#,
    )
    .unwrap();
    assert_eq!(profile.base_policy.value, BasePolicy::ReadOnly);
    assert_eq!(profile.base.value, Base::Minimal);
    assert_eq!(profile.level.value, Level::Maximum);
    assert_eq!(profile.network.mode.value, NetworkMode::Off);
    assert_eq!(profile.limits.memory(), Some(1 << 30));
    assert_eq!(profile.seccomp.block.len(), 1);
    assert_eq!(profile.require.len(), 1);
    assert!(!readable(&profile, "/home/u/ws/secrets/x"));
    assert!(!readable(&profile, "/home/u/ws/a/.env"));
}

#[test]
fn saying_again_what_holds_is_no_grant() {
    for text in [
        "extends = \"workspace-write\"",
        "level = \"default\"",
        "best_effort = false",
        "network = \"off\"",
        "[filesystem]\nbase = \"host\"",
        "[limits]\nmem = \"8G\"",
    ] {
        assert!(both("", text).is_ok(), "{text}");
    }
    assert!(both("git_config = true", "git_config = true").is_ok());
    // A user who lives with a small base can still run a read-only project.
    let profile = both("extends = \"minimal\"", "extends = \"read-only\"").unwrap();
    assert_eq!(profile.base.value, Base::Minimal);
}

/// Every way to ask for more, and the message that it gets.
#[test]
fn what_grants_is_refused() {
    let strict =
        "level = \"enhanced\"\nextends = \"read-only\"\n[limits]\nmem = \"1G\"\noutput = \"1M\"";
    let cases = [
        ("", "[filesystem]\nread = [\"~/.ssh\"]"),
        ("", "[filesystem]\nwrite = [\"/\"]"),
        ("", "[network]\nallow = [\"evil.test\"]"),
        ("", "[network]\nresolve = [\"a.test=10.0.0.1\"]"),
        ("", "[network]\nunix = [\"/run/docker.sock\"]"),
        ("", "[network]\nexpose = [80]"),
        ("", "[network]\nhost_port = [5432]"),
        ("", "network = \"open\""),
        ("", "network = \"allowlist\""),
        ("", "devices = [\"/dev/sda\"]"),
        ("", "backend = \"none\""),
        ("", "best_effort = true"),
        ("", "git_config = true"),
        ("", "danger_nested_namespaces = true"),
        ("", "level = \"off\""),
        ("", "seccomp = \"permissive\""),
        ("", "extends = \"danger-full-access\""),
        ("", "extends = \"./more.toml\""),
        ("", "[environment]\nkeep = [\"AWS_SECRET_ACCESS_KEY\"]"),
        ("", "[environment]\nset = { LD_PRELOAD = \"x\" }"),
        ("", "[limits]\npids = \"unlimited\""),
        (strict, "extends = \"workspace-write\""),
        (strict, "level = \"default\""),
        (strict, "[limits]\nmem = \"2G\""),
        (strict, "[limits]\noutput = \"2M\""),
        (
            "[filesystem]\nbase = \"minimal\"",
            "[filesystem]\nbase = \"host\"",
        ),
    ];
    let messages: Vec<String> = cases
        .iter()
        .map(|(user, project)| {
            let error = both(user, project).unwrap_err();
            assert!(
                matches!(error, ProfileError::Load(LoadError::Widens(_))),
                "{project}: {error}"
            );
            message(&error)
        })
        .collect();
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn the_user_has_the_last_word() {
    let files = Files::default().with(
        "/home/u/ws/stockade.toml",
        "version = 1\nlevel = \"maximum\"\nnetwork = \"off\"\n[limits]\nmem = \"1M\"\n\
         [filesystem]\ndeny_write = [\"gen\"]",
    );
    let sources = Sources {
        flags: Flags {
            level: Some(Level::Default),
            allow: vec!["a.test".parse().unwrap()],
            limit: vec!["mem=2G".parse().unwrap()],
            write: vec!["gen/sub".into()],
            ..Flags::default()
        },
        ..sources()
    };
    let profile = Profile::resolve(&sources, &files).unwrap();
    assert_eq!(profile.level.value, Level::Default);
    assert_eq!(profile.network.mode.value, NetworkMode::Allowlist);
    assert_eq!(profile.limits.memory(), Some(2 << 30));
    assert!(writable(&profile, "/home/u/ws/gen/sub/x"));
    assert!(!writable(&profile, "/home/u/ws/gen/x"));
}

#[test]
fn its_paths_are_about_its_own_directory() {
    let files = Files::default().with(
        "/home/u/ws/stockade.toml",
        "version = 1\n[filesystem]\ndeny = [\"secrets\"]",
    );
    let sources = Sources {
        around: Surroundings::new(abs("/home/u/ws/sub/dir")).with_home(abs("/home/u")),
        ..sources()
    };
    let profile = Profile::resolve(&sources, &files).unwrap();
    assert!(!readable(&profile, "/home/u/ws/secrets"));
    assert!(readable(&profile, "/home/u/ws/sub/dir/secrets"));
}

#[test]
fn a_choice_that_is_made_already_does_not_forget_what_came_after() {
    // The user's own file contradicts itself; a project must not be able to paper over that.
    let user = "extends = \"danger-full-access\"\n[filesystem]\ndeny = [\"x\"]";
    assert!(both(user, "").is_err());
    assert!(both(user, "extends = \"danger-full-access\"").is_err());
    assert!(both(user, "extends = \"read-only\"").is_ok());
}
