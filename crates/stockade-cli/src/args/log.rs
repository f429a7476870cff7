//! The flags of `stockade log`.

use clap::Args;

use super::OutputArgs;

/// Show what the last runs refused, why, and what would allow it
///
/// `run` notes its refusals in a file that only you can read and no sandboxed command can reach.
/// Old runs are dropped when the file is full.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade log
  stockade log --last 1
  stockade log --json")]
pub(crate) struct LogArgs {
    /// Show this many runs [10]
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        hide_default_value = true
    )]
    pub(crate) last: usize,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
