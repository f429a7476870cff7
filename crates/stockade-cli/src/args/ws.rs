//! The flags of `stockade ws`.

use std::path::PathBuf;
use std::time::Duration;

use super::RunArgs;
use clap::{ArgMatches, Args, FromArgMatches, Subcommand};
use stockade_policy::profile::parse_duration;

/// Manage overlays, snapshots and background commands
///
/// A workspace is a directory and its history. `run --overlay` executes over a copy-on-write view
/// of it; snapshots keep exact copies of it, each piece of content once.
#[derive(Debug)]
pub(crate) struct WsArgs(pub(crate) WsLine);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade ws create site --dir ~/site
  stockade ws snapshot site -m 'before the upgrade'
  stockade ws diff site
  stockade ws restore site 3f2a

Workspaces live in --store, else in $STOCKADE_HOME, else in ~/.local/share/stockade.")]
pub(crate) struct WsLine {
    /// Where workspaces are kept
    #[arg(long, global = true, value_name = "DIR", help_heading = "Store")]
    pub(crate) store: Option<PathBuf>,
    /// Print JSON (versioned: `"schema": 1`)
    #[arg(long, global = true, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: WsCommand,
}

/// Everything below `ws` is built only when `ws` was typed: it is much, and no other command
/// should wait for it.
impl Args for WsArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        command
            .about("Manage overlays, snapshots and background commands")
            .defer(WsLine::augment_args)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for WsArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        WsLine::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum WsCommand {
    /// Make a workspace of a directory, with a first snapshot
    #[command(after_help = "\
Examples:
  stockade ws create site --dir ~/site
  stockade ws create site --dir . --exclude node_modules/ --env CI=1")]
    Create(CreateArgs),
    /// List workspaces, the newest first
    #[command(after_help = "\
Examples:
  stockade ws list
  stockade ws list --json")]
    List,
    /// Show one workspace
    #[command(after_help = "\
Examples:
  stockade ws show site")]
    Show(NameArgs),
    /// Take a snapshot and print its id
    #[command(after_help = "\
Examples:
  stockade ws snapshot site -m 'before the upgrade'")]
    Snapshot(SnapshotArgs),
    /// List the snapshots of a workspace, the oldest first
    #[command(after_help = "\
Examples:
  stockade ws snapshots site")]
    Snapshots(NameArgs),
    /// Restore a snapshot
    #[command(after_help = "\
Examples:
  stockade ws restore site 3f2a
  stockade ws restore --merge site 3f2a")]
    Restore(RestoreArgs),
    /// Show what changed: in the overlay, or since a snapshot
    #[command(after_help = "\
Examples:
  stockade ws diff
  stockade ws diff --stat site
  stockade ws diff site 3f2a")]
    Diff(DiffArgs),
    /// Apply an overlay's changes to the real directory: all, or these paths
    #[command(after_help = "\
Examples:
  stockade ws commit
  stockade ws commit site src/main.rs docs
  stockade ws commit --theirs site
  stockade ws commit --allow-protected site .vscode")]
    Commit(CommitArgs),
    /// Forget what the overlay changed
    #[command(after_help = "\
Examples:
  stockade ws discard
  stockade ws discard site")]
    Discard(OverlayArgs),
    /// Run a command in the workspace's directory, confined like `stockade run`
    #[command(after_help = "\
Examples:
  stockade ws run site -- make
  stockade ws run --overlay site -- ./upgrade.sh
  stockade ws run --detach site -- ./server")]
    Run(Box<WsRunArgs>),
    /// Print what a command that was left running has written; with --json a record for each line
    #[command(after_help = "\
Examples:
  stockade ws logs site
  stockade ws logs --follow --json site")]
    Logs(LogsArgs),
    /// Follow what a command that was left running writes until it ends, and send it input
    ///
    /// Standard input goes to the command that was left running last. On a terminal Ctrl-D and
    /// Ctrl-C detach, and the command goes on.
    #[command(after_help = "\
Examples:
  stockade ws attach site")]
    Attach(NameArgs),
    /// Freeze everything that runs in the workspace
    #[command(after_help = "\
Examples:
  stockade ws pause site")]
    Pause(NameArgs),
    /// Have everything in a paused workspace go on
    #[command(after_help = "\
Examples:
  stockade ws resume site")]
    Resume(NameArgs),
    /// Write a snapshot into one file, to be imported elsewhere
    #[command(after_help = "\
Examples:
  stockade ws export site site.tar.zst
  stockade ws export --snapshot 3f2a site old.tar.zst")]
    Export(ExportArgs),
    /// Make a workspace of an exported file, which is not trusted
    #[command(after_help = "\
Examples:
  stockade ws import site.tar.zst copy
  stockade ws import site.tar.zst copy --dir ~/copy")]
    Import(ImportArgs),
    /// Bind a workspace to the directory that is at its path now, or to another one
    #[command(after_help = "\
Examples:
  stockade ws rebind site
  stockade ws rebind site --dir ~/moved/site")]
    Rebind(RebindArgs),
    /// Remove a workspace and its history; the directory stays
    #[command(after_help = "\
Examples:
  stockade ws rm site
  stockade ws rm --force site")]
    Rm(RmArgs),
    /// Remove workspaces that were not used for long and in which nothing runs
    #[command(after_help = "\
Examples:
  stockade ws cleanup --max-age 30d")]
    Cleanup(CleanupArgs),
    /// Check everything in the store; exit code 1 if something is damaged
    #[command(after_help = "\
Examples:
  stockade ws fsck")]
    Fsck,
    /// Free what no snapshot needs
    #[command(after_help = "\
Examples:
  stockade ws gc")]
    Gc,
}

