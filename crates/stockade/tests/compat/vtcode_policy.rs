//! VT Code's `SandboxPolicy`.

use std::path::{Path, PathBuf};

use serde_json::json;
use stockade::compat::vtcode::{
    NetworkAllowlistEntry, ResourceLimits, SandboxPolicy, SeccompProfile, SensitivePath,
};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("constructors", constructors),
    ("hidden_places", hidden_places),
    ("json_fields", json_fields),
    ("limits_and_filter", limits_and_filter),
    ("network", network),
    ("replacement", replacement),
    ("traits", traits),
    ("variants", variants),
    ("write_predicates", write_predicates),
];

const CWD: &str = "/srv/project";

fn roots() -> Vec<PathBuf> {
    vec!["/srv/root".into()]
}

fn hosts() -> Vec<NetworkAllowlistEntry> {
    vec![NetworkAllowlistEntry::https("*.example.org")]
}

fn external() -> SandboxPolicy {
    SandboxPolicy::ExternalSandbox {
        description: "a container".to_owned(),
    }
}

fn variants() {
    let tag = |policy: &SandboxPolicy| serde_json::to_value(policy).unwrap()["type"].clone();
    for (policy, word, description) in [
        (SandboxPolicy::read_only(), "read_only", "read-only access"),
        (
            SandboxPolicy::workspace_write(roots()),
            "workspace_write",
            "workspace write access",
        ),
        (
            SandboxPolicy::full_access(),
            "danger_full_access",
            "full access (dangerous)",
        ),
        (external(), "external_sandbox", "external sandbox"),
    ] {
        assert_eq!(tag(&policy), word);
        assert_eq!(policy.description(), description);
        let expected = match policy {
            SandboxPolicy::ReadOnly { .. } => "read_only",
            SandboxPolicy::WorkspaceWrite { .. } => "workspace_write",
            SandboxPolicy::DangerFullAccess => "danger_full_access",
            SandboxPolicy::ExternalSandbox { .. } => "external_sandbox",
        };
        assert_eq!(word, expected);
    }
}

fn json_fields() {
    let read = |value| serde_json::from_value::<SandboxPolicy>(value);
    let policy = read(json!({"type": "read_only", "network_access": true})).unwrap();
    assert!(policy.has_full_network_access());
    let list = json!([{"domain": "example.org"}]);
    let policy = read(json!({"type": "read_only", "network_allowlist": list})).unwrap();
    assert_eq!(policy.network_allowlist().len(), 1);
    assert_eq!(policy.network().allowlist()[0].port, 443);
    let policy = read(json!({
        "type": "workspace_write",
        "writable_roots": [{"root": "/srv/root"}],
        "network_access": true,
        "network_allowlist": list,
        "sensitive_paths": [{"path": "/srv/secret"}],
        "resource_limits": {"max_pids": 7},
        "seccomp_profile": {"blocked_syscalls": ["ptrace"]},
        "exclude_tmpdir_env_var": false,
        "exclude_slash_tmp": false,
    }));
    let SandboxPolicy::WorkspaceWrite {
        writable_roots,
        sensitive_paths,
        resource_limits,
        seccomp_profile,
        exclude_tmpdir_env_var,
        exclude_slash_tmp,
        ..
    } = policy.unwrap()
    else {
        panic!("another variant");
    };
    assert_eq!(writable_roots[0].root, Path::new("/srv/root"));
    let hidden = vec![SensitivePath::new("/srv/secret")];
    assert_eq!(sensitive_paths, Some(hidden));
    assert_eq!(resource_limits.max_pids, 7);
    // A part of the limits keeps the default of the others.
    assert_eq!(resource_limits.timeout_secs, 300);
    assert_eq!(seccomp_profile.blocked_syscalls, ["ptrace"]);
    assert!(!exclude_tmpdir_env_var && !exclude_slash_tmp);
    let told = read(json!({"type": "external_sandbox", "description": "d"})).unwrap();
    let SandboxPolicy::ExternalSandbox { description } = told else {
        panic!("another variant");
    };
    assert_eq!(description, "d");
    assert!(read(json!({"type": "read_only", "netwrok_access": true})).is_err());
}

fn constructors() {
    let read_only = SandboxPolicy::read_only();
    assert_eq!(read_only, SandboxPolicy::new_read_only_policy());
    assert!(!read_only.has_full_network_access());
    let listed = SandboxPolicy::read_only_with_network(hosts());
    assert_eq!(listed.network_allowlist(), hosts());
    assert!(SandboxPolicy::read_only_with_full_network().has_full_network_access());
    let write = SandboxPolicy::workspace_write(roots());
    assert!(write.is_path_writable(Path::new("/srv/root/f"), Path::new(CWD)));
    let listed = SandboxPolicy::workspace_write_with_network(roots(), hosts());
    assert!(listed.has_network_allowlist());
    let secret = vec![SensitivePath::new("/srv/secret")];
    let hidden = SandboxPolicy::workspace_write_with_sensitive_paths(roots(), secret.clone());
    assert_eq!(hidden.sensitive_paths(), secret);
    let open = SandboxPolicy::workspace_write_no_sensitive_blocking(roots());
    assert_eq!(open.sensitive_paths(), []);
    let limits = ResourceLimits::conservative();
    let limited = SandboxPolicy::workspace_write_with_limits(roots(), limits);
    assert_eq!(limited.resource_limits(), limits);
    let filter = SeccompProfile::permissive();
    let full = SandboxPolicy::workspace_write_full(
        roots(),
        hosts(),
        Some(secret.clone()),
        limits,
        filter.clone(),
    );
    assert_eq!(full.sensitive_paths(), secret);
    assert_eq!(
        full.seccomp_profile().blocked_syscalls,
        filter.blocked_syscalls
    );
    assert_eq!(
        SandboxPolicy::full_access(),
        SandboxPolicy::DangerFullAccess
    );
}

