//! The flags of `proxy`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use stockade_proxy::ProxyMode;

use super::{HostArgs, OutputArgs, UpstreamArgs};

/// Serve a filtering proxy on a loopback port, for programs outside of a sandbox
///
/// HTTP with CONNECT, and SOCKS5, on one port. It confines nobody who does not want to use it;
/// `stockade run --allow` does.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade proxy --allow github.com --allow '*.githubusercontent.com'
  stockade proxy --dev --watch
  stockade proxy --mode blocklist --block '*.example.org' --log requests.jsonl

Prints where it listens and the variables that make programs use it, then serves until it gets \
SIGINT or SIGTERM.")]
pub(crate) struct ProxyArgs {
    #[command(flatten)]
    pub(crate) hosts: HostArgs,

    /// How the lists are read
    #[arg(
        long,
        value_name = "MODE",
        default_value = ProxyMode::Allowlist.as_str(),
        value_parser = PossibleValuesParser::new(ProxyMode::WORDS)
            .try_map(|word| word.parse::<ProxyMode>()),
        help_heading = "Network"
    )]
    pub(crate) mode: ProxyMode,

    /// Allow what the installed development tools are configured to use: pip, npm, cargo, go, git
    #[arg(long, help_heading = "Network")]
    pub(crate) dev: bool,

    #[command(flatten)]
    pub(crate) upstream: UpstreamArgs,

    /// Where to listen; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:0",
        help_heading = "Service"
    )]
    pub(crate) listen: SocketAddr,

    /// Write the certificates that clients have to trust, so that TLS can be opened where
    /// `--net-methods` or `--mask` need it
    #[arg(long, value_name = "FILE", help_heading = "Service")]
    pub(crate) trust_file: Option<PathBuf>,

    /// Append each request to a file, as a line of JSON
    #[arg(long, value_name = "FILE", help_heading = "Service")]
    pub(crate) log: Option<PathBuf>,

    /// Show the traffic while it happens
    #[arg(long, help_heading = "Service")]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
