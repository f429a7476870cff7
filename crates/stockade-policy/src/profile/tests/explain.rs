//! What is said about a path or a host.

use super::*;
use crate::host::Host;

fn profile() -> Profile {
    let flags = Flags {
        deny_read: vec!["secrets".into()],
        allow: vec![
            "*.example.org".parse().unwrap(),
            "a.test:8443".parse().unwrap(),
        ],
        block: vec!["evil.example.org".parse().unwrap()],
        host_port: vec![5432],
        ..Flags::default()
    };
    with_flags(flags).unwrap()
}

#[test]
fn paths() {
    let texts = [
        "/home/u/ws/src/main.rs",
        "/home/u/ws/.git/config",
        "/home/u/.ssh/id_ed25519",
        "/home/u/ws/secrets",
        "/home/u/ws/secrets/key",
        "/etc/passwd",
        "/tmp/x",
        "/home/u/ws/a\nb",
    ]
    .map(|path| explain_path(&profile(), &abs(path)).to_string());
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn names_that_are_judged_later_are_noted() {
    let note = |path: &str| explain_path(&profile(), &abs(path)).note;
    assert!(note("/home/u/ws/cache.git/hooks/post-receive").is_some());
    assert!(note("/home/u/ws/.git/rebase-merge/git-rebase-todo").is_some());
    for path in [
        "/home/u/ws/cache.git/hooks/post-receive.sample",
        "/home/u/ws/sub/.vscode/tasks.json",
        "/home/u/ws/.git/config",
        "/home/u/ws/src/main.rs",
        "/etc/config",
    ] {
        assert_eq!(note(path), None, "{path}");
    }
}

#[test]
fn hosts() {
    let texts = [
        ("www.example.org", 443),
        ("EVIL.example.org.", 443),
        ("a.test", 443),
        ("other.test", 22),
        ("127.0.0.1", 8080),
        ("localhost", 5432),
    ]
    .map(|(host, port)| explain_network(&profile(), &Host::parse(host).unwrap(), port).to_string());
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn hosts_when_the_network_is_off_or_open() {
    let host = Host::parse("a.test").unwrap();
    let off = with_flags(Flags::default()).unwrap();
    let open = with_flags(Flags {
        net: Some(NetworkMode::Open),
        block: vec!["b.test".parse().unwrap()],
        ..Flags::default()
    })
    .unwrap();
    assert!(!explain_network(&off, &host, 443).allowed);
    assert!(explain_network(&open, &host, 443).allowed);
    let blocked = explain_network(&open, &Host::parse("b.test").unwrap(), 443);
    assert!(!blocked.allowed);
    assert_eq!(blocked.origin.as_str(), "--block b.test");
}

#[test]
fn the_grant_that_is_named_suffices() {
    for path in [
        "/home/u/.ssh/id_ed25519",
        "/home/u/ws/.git/config",
        "/etc/passwd",
    ] {
        let explained = explain_path(&profile(), &abs(path));
        let grant = explained.write.grant.unwrap();
        let granted = grant.strip_prefix("--write ").unwrap().into();
        let opened = with_flags(Flags {
            write: vec![granted],
            ..Flags::default()
        })
        .unwrap();
        assert!(explain_path(&opened, &abs(path)).write.allowed, "{path}");
    }
}

#[test]
fn json_has_the_same_content() {
    let json = serde_json::to_value(explain_path(&profile(), &abs("/home/u/.ssh/x"))).unwrap();
    assert_eq!(
        json["read"],
        serde_json::json!({
            "allowed": false,
            "rule": "deny /home/u/.ssh",
            "origin": "built-in: holds credentials",
            "grant": "--read /home/u/.ssh/x",
        })
    );
}
