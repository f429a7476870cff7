//! Policies in JSON and from code.

use super::*;
use crate::model::{NetworkAllowlistEntry, PROTECTED_IN_ROOTS, ResourceLimits, SandboxPolicy};

fn json(text: &str) -> Result<Profile, ProfileError> {
    let sources = Sources {
        policy: Some(abs("/p.json")),
        ..sources()
    };
    Profile::resolve(&sources, &Files::default().with("/p.json", text))
}

#[test]
fn json_is_a_layer() {
    let profile = json(
        r#" {"type": "workspace_write", "writable_roots": [{"root": "/srv/data"}],
             "network_allowlist": [{"domain": "a.test"}],
             "resource_limits": {"max_memory_mb": 64}, "exclude_cwd": true,
             "sensitive_paths": [{"path": "/srv/data/keys"}]}"#,
    )
    .unwrap();
    assert!(writable(&profile, "/srv/data/x"));
    assert!(!writable(&profile, "/home/u/ws/x"));
    assert!(!readable(&profile, "/srv/data/keys/x"));
    assert!(
        readable(&profile, "/home/u/.ssh/x"),
        "its own list replaces the one that ships"
    );
    assert_eq!(profile.network.mode.value, NetworkMode::Allowlist);
    assert_eq!(profile.limits.memory(), Some(64 << 20));
    assert_eq!(profile.limits.wall_time().unwrap().as_secs(), 300);
    assert_eq!(profile.base_policy.origin.as_str(), "/p.json: type");
}

#[test]
fn bad_json_is_refused_with_its_place() {
    use std::error::Error;
    for text in [
        "{",
        "{\"type\": \"read_only\", \"x\": 1}",
        "{}",
        "{\"type\": \"none\"}",
    ] {
        let error = json(text).unwrap_err();
        assert!(
            matches!(error, ProfileError::Load(LoadError::Json { .. })),
            "{text}"
        );
        let source = error.source().unwrap().to_string();
        assert!(source.starts_with("line 1, column "), "{source}");
    }
}

#[test]
fn a_policy_decides_as_its_profile_does() {
    let around = around();
    let entry = || vec![NetworkAllowlistEntry::https("a.test")];
    for policy in [
        SandboxPolicy::read_only(),
        SandboxPolicy::read_only_with_full_network(),
        SandboxPolicy::read_only_with_network(entry()),
        SandboxPolicy::workspace_write(vec!["/srv/data".into()]),
        SandboxPolicy::workspace_write_no_sensitive_blocking(vec![]),
        SandboxPolicy::workspace_write_with_network(vec!["/home/u/.ssh/sub".into()], entry()),
        SandboxPolicy::full_access(),
    ] {
        let profile = Profile::from_policy(&policy, &around).unwrap();
        for path in [
            "/etc/passwd",
            "/home/u/.ssh/id",
            "/home/u/.ssh/sub/x",
            "/home/u/ws/x",
            "/home/u/ws/.git/hooks/x",
            "/home/u/ws/.git/index",
            "/srv/data/x",
            "/srv/data/.vscode/x",
            "/srv/other",
        ] {
            let at = Path::new(path);
            assert_eq!(
                policy.is_path_readable_in(at, &around),
                readable(&profile, path),
                "{path}"
            );
            assert_eq!(
                policy.is_path_writable_in(at, &around),
                writable(&profile, path),
                "{path}"
            );
        }
        for (host, port) in [("a.test", 443), ("a.test", 80), ("b.test", 443)] {
            let parsed = crate::host::Host::parse(host).unwrap();
            assert_eq!(
                policy.is_network_allowed(host, port),
                profile.network.decide(&parsed, port).is_allowed(),
                "{host}:{port}"
            );
        }
    }
}

#[test]
fn limits_of_a_policy() {
    let silent = Limits::from(ResourceLimits::default());
    assert_eq!(silent.memory(), Limits::default().memory());
    let stated = Limits::from(ResourceLimits::conservative());
    assert_eq!(stated.memory(), Some(512 << 20));
    assert_eq!(stated.tmp_size(), Some(1 << 30));
    assert_eq!(stated.pids(), Some(64));
    assert_eq!(Limits::from(ResourceLimits::generous()).cpu_time(), None);
}

#[test]
fn what_a_policy_protects_a_profile_protects() {
    let profile = with_flags(Flags::default()).unwrap();
    for name in PROTECTED_IN_ROOTS {
        assert!(
            !writable(&profile, &format!("/home/u/ws/{name}/x")),
            "{name}"
        );
    }
}

#[test]
fn a_profile_can_be_said_as_a_policy_where_there_are_words() {
    let around = around();
    for policy in [
        SandboxPolicy::read_only(),
        SandboxPolicy::workspace_write(vec!["/srv/data".into()]),
        SandboxPolicy::workspace_write_with_network(
            vec![],
            vec![NetworkAllowlistEntry::with_port("*.a.test", 8443)],
        ),
        SandboxPolicy::workspace_write_with_limits(vec![], ResourceLimits::moderate()),
        SandboxPolicy::full_access(),
    ] {
        let back = Profile::from_policy(&policy, &around)
            .unwrap()
            .to_sandbox_policy()
            .unwrap();
        assert!(back.is_at_most_in(&policy, &around), "{policy:?}\n{back:?}");
        let again = Profile::from_policy(&back, &around)
            .unwrap()
            .to_sandbox_policy()
            .unwrap();
        assert_eq!(again, back);
    }
    for (text, what) in [
        ("[filesystem]\nbase = \"minimal\"", "base minimal"),
        (
            "[filesystem]\ndeny_read = [\"**/.env\"]",
            "deny_read /home/u/ws/**/.env",
        ),
        (
            "[network]\nallow = [\"a.test\"]\nblock = [\"b.test\"]",
            "block b.test",
        ),
    ] {
        let error = user(text).unwrap().to_sandbox_policy().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("a policy can't say `{what}`; use a profile")
        );
    }
}
