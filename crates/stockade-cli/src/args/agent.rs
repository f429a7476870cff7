//! The words of `stockade agent`.

use clap::Args;

use super::RunArgs;

/// Run a coding agent whole in a sandbox, or list the agents that are known
///
/// Takes the flags of `run`; what follows `--` goes to the agent. The agent can write the current
/// directory and its own state, and reach the hosts of its model and no others. Its key stays
/// outside where a proxy can put it in. An agent of your own is a file `agents/NAME.toml` beside
/// your config.toml.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade agent claude
  stockade agent codex --allow @crates -- exec 'run the tests'
  stockade agent gemini --overlay -- -p 'fix the warnings'
  stockade agent list
  stockade agent list --json")]
#[command(mut_arg("command", |argument| argument
    .value_name("ARGS")
    .help("Arguments of the agent")))]
pub(crate) struct AgentArgs {
    /// Name of the agent, or `list`
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}
