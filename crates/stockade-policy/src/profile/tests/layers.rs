//! Which layer says what, and who wins.

use std::time::Duration;

use super::*;
use crate::host::Methods;

fn policy(files: &Files, flags: Flags) -> Result<Profile, ProfileError> {
    let sources = Sources {
        policy: Some(abs("/p.toml")),
        flags,
        ..sources()
    };
    Profile::resolve(&sources, files)
}

#[test]
fn upper_layers_win_and_lists_add_up() {
    let files = Files::default()
        .with(
            "/home/u/.config/stockade/config.toml",
            "version = 1\nlevel = \"enhanced\"\n[limits]\nmem = \"1G\"\npids = 10\n\
             [network]\nallow = [\"a.test\"]\n[filesystem]\nwrite = [\"/srv/a\"]",
        )
        .with(
            "/p.toml",
            "version = 1\n[limits]\nmem = \"2G\"\n[network]\nallow = [\"b.test\"]\n\
             [filesystem]\nwrite = [\"/srv/b\"]",
        );
    let flags = Flags {
        limit: vec!["mem=3G".parse().unwrap()],
        timeout: Some(Duration::from_secs(5)),
        allow: vec!["c.test".parse().unwrap()],
        write: vec!["/srv/c".into()],
        ..Flags::default()
    };
    let profile = policy(&files, flags).unwrap();
    assert_eq!(profile.limits.memory(), Some(3 << 30));
    assert_eq!(profile.limits.pids(), Some(10));
    assert_eq!(profile.limits.wall_time(), Some(Duration::from_secs(5)));
    assert_eq!(profile.network.allow.len(), 3);
    for path in ["/srv/a", "/srv/b", "/srv/c"] {
        assert!(writable(&profile, path), "{path}");
        assert!(profile.writable_roots.contains(&abs(path)), "{path}");
    }
    assert_eq!(profile.level.value, Level::Enhanced);
    assert_eq!(
        profile.base,
        Sourced::new(Base::Minimal, profile.level.origin.clone())
    );
}

#[test]
fn a_missing_policy_is_an_error_and_a_missing_user_file_is_not() {
    let error = policy(&Files::default(), Flags::default()).unwrap_err();
    assert_eq!(error.to_string(), "can't read profile /p.toml");
    assert!(with_flags(Flags::default()).is_ok());
}

#[test]
fn files_extend_files() {
    let files = Files::default()
        .with(
            "/p.toml",
            "version = 1\nextends = \"lib/base.toml\"\n[limits]\npids = 7",
        )
        .with(
            "/lib/base.toml",
            "version = 1\nextends = \"../top.toml\"\n[limits]\npids = 6",
        )
        .with(
            "/top.toml",
            "version = 1\nextends = \"read-only\"\n[limits]\nfiles = 5",
        );
    let profile = policy(&files, Flags::default()).unwrap();
    assert_eq!(profile.base_policy.value, BasePolicy::ReadOnly);
    assert_eq!(profile.base_policy.origin.as_str(), "/top.toml:2");
    assert_eq!(profile.limits.pids(), Some(7));
    assert_eq!(profile.limits.open_files(), Some(5));
    assert!(!writable(&profile, "/home/u/ws/x"));
}

