//! Flags about hosts and the way to them, which `run` and `proxy` read alike.

use clap::Args;
use stockade_policy::host::{Allowed, HostPattern, Methods, Preset};
use stockade_policy::profile::{Mask, Pin};
use stockade_proxy::Upstream;

use super::policy::words;
use crate::exit::Exit;
use crate::failure::Failure;

/// Which hosts.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HostArgs {
    /// Let connections to a host through, on ports 443 and 80 unless one is given; or to the hosts
    /// that a client is set up to use: @npm, @pypi, @crates, @go, @github, @debian
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Network")]
    pub(crate) allow: Vec<Allowed>,

    /// Like --allow, but accept patterns as broad as `*` or `*.com`
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

    /// Use this address for NAME, even if it is private; needs --allow NAME
    #[arg(long, value_name = "NAME=IP", help_heading = "Network")]
    pub(crate) resolve: Vec<Pin>,

    /// `read-only`: only GET, HEAD and OPTIONS; anything that is not HTTP is refused
    #[arg(
        long,
        value_name = "METHODS",
        value_parser = words::<Methods>(Methods::WORDS),
        help_heading = "Network"
    )]
    pub(crate) net_methods: Option<Methods>,

    /// Let connections pass that hide their host: TLS without SNI or with ECH, HTTP/2 without TLS
    #[arg(long, help_heading = "Network")]
    pub(crate) danger_hidden_names: bool,

    /// Keep a variable's value outside: a placeholder stands for it, and requests to these hosts
    /// have the value put into their headers
    #[arg(long, value_name = "NAME=HOST[,HOST]", help_heading = "Network")]
    pub(crate) mask: Vec<Mask>,
}

impl HostArgs {
    /// Everything that is let through, the wide ones too.
    pub(crate) fn allowed(&self) -> impl Iterator<Item = &HostPattern> {
        let stated = self.allow.iter().filter_map(|allowed| match allowed {
            Allowed::Host(host) => Some(host),
            Allowed::Preset(_) => None,
        });
        stated.chain(&self.danger_allow)
    }

    /// The presets that are let through.
    pub(crate) fn presets(&self) -> impl Iterator<Item = Preset> {
        self.allow.iter().filter_map(|allowed| match allowed {
            Allowed::Host(_) => None,
            Allowed::Preset(preset) => Some(*preset),
        })
    }
}

/// By which way.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct UpstreamArgs {
    /// Go through another proxy; without the flag, the one in the environment, if there is one
    #[arg(
        long,
        value_name = "URL",
        // Not read here: the message would print it, with the password in it.
        value_parser = clap::builder::NonEmptyStringValueParser::new(),
        help_heading = "Network"
    )]
    pub(crate) upstream: Option<String>,

    /// Go through no other proxy, whatever the environment says
    #[arg(long, conflicts_with = "upstream", help_heading = "Network")]
    pub(crate) no_upstream: bool,
}

impl UpstreamArgs {
    /// The other proxy, if there is one.
    pub(crate) fn choose(&self) -> Result<Option<Upstream>, Failure> {
        match &self.upstream {
            Some(upstream) => Upstream::parse(upstream).map(Some).map_err(|error| {
                let error = anyhow::Error::new(error).context("can't use `--upstream`");
                let hint = "the form is `--upstream http://[USER:PASSWORD@]HOST:PORT`; in USER and \
                            PASSWORD `@` is `%40` and `/` is `%2F`";
                Failure::new(Exit::Usage, error).hint(hint)
            }),
            None if self.no_upstream => Ok(None),
            None => Upstream::from_environment().map_err(|error| {
                let error =
                    anyhow::Error::new(error).context("can't use the proxy in the environment");
                Failure::new(Exit::NotSetUp, error).hint("`--no-upstream` goes without it")
            }),
        }
    }
}
