//! `stockade hook`: agents outside, each of their commands inside.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::definitions::{CLAUDE, CODEX, GEMINI, OPENCODE};
use super::fixture::{Agent, Fixture, Reach};
use crate::context::Context;
use crate::hint_list::Hints;

/// The agent runs outside, as it is; the control is that of `inside.rs`.
fn commands_are_confined(agent: &'static Agent, test: &str) {
    if !agent.is_installed(test) {
        return;
    }
    let fixture = Fixture::new(agent, Reach::Loopback);
    let installed = fixture.stockade(&["hook", "install", agent.name]);
    let installed = installed.ends_with(0);
    assert!(installed.stdout.contains("was confined"), "{installed:#?}");
    fixture
        .stockade(&["hook", "status", agent.name])
        .ends_with(0);
    let before = fs::read_to_string(fixture.path("home").join(agent.settings.0)).unwrap();
    let ran = fixture.bare();
    let report = fixture.report();
    assert!(
        report.contains("planted: "),
        "{ran:#?} {:#?}",
        fixture.requests()
    );
    assert!(!report.contains("the planted key"), "{report}");
    assert!(!fixture.path("home/escaped").exists(), "{ran:#?}");
    let after = fs::read_to_string(fixture.path("home").join(agent.settings.0)).unwrap();
    assert_eq!(before, after);
    let requests = fixture.requests();
    let result = requests.last().unwrap()["result"].to_string();
    assert!(result.contains("the-tool-ran"), "{requests:#?}");
    fixture
        .stockade(&["hook", "uninstall", agent.name])
        .ends_with(0);
    let restored = fs::read_to_string(fixture.path("home").join(agent.settings.0)).unwrap();
    assert_eq!(restored, agent.settings.1);
}

#[test]
fn commands_of_claude_are_confined() {
    commands_are_confined(&CLAUDE, "agents::commands_of_claude_are_confined");
}

/// Codex trusts a hook only when a person says so in its own dialogue, which a flag stands for here.
#[test]
fn commands_of_codex_are_confined() {
    static TRUSTING: Agent = Agent {
        arguments: &[
            "exec",
            "--dangerously-bypass-hook-trust",
            "--skip-git-repo-check",
            "--sandbox",
            "danger-full-access",
            "-c",
            "model=m",
            "-c",
            "model_provider=t",
            "-c",
            r#"model_providers.t={name="t",base_url="{url}/v1",env_key="OPENAI_API_KEY",wire_api="responses"}"#,
            "touch it",
        ],
        ..CODEX
    };
    commands_are_confined(&TRUSTING, "agents::commands_of_codex_are_confined");
}

#[test]
fn commands_of_gemini_are_confined() {
    commands_are_confined(&GEMINI, "agents::commands_of_gemini_are_confined");
}

#[test]
fn commands_of_opencode_are_confined() {
    commands_are_confined(&OPENCODE, "agents::commands_of_opencode_are_confined");
}

#[test]
fn commands_of_one_agent_share_a_session_and_a_directory() {
    let test = "agents::commands_of_one_agent_share_a_session_and_a_directory";
    if !CLAUDE.is_installed(test) {
        return;
    }
    let commands = "mkdir sub; cd sub; echo shared >/tmp/file-$$; echo $$ >pid\n\n\
                    pwd; cat /tmp/file-$(cat pid); rm /tmp/file-$(cat pid); exit 3";
    for is_hooked in [false, true] {
        let fixture = Fixture::with_commands(&CLAUDE, Reach::Loopback, commands);
        if is_hooked {
            fixture
                .stockade(&["hook", "install", "claude"])
                .ends_with(0);
        }
        let ran = fixture.bare();
        let requests = fixture.requests();
        let last = requests.last().unwrap()["result"].to_string();
        for piece in ["Exit code 3", "project/sub", "shared"] {
            assert!(last.contains(piece), "{piece} {ran:#?} {requests:#?}");
        }
    }
}

#[test]
fn codex_is_said_to_need_trust() {
    let context = Context::new();
    let installed = context.stockade(["hook", "install", "codex"]).ends_with(0);
    assert!(installed.stderr.contains("UNCONFINED"), "{installed:#?}");
    let status = context
        .stockade(["hook", "status", "codex", "--json"])
        .ends_with(0);
    assert_eq!(status.json()["installed"], true);
    assert!(status.json()["note"].is_string());
}

