//! The flags of `stockade session` and `stockade exec`.

use std::ffi::{OsStr, OsString};
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
  stockade session open build --allow @crates --idle-timeout 1h")]
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
    /// Show what commands changed in the session's overlay
    #[command(after_help = "\
Examples:
  stockade session diff build
  stockade session diff build --summary")]
    Diff(SessionDiffArgs),
    /// Apply changes in the session's overlay to the real directory
    #[command(after_help = "\
Examples:
  stockade session commit build
  stockade session commit build src/lib.rs")]
    Commit(SessionCommitArgs),
    /// Drop what commands changed in the session's overlay
    #[command(after_help = "\
Examples:
  stockade session discard build")]
    Discard(SessionNameArgs),
    /// Keep the state of the session's overlay under a name, or list these names
    #[command(after_help = "\
Examples:
  stockade session snapshot build before-upgrade
  stockade session snapshot build
  stockade session snapshot build before-upgrade --remove")]
    Snapshot(SessionSnapshotArgs),
    /// Return the session's overlay to a snapshot
    #[command(after_help = "\
Examples:
  stockade session restore build before-upgrade")]
    Restore(SessionRestoreArgs),
    /// Open a second session over a copy of the session's overlay, and print its name
    #[command(after_help = "\
Examples:
  stockade session fork build
  stockade session fork build experiment")]
    Fork(SessionForkArgs),
}

impl SessionCommand {
    pub(crate) fn output(&self) -> OutputArgs {
        match self {
            Self::Open(args) => args.output,
            Self::List(args) => args.output,
            Self::Close(args) => args.output,
            Self::Diff(args) => args.output,
            Self::Commit(args) => args.output,
            Self::Discard(args) => args.output,
            Self::Snapshot(args) => args.output,
            Self::Restore(args) => args.output,
            Self::Fork(args) => args.output,
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

    /// The overlay of a fork, instead of that of the session that was forked
    #[arg(long, hide = true)]
    pub(crate) fork_overlay: Option<OsString>,

    /// The name of a fork [default: s1, s2, ...]
    #[arg(long, hide = true)]
    pub(crate) fork_name: Option<String>,
}

impl SessionOpenArgs {
    /// The name that the session is to have; `None`: the first free one.
    pub(crate) fn wanted_name(&self) -> Option<&str> {
        match &self.fork_overlay {
            Some(_) => self.fork_name.as_deref(),
            None => self.name.as_deref(),
        }
    }

    /// The overlay's name, if the session has an overlay; `Some(None)`: that of the directory.
    #[expect(clippy::option_option, reason = "as the flag has it")]
    pub(crate) fn wanted_overlay(&self) -> Option<Option<&OsStr>> {
        match &self.fork_overlay {
            Some(name) => Some(Some(name)),
            None => self.overlay.as_ref().map(Option::as_deref),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SessionNameArgs {
    /// Name of the session
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionDiffArgs {
    /// Name of the session
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Only how many lines changed where
    #[arg(long, conflicts_with = "summary")]
    pub(crate) stat: bool,

    /// Only what happened to which file
    #[arg(long)]
    pub(crate) summary: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionCommitArgs {
    /// Name of the session
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Only these files, and what is below them
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Replace files that changed on the host meanwhile
    #[arg(long, conflicts_with = "theirs")]
    pub(crate) ours: bool,

    /// Keep files that changed on the host meanwhile
    #[arg(long)]
    pub(crate) theirs: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionSnapshotArgs {
    /// Name of the session
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Name of the snapshot, which replaces one of the same name [default: list them]
    #[arg(value_name = "SNAPSHOT")]
    pub(crate) snapshot: Option<String>,

    /// Remove the snapshot
    #[arg(long, requires = "snapshot")]
    pub(crate) remove: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionRestoreArgs {
    /// Name of the session
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Name of the snapshot
    #[arg(value_name = "SNAPSHOT")]
    pub(crate) snapshot: String,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionForkArgs {
    /// Name of the session
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Name of the new session [default: s1, s2, ...]
    #[arg(value_name = "NEW")]
    pub(crate) new: Option<String>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
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
