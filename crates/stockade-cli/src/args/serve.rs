//! The flags of `stockade serve` and `stockade mcp-wrap`.

use clap::{Args, ValueEnum};

use super::{OutputArgs, RunArgs};

/// Serve sandboxes to a program over JSON-RPC
///
/// The protocol is described in docs/protocol.md. All sessions end when standard input closes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade serve --stdio
  stockade serve --schema > protocol.schema.json")]
pub(crate) struct ServeArgs {
    /// Read requests from stdin and write answers to stdout, one a line
    #[arg(long, required_unless_present = "schema", conflicts_with = "schema")]
    pub(crate) stdio: bool,

    /// Print the JSON schema of the protocol
    #[arg(long)]
    pub(crate) schema: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Serve one sandbox to an agent over the Model Context Protocol
///
/// Speaks MCP on stdin and stdout. The policy is fixed by these flags and the user's and the
/// project's files; a grant beyond it needs the user's consent in the client (elicitation).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade mcp
  stockade mcp --overlay --allow @crates -C ~/project")]
pub(crate) struct McpArgs {
    /// Working directory, and the workspace of the policy
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,

    /// Collect changes in an overlay until the agent or the user applies them
    #[arg(long)]
    pub(crate) overlay: bool,

    /// Nothing is writable but a private /tmp
    #[arg(long)]
    pub(crate) read_only: bool,

    /// Begin with a profile (TOML) or a policy (JSON)
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<String>,

    /// Make a path readable; repeatable
    #[arg(short, long, value_name = "PATH")]
    pub(crate) read: Vec<String>,

    /// Make a path writable; repeatable
    #[arg(short, long, value_name = "PATH")]
    pub(crate) write: Vec<String>,

    /// Hide a path; repeatable
    #[arg(long, value_name = "PATH")]
    pub(crate) deny: Vec<String>,

    /// Allow connections to a host; repeatable
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) allow: Vec<String>,

    /// Set a limit, such as mem=512M; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) limit: Vec<String>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Confine an MCP server that speaks over stdin and stdout
///
/// Takes the flags of `run`. The messages between client and server pass unchanged.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade mcp-wrap --preset filesystem -- mcp-server-filesystem .
  stockade mcp-wrap --preset git -- mcp-server-git --repository .
  stockade mcp-wrap --preset fetch --allow example.org -- mcp-server-fetch")]
pub(crate) struct McpWrapArgs {
    /// Begin with the flags for a well-known server
    #[arg(long, value_name = "NAME")]
    pub(crate) preset: Option<Preset>,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

/// Well-known MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// Reads and writes the current directory; no network
    Filesystem,
    /// Works on the repository in the current directory; no network
    Git,
    /// Reads from hosts that --allow names (GET, HEAD and OPTIONS); writes nothing
    Fetch,
    /// Reads and writes GitHub's API with the token in `GITHUB_PERSONAL_ACCESS_TOKEN`; writes no files
    Github,
    /// Touches neither files nor network
    Time,
}
