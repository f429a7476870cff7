//! The policy as a whole: the seeds' vectors, and each logic error of comparable models, mended.

use std::path::{Path, PathBuf};

use stockade_rules::AbsPath;

use super::*;
use crate::host::NetReason;

fn abs(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

fn place() -> Surroundings {
    Surroundings::new(abs("/ws"))
        .with_home(abs("/home/u"))
        .with_tmpdir(abs("/var/tmp/u"))
}

fn writable(policy: &SandboxPolicy, path: &str) -> bool {
    policy.is_path_writable_in(Path::new(path), &place())
}

fn readable(policy: &SandboxPolicy, path: &str) -> bool {
    policy.is_path_readable_in(Path::new(path), &place())
}

fn parse(json: &str) -> Result<SandboxPolicy, PolicyJsonError> {
    SandboxPolicy::from_json(json.as_bytes())
}

fn workspace() -> SandboxPolicy {
    SandboxPolicy::workspace_write(vec!["/tmp/workspace".into()])
}

fn both() -> [SandboxPolicy; 2] {
    [SandboxPolicy::read_only(), workspace()]
}

fn open() -> [SandboxPolicy; 2] {
    let description = "docker".to_owned();
    [
        SandboxPolicy::full_access(),
        SandboxPolicy::ExternalSandbox { description },
    ]
}

#[test]
fn conformance_vectors_for_paths() {
    let policy = workspace();
    let cwd = Path::new("/tmp/workspace");
    let write = |path: &str| policy.is_path_writable(Path::new(path), cwd);
    assert!(write("/tmp/workspace"));
    assert!(write("/tmp/workspace/src/main.rs"));
    assert!(write("src/main.rs"));
    assert!(!write("/etc"));
    for path in [
        ".git/config",
        ".git/hooks/pre-commit",
        ".stockade/x",
        ".codex/x",
        ".agents/x",
    ] {
        let path = cwd.join(path);
        assert!(!policy.is_path_writable(&path, cwd), "{path:?}");
        assert!(policy.is_path_write_blocked(&path, cwd), "{path:?}");
        assert!(policy.is_path_readable(&path), "{path:?}");
    }
    for path in [
        ".git/index",
        ".git/objects/ab/cd",
        ".git/refs/heads/main",
        ".git/HEAD",
    ] {
        assert!(policy.is_path_writable(&cwd.join(path), cwd), "{path}");
    }
    assert!(!policy.is_path_write_blocked(Path::new("/etc"), cwd));
}

#[test]
fn conformance_vectors_for_the_other_predicates() {
    let read_only = SandboxPolicy::read_only();
    assert!(!writable(&read_only, "/ws/x"));
    assert_eq!(read_only.resource_limits().max_memory_mb, 512);
    assert_eq!(SandboxPolicy::default(), read_only);
    assert_eq!(SandboxPolicy::new_read_only_policy(), read_only);
    for policy in both() {
        assert!(!policy.has_full_network_access());
        assert!(!policy.has_full_disk_write_access());
        assert!(!policy.seccomp_profile().allow_network_sockets);
        assert!(!policy.is_network_allowed("example.org", 443));
    }
    for policy in open() {
        assert!(policy.has_full_network_access() && !policy.has_network_allowlist());
        assert!(policy.has_full_disk_write_access() && policy.has_full_disk_read_access());
        assert!(policy.is_network_allowed("example.org", 443));
        assert!(writable(&policy, "/etc/passwd") && readable(&policy, "/home/u/.ssh/id_rsa"));
        assert!(!policy.is_path_write_blocked(Path::new("/etc"), Path::new("/ws")));
        assert_eq!(policy.resource_limits(), ResourceLimits::unlimited());
        assert_eq!(policy.seccomp_profile(), SeccompProfile::permissive());
        assert_eq!(policy.sensitive_paths(), []);
        assert_eq!(
            policy.get_writable_roots_with_cwd(Path::new("/ws")),
            [WritableRoot::new("/ws")]
        );
    }
    let words: Vec<_> = both()
        .iter()
        .chain(&open())
        .map(SandboxPolicy::description)
        .collect();
    assert_eq!(
        words,
        [
            "read-only access",
            "workspace write access",
            "full access (dangerous)",
            "external sandbox"
        ]
    );
}

#[test]
fn constructors_follow_the_seeds() {
    let entry = || vec![NetworkAllowlistEntry::https("a.test")];
    let roots = || vec![PathBuf::from("/a")];
    let policy = SandboxPolicy::read_only_with_network(entry());
    assert!(policy.has_network_allowlist() && !policy.has_full_network_access());
    assert!(policy.seccomp_profile().allow_network_sockets);
    let policy = SandboxPolicy::read_only_with_network(Vec::new());
    assert_eq!(policy.network(), &Network::Off);
    assert!(SandboxPolicy::read_only_with_full_network().has_full_network_access());
    let policy = SandboxPolicy::workspace_write_with_network(roots(), entry());
    assert_eq!(policy.network_allowlist(), entry());
    let policy = SandboxPolicy::workspace_write_no_sensitive_blocking(roots());
    assert_eq!(policy.sensitive_paths(), []);
    assert!(policy.has_full_disk_read_access());
    assert!(readable(&policy, "/home/u/.ssh/id_rsa"));
    let policy = SandboxPolicy::workspace_write_with_sensitive_paths(
        roots(),
        vec![SensitivePath::new("/secret")],
    );
    assert!(!readable(&policy, "/secret/x") && readable(&policy, "/home/u/.ssh/id_rsa"));
    let limits = ResourceLimits::generous();
    let policy = SandboxPolicy::workspace_write_with_limits(roots(), limits);
    assert_eq!(policy.resource_limits(), limits);
    assert_eq!(
        policy.writable_roots_in(&place()),
        [WritableRoot::new("/a"), WritableRoot::new("/ws")]
    );
}

#[test]
fn item_18_paths_are_normalised_before_they_are_compared() {
    let policy = SandboxPolicy::workspace_write(vec!["/ws".into()]);
    assert!(!writable(&policy, "/ws/../../etc/passwd"));
    assert!(!writable(&policy, "../etc/passwd"));
    assert!(!writable(&policy, "src/../.git/./hooks//x"));
    assert!(writable(&policy, "/etc/../ws/x"));
    for policy in both() {
        assert!(!readable(&policy, "/home/u/ws/../.ssh/id_rsa"));
        assert!(!readable(&policy, "../home/u/.ssh/id_rsa"));
        assert!(readable(&policy, "/home/u/.ssh/../x"));
    }
    let root = SandboxPolicy::workspace_write(vec!["/a/../b/".into()]);
    assert!(writable(&root, "/b/x") && !writable(&root, "/a/x"));
}

#[test]
fn item_19_a_grant_adds_only_what_it_names() {
    let extra = AdditionalPermissions {
        fs_read: vec!["~/.aws/config".into()],
        fs_write: vec!["/tmp/one".into(), "out".into()],
    };
    let policy = SandboxPolicy::read_only_with_full_network();
    let policy = policy
        .with_additional_permissions(&extra, &place())
        .unwrap();
    assert!(writable(&policy, "/tmp/one") && writable(&policy, "/tmp/one/x"));
    assert!(writable(&policy, "/ws/out"));
    assert!(!writable(&policy, "/ws/x") && !writable(&policy, "/tmp/two"));
    assert_eq!(policy.resource_limits(), ResourceLimits::conservative());
    assert!(policy.has_full_network_access());
}

#[test]
fn item_21_a_granted_read_lifts_the_mask_over_it() {
    let extra = AdditionalPermissions {
        fs_read: vec!["/home/u/.aws/config".into()],
        ..Default::default()
    };
    for policy in both() {
        assert!(!readable(&policy, "/home/u/.aws/config"));
        let wider = policy
            .with_additional_permissions(&extra, &place())
            .unwrap();
        assert!(readable(&wider, "/home/u/.aws/config"));
        assert!(!readable(&wider, "/home/u/.aws/credentials"));
        assert!(!writable(&wider, "/home/u/.aws/config"));
        assert_eq!(wider.description(), policy.description());
        assert!(policy.is_at_most_in(&wider, &place()));
        assert!(!wider.is_at_most_in(&policy, &place()));
    }
}

#[test]
fn item_22_read_only_keeps_what_the_user_configured() {
    let policy = parse(
        r#"{"type":"read_only","sensitive_paths":[{"path":"/secret"}],
            "resource_limits":{"max_memory_mb":64},
            "seccomp_profile":{"blocked_syscalls":["ptrace"]}}"#,
    )
    .unwrap();
    assert!(!readable(&policy, "/secret/x"));
    assert_eq!(
        policy.resource_limits(),
        ResourceLimits::conservative().with_memory_mb(64)
    );
    assert!(policy.seccomp_profile().is_blocked("ptrace"));
    assert!(!policy.seccomp_profile().is_blocked("mount"));
    let extra = AdditionalPermissions {
        fs_write: vec!["/tmp/one".into()],
        ..Default::default()
    };
    let wider = policy
        .with_additional_permissions(&extra, &place())
        .unwrap();
    assert_eq!(wider.sensitive_paths(), policy.sensitive_paths());
    assert_eq!(wider.resource_limits(), policy.resource_limits());
}

