//! The flags of `proxy`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use stockade_policy::host::HostPattern;
use stockade_policy::profile::Pin;
use stockade_proxy::{ProxyMode, Upstream};

use super::OutputArgs;

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
    /// Let connections to a host through; ports 443 and 80 unless one is given
    #[arg(
        long,
        value_name = "HOST[:PORT]",
        value_parser = HostPattern::parse,
        help_heading = "Network"
    )]
    pub(crate) allow: Vec<HostPattern>,

    /// The same, as wide as `*` or `*.com`
    #[arg(
        long,
        value_name = "HOST[:PORT]",
        value_parser = HostPattern::danger_parse,
        help_heading = "Network"
    )]
    pub(crate) danger_allow: Vec<HostPattern>,

    /// Refuse connections to a host, whatever else allows them
    #[arg(
        long,
        value_name = "HOST[:PORT]",
        value_parser = HostPattern::parse_block,
        help_heading = "Network"
    )]
    pub(crate) block: Vec<HostPattern>,

    /// Pin a name to an address, which this grants, private or not
    #[arg(long, value_name = "NAME=IP", help_heading = "Network")]
    pub(crate) resolve: Vec<Pin>,

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

    /// Go through another proxy; without the flag, the one in the environment, if there is one
    #[arg(
        long,
        value_name = "URL",
        value_parser = Upstream::parse,
        help_heading = "Network"
    )]
    pub(crate) upstream: Option<Upstream>,

    /// Go through no other proxy, whatever the environment says
    #[arg(long, conflicts_with = "upstream", help_heading = "Network")]
    pub(crate) no_upstream: bool,

    /// Where to listen; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:0",
        help_heading = "Service"
    )]
    pub(crate) listen: SocketAddr,

    /// Append each request to a file, as a line of JSON
    #[arg(long, value_name = "FILE", help_heading = "Service")]
    pub(crate) log: Option<PathBuf>,

    /// Show the traffic while it happens
    #[arg(long, help_heading = "Service")]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
