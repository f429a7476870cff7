//! The flags of `stockade session` and `stockade exec`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use stockade_policy::profile::parse_duration;

use super::{OutputArgs, PolicyArgs, UpstreamArgs};

/// Keep a sandbox open for many commands
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade session open build
  stockade session list
  stockade session close build")]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) command: SessionCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Open a session and print its name
    #[command(after_help = "\
Examples:
  stockade session open
  stockade session open build --allow crates.io --idle-timeout 1h")]
    Open(Box<SessionOpenArgs>),
    /// List the open sessions of this user
    #[command(after_help = "\
Examples:
  stockade session list
  stockade session list --json")]
    List(SessionListArgs),
    /// Close sessions: kill everything in them
    #[command(after_help = "\
Examples:
  stockade session close build
  stockade session close --all")]
    Close(SessionCloseArgs),
}

impl SessionCommand {
    pub(crate) fn output(&self) -> OutputArgs {
        match self {
            Self::Open(args) => args.output,
            Self::List(args) => args.output,
            Self::Close(args) => args.output,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SessionOpenArgs {
    /// Name of the session [default: s1, s2, ...]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    #[command(flatten)]
    pub(crate) upstream: UpstreamArgs,

    /// Write to a copy-on-write view; the tree itself stays as it is
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..=1,
        require_equals = true,
        help_heading = "Outcome"
    )]
    #[expect(
        clippy::option_option,
        reason = "absent, present, and present with a name"
    )]
    pub(crate) overlay: Option<Option<OsString>>,

    /// Close the session when no command has run for this long, such as 30m [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    pub(crate) idle_timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Say nothing but errors
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Be the process that owns the session
    #[arg(long, hide = true)]
    pub(crate) owner: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SessionListArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionCloseArgs {
    /// Names of the sessions
    #[arg(
        value_name = "NAME",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub(crate) names: Vec<String>,

    /// Close all sessions of this user
    #[arg(long)]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Run a command in an open session
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade exec build -- make test
  stockade exec build --cwd src --env RUST_LOG=debug --timeout 60s -- cargo test
  stockade exec build --tty -- bash")]
pub(crate) struct ExecArgs {
    /// Name of the session
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Give the command a terminal even if this program has none
    #[arg(short, long)]
    pub(crate) tty: bool,

    /// Working directory, as seen inside [default: the session's]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Set a variable
    #[arg(long, value_name = "K=V")]
    pub(crate) env: Vec<OsString>,

    /// Wall-time limit, such as 30s or 5m; exit code 124 when it is reached
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Say nothing but errors
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}
