use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use stockade_policy::{Approver, ExecExpiration};

use super::*;

/// A program that can be executed; it never is here.
const HELPER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/manager/tests/stockade.sh");

fn dir() -> tempfile::TempDir {
    // Not below /tmp, which every sandbox has for itself.
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn spec() -> CommandSpec {
    CommandSpec::new("cat").with_args(["file.txt"])
}

fn transform(
    spec: CommandSpec,
    policy: &SandboxPolicy,
    cwd: &Path,
) -> Result<ExecEnv, SandboxTransformError> {
    SandboxManager::new().transform(spec, policy, cwd, Some(Path::new(HELPER)))
}

fn external() -> SandboxPolicy {
    SandboxPolicy::ExternalSandbox {
        description: "a container".into(),
    }
}

fn handed_over(env: &ExecEnv) -> SandboxPolicy {
    let json = &env.env[std::ffi::OsStr::new(STOCKADE_POLICY)];
    SandboxPolicy::from_json(json.as_encoded_bytes()).unwrap()
}

#[test]
fn the_example_of_the_seeds() {
    let spec = CommandSpec {
        program: "cat".to_string(),
        args: vec!["file.txt".to_string()],
        ..Default::default()
    };
    let manager = SandboxManager::new();
    let policy = SandboxPolicy::read_only();
    assert_eq!(
        manager.transform(spec, &policy, Path::new("/var/tmp"), None),
        Err(SandboxTransformError::MissingSandboxExecutable)
    );
}

#[test]
fn a_restricted_policy_puts_the_helper_around_the_command() {
    let dir = dir();
    let command = spec().with_env([("KEY", "a secret"), ("LD_PRELOAD", "x.so")]);
    let env = transform(command, &SandboxPolicy::read_only(), dir.path()).unwrap();
    assert_eq!(env.program, Path::new(HELPER));
    let cwd = dir.path().to_str().unwrap();
    assert_eq!(
        env.args,
        [
            "run",
            "--quiet",
            "--policy-env",
            "STOCKADE_POLICY",
            "-C",
            cwd,
            "--",
            "cat",
            "file.txt"
        ]
    );
    assert!(env.sandbox_active);
    assert_eq!(env.sandbox_type, SandboxType::LinuxLandlock);
    assert_eq!(env.cwd, dir.path());
    let has = |name: &str| env.env.contains_key(std::ffi::OsStr::new(name));
    assert!(has("STOCKADE_POLICY_SET_KEY") && !has("KEY") && !has("LD_PRELOAD"));
    assert!(has("PATH"), "what always passes is there");
}

#[test]
fn full_access_is_passed_through() {
    let policy = SandboxPolicy::full_access();
    let manager = SandboxManager::new();
    let command = spec().with_env([("KEY", "value")]);
    let env = manager
        .transform(command, &policy, Path::new("/"), None)
        .unwrap();
    assert_eq!(env.program, Path::new("cat"));
    assert_eq!(env.args, ["file.txt"]);
    assert_eq!(env.cwd, Path::new("/"));
    assert!(!env.sandbox_active);
    assert_eq!(env.sandbox_type, SandboxType::None);
    let key = std::ffi::OsStr::new("KEY");
    assert_eq!(env.env[key], "value");
}

#[test]
fn an_external_sandbox_is_not_taken_at_its_word() {
    let error = transform(spec(), &external(), Path::new("/")).unwrap_err();
    assert!(error.to_string().contains("a container"), "{error}");
    let trusting = SandboxManager::new().danger_trust_external_sandbox();
    let env = trusting
        .transform(spec(), &external(), Path::new("/"), None)
        .unwrap();
    assert!(!env.sandbox_active);
}

#[test]
fn the_helper_must_be_a_program_that_stays_what_it_is() {
    let dir = dir();
    let own = dir.path().join("helper");
    let try_with = |helper: &Path, policy: SandboxPolicy| {
        let manager = SandboxManager::new();
        let result = manager.transform(spec(), &policy, dir.path(), Some(helper));
        result.map_err(|error| error.to_string())
    };
    let read_only = SandboxPolicy::read_only;
    let text = try_with(&own, read_only()).unwrap_err();
    assert!(text.contains("can't be used"), "{text}");
    std::fs::write(&own, "#!/bin/sh\n").unwrap();
    let text = try_with(&own, read_only()).unwrap_err();
    assert!(text.contains("not a program"), "{text}");
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
    // A program that ignores its arguments would not run the command.
    let text = try_with(&own, read_only()).unwrap_err();
    assert!(text.contains("not the program `stockade`"), "{text}");
    assert!(try_with(Path::new(HELPER), read_only()).is_ok());
    let text = try_with(Path::new("true"), read_only()).unwrap_err();
    assert!(text.contains("absolute"), "{text}");
    let text = try_with(dir.path(), read_only()).unwrap_err();
    assert!(text.contains("not a program"), "{text}");
    // The workspace is writable: the command could put another program there.
    let text = try_with(&own, SandboxPolicy::workspace_write(vec![])).unwrap_err();
    assert!(text.contains("replaced"), "{text}");
}

#[test]
fn what_can_not_be_enforced_is_not_called_active() {
    let missing = transform(
        spec(),
        &SandboxPolicy::read_only(),
        Path::new("/no/such/dir"),
    );
    let error = missing.unwrap_err();
    assert!(
        matches!(&error, SandboxTransformError::CreationFailed(_)),
        "{error}"
    );
    assert!(error.to_string().contains("/no/such/dir"), "{error}");
    let relative = transform(spec(), &SandboxPolicy::read_only(), Path::new("some/dir"));
    assert!(matches!(
        relative,
        Err(SandboxTransformError::InvalidPolicy(_))
    ));
    let nul = spec().with_args(["a\0b"]);
    let nul = transform(nul, &SandboxPolicy::read_only(), Path::new("/var/tmp"));
    assert!(matches!(nul, Err(SandboxTransformError::CreationFailed(_))));
    let large = spec().with_env([("LARGE", "x".repeat(200_000))]);
    let large = transform(large, &SandboxPolicy::read_only(), Path::new("/var/tmp"));
    assert!(matches!(
        large,
        Err(SandboxTransformError::CreationFailed(_))
    ));
}

#[test]
fn the_policy_is_about_the_sandbox_directory_wherever_the_command_starts() {
    let dir = dir();
    let (workspace, elsewhere) = (dir.path().join("ws"), dir.path().join("else"));
    std::fs::create_dir(&workspace).unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    let policy = SandboxPolicy::workspace_write(vec!["sub".into()]);
    let env = transform(spec().with_cwd(&elsewhere), &policy, &workspace).unwrap();
    assert_eq!(env.cwd, elsewhere);
    let policy = handed_over(&env);
    for (path, writable) in [("ws/f", true), ("ws/sub/f", true), ("else/f", false)] {
        let path = dir.path().join(path);
        assert_eq!(
            policy.is_path_writable(&path, &elsewhere),
            writable,
            "{path:?}"
        );
    }
    let relative = transform(spec().with_cwd("../else"), &policy, &workspace).unwrap();
    assert_eq!(relative.cwd, elsewhere);
}

#[test]
fn the_sandbox_ends_when_the_command_must() {
    let dir = dir();
    let seconds = |expiration: ExecExpiration| {
        let spec = spec().with_expiration(expiration);
        let env = transform(spec, &SandboxPolicy::read_only(), dir.path()).unwrap();
        handed_over(&env).resource_limits().timeout_secs
    };
    let stated = SandboxPolicy::read_only()
        .resource_limits()
        .effective_timeout_secs();
    assert_eq!(seconds(ExecExpiration::DefaultTimeout), 30);
    assert_eq!(seconds(Duration::from_millis(1).into()), 1);
    assert_eq!(seconds(Duration::from_millis(2500).into()), 3);
    assert_eq!(seconds(Duration::MAX.into()), stated);
    let token = stockade_policy::CancellationToken::new();
    assert_eq!(seconds(token.into()), stated);
}

#[test]
fn leaving_the_sandbox_needs_an_approval() {
    let dir = dir();
    let manager = SandboxManager::new();
    let none = AdditionalPermissions::default();
    let policy = SandboxPolicy::read_only();
    for asks in [
        SandboxPermissions::RequireEscalated,
        SandboxPermissions::BypassSandbox,
    ] {
        let spec = spec()
            .with_sandbox_permissions(asks)
            .with_justification("it must");
        let refused = transform(spec.clone(), &policy, dir.path()).unwrap_err();
        assert!(refused.to_string().contains("approved"), "{refused}");
        let scope = manager
            .approval_scope(&spec, &policy, &none, dir.path())
            .unwrap();
        assert_eq!(*scope.policy(), SandboxPolicy::DangerFullAccess);
        let approver = Approver::danger_on_behalf_of_the_user();
        let present = |spec: CommandSpec, cwd: &Path| {
            let approval = approver.approve(scope.clone(), "it must").unwrap();
            manager.transform_with_approval(spec, &policy, &none, cwd, None, approval)
        };
        let env = present(spec.clone(), dir.path()).unwrap();
        assert_eq!(env.program, Path::new("cat"));
        assert!(!env.sandbox_active);
        let other = spec.clone().with_args(["other.txt"]);
        let error = present(other, dir.path()).unwrap_err();
        assert!(error.to_string().contains("the command differs"), "{error}");
        let error = present(spec.clone(), Path::new("/")).unwrap_err();
        assert!(error.to_string().contains("directory differs"), "{error}");
        let silent = CommandSpec {
            justification: None,
            ..spec
        };
        assert!(present(silent, dir.path()).is_err());
    }
}

#[test]
fn additional_paths_need_an_approval_for_those_paths() {
    let dir = dir();
    let manager = SandboxManager::new();
    let helper = Some(Path::new(HELPER));
    let policy = SandboxPolicy::read_only();
    let spec = spec().with_sandbox_permissions(SandboxPermissions::WithAdditionalPermissions);
    let asking = |path: &Path| AdditionalPermissions {
        fs_write: vec![path.to_owned()],
        ..AdditionalPermissions::default()
    };
    let (granted, other) = (dir.path().join("granted"), dir.path().join("other"));
    assert!(transform(spec.clone(), &policy, dir.path()).is_err());
    let approver = Approver::danger_on_behalf_of_the_user();
    let scope = manager
        .approval_scope(&spec, &policy, &asking(&granted), dir.path())
        .unwrap();
    let present = |additional: &AdditionalPermissions| {
        let approval = approver.approve(scope.clone(), "build").unwrap();
        let spec = spec.clone();
        manager.transform_with_approval(spec, &policy, additional, dir.path(), helper, approval)
    };
    let env = present(&asking(&granted)).unwrap();
    assert!(env.sandbox_active);
    let enforced = handed_over(&env);
    assert!(enforced.is_path_writable(&granted.join("f"), dir.path()));
    assert!(!enforced.is_path_writable(&other, dir.path()));
    assert!(!enforced.is_path_writable(&dir.path().join("f"), dir.path()));
    let error = present(&asking(&other)).unwrap_err();
    assert!(error.to_string().contains("the policy differs"), "{error}");
    let error = present(&AdditionalPermissions::default()).unwrap_err();
    assert!(error.to_string().contains("no path"), "{error}");
}

/// An approval names the workspace: it can't be used to make another one writable.
#[test]
fn an_approval_is_for_one_workspace() {
    let dir = dir();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    std::fs::create_dir(&one).unwrap();
    std::fs::create_dir(&two).unwrap();
    let manager = SandboxManager::new();
    let policy = SandboxPolicy::workspace_write(vec![]);
    let additional = AdditionalPermissions {
        fs_read: vec!["/etc".into()],
        ..AdditionalPermissions::default()
    };
    let spec = spec()
        .with_cwd("/")
        .with_sandbox_permissions(SandboxPermissions::WithAdditionalPermissions);
    let scope = manager
        .approval_scope(&spec, &policy, &additional, &one)
        .unwrap();
    let approver = Approver::danger_on_behalf_of_the_user();
    let approval = approver.approve(scope, "read").unwrap();
    let helper = Some(Path::new(HELPER));
    let used = manager.transform_with_approval(spec, &policy, &additional, &two, helper, approval);
    assert!(used.is_err());
}
