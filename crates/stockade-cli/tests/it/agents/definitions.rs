//! How each agent is started without a person in front of it.

use super::fixture::Agent;

pub(super) const CLAUDE: Agent = Agent {
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

pub(super) const CODEX: Agent = Agent {
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

pub(super) const GEMINI: Agent = Agent {
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

pub(super) const OPENCODE: Agent = Agent {
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
    settings: (
        ".config/opencode/opencode.json",
        r#"{"$schema":"https://opencode.ai/config.json"}"#,
    ),
    state: None,
};

pub(super) const QWEN: Agent = Agent {
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
pub(super) const AIDER: Agent = Agent {
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
