//! VT Code's other types, and `SandboxManager::transform`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use stockade::compat::vtcode::{
    AdditionalPermissions, BLOCKED_SYSCALLS, CancellationToken, CommandSpec,
    DEFAULT_SENSITIVE_PATHS, ExecEnv, ExecExpiration, FILTERED_SYSCALLS, NetworkAllowlistEntry,
    ResourceLimits, SandboxManager, SandboxPermissions, SandboxPolicy, SandboxTransformError,
    SandboxType, SeccompProfile, SensitivePath, WritableRoot, default_sensitive_paths,
};

use crate::{Test, dir};

pub(crate) const TESTS: &[Test] = &[
    ("additional_permissions", additional_permissions),
    ("command_spec", command_spec),
    ("expirations", expirations),
    ("network_entries", network_entries),
    ("permissions", permissions),
    ("resource_limits", resource_limits),
    ("sandbox_types", sandbox_types),
    ("seccomp_profile", seccomp_profile),
    ("sensitive_paths", sensitive_paths),
    ("system_calls", system_calls),
    ("transform", transform),
    ("writable_roots", writable_roots),
];

fn additional_permissions() {
    let extra = AdditionalPermissions {
        fs_read: vec!["/srv/read".into()],
        fs_write: vec!["/srv/write".into()],
    };
    assert!(!extra.is_empty() && AdditionalPermissions::default().is_empty());
    let place = stockade::policy::Surroundings::from_env(Path::new("/srv/project")).unwrap();
    let policy = SandboxPolicy::read_only();
    let wider = policy.with_additional_permissions(&extra, &place).unwrap();
    assert!(wider.is_path_writable_in(Path::new("/srv/write/f"), &place));
    // Exactly what is named: not the working directory.
    assert!(!wider.is_path_writable_in(Path::new("/srv/project/f"), &place));
}

fn command_spec() {
    let spec = CommandSpec {
        program: "cat".into(),
        args: vec!["file.txt".into()],
        ..CommandSpec::default()
    };
    assert_eq!(spec.full_command(), ["cat", "file.txt"]);
    let built = CommandSpec::new("cat").with_args(["file.txt"]);
    assert_eq!((&built.program, &built.args), (&spec.program, &spec.args));
    assert_eq!(<CommandSpec>::default().cwd, PathBuf::new());
}

fn expirations() {
    let millis = |expiration: ExecExpiration| expiration.timeout_ms();
    assert_eq!(millis(ExecExpiration::DefaultTimeout), Some(30_000));
    assert_eq!(millis(ExecExpiration::from(1500)), Some(1500));
    assert_eq!(millis(ExecExpiration::from(None)), Some(30_000));
    assert_eq!(millis(Duration::from_secs(2).into()), Some(2000));
    let token = CancellationToken::new();
    assert_eq!(millis(ExecExpiration::Cancellation(token)), None);
}

fn network_entries() {
    let entry = NetworkAllowlistEntry::https("*.example.org");
    assert!(entry.matches("a.example.org", 443) && entry.matches("example.org", 443));
    assert!(!entry.matches("a.example.org", 80));
    let entry = NetworkAllowlistEntry::with_port("Example.org", 8443);
    assert!(entry.matches("example.ORG.", 8443));
    assert!(NetworkAllowlistEntry::https("*.com").pattern().is_err());
}

fn permissions() {
    use SandboxPermissions::{
        BypassSandbox, RequireEscalated, UseDefault, WithAdditionalPermissions,
    };
    assert_eq!(SandboxPermissions::default(), UseDefault);
    assert!(!UseDefault.requires_approval() && WithAdditionalPermissions.requires_approval());
    assert_eq!(UseDefault.merge(RequireEscalated), RequireEscalated);
    assert_eq!(
        BypassSandbox.merge(WithAdditionalPermissions),
        BypassSandbox
    );
    assert_eq!(
        serde_json::to_value(RequireEscalated).unwrap(),
        "require_escalated"
    );
    // Without an approval nothing but the default is carried out.
    let place = dir();
    let spec = CommandSpec::new("true").with_sandbox_permissions(BypassSandbox);
    let policy = SandboxPolicy::read_only();
    let manager = SandboxManager::new();
    let refused = manager.transform(spec, &policy, place.path(), None);
    assert!(matches!(
        refused,
        Err(SandboxTransformError::InvalidPolicy(_))
    ));
}

