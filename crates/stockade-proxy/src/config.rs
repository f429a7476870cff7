//! What a proxy is told.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ring::rand::SecureRandom;
use stockade_policy::host::{
    Egress, EgressMode, HostError, HostName, HostPattern, HostPatternError, Methods, NetworkRules,
};
use stockade_policy::profile::{Mask, Masked, MaskedError};

use crate::upstream::Upstream;

/// What a [`NetworkProxy`](crate::NetworkProxy) lets pass, and how it behaves.
#[derive(Clone, Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers fill it in, beginning with the default"
)]
pub struct ProxyConfig {
    /// Hosts that may be reached: `host`, `*.host`, `host:port`, an address or a CIDR block. Ports
    /// 80 and 443 where none is given.
    pub allowed_domains: Vec<String>,
    /// Hosts that may not be reached, whatever else is said.
    pub blocked_domains: Vec<String>,
    /// How the lists are read.
    pub mode: EgressMode,
    /// Whether requests are kept in the log; the counters work either way.
    pub log_requests: bool,
    /// Names that have these addresses and are not looked up. Each is a grant of its address.
    pub resolve: Vec<(String, IpAddr)>,
    /// Whether an allowed pattern may be as wide as `*` or `*.com`.
    pub danger_wide_patterns: bool,
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// How many entries the log keeps.
    pub log_capacity: usize,
    /// A file that gets every request as a line of JSON.
    pub log_file: Option<PathBuf>,
    /// Which HTTP methods pass; unless all do, what shows no method does not.
    pub methods: Methods,
    /// Whether connections pass that do not show which name they are for: TLS without a server name
    /// or with an encrypted one, HTTP/2 without TLS.
    pub danger_hidden_names: bool,
    /// Variables whose values are put into requests to the hosts that they are for.
    pub masks: Vec<Masked>,
    /// A file that gets the certificates that clients have to trust, so that TLS can be opened where
    /// something in it must be read. Without it TLS is not opened: where methods are limited it is
    /// refused, and to hosts that values are masked for it carries the placeholder.
    pub trust_file: Option<PathBuf>,
    /// Another proxy through which everything goes.
    pub upstream: Option<Upstream>,
    /// How long and how much.
    pub limits: ProxyLimits,
}

/// How long a proxy waits and how much it takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers fill it in, beginning with the default"
)]
pub struct ProxyLimits {
    /// Connections of clients at one time; the next ones wait.
    pub connections: usize,
    /// For a client to send the head of a request.
    pub head: Duration,
    /// To resolve a name, and to connect to it.
    pub connect: Duration,
    /// For a host to answer a request, while nothing moves.
    pub answer: Duration,
    /// For a tunnel in which nothing moves.
    pub idle: Duration,
}

/// Why a configuration makes no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A pattern is none.
    #[error(transparent)]
    Pattern(#[from] HostPatternError),
    /// A variable can't be masked.
    #[error("the variable `{name}` can't be masked: {source}")]
    Mask {
        /// Which one.
        name: String,
        /// Why.
        source: MaskedError,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random,
    /// A name that is pinned is none.
    #[error(transparent)]
    Name(#[from] HostError),
}

impl Default for ProxyConfig {
    fn default() -> Self {
        Self {
            allowed_domains: Vec::new(),
            blocked_domains: Vec::new(),
            mode: EgressMode::Allowlist,
            log_requests: true,
            resolve: Vec::new(),
            danger_wide_patterns: false,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            log_capacity: 10_000,
            log_file: None,
            methods: Methods::Any,
            danger_hidden_names: false,
            masks: Vec::new(),
            trust_file: None,
            upstream: None,
            limits: ProxyLimits::default(),
        }
    }
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connections: 4096,
            head: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(60),
            idle: Duration::from_secs(3600),
        }
    }
}

impl ProxyConfig {
    /// Masks a variable with this value; what stands for it is in the proxy's
    /// [`env_vars`](crate::NetworkProxy::env_vars).
    ///
    /// # Errors
    /// If there is no value, or one that can't be masked.
    pub fn mask(&mut self, mask: Mask, value: Option<&OsStr>) -> Result<(), ConfigError> {
        let mut known = self.masks.iter_mut();
        if let Some(own) = known.find(|own| own.mask.name == mask.name) {
            own.mask.hosts.extend(mask.hosts);
            return Ok(());
        }
        let mut random = [0; 512];
        ring::rand::SystemRandom::new()
            .fill(&mut random)
            .map_err(|_| ConfigError::Random)?;
        let mut bytes = random.iter().copied().cycle();
        let name = mask.name.to_string();
        let masked = Masked::new(mask, value, || bytes.next().unwrap_or_default())
            .map_err(|source| ConfigError::Mask { name, source })?;
        self.masks.push(masked);
        Ok(())
    }

    /// The lists in the form in which they are asked.
    pub(crate) fn egress(&self) -> Result<Egress, ConfigError> {
        let parse = if self.danger_wide_patterns {
            HostPattern::danger_parse
        } else {
            HostPattern::parse
        };
        let mut rules = NetworkRules::default();
        for text in &self.allowed_domains {
            rules.allow.push(parse(text)?);
        }
        for text in &self.blocked_domains {
            rules.block.push(HostPattern::parse_block(text)?);
        }
        for (name, address) in &self.resolve {
            let name = HostName::parse(name)?;
            rules.resolve.entry(name).or_default().push(*address);
        }
        rules.methods = self.methods;
        rules.danger_hidden_names = self.danger_hidden_names;
        Ok(Egress {
            mode: self.mode,
            rules,
        })
    }
}
