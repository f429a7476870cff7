//! Where the hook of an agent is, and in which form.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::settings::Settings;
use super::settings_file::SettingsFile;
use crate::args::{HookPlaceArgs, HookedAgent};
use crate::exit::Exit;
use crate::failure::Failure;

/// How an agent takes hooks.
struct Form {
    name: &'static str,
    /// Below the home directory.
    user: &'static str,
    /// Below the project.
    project: &'static str,
    kind: Kind,
}

enum Kind {
    /// An entry in a JSON file.
    Entry {
        event: &'static str,
        matcher: &'static str,
    },
    /// A file of its own.
    Plugin,
}

const fn form(agent: HookedAgent) -> Form {
    match agent {
        HookedAgent::Claude => Form {
            name: "claude",
            user: ".claude/settings.json",
            project: ".claude/settings.json",
            kind: Kind::Entry {
                event: "PreToolUse",
                matcher: "Bash",
            },
        },
        HookedAgent::Codex => Form {
            name: "codex",
            user: ".codex/hooks.json",
            project: ".codex/hooks.json",
            kind: Kind::Entry {
                event: "PreToolUse",
                matcher: "Bash",
            },
        },
        HookedAgent::Gemini => Form {
            name: "gemini",
            user: ".gemini/settings.json",
            project: ".gemini/settings.json",
            kind: Kind::Entry {
                event: "BeforeTool",
                matcher: "run_shell_command",
            },
        },
        HookedAgent::Opencode => Form {
            name: "opencode",
            user: ".config/opencode/plugin/stockade.js",
            project: ".opencode/plugin/stockade.js",
            kind: Kind::Plugin,
        },
    }
}

/// The hook of one agent, for the user or for a project.
pub(super) struct AgentHook {
    form: Form,
    /// The home directory or the project.
    base: PathBuf,
    below: &'static str,
    /// This program, as the hook names it.
    program: PathBuf,
}

impl AgentHook {
    pub(super) fn of(args: &HookPlaceArgs) -> Result<Self, Failure> {
        let around = crate::resolve::Place::enter(None)?.around;
        let form = form(args.agent);
        let (base, below) = if args.project {
            (around.cwd.as_path().to_owned(), form.project)
        } else {
            let home = around.home.as_ref().ok_or_else(|| {
                Failure::text(Exit::NotSetUp, "there is no home directory")
                    .hint("--project installs the hook for the project in this directory")
            })?;
            (home.as_path().to_owned(), form.user)
        };
        let program = std::env::current_exe()?;
        Ok(Self {
            form,
            base,
            below,
            program,
        })
    }

    pub(super) const fn agent(&self) -> &'static str {
        self.form.name
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    pub(super) fn path(&self) -> PathBuf {
        self.base.join(self.below)
    }

    pub(super) fn shown(&self) -> String {
        self.path().display().to_string()
    }

    pub(super) fn exists(&self) -> bool {
        self.path().symlink_metadata().is_ok()
    }

    /// The file, none of whose directories below the base is a link.
    pub(super) fn file(&self, make: bool) -> Result<SettingsFile, Failure> {
        SettingsFile::open(&self.base, Path::new(self.below), make)
    }

    /// The file's text with the hook. `None`: the hook is in it.
    pub(super) fn with_hook(&self, text: Option<&str>) -> Result<Option<String>, Failure> {
        if self.has_hook(text)? {
            return Ok(None);
        }
        match self.form.kind {
            Kind::Plugin if text.is_some() => {
                let text = format!("`{}` exists and is not Stockade's", self.shown());
                Err(Failure::text(Exit::Negative, text))
            }
            Kind::Plugin => Ok(Some(self.plugin())),
            Kind::Entry { event, matcher } => {
                let entry = json!({
                    "matcher": matcher,
                    "hooks": [{ "type": "command", "command": self.command() }],
                });
                let mut settings = self.settings(text)?;
                settings
                    .add(event, &entry)
                    .map_err(|reason| self.unreadable(&reason))?;
                Ok(Some(settings.to_text()))
            }
        }
    }

    pub(super) fn has_hook(&self, text: Option<&str>) -> Result<bool, Failure> {
        match self.form.kind {
            Kind::Plugin => Ok(text.is_some_and(|text| text.starts_with(PLUGIN_MARK))),
            Kind::Entry { event, .. } => {
                let settings = self.settings(text)?;
                let entries = settings.entries(event);
                let entries = entries.map_err(|reason| self.unreadable(&reason))?;
                Ok(entries.iter().any(|entry| self.is_own(entry)))
            }
        }
    }

    /// The file's text without the hook, and otherwise as it is.
    pub(super) fn without_hook(&self, text: Option<&str>) -> Result<String, Failure> {
        let Kind::Entry { event, .. } = self.form.kind else {
            let text = format!("`{}` was changed since", self.shown());
            return Err(Failure::text(Exit::Negative, text));
        };
        let mut settings = self.settings(text)?;
        settings
            .remove(event, |entry| self.is_own(entry))
            .map_err(|reason| self.unreadable(&reason))?;
        Ok(settings.to_text())
    }

    /// Whether Codex was told to trust hooks of this file. What it trusts it keeps in its own
    /// configuration, by the path of the file.
    pub(super) fn is_trusted(&self) -> bool {
        let configuration = self.path().with_file_name("config.toml");
        let text = std::fs::read_to_string(configuration).unwrap_or_default();
        let begins = format!("[hooks.state.\"{}:", self.shown());
        text.lines().any(|line| line.starts_with(&begins)) && text.contains("trusted_hash")
    }

    fn settings(&self, text: Option<&str>) -> Result<Settings, Failure> {
        Settings::parse(text.unwrap_or("{}")).map_err(|reason| self.unreadable(&reason))
    }

    fn unreadable(&self, reason: &str) -> Failure {
        let file = self.shown();
        let text = format!("`{file}` was not changed: {reason}");
        Failure::text(Exit::Negative, text).hint(format!("python3 -m json.tool '{file}'"))
    }

    /// The command that the agent runs for each of its own.
    fn command(&self) -> String {
        let program = quote(&self.program.to_string_lossy());
        format!("{program} hook rewrite {}", self.form.name)
    }

    fn is_own(&self, entry: &str) -> bool {
        entry.contains(&format!(" hook rewrite {}\"", self.form.name))
    }

    fn plugin(&self) -> String {
        let program = json!(self.program.to_string_lossy());
        format!("{PLUGIN_MARK}\nconst program = {program}\n{PLUGIN}")
    }
}

/// A word for a shell.
pub(super) fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

const PLUGIN_MARK: &str =
    "// Runs each shell command of opencode in a sandbox: `stockade hook install opencode`.";
const PLUGIN: &str = include_str!("opencode.js");