fn network() {
    let listed = SandboxPolicy::read_only_with_network(hosts());
    assert!(listed.has_network_allowlist() && !listed.has_full_network_access());
    assert_eq!(listed.network_allowlist().len(), 1);
    for (host, port, allowed) in [
        ("registry.example.org", 443, true),
        ("a.b.example.org", 443, true),
        ("example.org", 443, true),
        ("EXAMPLE.org.", 443, true),
        ("evilexample.org", 443, false),
        ("example.org.evil.test", 443, false),
        ("example.org", 80, false),
        ("not a host", 443, false),
    ] {
        assert_eq!(listed.is_network_allowed(host, port), allowed, "{host}");
    }
    assert!(!SandboxPolicy::read_only().is_network_allowed("example.org", 443));
    assert!(SandboxPolicy::full_access().is_network_allowed("example.org", 443));
}

fn hidden_places() {
    let policy = SandboxPolicy::workspace_write(roots());
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    for path in [".ssh/id_ed25519", "x/../.aws/credentials", ".netrc"] {
        let path = home.join(path);
        assert!(policy.is_sensitive_path(&path), "{}", path.display());
        assert!(!policy.is_path_readable(&path), "{}", path.display());
    }
    assert!(policy.is_path_readable(Path::new("/srv/root/.git/config")));
    assert!(!policy.has_full_disk_read_access());
    assert!(SandboxPolicy::full_access().has_full_disk_read_access());
    let plain = policy.sensitive_paths();
    assert!(plain.iter().any(|entry| entry.path.ends_with(".ssh")));
    // Every name that the engine protects at the top of a root.
    let execution = policy.sensitive_paths_for_execution(Path::new(CWD));
    for name in stockade::policy::PROTECTED_IN_ROOTS {
        let path = Path::new("/srv/root").join(name);
        let entry = execution.iter().find(|entry| entry.path == path);
        let entry = entry.unwrap_or_else(|| panic!("{name} is not protected"));
        assert!(entry.block_write && !entry.block_read);
    }
}

fn write_predicates() {
    let policy = SandboxPolicy::workspace_write(roots());
    let cwd = Path::new(CWD);
    let writable = |path: &str| policy.is_path_writable(Path::new(path), cwd);
    let blocked = |path: &str| policy.is_path_write_blocked(Path::new(path), cwd);
    for path in ["/srv/root/src/main.rs", "/srv/project", "/srv/project/f"] {
        assert!(writable(path) && !blocked(path), "{path}");
    }
    for path in [
        "/etc/passwd",
        "/srv/root/../../etc/passwd",
        "/srv/project/../other",
    ] {
        assert!(!writable(path), "{path}");
    }
    for name in stockade::policy::PROTECTED_IN_ROOTS {
        for root in ["/srv/root", CWD] {
            let path = format!("{root}/{name}");
            assert!(!writable(&path) && blocked(&path), "{path}");
        }
    }
    let found = policy.get_writable_roots_with_cwd(cwd);
    let found: Vec<&Path> = found.iter().map(|root| root.root.as_path()).collect();
    assert_eq!(found, [Path::new("/srv/root"), cwd]);
    assert!(!policy.has_full_disk_write_access());
    assert!(SandboxPolicy::full_access().has_full_disk_write_access());
    assert!(!SandboxPolicy::read_only().is_path_writable(cwd, cwd));
}

fn limits_and_filter() {
    let read_only = SandboxPolicy::read_only();
    assert_eq!(read_only.resource_limits().max_memory_mb, 512);
    assert!(!read_only.seccomp_profile().allow_network_sockets);
    assert!(read_only.seccomp_profile().is_blocked("ptrace"));
    let open = SandboxPolicy::read_only_with_full_network();
    assert!(open.seccomp_profile().allow_network_sockets);
    let full = SandboxPolicy::full_access();
    assert_eq!(full.resource_limits(), ResourceLimits::unlimited());
}

fn replacement() {
    let read_only = SandboxPolicy::read_only();
    let write = SandboxPolicy::workspace_write(roots());
    let full = SandboxPolicy::full_access();
    for (from, to, is_fine) in [
        (&read_only, &read_only, true),
        (&read_only, &write, false),
        (&read_only, &full, false),
        (&write, &full, false),
        (&write, &external(), false),
        (&full, &read_only, true),
        (&full, &write, true),
    ] {
        assert_eq!(from.can_set(to).is_ok(), is_fine, "{from:?} to {to:?}");
    }
}

fn traits() {
    fn is<T: Clone + std::fmt::Debug + Default + Eq + Send + Sync>(value: &T) -> T {
        value.clone()
    }
    let policy = SandboxPolicy::workspace_write_with_network(roots(), hosts());
    assert_eq!(is(&policy), policy);
    assert_eq!(SandboxPolicy::default(), SandboxPolicy::read_only());
    assert!(format!("{policy:?}").contains("WorkspaceWrite"));
    let text = serde_json::to_string(&policy).unwrap();
    assert_eq!(
        serde_json::from_str::<SandboxPolicy>(&text).unwrap(),
        policy
    );
}
