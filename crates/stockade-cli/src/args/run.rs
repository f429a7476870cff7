//! The flags of `stockade run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{OutputArgs, PolicyArgs, UpstreamArgs};

/// When `run --commit` applies what the run changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CommitWhen {
    /// If the command exits with 0
    OnSuccess,
    /// However the command ends
    Always,
}

/// Run a command confined by a policy, or your shell
///
/// The first word that is no flag begins the command, and everything after it belongs to the
/// command. Write `--` before a command that begins with a dash.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = "\
Examples:
  stockade run cargo test
  stockade shell --allow github.com
  stockade run --allow @github -- git clone https://github.com/you/repo
  stockade run --allow api.example.org --net-methods read-only -- ./report.py
  stockade run --allow api.example.org --mask API_TOKEN=api.example.org -- ./agent
  stockade run --read-only --deny-read ~/notes -- ./unknown-binary
  stockade run --limit mem=512M --timeout 30s -- python3 script.py
  stockade run --overlay --commit -- ./migrate.sh
  stockade run --dry-run -- make")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that is there or not"
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// Run in a container of this image, with its files in place of the host's
    #[arg(long, value_name = "NAME", help_heading = "Isolation")]
    pub(crate) image: Option<String>,

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

    /// Apply what the run changed when it has ended: on success, or always [default: on-success]
    #[arg(
        long,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "on-success",
        requires = "overlay",
        help_heading = "Outcome"
    )]
    pub(crate) commit: Option<CommitWhen>,

    /// Watch reads too, and say afterwards what the policy refused
    #[arg(long, help_heading = "Outcome")]
    pub(crate) explain: bool,

    /// Write the enforcement report, in JSON; `-` is standard output
    #[arg(long, value_name = "FILE", help_heading = "Outcome")]
    pub(crate) report: Option<PathBuf>,

    /// Verify the command and its script first, and don't start it if that finds an error
    #[cfg(feature = "verify")]
    #[arg(long, help_heading = "Outcome")]
    pub(crate) verify: bool,

    /// Inspect what the command prints, as `inspect` would, and mark findings in the report
    #[arg(long, help_heading = "Outcome")]
    pub(crate) inspect: bool,

    /// Mask secrets in what the command prints, and count them in the report
    #[arg(long, help_heading = "Outcome")]
    pub(crate) redact: bool,

    /// Print the plan and start nothing
    #[arg(long, help_heading = "Outcome")]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// With `--json`: write the events to this descriptor instead of stderr
    #[arg(long, value_name = "N", requires = "json", help_heading = "Output")]
    pub(crate) json_fd: Option<i32>,

    /// Say nothing but errors
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Say more
    #[arg(short, long, help_heading = "Output")]
    pub(crate) verbose: bool,

    /// The command and its arguments; your shell if there is none
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}
