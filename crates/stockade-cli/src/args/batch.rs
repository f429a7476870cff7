//! The flags of `stockade batch`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use stockade_policy::profile::parse_size;

use super::OutputArgs;

/// Run many commands, each in a sandbox of its own
///
/// Reads tasks and writes results, one JSON object a line, in the order in which tasks end.
/// docs/batch.md has the fields.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade batch tasks.jsonl > results.jsonl
  stockade batch --parallel 8 --journal night.journal tasks.jsonl > results.jsonl
  echo '{\"id\": \"one\", \"argv\": [\"echo\", \"hello\"]}' | stockade batch

With --journal a batch that was stopped goes on where it was: finished tasks are not run again. \
The exit code is 0 if every task was run, whatever its command answered, and 1 if a task could not \
be run.")]
pub(crate) struct BatchArgs {
    /// File with the tasks; `-` is stdin [default: -]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Number of sandboxes at once [default: number of processors]
    #[arg(short, long, value_name = "N")]
    pub(crate) parallel: Option<NonZeroUsize>,

    /// Keep results in FILE and skip tasks that it has
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,

    /// Retries of a task whose sandbox failed; a command that fails is not retried
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) retries: u32,

    /// Bytes of each output stream that a result keeps
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = parse_size)]
    pub(crate) max_output: u64,

    /// Show no progress and no summary
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