#[test]
fn item_23_the_network_is_one_value() {
    let list = r#""network_allowlist":[{"domain":"a.test"}]"#;
    let network = |fields: &str| {
        let policy = parse(&format!(r#"{{"type":"read_only",{fields}}}"#)).unwrap();
        policy.network().clone()
    };
    let listed = Network::Allowlist(vec![NetworkAllowlistEntry::https("a.test")]);
    assert_eq!(
        network(&format!(r#""network_access":false,{list}"#)),
        Network::Off
    );
    assert_eq!(network(&format!(r#""network_access":true,{list}"#)), listed);
    assert_eq!(network(list), listed);
    assert_eq!(network(r#""network_access":true"#), Network::Open);
    assert_eq!(network(r#""network_access":false"#), Network::Off);
}

#[test]
fn item_23_sockets_follow_the_network() {
    let policy = |list| {
        SandboxPolicy::workspace_write_full(
            vec![],
            list,
            None,
            ResourceLimits::default(),
            SeccompProfile::permissive(),
        )
    };
    assert!(!policy(vec![]).seccomp_profile().allow_network_sockets);
    let list = vec![NetworkAllowlistEntry::https("a.test")];
    assert!(policy(list).seccomp_profile().allow_network_sockets);
}

#[test]
fn an_empty_list_is_off_not_open() {
    let policy = SandboxPolicy::ReadOnly {
        network: Network::Allowlist(Vec::new()),
        readable_paths: Vec::new(),
        sensitive_paths: None,
        resource_limits: ResourceLimits::conservative(),
        seccomp_profile: SeccompProfile::strict(),
    };
    assert!(!policy.has_full_network_access() && !policy.is_network_allowed("a.test", 443));
    assert!(!policy.seccomp_profile().allow_network_sockets);
    let back = parse(&policy.to_json().unwrap()).unwrap();
    assert_eq!(back, SandboxPolicy::read_only());
}

#[test]
fn item_24_hosts_are_decided_by_the_one_matcher() {
    let policy = SandboxPolicy::read_only_with_network(vec![
        NetworkAllowlistEntry::https("*.GitHub.com"),
        NetworkAllowlistEntry::with_port("10.0.0.0/24", 8080),
    ]);
    assert!(policy.is_network_allowed("API.github.com.", 443));
    assert!(!policy.is_network_allowed("API.github.com.", 80));
    assert!(policy.is_network_allowed("10.0.0.7", 8080));
    assert!(policy.is_network_allowed("::ffff:10.0.0.7", 8080));
    for host in [
        "",
        "github.com\0.evil",
        "u@github.com",
        "github.com.evil.com",
        "127.1",
    ] {
        assert!(!policy.is_network_allowed(host, 443), "{host:?}");
    }
    let reason = policy.decide_network("github.com", 22).reason;
    assert_eq!(reason, NetReason::PortNotListed);
}

#[test]
fn item_25_without_a_home_the_list_still_protects() {
    let nowhere = Surroundings::new(abs("/ws"));
    for policy in both() {
        for path in [
            "/root/.ssh/id_rsa",
            "/home/x/.aws/credentials",
            "/ws/.netrc",
        ] {
            assert!(
                !policy.is_path_readable_in(Path::new(path), &nowhere),
                "{path}"
            );
        }
        assert!(policy.is_path_readable_in(Path::new("/etc/passwd"), &nowhere));
    }
}

#[test]
fn item_26_partial_limits_keep_the_default_timeout() {
    let json = r#"{"type":"workspace_write","writable_roots":[],"resource_limits":{"max_pids":5}}"#;
    let limits = parse(json).unwrap().resource_limits();
    assert_eq!(limits, ResourceLimits::default().with_max_pids(5));
    assert_eq!(limits.timeout_secs, 300);
}

#[test]
fn item_26_unknown_and_foreign_keys_are_refused_where_they_stand() {
    let error = parse("{\"type\":\"read_only\",\n  \"netwrok_access\":false}").unwrap_err();
    let PolicyJsonError::Invalid {
        line,
        column,
        message,
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!((*line, *column), (2, 18));
    assert!(
        message.starts_with("unknown field `netwrok_access`"),
        "{message}"
    );
    assert!(
        error
            .to_string()
            .starts_with("line 2, column 18: unknown field")
    );
    for json in [
        r#"{"type":"read_only","writable_roots":[]}"#,
        r#"{"type":"danger_full_access","network_access":false}"#,
        r#"{"type":"danger_full_access","x":1}"#,
        r#"{"type":"external_sandbox","description":"d","exclude_cwd":true}"#,
        r#"{"type":"external_sandbox"}"#,
        r#"{"type":"workspace_write"}"#,
        r#"{"type":"workspace_write","writable_roots":[{"root":"ws"}]}"#,
        r#"{"type":"workspace_write","writable_roots":[{"root":"/a\u0000"}]}"#,
        r#"{"type":"workspace_write","writable_roots":[{"root":"/a","read_only":true}]}"#,
        r#"{"type":"read_only","type":"read_only"}"#,
        r#"{"type":"read_only","resource_limits":{"max_memory":1}}"#,
        r#"{"type":"read_only","seccomp_profile":{"block":[]}}"#,
        r#"{"type":"read_only","sensitive_paths":[{"path":"x"}]}"#,
        r#"{"type":"read_only","network_allowlist":[{"domain":"*"}]}"#,
        r#"{"type":"read_only","readable_paths":["x"]}"#,
        r#"{"type":"ReadOnly"}"#,
        r#"{"type":"read_only"} x"#,
        r#"{"network_access":true}"#,
        r#""read_only""#,
        "{}",
        "",
        "[",
    ] {
        assert!(parse(json).is_err(), "{json}");
    }
    assert!(SandboxPolicy::from_json(b"{\"type\":\"read_only\xff\"}").is_err());
    let deep = "[".repeat(100_000);
    assert!(parse(&deep).is_err());
    let huge = vec![b' '; MAX_POLICY_BYTES + 1];
    assert!(matches!(
        SandboxPolicy::from_json(&huge),
        Err(PolicyJsonError::TooLarge(_))
    ));
}

#[test]
fn json_shapes() {
    assert_eq!(
        parse(r#"{"type":"read_only"}"#).unwrap(),
        SandboxPolicy::read_only()
    );
    assert_eq!(
        parse(
            r#"{"type":"workspace_write","writable_roots":[{"root":"/tmp/workspace"}],
                  "sensitive_paths":null}"#
        )
        .unwrap(),
        workspace()
    );
    assert_eq!(
        SandboxPolicy::read_only().to_json().unwrap(),
        r#"{"type":"read_only","network_access":false,"network_allowlist":[]}"#
    );
    assert_eq!(
        SandboxPolicy::full_access().to_json().unwrap(),
        r#"{"type":"danger_full_access"}"#
    );
    for policy in both().into_iter().chain(open()).chain([
        SandboxPolicy::read_only_with_full_network(),
        SandboxPolicy::workspace_write_no_sensitive_blocking(vec!["/x".into()]),
    ]) {
        assert_eq!(parse(&policy.to_json().unwrap()).unwrap(), policy);
    }
}

#[cfg(unix)]
#[test]
fn json_carries_paths_that_are_not_unicode() {
    use std::os::unix::ffi::OsStringExt;
    let odd = PathBuf::from(std::ffi::OsString::from_vec(b"/ws\xff".to_vec()));
    let policy = SandboxPolicy::workspace_write_with_sensitive_paths(
        vec![odd.clone()],
        vec![SensitivePath::new(odd.clone())],
    );
    let policy = policy
        .with_additional_permissions(
            &AdditionalPermissions {
                fs_read: vec![odd.join("x")],
                ..Default::default()
            },
            &place(),
        )
        .unwrap();
    assert_eq!(parse(&policy.to_json().unwrap()).unwrap(), policy);
    assert!(policy.is_path_readable_in(&odd.join("x"), &place()));
    assert!(!policy.is_path_readable_in(&odd.join("y"), &place()));
}

#[test]
fn the_flags_about_temporary_directories_work() {
    let json = |flags: &str| {
        parse(&format!(
            r#"{{"type":"workspace_write","writable_roots":[]{flags}}}"#
        ))
        .unwrap()
    };
    let plain = json("");
    assert!(!writable(&plain, "/tmp/x") && !writable(&plain, "/var/tmp/u/x"));
    let tmp = json(r#","exclude_slash_tmp":false"#);
    assert!(writable(&tmp, "/tmp/x") && !writable(&tmp, "/var/tmp/u/x"));
    let tmpdir = json(r#","exclude_tmpdir_env_var":false"#);
    assert!(!writable(&tmpdir, "/tmp/x") && writable(&tmpdir, "/var/tmp/u/x"));
    let no_cwd = json(r#","exclude_cwd":true"#);
    assert!(writable(&plain, "/ws/x") && !writable(&no_cwd, "/ws/x"));
}

#[test]
fn the_working_directory_never_reopens_what_a_rule_closes() {
    let policy = SandboxPolicy::workspace_write(vec!["/ws".into()]);
    for cwd in ["/home/u/.ssh", "/home/u/.ssh/sub", "/ws/.git/hooks"] {
        let place = Surroundings {
            cwd: abs(cwd),
            ..place()
        };
        assert!(!policy.is_path_writable_in(Path::new("x"), &place), "{cwd}");
    }
    let home = Surroundings {
        cwd: abs("/home/u"),
        ..place()
    };
    assert!(policy.is_path_writable_in(Path::new("x"), &home));
    assert!(!policy.is_path_readable_in(Path::new(".ssh/id_rsa"), &home));
    assert!(!policy.is_path_writable_in(Path::new(".bashrc"), &home));
}

#[test]
fn a_root_that_the_user_names_opens_what_it_names() {
    let policy = SandboxPolicy::workspace_write(vec!["/home/u/.docker/buildx".into()]);
    assert!(writable(&policy, "/home/u/.docker/buildx/x"));
    assert!(!readable(&policy, "/home/u/.docker/config.json"));
}

#[test]
fn impossible_paths_are_neither_readable_nor_writable() {
    for policy in both() {
        for path in ["", "/a\0b", "a\0"] {
            assert!(
                !readable(&policy, path) && !writable(&policy, path),
                "{path:?}"
            );
            assert!(policy.is_path_write_blocked_in(Path::new(path), &place()));
        }
        let long = format!("/ws/{}", "a".repeat(4000));
        assert!(readable(&policy, &long));
        assert!(!policy.is_path_writable(Path::new("/x"), Path::new("relative")));
        assert!(policy.is_path_write_blocked(Path::new("/x"), Path::new("relative")));
    }
}

#[test]
fn entries_for_execution_name_each_root() {
    let entries = workspace().sensitive_paths_for_execution(Path::new("/ws"));
    for root in ["/tmp/workspace", "/ws"] {
        for name in PROTECTED_IN_ROOTS {
            let entry = SensitivePath::write_only(Path::new(root).join(name));
            assert!(entries.contains(&entry), "{entry:?}");
        }
    }
    let read_only = SandboxPolicy::read_only();
    assert_eq!(
        read_only.sensitive_paths_for_execution(Path::new("/ws")),
        default_sensitive_paths()
    );
}