#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// Which workspace
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Its name: letters, digits, `.`, `_`, `-`
    pub(crate) name: String,
    /// The directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// A variable for what runs in it; names that look like secrets are not kept
    #[arg(long, value_name = "K=V")]
    pub(crate) env: Vec<String>,
    /// What is not part of it, as in .gitignore
    #[arg(long, value_name = "RULE")]
    pub(crate) exclude: Vec<String>,
    /// Read such rules from a file
    #[arg(long, value_name = "FILE")]
    pub(crate) exclude_from: Vec<PathBuf>,
    /// Keep extended attributes too
    #[arg(long)]
    pub(crate) xattrs: bool,
    /// Take no first snapshot
    #[arg(long)]
    pub(crate) no_snapshot: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// Which workspace
    pub(crate) name: String,
    /// What to remember about it
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// Which workspace
    pub(crate) name: String,
    /// Which snapshot; its first digits are enough
    pub(crate) id: String,
    /// Keep files that the snapshot does not have
    #[arg(long)]
    pub(crate) merge: bool,
    /// Restore protected names too, such as git hooks and editor settings
    #[arg(long)]
    pub(crate) allow_protected: bool,
    /// Pause what runs in the workspace meanwhile
    #[arg(long)]
    pub(crate) pause: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Which workspace; without it the overlay of the current directory
    pub(crate) name: Option<String>,
    /// Compare with this snapshot; without it with the last one
    pub(crate) id: Option<String>,
    /// Only how many lines changed where
    #[arg(long, conflicts_with = "summary")]
    pub(crate) stat: bool,
    /// Only what happened to which file
    #[arg(long)]
    pub(crate) summary: bool,
}

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that is there or not"
)]
pub(crate) struct CommitArgs {
    /// Which workspace; without it the overlay of the current directory
    pub(crate) name: Option<String>,
    /// Only these files, and what is below them
    pub(crate) paths: Vec<PathBuf>,
    /// Replace files that changed on the host meanwhile
    #[arg(long, conflicts_with = "theirs")]
    pub(crate) ours: bool,
    /// Keep files that changed on the host meanwhile
    #[arg(long)]
    pub(crate) theirs: bool,
    /// Apply protected names too, such as git hooks and editor settings
    #[arg(long)]
    pub(crate) allow_protected: bool,
    /// Pause what runs in the workspace meanwhile
    #[arg(long)]
    pub(crate) pause: bool,
    /// Commit even though the machine rebooted since the overlay was written
    #[arg(long)]
    pub(crate) after_restart: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OverlayArgs {
    /// Which workspace; without it the overlay of the current directory
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Which workspace
    pub(crate) name: String,
    /// The file to write, such as site.tar.zst; it must not exist
    pub(crate) file: PathBuf,
    /// Which snapshot; without it the last one
    #[arg(long, value_name = "ID")]
    pub(crate) snapshot: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The file to read
    pub(crate) file: PathBuf,
    /// The new workspace's name
    pub(crate) name: String,
    /// Its directory, filled if it is empty; without it one of the workspace's name, here
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Keep links that lead out of the directory
    #[arg(long)]
    pub(crate) danger_links: bool,
    /// Write protected names too, such as git hooks and editor settings
    #[arg(long)]
    pub(crate) allow_protected: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RebindArgs {
    /// Which workspace
    pub(crate) name: String,
    /// The directory; without it the one at the path that the workspace has
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// Which workspace
    pub(crate) name: String,
    /// End what runs in it
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WsRunArgs {
    /// Which workspace
    pub(crate) workspace: String,
    /// Leave it running; `ws logs` and `ws attach` show what it writes
    #[arg(short, long)]
    pub(crate) detach: bool,
    /// The control group that the process enters: set by the one that left it running
    #[arg(long, hide = true, value_name = "GROUP")]
    pub(crate) left_running: Option<PathBuf>,
    /// Where input for it comes from: set by the same
    #[arg(long, hide = true, value_name = "FIFO")]
    pub(crate) left_input: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Which workspace
    pub(crate) name: String,
    /// Go on until the command ends
    #[arg(short, long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CleanupArgs {
    /// Remove those unused for longer than this, such as 7d or 12h
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub(crate) max_age: Duration,
}

/// A time, with days and weeks.
fn age(text: &str) -> Result<Duration, String> {
    const DAY: u64 = 24 * 60 * 60;
    let long = |unit: char, length: u64| {
        let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(Duration::from_secs(count.saturating_mul(length)))
    };
    match long('d', DAY).or_else(|| long('w', 7 * DAY)) {
        Some(time) => Ok(time),
        None => parse_duration(text),
    }
}
