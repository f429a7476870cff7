//! The flags of `stockade home`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputArgs;

/// List or drop home directories that `run --home keep` keeps
///
/// With `--home keep` a private layer over the home directory takes every write. It is there again
/// in the next run in the same directory, and nothing of it reaches the host's home directory.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade home list
  stockade home drop")]
pub(crate) struct HomeArgs {
    #[command(subcommand)]
    pub(crate) command: HomeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HomeCommand {
    /// List kept home directories, the last used first
    #[command(after_help = "\
Examples:
  stockade home list
  stockade home list --json")]
    List(HomeListArgs),
    /// Forget what the runs in a directory wrote to the home directory
    #[command(after_help = "\
Examples:
  stockade home drop
  stockade home drop ~/code/site
  stockade home drop --all")]
    Drop(HomeDropArgs),
}

impl HomeCommand {
    pub(crate) fn output(&self) -> OutputArgs {
        match self {
            Self::List(args) => args.output,
            Self::Drop(args) => args.output,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct HomeListArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HomeDropArgs {
    /// The directory in which the commands ran [the current one]
    pub(crate) dir: Option<PathBuf>,
    /// Drop those of all directories that no run uses
    #[arg(long, conflicts_with = "dir")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
