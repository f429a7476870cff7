//! Exactly what was typed. Nothing here touches the file system, the environment or the kernel:
//! [`crate::resolve`] does that, so that every flag can be tested as a pure function of argv.

#[cfg(target_os = "linux")]
mod agent;
#[cfg(target_os = "linux")]
mod batch;
#[cfg(target_os = "linux")]
mod home;
#[cfg(target_os = "linux")]
mod hook;
mod hosts;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
mod log;
mod policy;
mod proxy;
mod run;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod session;
#[cfg(test)]
mod tests;
#[cfg(target_os = "linux")]
pub(crate) mod ws;

use std::ffi::OsString;
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use clap::builder::Styles;
use clap::{Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use stockade_policy::profile::ProfileName;

pub(crate) use crate::commands::inspect::InspectArgs;
#[cfg(target_os = "linux")]
pub(crate) use agent::AgentArgs;
#[cfg(target_os = "linux")]
pub(crate) use batch::BatchArgs;
#[cfg(target_os = "linux")]
pub(crate) use home::{HomeArgs, HomeCommand, HomeDropArgs};
#[cfg(target_os = "linux")]
pub(crate) use hook::{HookArgs, HookCommand, HookExecArgs, HookPlaceArgs, HookedAgent};
pub(crate) use hosts::{HostArgs, UpstreamArgs};
#[cfg(target_os = "linux")]
pub(crate) use image::{ImageArgs, ImageBuildArgs, ImageCommand};
#[cfg(target_os = "linux")]
pub(crate) use log::LogArgs;
pub(crate) use policy::PolicyArgs;
pub(crate) use proxy::ProxyArgs;
#[cfg(target_os = "linux")]
pub(crate) use run::CommitWhen;
pub(crate) use run::RunArgs;
#[cfg(target_os = "linux")]
pub(crate) use serve::{McpArgs, McpWrapArgs, Preset, ServeArgs};
#[cfg(target_os = "linux")]
pub(crate) use session::{
    ExecArgs, SessionArgs, SessionCloseArgs, SessionCommand, SessionCommitArgs, SessionDiffArgs,
    SessionForkArgs, SessionListArgs, SessionNameArgs, SessionOpenArgs, SessionRestoreArgs,
    SessionSnapshotArgs,
};

#[cfg(feature = "verify")]
use crate::commands::verify::VerifyArgs;

const STYLES: Styles = Styles::styled()
    .header(Style::new().bold())
    .usage(Style::new().bold())
    .literal(AnsiColor::Cyan.on_default())
    .error(AnsiColor::Red.on_default().bold())
    .valid(AnsiColor::Green.on_default())
    .invalid(AnsiColor::Yellow.on_default());

const EXIT_CODES: &str = "\
Exit codes: the command's own; 128+n if signal n killed it; 124 wall-time limit; 125 the sandbox \
could not be set up and the command was not started; 126 found but not executable; 127 not found; \
2 usage; 1 the check failed (verify, inspect, policy check).";

/// Run untrusted commands in a sandbox that the kernel enforces.
#[derive(Debug, Parser)]
#[command(name = "stockade", version, styles = STYLES, after_help = EXIT_CODES, max_term_width = 100)]
#[command(propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Reads the command line.
///
/// `run` is tried first with a parser that knows nothing else: to build the one for all commands
/// takes as long as to start the program, and `run` is started for every command of an agent.
/// Whatever it does not take goes to the whole parser, whose words are those people see: it reads
/// the line `again`, because the words went into what the other made of them.
pub(crate) fn parse<Words: Iterator<Item = OsString>>(
    argv: Vec<OsString>,
    again: impl FnOnce() -> Words,
) -> Result<Command, clap::Error> {
    match short(argv) {
        Some(run) => Ok(Command::Run(Box::new(run))),
        None => Cli::try_parse_from(again()).map(|cli| cli.command),
    }
}

/// Reads what is a sound `run`, and nothing else.
fn short(mut argv: Vec<OsString>) -> Option<RunArgs> {
    let name = argv.get(1)?;
    if name != "run" && name != "shell" {
        return None;
    }
    let words = argv.split_off(1);
    let alone = RunArgs::augment_args(clap::Command::new("run"));
    let mut matches = alone.try_get_matches_from(words).ok()?;
    RunArgs::from_arg_matches_mut(&mut matches).ok()
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(visible_alias = "shell")]
    Run(Box<RunArgs>),
    #[cfg(target_os = "linux")]
    Agent(Box<AgentArgs>),
    #[cfg(target_os = "linux")]
    Hook(HookArgs),
    #[cfg(target_os = "linux")]
    Session(SessionArgs),
    #[cfg(target_os = "linux")]
    Exec(ExecArgs),
    #[cfg(target_os = "linux")]
    Batch(BatchArgs),
    #[cfg(target_os = "linux")]
    Serve(ServeArgs),
    #[cfg(target_os = "linux")]
    Mcp(Box<McpArgs>),
    #[cfg(target_os = "linux")]
    #[command(name = "mcp-wrap")]
    McpWrap(Box<McpWrapArgs>),
    Explain(Box<ExplainArgs>),
    #[cfg(target_os = "linux")]
    Log(LogArgs),
    Policy(PolicyCommandArgs),
    #[cfg(feature = "verify")]
    Verify(Box<VerifyArgs>),
    Init(InitArgs),
    Doctor(DoctorArgs),
    Inspect(InspectArgs),
    Proxy(Box<ProxyArgs>),
    #[cfg(target_os = "linux")]
    Home(HomeArgs),
    #[cfg(target_os = "linux")]
    Image(ImageArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    #[cfg(target_os = "linux")]
    Ws(Box<ws::WsArgs>),
}

/// How a result is printed; the same for every command.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct OutputArgs {
    /// Print JSON (versioned: `"schema": 1`); for `run`, a line on stderr for each event
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Say what the policy decides about a path or a host, by which rule, and what would change it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade explain ~/.ssh/id_ed25519
  stockade explain --allow github.com api.github.com:443
  stockade explain --policy ci.toml --json ./src

A word with a slash, `~` or `.` in front is a path; `name`, `name:port` and addresses are hosts. \
A bare word is a path if such a file exists. Write `./name` or `name:443` to be exact.")]
pub(crate) struct ExplainArgs {
    /// The path, or the host with an optional port
    #[arg(value_name = "PATH|HOST[:PORT]")]
    pub(crate) subject: OsString,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Show, check, describe, import or export policies
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade policy show
  stockade policy list
  stockade policy check stockade.toml
  stockade policy import ~/.srt-settings.json
  stockade policy export --to srt
  stockade policy schema > stockade.schema.json")]
pub(crate) struct PolicyCommandArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Print the merged policy with the origin of each line
    #[command(after_help = "\
Examples:
  stockade policy show
  stockade policy show --read-only --allow github.com --json")]
    Show(Box<PolicyShowArgs>),
    /// List the profiles that `--profile` takes
    #[command(after_help = "\
Examples:
  stockade policy list
  stockade policy list --json")]
    List(PolicyListArgs),
    /// Check a profile (TOML) or a policy (JSON); exit code 1 if it is refused
    #[command(after_help = "\
Examples:
  stockade policy check stockade.toml")]
    Check(PolicyCheckArgs),
    /// Print the JSON schema of profile files
    #[command(after_help = "\
Examples:
  stockade policy schema > stockade.schema.json")]
    Schema(PolicySchemaArgs),
    /// Print a profile made from the policy of another sandbox
    ///
    /// What could not be carried over is on stderr; nothing is granted that the other policy does
    /// not grant.
    #[command(after_help = "\
Examples:
  stockade policy import ~/.srt-settings.json > ~/.config/stockade/profiles/srt.toml
  stockade policy import .claude/settings.json
  stockade policy import --from bwrap words.txt --json")]
    Import(PolicyImportArgs),
    /// Print the merged policy in the words of another sandbox
    ///
    /// It is an error if the other sandbox would allow more than you stated. What Stockade adds to
    /// every policy and the other sandbox lacks is on stderr.
    #[command(after_help = "\
Examples:
  stockade policy export --to srt --allow github.com > ~/.srt-settings.json
  stockade policy export --to codex
  stockade policy export --to bwrap --read-only --json")]
    Export(Box<PolicyExportArgs>),
}

/// Formats of other sandboxes that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFrom {
    /// The words of a command line of bubblewrap
    Bwrap,
    /// Settings of Claude Code: `sandbox` and `permissions`
    Claude,
    /// Codex's config.toml
    Codex,
    /// A Dockerfile: USER, WORKDIR, EXPOSE, ENV
    Dockerfile,
    /// Settings of Anthropic's sandbox-runtime
    Srt,
}

