//! Coding agents: what each needs from a sandbox, as data.
//!
//! One TOML file for each agent says where its state is, which of its files decide what it does
//! later, and which hosts and variables it speaks to its model with. [`Agent::grants`] makes of it
//! what a profile takes. The files that ship with Stockade are in `built_in/`.

mod base_url;
mod grants;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;
use stockade_rules::AbsPath;

use crate::host::HostPatternError;
use crate::profile::MaskError;

pub use grants::{AgentGrants, KeyUse};

/// The directory of the user's own definitions, beside the user's own file.
const DIRECTORY: &str = "agents";

/// How definition files end.
const SUFFIX: &str = ".toml";

/// The definitions that ship with Stockade, by the agent's name.
const BUILT_IN: &[(&str, &str)] = &[
    ("aider", include_str!("built_in/aider.toml")),
    ("claude", include_str!("built_in/claude.toml")),
    ("codex", include_str!("built_in/codex.toml")),
    ("gemini", include_str!("built_in/gemini.toml")),
    ("opencode", include_str!("built_in/opencode.toml")),
    ("qwen", include_str!("built_in/qwen.toml")),
];

/// An agent, and what it needs from a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Agent {
    /// The agent's name for people.
    pub title: String,
    /// The program, looked up in `PATH`.
    pub program: String,
    /// The command that installs the agent.
    pub install: String,
    /// Arguments that come before the user's.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Paths that the agent reads; changes there are dropped at the end.
    #[serde(default)]
    pub settings: Vec<String>,
    /// Directories whose changes are kept, made if they are missing.
    #[serde(default)]
    pub state: Vec<String>,
    /// Paths that stay as they are: they decide what the agent does when it runs outside.
    #[serde(default)]
    pub protect: Vec<String>,
    /// Variables to hand on.
    #[serde(default)]
    pub keep: Vec<String>,
    /// Variables and their values.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// The services that the agent speaks to, each with its key.
    pub api: Vec<Api>,
    /// How the agent is logged in without a key.
    #[serde(default)]
    pub login: Login,
}

/// A service that serves a model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Api {
    /// The variable that holds the key.
    pub key: String,
    /// The variable that names another address of the service.
    pub base_url: Option<String>,
    /// The hosts of the service.
    pub hosts: Vec<String>,
}

/// Files and hosts of an agent that is logged in without a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Login {
    /// The files with the credentials.
    #[serde(default)]
    pub files: Vec<String>,
    /// The hosts that the credentials are for.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// Why a definition can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The text is not a definition.
    #[error("it is not the definition of an agent: {0}")]
    Syntax(String),
    /// A host is not one.
    #[error(transparent)]
    Host(#[from] HostPatternError),
    /// The key can't be masked.
    #[error(transparent)]
    Mask(#[from] MaskError),
    /// The address of the service can't be read.
    #[error("the variable `{variable}` holds no address of the form http(s)://HOST[:PORT][/PATH]")]
    BaseUrl {
        /// The variable that holds the address.
        variable: String,
    },
}

impl Agent {
    /// Reads a definition.
    ///
    /// # Errors
    /// If the text is not TOML, or has an unknown or missing key.
    pub fn parse(text: &str) -> Result<Self, AgentError> {
        toml::from_str(text).map_err(|error| AgentError::Syntax(error.to_string()))
    }

    /// The definition that ships with Stockade.
    pub fn built_in(name: &str) -> Option<Result<Self, AgentError>> {
        let found = BUILT_IN.iter().find(|(own, _)| *own == name);
        found.map(|(_, text)| Self::parse(text))
    }

    /// The names of the agents that ship with Stockade, sorted.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The directory of the user's own definitions.
    pub fn directory(user_file: &AbsPath) -> Option<AbsPath> {
        user_file.parent()?.join(DIRECTORY).ok()
    }

    /// The name of the agent that a file of the directory defines.
    pub fn name_of_file(file: &str) -> Option<&str> {
        file.strip_suffix(SUFFIX).filter(|name| is_name(name))
    }

    /// The file of the directory that defines the agent of this name.
    pub fn file_of_name(name: &str) -> Option<String> {
        is_name(name).then(|| format!("{name}{SUFFIX}"))
    }
}

/// Names are parts of paths and words of a command line.
fn is_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.chars().all(is_plain)
}