#[test]
fn circles_and_towers_are_refused() {
    let circle = Files::default()
        .with("/p.toml", "version = 1\nextends = \"./q.toml\"")
        .with("/q.toml", "version = 1\nextends = \"/x/../p.toml\"");
    let mut tower = Files::default().with("/p.toml", "version = 1\nextends = \"./0.toml\"");
    for n in 0..20 {
        let text = format!("version = 1\nextends = \"./{}.toml\"", n + 1);
        tower = tower.with(&format!("/{n}.toml"), text);
    }
    let messages =
        [circle, tower].map(|files| message(&policy(&files, Flags::default()).unwrap_err()));
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn the_base_policy_is_chosen_last_by_flags() {
    let profile = with_flags(Flags {
        base_policy: Some(BasePolicy::ReadOnly),
        write: vec!["one.txt".into()],
        ..Flags::default()
    })
    .unwrap();
    assert!(writable(&profile, "/home/u/ws/one.txt"));
    assert!(!writable(&profile, "/home/u/ws/two.txt"));
    assert!(readable(&profile, "/home/u/ws/two.txt"));
}

#[test]
fn network_modes() {
    let mode = |user_text: &str, flags: Flags| {
        let text = format!("version = 1\n{user_text}");
        let files = Files::default().with("/home/u/.config/stockade/config.toml", text);
        let sources = Sources { flags, ..sources() };
        let network = Profile::resolve(&sources, &files).unwrap().network;
        (network.mode.value, network.allow.len())
    };
    let allow = || Flags {
        allow: vec!["a.test".parse().unwrap()],
        ..Flags::default()
    };
    let net = |mode| Flags {
        net: Some(mode),
        ..Flags::default()
    };
    let listed = "[network]\nallow = [\"b.test\", \"c.test\"]";
    assert_eq!(mode("", Flags::default()), (NetworkMode::Off, 0));
    assert_eq!(mode("", allow()), (NetworkMode::Allowlist, 1));
    assert_eq!(
        mode("network = \"open\"", allow()),
        (NetworkMode::Allowlist, 1)
    );
    assert_eq!(mode(listed, Flags::default()), (NetworkMode::Allowlist, 2));
    assert_eq!(mode(listed, allow()), (NetworkMode::Allowlist, 3));
    assert_eq!(mode(listed, net(NetworkMode::Off)), (NetworkMode::Off, 0));
    assert_eq!(mode(listed, net(NetworkMode::Open)).0, NetworkMode::Open);
    assert_eq!(
        mode("network = \"allowlist\"", Flags::default()),
        (NetworkMode::Allowlist, 0)
    );
}

#[test]
fn no_sandbox_can_hold_no_denial() {
    let danger = Flags {
        base_policy: Some(BasePolicy::DangerFullAccess),
        ..Flags::default()
    };
    let profile = with_flags(danger.clone()).unwrap();
    assert!(writable(&profile, "/home/u/.ssh/id_rsa"));
    assert_eq!(profile.network.mode.value, NetworkMode::Open);
    assert_eq!(profile.writable_roots, [AbsPath::root()]);

    // What lies below the choice is given up with it; what is said with it or after is not.
    assert!(
        policy(
            &Files::default().with("/p.toml", "version = 1\n[filesystem]\ndeny = [\"x\"]"),
            danger.clone()
        )
        .is_ok()
    );
    let denied = Flags {
        deny: vec!["x".into()],
        ..danger.clone()
    };
    let off = Flags {
        net: Some(NetworkMode::Off),
        ..danger
    };
    let file = user("extends = \"danger-full-access\"\n[network]\nblock = [\"a.test\"]");
    let messages =
        [with_flags(denied), with_flags(off), file].map(|profile| message(&profile.unwrap_err()));
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn contradictions_are_named() {
    let messages = [
        Flags {
            net: Some(NetworkMode::Open),
            allow: vec!["a.test".parse().unwrap()],
            ..Flags::default()
        },
        Flags {
            level: Some(Level::Enhanced),
            base: Some(Base::Host),
            ..Flags::default()
        },
    ]
    .map(|flags| message(&with_flags(flags).unwrap_err()));
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn bad_flags_are_named_and_secrets_are_not() {
    let messages = [
        Flags {
            read: vec!["~root/x".into()],
            ..Flags::default()
        },
        Flags {
            deny: vec!["[x\u{1b}".into()],
            ..Flags::default()
        },
        Flags {
            env: vec!["TOKEN\0=hunter2".into()],
            ..Flags::default()
        },
        Flags {
            env: vec!["TOKEN".into()],
            ..Flags::default()
        },
        Flags {
            unix: vec!["".into()],
            ..Flags::default()
        },
    ]
    .map(|flags| message(&with_flags(flags).unwrap_err()))
    .join("\n");
    assert!(!messages.contains("hunter2") && !messages.contains('\u{1b}'));
    insta::assert_snapshot!(messages);
}

#[test]
fn sensitive_paths_are_denied_and_can_be_granted() {
    let profile = with_flags(Flags {
        read: vec!["~/.ssh/known_hosts".into()],
        ..Flags::default()
    })
    .unwrap();
    assert!(!readable(&profile, "/home/u/.ssh/id_rsa"));
    assert!(readable(&profile, "/home/u/.ssh/known_hosts"));
    assert!(readable(&profile, "/home/u/other"));
    assert!(!writable(&profile, "/home/u/.config/stockade/config.toml"));
}

#[test]
fn the_minimal_base_has_the_system_and_the_workspace() {
    let profile = with_flags(Flags {
        base: Some(Base::Minimal),
        ..Flags::default()
    })
    .unwrap();
    assert!(readable(&profile, "/usr/bin/env"));
    assert!(readable(&profile, "/etc/hosts"));
    assert!(writable(&profile, "/home/u/ws/x"));
    for path in ["/home/u/other", "/home", "/var/lib/x", "/", "/root/.ssh"] {
        assert!(!readable(&profile, path), "{path}");
    }
    let hidden = with_flags(Flags {
        base: Some(Base::Minimal),
        deny_read: vec!["/".into()],
        ..Flags::default()
    })
    .unwrap();
    assert!(
        !readable(&hidden, "/usr/bin/env"),
        "a smaller base opens nothing"
    );
}

#[test]
fn the_working_directory_is_granted_only_where_one_would_expect_it() {
    let at = |cwd: &str, flags: Flags| {
        let around = Surroundings::new(abs(cwd)).with_home(abs("/home/u"));
        let sources = Sources {
            flags,
            ..Sources::new(around)
        };
        Profile::resolve(&sources, &Files::default()).unwrap()
    };
    for cwd in [
        "/",
        "/home",
        "/usr",
        "/home/u/.ssh",
        "/home/u/.ssh/sub",
        "/home/u/.config/stockade/sub",
    ] {
        let profile = at(cwd, Flags::default());
        assert!(!writable(&profile, &format!("{cwd}/x")), "{cwd}");
        assert_eq!(profile.warnings.len(), 1, "{cwd}");
    }
    for cwd in ["/home/u", "/srv/x", "/usr/local/src", "/tmp/x"] {
        let profile = at(cwd, Flags::default());
        assert!(writable(&profile, &format!("{cwd}/x")), "{cwd}");
        assert!(profile.warnings.is_empty(), "{cwd}");
    }
    let stated = at(
        "/home/u/.ssh/sub",
        Flags {
            write: vec![".".into()],
            ..Flags::default()
        },
    );
    assert!(writable(&stated, "/home/u/.ssh/sub/x"));
    assert!(!readable(&stated, "/home/u/.ssh/id_rsa"));
    // Hiding the home is no reason to lose the project in it.
    let hidden = with_flags(Flags {
        deny_read: vec!["~".into()],
        ..Flags::default()
    })
    .unwrap();
    assert!(writable(&hidden, "/home/u/ws/x") && !readable(&hidden, "/home/u/x"));
}

#[test]
fn protected_names_hold_in_every_root_and_can_be_granted() {
    let profile = with_flags(Flags {
        write: vec!["/srv/data".into(), ".vscode".into()],
        ..Flags::default()
    })
    .unwrap();
    for path in [
        "/home/u/ws/.git/hooks/pre-commit",
        "/home/u/ws/a/b/.git/config",
        "/srv/data/.bashrc",
        "/srv/data/.vscode/tasks.json",
        "/home/u/ws/stockade.toml",
    ] {
        assert!(!writable(&profile, path), "{path}");
        assert!(readable(&profile, path), "{path}");
    }
    assert!(writable(&profile, "/home/u/ws/.vscode/tasks.json"));
    assert!(writable(&profile, "/home/u/ws/.git/index"));
    assert!(writable(&profile, "/srv/data/x/.vscode/tasks.json"));
}

#[test]
fn the_users_file_is_found_where_the_desktop_says() {
    let home = abs("/home/u");
    let path = |xdg: Option<&str>| user_file(Some(&home), xdg.map(str::as_ref));
    assert_eq!(
        path(None),
        Some(abs("/home/u/.config/stockade/config.toml"))
    );
    assert_eq!(
        path(Some("/etc/xdg")),
        Some(abs("/etc/xdg/stockade/config.toml"))
    );
    assert_eq!(path(Some("relative")), path(None));
    assert_eq!(user_file(None, None), None);
}

#[test]
fn the_files_of_a_policy_are_not_written_from_inside() {
    let sources = Sources {
        user: Some(abs("/home/u/ws/cfg/stockade/config.toml")),
        policy: Some(abs("/home/u/ws/p.toml")),
        project: Some(abs("/home/u/ws/stockade.toml")),
        ..Sources::new(around())
    };
    let files = Files::default()
        .with("/home/u/ws/p.toml", "version = 1\nextends = \"./q.toml\"")
        .with("/home/u/ws/q.toml", "version = 1");
    let profile = Profile::resolve(&sources, &files).unwrap();
    for file in [
        "p.toml",
        "q.toml",
        "stockade.toml",
        "cfg/stockade/config.toml",
    ] {
        assert!(!writable(&profile, &format!("/home/u/ws/{file}")), "{file}");
    }
    assert!(writable(&profile, "/home/u/ws/other.toml"));
}

fn worktree() -> Files {
    Files::default()
        .with("/home/u/ws/.git", "gitdir: /srv/repo/.git/worktrees/ws\n")
        .with("/srv/repo/.git/worktrees/ws/gitdir", "/home/u/ws/.git\n")
        .with("/srv/repo/.git/worktrees/ws/commondir", "../..\n")
        .with("/srv/repo/.git/HEAD", "ref: refs/heads/main\n")
        .with("/srv/repo/.git/objects", "")
        .with("/srv/repo/.git/refs", "")
}

#[test]
fn a_linked_worktree_can_commit_and_nothing_else() {
    let profile = Profile::resolve(&sources(), &worktree()).unwrap();
    for path in [
        "objects/ab/cd",
        "refs/heads/x",
        "logs/refs/x",
        "worktrees/ws/index",
        "packed-refs.lock",
    ] {
        assert!(
            writable(&profile, &format!("/srv/repo/.git/{path}")),
            "{path}"
        );
    }
    for path in [
        "hooks/pre-commit",
        "config",
        "index",
        "HEAD",
        "modules/m/config",
        "rebase-merge/git-rebase-todo",
        "worktrees/ws/commondir",
        "worktrees/ws/gitdir",
        "worktrees/ws/config.worktree",
        "worktrees/other/index",
    ] {
        assert!(
            !writable(&profile, &format!("/srv/repo/.git/{path}")),
            "{path}"
        );
    }
    assert!(
        !writable(&profile, "/home/u/ws/.git"),
        "it must not be sent elsewhere"
    );
}

#[test]
fn a_pointer_to_a_repository_that_does_not_point_back_grants_nothing() {
    let granted = |files: Files| {
        let profile = Profile::resolve(&sources(), &files).unwrap();
        writable(&profile, "/srv/repo/.git/refs/x")
    };
    assert!(granted(worktree()));
    let relative = worktree()
        .with(
            "/home/u/ws/.git",
            "gitdir: ../../../srv/repo/.git/worktrees/ws",
        )
        .with(
            "/srv/repo/.git/worktrees/ws/gitdir",
            "../../../../../home/u/ws/.git",
        );
    assert!(granted(relative));
    let back = "/srv/repo/.git/worktrees/ws/gitdir";
    assert!(!granted(worktree().with(back, "/home/u/other/.git\n")));
    assert!(!granted(worktree().with(back, b"\xff".to_vec())));
    let common = "/srv/repo/.git/worktrees/ws/commondir";
    assert!(!granted(worktree().with(common, "/srv/victim/.git\n")));
    for pointer in [
        "",
        "gitdir: ",
        "gitdir: /\n",
        "gitdir: /srv/repo/.git\n",
        "x\ny",
    ] {
        assert!(
            !granted(worktree().with("/home/u/ws/.git", pointer)),
            "{pointer:?}"
        );
    }
    let read_only = Sources {
        flags: Flags {
            base_policy: Some(BasePolicy::ReadOnly),
            ..Flags::default()
        },
        ..sources()
    };
    let profile = Profile::resolve(&read_only, &worktree()).unwrap();
    assert!(!writable(&profile, "/srv/repo/.git/refs/x"));
}

#[test]
fn masks_of_one_variable_add_up_and_must_be_on_the_list() {
    let files = Files::default().with(
        "/home/u/.config/stockade/config.toml",
        "version = 1\n[network]\nallow = [\"a.test\", \"b.test\"]\nmask = [\"TOKEN=a.test\"]\n",
    );
    let resolve = |words: &[&str]| {
        let mut sources = sources();
        sources.flags.mask = words.iter().map(|word| word.parse().unwrap()).collect();
        Profile::resolve(&sources, &files)
    };
    let profile = resolve(&["TOKEN=b.test", "OTHER=b.test"]).unwrap();
    let masks: Vec<String> = profile
        .network
        .masks()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(masks, ["TOKEN=a.test,b.test", "OTHER=b.test"]);
    let error = resolve(&["TOKEN=c.test"]).unwrap_err();
    assert!(error.to_string().contains("TOKEN=c.test"), "{error}");
}

#[test]
fn methods_are_narrowed_by_a_project_and_never_widened() {
    let resolve = |own: &str, project: &str| {
        let text = |word: &str| format!("version = 1\n[network]\nmethods = \"{word}\"\n");
        let files = Files::default()
            .with("/home/u/.config/stockade/config.toml", text(own))
            .with("/home/u/ws/stockade.toml", text(project));
        Profile::resolve(&sources(), &files).map(|profile| profile.network.methods.value)
    };
    assert_eq!(resolve("any", "read-only").unwrap(), Methods::ReadOnly);
    assert_eq!(
        resolve("read-only", "read-only").unwrap(),
        Methods::ReadOnly
    );
    let error = resolve("read-only", "any").unwrap_err();
    assert!(error.to_string().contains("weaker"), "{error}");
}