/// Formats of other sandboxes that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportTo {
    /// The words of a command line of bubblewrap
    Bwrap,
    /// Codex's config.toml
    Codex,
    /// Settings of Anthropic's sandbox-runtime
    Srt,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyImportArgs {
    /// The file
    pub(crate) file: PathBuf,

    /// Format of the file [default: guessed from its name and content]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<ImportFrom>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyExportArgs {
    /// Format to print
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: ExportTo,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyShowArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyListArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyCheckArgs {
    /// The file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PolicySchemaArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Write a starter `stockade.toml` for the project in this directory
///
/// Looks at the project first: its languages, files that look like secrets, and the hosts that its
/// lock files name. A file in the project may only narrow what is allowed, so hosts are not written
/// there. With `--profile NAME` a profile of your own is written too, in which they stand, to be
/// uncommented.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade init
  stockade init --profile web
  stockade init --dry-run")]
pub(crate) struct InitArgs {
    /// Write a profile of this name beside your configuration too
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<ProfileName>,
    /// Print what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Try what this machine offers for isolation, and say how to fix what is missing
///
/// Nothing is reported available because a file exists: namespaces are made, filters are
/// installed, mounts are mounted and backends run a command, each in a process of its own that
/// ends at once. Exit code 1 if no tier can confine anything here.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade doctor
  stockade doctor --json | jq .landlock.abi")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade completions bash > /usr/share/bash-completion/completions/stockade")]
pub(crate) struct CompletionsArgs {
    /// Which shell
    pub(crate) shell: Shell,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Print the manual page
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade man | man -l -")]
pub(crate) struct ManArgs {
    /// Write the page of every command into this directory
    #[arg(long, hide = true, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
