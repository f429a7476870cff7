//! Flags about hosts and the way to them, which `run` and `proxy` read alike.

use clap::Args;
use stockade_policy::host::{HostPattern, Methods};
use stockade_policy::profile::{Mask, Pin};
use stockade_proxy::{Upstream, UpstreamError};

use super::policy::words;

/// Which hosts.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HostArgs {
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

    /// Let only HTTP methods pass that ask (GET, HEAD, OPTIONS) and nothing that is no HTTP, or all
    #[arg(
        long,
        value_name = "METHODS",
        value_parser = words::<Methods>(Methods::WORDS),
        help_heading = "Network"
    )]
    pub(crate) net_methods: Option<Methods>,

    /// Keep a variable's value outside: a placeholder stands for it, and requests to these hosts
    /// have the value put into their headers
    #[arg(long, value_name = "NAME=HOST[,HOST]", help_heading = "Network")]
    pub(crate) mask: Vec<Mask>,
}

impl HostArgs {
    /// Everything that is let through, the wide ones too.
    pub(crate) fn allowed(&self) -> impl Iterator<Item = &HostPattern> {
        self.allow.iter().chain(&self.danger_allow)
    }
}

/// By which way.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct UpstreamArgs {
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
}

impl UpstreamArgs {
    /// The other proxy, if there is one.
    pub(crate) fn choose(&self) -> Result<Option<Upstream>, UpstreamError> {
        match &self.upstream {
            Some(upstream) => Ok(Some(upstream.clone())),
            None if self.no_upstream => Ok(None),
            None => Upstream::from_environment(),
        }
    }
}
