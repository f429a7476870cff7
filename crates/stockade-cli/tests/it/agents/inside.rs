//! `stockade agent`: each agent whole inside, and bare for comparison.

use std::fs;

use super::fixture::{Agent, Fixture, KEY, Reach};
use crate::context::has;

const CLAUDE: Agent = Agent {
    name: "claude",
    program: "node_modules/.bin/claude",
    key: "ANTHROPIC_API_KEY",
    variables: &[
        ("ANTHROPIC_BASE_URL", "{url}"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ],
    arguments: &["-p", "touch it", "--allowedTools", "Bash"],
    settings: (".claude/settings.json", "{}"),
    state: Some(".claude/projects"),
};

const CODEX: Agent = Agent {
    name: "codex",
    program: "node_modules/.bin/codex",
    key: "OPENAI_API_KEY",
    variables: &[("OPENAI_BASE_URL", "{url}/v1")],
    arguments: &[
        "exec",
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
    settings: (".codex/config.toml", ""),
    state: Some(".codex/sessions"),
};

const GEMINI: Agent = Agent {
    name: "gemini",
    program: "node_modules/.bin/gemini",
    key: "GEMINI_API_KEY",
    variables: &[
        ("GOOGLE_GEMINI_BASE_URL", "{url}"),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
    ],
    arguments: &["-y", "-p", "touch it"],
    settings: (
        ".gemini/settings.json",
        r#"{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}"#,
    ),
    state: Some(".gemini/tmp"),
};

const OPENCODE: Agent = Agent {
    name: "opencode",
    program: "node_modules/.bin/opencode",
    key: "OPENAI_API_KEY",
    variables: &[
        ("OPENAI_BASE_URL", "{url}/v1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        (
            "OPENCODE_CONFIG_CONTENT",
            r#"{"provider":{"t":{"npm":"@ai-sdk/openai-compatible","models":{"m":{}},
                "options":{"baseURL":"{url}/v1","apiKey":"{env:OPENAI_API_KEY}"}}},
                "autoupdate":false,"permission":{"bash":"allow","external_directory":"allow"}}"#,
        ),
    ],
    arguments: &["run", "-m", "t/m", "touch it"],
    settings: (".config/opencode/opencode.json", "{}"),
    state: None,
};

const QWEN: Agent = Agent {
    name: "qwen",
    program: "node_modules/.bin/qwen",
    key: "OPENAI_API_KEY",
    variables: &[("OPENAI_BASE_URL", "{url}/v1"), ("OPENAI_MODEL", "m")],
    arguments: &["-y", "--auth-type", "openai", "-p", "touch it"],
    settings: (
        ".qwen/settings.json",
        r#"{"privacy":{"usageStatisticsEnabled":false}}"#,
    ),
    state: Some(".qwen/projects"),
};

/// Has no tool for commands: it runs the test that it was told of after the model's edit.
const AIDER: Agent = Agent {
    name: "aider",
    program: "aider/bin/aider",
    key: "OPENAI_API_KEY",
    variables: &[("OPENAI_API_BASE", "{url}/v1")],
    arguments: &[
        "--model=openai/m",
        "--no-show-model-warnings",
        "--no-check-update",
        "--analytics-disable",
        "--edit-format=whole",
        "--yes-always",
        "--no-git",
        "--auto-test",
        "--test-cmd=sh probe.sh ~/.aider.conf.yml",
        "--message=touch it",
        "touched.txt",
    ],
    settings: (".aider.conf.yml", "{}"),
    state: None,
};

fn is_confined(agent: &'static Agent, test: &str) {
    if !agent.is_installed(test) {
        return;
    }
    // The control: by itself the agent reaches everything.
    let bare = Fixture::new(agent, Reach::Loopback);
    let ran = bare.bare();
    assert_eq!(bare.escapes(), [true; 3], "{ran:#?} {}", bare.report());
    assert!(bare.report().contains(KEY), "{ran:#?} {}", bare.report());
    check_inside(&Fixture::new(agent, Reach::Name), agent);
}

fn check_inside(fixture: &Fixture, agent: &Agent) {
    let ran = fixture.inside().ends_with(0);
    let report = fixture.report();
    assert!(report.contains("planted: "), "{ran:#?}");
    assert_eq!(fixture.escapes(), [false; 3], "{ran:#?} {report}");
    // A placeholder is in the environment, and the model gets the key all the same.
    assert!(
        report.contains("key: ") && !report.contains(KEY),
        "{report}"
    );
    let requests = fixture.requests();
    assert!(!requests.is_empty(), "{ran:#?}");
    assert!(
        requests.iter().all(|one| one["key"] == KEY),
        "{requests:#?}"
    );
    if requests.iter().any(|one| one["answer"] == "call") {
        let result = requests.last().unwrap()["result"].to_string();
        assert!(result.contains("the-tool-ran"), "{requests:#?}");
    }
    if let Some(state) = agent.state {
        let kept = fs::read_dir(fixture.path("home").join(state)).unwrap();
        assert_ne!(kept.count(), 0, "{ran:#?}");
    }
    let explained = format!("`stockade agent {} --dry-run`", agent.name);
    assert!(ran.stderr.contains(&explained), "{ran:#?}");
}

#[test]
fn claude_is_confined() {
    is_confined(&CLAUDE, "agents::claude_is_confined");
}

#[test]
fn codex_is_confined() {
    is_confined(&CODEX, "agents::codex_is_confined");
}

#[test]
fn gemini_is_confined() {
    is_confined(&GEMINI, "agents::gemini_is_confined");
}

#[test]
fn opencode_is_confined() {
    is_confined(&OPENCODE, "agents::opencode_is_confined");
}

#[test]
fn qwen_is_confined() {
    is_confined(&QWEN, "agents::qwen_is_confined");
}

#[test]
fn aider_is_confined() {
    is_confined(&AIDER, "agents::aider_is_confined");
}

#[test]
fn agents_of_an_ordinary_user_are_confined() {
    let test = "agents::agents_of_an_ordinary_user_are_confined";
    if !has(test, "root", &["unshare", "-m", "true"]) {
        return;
    }
    for agent in [&CLAUDE, &CODEX] {
        if agent.is_installed(test) {
            check_inside(&Fixture::new(agent, Reach::Name).of_user(), agent);
        }
    }
}

#[test]
fn the_explanation_is_printed_once() {
    let test = "agents::the_explanation_is_printed_once";
    if !CLAUDE.is_installed(test) {
        return;
    }
    let fixture = Fixture::new(&CLAUDE, Reach::Name);
    assert_eq!(fixture.inside().ends_with(0).stderr.lines().count(), 5);
    assert_eq!(fixture.inside().ends_with(0).stderr, "");
}

/// A model on this machine is reached by its port, with a key that no proxy can put in.
#[test]
fn a_model_on_loopback_is_reached() {
    let test = "agents::a_model_on_loopback_is_reached";
    if !CODEX.is_installed(test) {
        return;
    }
    let fixture = Fixture::new(&CODEX, Reach::Loopback);
    let ran = fixture.inside().ends_with(0);
    assert_eq!(fixture.escapes(), [false; 3], "{ran:#?}");
    assert!(
        ran.stderr.contains("the agent sees OPENAI_API_KEY"),
        "{ran:#?}"
    );
}
