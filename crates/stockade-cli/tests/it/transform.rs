//! What `SandboxManager::transform` gives is executed, and the policy in it holds.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use stockade::compat::vtcode::SandboxManager;
use stockade_policy::{CommandSpec, ExecEnv, SandboxPolicy};

const STOCKADE: &str = env!("CARGO_BIN_EXE_stockade");

fn dir() -> tempfile::TempDir {
    // Not below /tmp, which every sandbox has for itself.
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn shell(script: &str) -> CommandSpec {
    CommandSpec::new("/bin/sh").with_args(["-c", script])
}

fn transform(spec: CommandSpec, policy: &SandboxPolicy, cwd: &Path) -> ExecEnv {
    let helper = Some(Path::new(STOCKADE));
    SandboxManager::new()
        .transform(spec, policy, cwd, helper)
        .unwrap()
}

fn execute(env: &ExecEnv) -> Output {
    Command::new(&env.program)
        .args(&env.args)
        .current_dir(&env.cwd)
        .env_clear()
        .envs(&env.env)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_policy_holds_and_the_command_works() {
    let (workspace, outside) = (dir(), dir());
    let target = outside.path().join("t");
    let script = format!(
        "echo in > f; echo out > '{}'; cat f; exit 9",
        target.display()
    );
    let control = shell(&script);
    let policy = SandboxPolicy::full_access();
    let output = execute(&transform(control, &policy, workspace.path()));
    assert_eq!(output.status.code(), Some(9));
    fs::remove_file(&target).expect("the control wrote it");
    fs::remove_file(workspace.path().join("f")).unwrap();

    let policy = SandboxPolicy::workspace_write(vec![]);
    let env = transform(shell(&script), &policy, workspace.path());
    assert!(env.sandbox_active);
    let output = execute(&env);
    assert_eq!(output.status.code(), Some(9), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "in\n");
    assert!(workspace.path().join("f").exists());
    assert!(!target.exists());
}

#[test]
fn the_command_gets_its_variables_and_nothing_of_the_hand_over() {
    let workspace = dir();
    let spec = CommandSpec::new("/usr/bin/env").with_env([
        ("OWN", "a b=c"),
        ("HOME", "/elsewhere"),
        ("SOME_TOKEN", "wanted"),
    ]);
    let env = transform(spec, &SandboxPolicy::read_only(), workspace.path());
    let secret = |word: &OsStr| word.to_string_lossy().contains("wanted");
    assert!(!env.args.iter().any(|word| secret(word)));
    let output = execute(&env);
    let out = text(&output.stdout);
    for line in [
        "OWN=a b=c",
        "HOME=/elsewhere",
        "SOME_TOKEN=wanted",
        "STOCKADE_SANDBOX_ACTIVE=1",
    ] {
        assert!(out.lines().any(|found| found == line), "{line}: {out}");
    }
    assert!(!out.contains("STOCKADE_POLICY"), "{out}");
}

/// A home that the command chose must not move the user's sensitive paths.
#[test]
fn the_commands_home_does_not_open_the_users() {
    let (home, workspace) = (dir(), dir());
    let key = home.path().join(".ssh/id_ed25519");
    fs::create_dir(home.path().join(".ssh")).unwrap();
    fs::write(&key, "the key").unwrap();
    let spec = CommandSpec::new("/bin/cat")
        .with_args([&key])
        .with_env([("HOME", "/elsewhere")]);
    let mut env = transform(spec, &SandboxPolicy::read_only(), workspace.path());
    let mut read_as = |user_home: &Path| {
        // As if this program had been started by that user.
        env.env.insert("HOME".into(), user_home.into());
        let output = execute(&env);
        text(&output.stdout)
    };
    assert_eq!(read_as(workspace.path()), "the key", "the control");
    assert_eq!(read_as(home.path()), "");
}

#[test]
fn loader_variables_stay_inside() {
    let workspace = dir();
    let spec = CommandSpec::new("/bin/sh")
        .with_args(["-c", "echo $LD_PRELOAD"])
        .with_env([("LD_PRELOAD", "/nonexistent/library.so")]);
    let env = transform(spec, &SandboxPolicy::read_only(), workspace.path());
    let output = execute(&env);
    let complaints = text(&output.stderr);
    // The loader complains once for the shell inside, and not for the helper.
    assert_eq!(
        complaints.matches("ERROR: ld.so").count(),
        1,
        "{complaints}"
    );
    assert_eq!(text(&output.stdout), "/nonexistent/library.so\n");
}

#[test]
fn the_sandbox_ends_at_the_commands_expiration() {
    let workspace = dir();
    let spec = shell("sleep 3600").with_expiration(1000);
    let env = transform(spec, &SandboxPolicy::read_only(), workspace.path());
    assert_eq!(execute(&env).status.code(), Some(124));
}

#[test]
fn a_policy_that_is_not_there_or_is_mixed_with_flags_starts_nothing() {
    let run = |words: &[&str], policy: Option<&str>| {
        let mut command = Command::new(STOCKADE);
        command
            .args(["run"])
            .args(words)
            .args(["--", "echo", "started"]);
        command.env_remove("STOCKADE_POLICY");
        if let Some(policy) = policy {
            command.env("STOCKADE_POLICY", policy);
        }
        let output = command.output().unwrap();
        assert!(!text(&output.stdout).contains("started"));
        (output.status.code(), text(&output.stderr))
    };
    let here = ["--policy-env", "STOCKADE_POLICY"];
    let (code, why) = run(&here, None);
    assert_eq!(code, Some(125), "{why}");
    assert!(
        why.contains("STOCKADE_POLICY") && why.contains("not set"),
        "{why}"
    );
    let (code, why) = run(&here, Some("{\"type\":\"read_only\",\"x\":1}"));
    assert_eq!(code, Some(125), "{why}");
    let read_only = Some("{\"type\":\"read_only\"}");
    for mixed in [
        &["--write", "/etc"][..],
        &["--danger-full-access"],
        &["--net", "open"],
        &["--policy", "/etc/x.toml"],
    ] {
        let words = [&here[..], mixed].concat();
        let (code, why) = run(&words, read_only);
        assert_eq!(code, Some(2), "{mixed:?}: {why}");
    }
}
