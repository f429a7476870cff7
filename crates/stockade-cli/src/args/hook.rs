//! The words of `stockade hook`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::OutputArgs;

/// Confine each command of an agent that itself runs outside
///
/// A hook of the agent hands every shell command to Stockade, which runs it in a session of the
/// agent's project. Only shell commands are confined: the agent's own tools, such as its editor,
/// stay outside. `stockade agent` confines all of an agent.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade hook install claude
  stockade hook install gemini --project
  stockade hook status claude
  stockade hook uninstall claude")]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    pub(crate) command: HookCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Add the hook to the agent's settings
    #[command(after_help = "\
Examples:
  stockade hook install claude
  stockade hook install opencode --project")]
    Install(HookPlaceArgs),
    /// Check that the hook is installed, and that a canary command is confined
    #[command(after_help = "\
Examples:
  stockade hook status claude
  stockade hook status codex --json")]
    Status(HookPlaceArgs),
    /// Restore the agent's settings
    #[command(after_help = "\
Examples:
  stockade hook uninstall claude")]
    Uninstall(HookPlaceArgs),
    /// Answer the agent: the hook itself
    #[command(
        hide = true,
        after_help = "\
Examples:
  stockade hook rewrite claude"
    )]
    Rewrite(HookRewriteArgs),
    /// Run a command that the hook rewrote
    #[command(
        hide = true,
        after_help = "\
Examples:
  stockade hook exec --session claude-1 --root . -- 'make test'"
    )]
    Exec(HookExecArgs),
}

impl HookCommand {
    pub(crate) fn output(&self) -> OutputArgs {
        match self {
            Self::Install(args) | Self::Status(args) | Self::Uninstall(args) => args.output,
            Self::Rewrite(args) => args.output,
            Self::Exec(args) => args.output,
        }
    }
}

/// Agents that can be hooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookedAgent {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
}

#[derive(Debug, Args)]
pub(crate) struct HookPlaceArgs {
    /// Which agent
    #[arg(value_name = "AGENT")]
    pub(crate) agent: HookedAgent,

    /// The user's settings, for all projects [default]
    #[arg(long, conflicts_with = "project")]
    pub(crate) user: bool,

    /// The settings of the project in this directory
    #[arg(long)]
    pub(crate) project: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HookRewriteArgs {
    /// Which agent asks
    pub(crate) agent: HookedAgent,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HookExecArgs {
    /// The session of the agent, opened if there is none
    #[arg(long)]
    pub(crate) session: String,

    /// The directory that the policy is about
    #[arg(long)]
    pub(crate) root: PathBuf,

    /// The file inside that gets the last directory of the command
    #[arg(long, default_value = "/dev/null")]
    pub(crate) last_directory: OsString,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// The command, in the language of the shell
    pub(crate) command: OsString,
}
