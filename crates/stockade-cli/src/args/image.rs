//! `stockade image`: images for containers.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputArgs;

/// Build, make, list and remove images for `--backend docker --image`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade image build
  stockade image from-host python3 git --name stockade/tools:1
  stockade image list")]
pub(crate) struct ImageArgs {
    #[command(subcommand)]
    pub(crate) command: ImageCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Build the image of a project, unless nothing it is made of has changed
    #[command(after_help = "\
Examples:
  stockade image build
  stockade image build ~/project --file ci/Dockerfile --build-arg VERSION=3")]
    Build(ImageBuildArgs),
    /// Make a minimal image out of this machine's own programs; no registry is asked
    #[command(after_help = "\
Examples:
  stockade image from-host python3 git --name stockade/tools:1")]
    FromHost(ImageFromHostArgs),
    /// Make an image out of a directory or a tar archive that is a whole file system
    #[command(after_help = "\
Examples:
  stockade image from-rootfs ./rootfs --name stockade/mine:1
  stockade image from-rootfs rootfs.tar")]
    FromRootfs(ImageFromRootfsArgs),
    /// List the images that Stockade made
    #[command(after_help = "\
Examples:
  stockade image list
  stockade image list --json")]
    List(ImageListArgs),
    /// Remove images, and stale images of projects from the index
    #[command(after_help = "\
Examples:
  stockade image prune")]
    Prune(ImageListArgs),
    /// Remove an image
    #[command(after_help = "\
Examples:
  stockade image rm stockade/tools:1")]
    Rm(ImageRmArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ImageBuildArgs {
    /// The project, which is the build context
    #[arg(default_value = ".")]
    pub(crate) project: PathBuf,
    /// The Dockerfile; `Dockerfile` in the project unless given
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// A build argument
    #[arg(long, value_name = "K=V")]
    pub(crate) build_arg: Vec<String>,
    /// Build even if nothing has changed
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImageFromHostArgs {
    /// Programs besides a shell and the basic tools
    pub(crate) programs: Vec<String>,
    /// The image's name
    #[arg(long, default_value = "stockade/host:latest")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImageFromRootfsArgs {
    /// The directory or archive
    pub(crate) rootfs: OsString,
    /// The image's name
    #[arg(long, default_value = "stockade/rootfs:latest")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImageListArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImageRmArgs {
    /// Its name
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

impl ImageCommand {
    pub(crate) fn output(&self) -> OutputArgs {
        match self {
            Self::Build(args) => args.output,
            Self::FromHost(args) => args.output,
            Self::FromRootfs(args) => args.output,
            Self::List(args) | Self::Prune(args) => args.output,
            Self::Rm(args) => args.output,
        }
    }
}