fn resource_limits() {
    let fields = |limits: ResourceLimits| {
        let ResourceLimits {
            max_memory_mb,
            max_pids,
            max_disk_mb,
            cpu_time_secs,
            timeout_secs,
            ..
        } = limits;
        (
            max_memory_mb,
            max_pids,
            max_disk_mb,
            cpu_time_secs,
            timeout_secs,
        )
    };
    assert_eq!(fields(ResourceLimits::default()), (0, 0, 0, 0, 300));
    assert_eq!(fields(ResourceLimits::unlimited()), (0, 0, 0, 0, 0));
    assert_eq!(
        fields(ResourceLimits::conservative()),
        (512, 64, 1024, 60, 120)
    );
    assert_eq!(
        fields(ResourceLimits::moderate()),
        (2048, 256, 4096, 300, 600)
    );
    assert_eq!(
        fields(ResourceLimits::generous()),
        (8192, 1024, 16384, 0, 3600)
    );
}

fn sandbox_types() {
    assert_eq!(SandboxType::platform_default(), SandboxType::LinuxLandlock);
    assert!(SandboxType::LinuxLandlock.is_available());
    assert!(!SandboxType::MacosSeatbelt.is_available());
    assert!(!SandboxType::WindowsRestrictedToken.is_available());
    assert_eq!(SandboxType::default(), SandboxType::None);
}

fn seccomp_profile() {
    let strict = SeccompProfile::strict();
    assert_eq!(SeccompProfile::default(), strict);
    assert!(strict.is_blocked("mount") && !strict.is_blocked("read"));
    assert!(SeccompProfile::logging().log_only);
    let own = SeccompProfile::permissive().block_syscall("acct");
    assert!(own.is_blocked("acct") && own.allow_network_sockets);
    assert!(strict.clone().with_network().allow_network_sockets);
    assert!(strict.to_json().unwrap().contains("ptrace"));
}

fn sensitive_paths() {
    let defaults = default_sensitive_paths();
    for path in DEFAULT_SENSITIVE_PATHS {
        let entry = SensitivePath::new(path);
        assert!(defaults.contains(&entry), "{path}");
    }
    assert_eq!(DEFAULT_SENSITIVE_PATHS.len(), 17);
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let ssh = SensitivePath::new("~/.ssh");
    assert_eq!(ssh.expand_path(), home.join(".ssh"));
    assert!(ssh.matches(&home.join(".ssh/id")) && ssh.matches(&home.join("x/../.ssh")));
    assert!(!ssh.matches(&home.join(".sshx")));
    let write_only = SensitivePath::write_only("/srv");
    assert!(write_only.block_write && !write_only.block_read);
}

fn system_calls() {
    let strict = SeccompProfile::strict();
    for name in BLOCKED_SYSCALLS {
        assert!(strict.is_blocked(name), "{name}");
        let found = BLOCKED_SYSCALLS.iter().filter(|other| *other == name);
        assert_eq!(found.count(), 1, "{name}");
    }
    for name in ["clone", "clone3", "ioctl", "prctl", "socket"] {
        assert!(FILTERED_SYSCALLS.contains(&name), "{name}");
    }
}

/// The program `stockade`, beside which this one was built.
fn transform() {
    let place = dir();
    let run = |policy: &SandboxPolicy, helper: Option<&Path>| {
        let spec = CommandSpec::new("cat").with_args(["file.txt"]);
        SandboxManager::new().transform(spec, policy, place.path(), helper)
    };
    let open = run(&SandboxPolicy::full_access(), None).unwrap();
    assert_eq!(open.program, Path::new("cat"));
    assert!(!open.sandbox_active);
    let policy = SandboxPolicy::read_only();
    let missing = run(&policy, None);
    assert_eq!(
        missing,
        Err(SandboxTransformError::MissingSandboxExecutable)
    );
    for odd in ["/nonexistent", "relative", "/etc/passwd", "/bin/true"] {
        let refused = run(&policy, Some(Path::new(odd)));
        let is_refused = matches!(refused, Err(SandboxTransformError::CreationFailed(_)));
        assert!(is_refused, "{odd}: {refused:?}");
    }
    if let Some(stockade) = stockade_program() {
        let ExecEnv {
            program,
            args,
            sandbox_active,
            sandbox_type,
            ..
        } = run(&policy, Some(&stockade)).unwrap();
        assert_eq!(program, stockade);
        assert_eq!(args[args.len() - 2..], ["cat", "file.txt"]);
        assert!(sandbox_active);
        assert_eq!(sandbox_type, SandboxType::LinuxLandlock);
    }
}

/// Cargo builds it with the whole workspace.
fn stockade_program() -> Option<PathBuf> {
    let own = crate::own_path();
    let program = own.ancestors().nth(2)?.join("stockade");
    program.is_file().then_some(program)
}

fn writable_roots() {
    let root = WritableRoot::new("/srv/root");
    let value = serde_json::to_value(&root).unwrap();
    assert_eq!(value, serde_json::json!({"root": "/srv/root"}));
    assert_eq!(serde_json::from_value::<WritableRoot>(value).unwrap(), root);
}