#[test]
fn settings_come_back_byte_for_byte() {
    let context = Context::new();
    let odd = "{\"z\" : 1.50e1,\n\t\"hooks\":{\"Stop\":[ ]}, \"a\":\"\\u00e9\"}";
    let file = context.home().join(".claude/settings.json");
    fs::create_dir(file.parent().unwrap()).unwrap();
    fs::write(&file, odd).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    context.stockade(["hook", "status", "claude"]).ends_with(1);
    context.stockade(["hook", "install", "claude"]).ends_with(0);
    let installed = fs::read_to_string(&file).unwrap();
    assert!(
        installed.contains("1.50e1") && installed.contains("hook rewrite claude"),
        "{installed}"
    );
    // A second time changes nothing.
    context.stockade(["hook", "install", "claude"]).ends_with(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), installed);
    context
        .stockade(["hook", "uninstall", "claude"])
        .ends_with(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), odd);
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn what_the_user_changed_since_stays() {
    let context = Context::new();
    let file = context.home().join(".claude/settings.json");
    context.stockade(["hook", "install", "claude"]).ends_with(0);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen('{', "{\"model\": \"x\",", 1)).unwrap();
    context
        .stockade(["hook", "uninstall", "claude"])
        .ends_with(0);
    let left: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(left["model"], "x");
    assert_eq!(left["hooks"]["PreToolUse"].as_array().unwrap().len(), 0);
    // A file that the hook made goes with it.
    fs::remove_file(&file).unwrap();
    context.stockade(["hook", "install", "claude"]).ends_with(0);
    context
        .stockade(["hook", "uninstall", "claude"])
        .ends_with(0);
    assert!(!file.exists());
}

#[test]
fn a_hostile_project_gets_no_write_through_it() {
    let context = Context::new();
    let outside = context.home().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("settings.json"), "{}").unwrap();
    let install = || context.stockade(["hook", "install", "claude", "--project"]);
    let untouched = || {
        assert_eq!(
            fs::read_to_string(outside.join("settings.json")).unwrap(),
            "{}"
        );
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    };
    // The directory is a link.
    symlink(&outside, context.project().join(".claude")).unwrap();
    let refused = install().ends_with(1);
    assert!(refused.stderr.contains("symbolic link"), "{refused:#?}");
    untouched();
    // The file is a link.
    fs::remove_file(context.project().join(".claude")).unwrap();
    fs::create_dir(context.project().join(".claude")).unwrap();
    let file = context.project().join(".claude/settings.json");
    symlink(outside.join("settings.json"), &file).unwrap();
    let refused = install().ends_with(1);
    assert!(refused.stderr.contains("symbolic link"), "{refused:#?}");
    untouched();
    // The file is a pipe.
    fs::remove_file(&file).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&file).status();
    assert!(made.unwrap().success());
    let refused = install().ends_with(1);
    assert!(
        refused.stderr.contains("not a regular file"),
        "{refused:#?}"
    );
}

#[test]
fn hints() {
    let hints = Hints::of("agents::hooks::hints");
    let mut context = Context::new();
    let file = context.file(".claude/settings.json", "{\"a\": 1,}");
    let install = |context: &Context| context.stockade(["hook", "install", "claude", "--project"]);
    // Odd JSON: the hint shows where.
    let hint = hints.in_refusal(&install(&context).ends_with(1));
    let shown = context.other(&["sh", "-c", &hint]);
    assert!(
        shown.code != 0 && shown.stderr.contains("line 1"),
        "{shown:#?}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"a\": 1,}");
    // Read-only, and writable after the hint.
    fs::write(&file, "{}").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let hint = hints.in_refusal(&install(&context).ends_with(1));
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
    context.other(&["sh", "-c", &hint]).ends_with(0);
    install(&context).ends_with(0);
    // No session can be opened: a file is where their sockets should be.
    let run = context.file("run/stockade", "");
    let run = run.parent().unwrap();
    fs::set_permissions(run, fs::Permissions::from_mode(0o700)).unwrap();
    context.set("XDG_RUNTIME_DIR", run);
    let hint = hints.in_refusal(&install(&context).ends_with(1));
    assert_eq!(hint, "stockade doctor");
    context.stockade(["doctor"]).ends_with(0);
    fs::remove_file(run.join("stockade")).unwrap();
    install(&context).ends_with(0);
    // An agent that nobody knows.
    let hint = hints.in_refusal(&context.stockade(["agent", "nobody"]).ends_with(2));
    let words = hint.strip_prefix("stockade ").unwrap().split(' ');
    let listed = context.stockade(words).ends_with(0);
    assert!(listed.stdout.contains("claude"), "{listed:#?}");
    // Without a home there are the project's settings.
    context.set("HOME", "");
    let hint = hints.in_refusal(&context.stockade(["hook", "install", "claude"]));
    assert!(hint.starts_with("--project "), "{hint}");
    context
        .stockade(["hook", "status", "claude", "--project"])
        .ends_with(0);
}
