//! The one door: who asks for a host, by whatever protocol, comes here.
//!
//! The list is asked before anything is looked up, so a name that is not listed never reaches a
//! resolver. A name is resolved once; every address is asked about; what was checked is dialled.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use stockade_policy::host::{Egress, Host, HostName, NetDecision, NetworkRules};
use stockade_policy::profile::Masked;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::attribution::Attribution;
use crate::config::ProxyLimits;
use crate::dial::{self, Server};
use crate::error::Unreachable;
use crate::ledger::{Ask, Ledger, Protocol, Session};
use crate::shutdown::ShutdownSignal;
use crate::text;
use crate::tls::Inspector;
use crate::upstream::Upstream;

#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) egress: CurrentEgress,
    pub(crate) limits: ProxyLimits,
    pub(crate) upstream: Option<Upstream>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) ending: ShutdownSignal,
    /// Variables whose values are put in on the way.
    pub(crate) masks: Vec<Masked>,
    /// Opens TLS, where something in it must be read.
    pub(crate) inspector: Option<Arc<Inspector>>,
    /// Tells which command of a session was refused.
    pub(crate) attribution: Attribution,
}

/// The list, which the user may widen while the sandbox stands.
#[derive(Debug)]
pub(crate) struct CurrentEgress(RwLock<Arc<Egress>>);

impl CurrentEgress {
    pub(crate) fn new(egress: Egress) -> Self {
        Self(RwLock::new(Arc::new(egress)))
    }

    pub(crate) fn get(&self) -> Arc<Egress> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has requests that come from now on be judged by these rules.
    pub(crate) fn set_rules(&self, rules: NetworkRules) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mode = current.mode;
        *current = Arc::new(Egress { mode, rules });
    }
}

/// Where a client wants to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

/// Why it may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) rule: Option<String>,
    pub(crate) reason: String,
    pub(crate) grant: Option<String>,
}

/// Why there is no connection. It is on record already.
#[derive(Debug)]
pub(crate) enum Refusal {
    Denied(Denial),
    Unreachable(Unreachable),
}

/// A request whose host is on the list; not on record yet.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) target: Target,
    pub(crate) ask: Ask,
    rule: Option<String>,
}

/// More addresses than any client would try; a hostile answer may have hundreds.
const MAX_ADDRESSES: usize = 16;

impl Gate {
    /// Asks the list. A refusal is put on record.
    pub(crate) fn check(&self, target: Target, ask: Ask) -> Result<Opening, Denial> {
        let decision = self.egress.get().decide(&target.host, target.port);
        if !decision.is_allowed() {
            return Err(self.deny(ask, Denial::new(&target, decision)));
        }
        Ok(Opening {
            target,
            ask,
            rule: decision.rule,
        })
    }

    /// Whether only methods that ask pass, so that what shows no method does not.
    pub(crate) fn is_read_only(&self) -> bool {
        self.egress.get().rules.methods.is_limited()
    }

    /// Who opens TLS to this host, if it must be opened and somebody can.
    pub(crate) fn opens(&self, target: &Target) -> Option<&Arc<Inspector>> {
        let masked = |own: &Masked| own.mask.is_for(&target.host, target.port);
        let needed = self.is_read_only() || self.masks.iter().any(masked);
        self.inspector.as_ref().filter(|_| needed)
    }

    /// Asks whether what shows no method may pass; a refusal is put on record.
    pub(crate) fn check_unreadable(
        &self,
        opening: &Opening,
        what: &'static str,
    ) -> Result<(), Denial> {
        let decision = self.egress.get().rules.decide_unreadable(what);
        if decision.is_allowed() {
            return Ok(());
        }
        let denial = Denial::new(&opening.target, decision);
        Err(self.deny(opening.ask.clone(), denial))
    }

    /// Refuses what is no host at all.
    pub(crate) fn refuse_text(&self, ask: Ask, host: &str, port: u16, reason: String) -> Denial {
        let denial = Denial {
            host: text::shown(host),
            port,
            rule: None,
            reason,
            grant: None,
        };
        self.deny(ask, denial)
    }

    /// Puts a refusal on record.
    pub(crate) fn deny(&self, ask: Ask, denial: Denial) -> Denial {
        let command = self.attribution.command_of(ask.client);
        self.ledger.deny(ask, &denial, command);
        denial
    }

    /// Makes the connection that `opening` is about.
    pub(crate) async fn connect(&self, opening: &Opening) -> Result<Server, Refusal> {
        let target = &opening.target;
        if let Some(upstream) = self.upstream_for(target) {
            return upstream
                .connect(target, self.limits.connect)
                .await
                .map_err(|error| self.fail(opening, error));
        }
        let addresses = self.addresses(opening).await?;
        match dial::first(&addresses, self.limits.connect).await {
            Ok(stream) => Ok(Server::new(stream)),
            Err(error) => Err(self.fail(opening, error)),
        }
    }

    /// The proxy through which a host is reached, if there is one: a pinned name is not its
    /// business, since nobody else knows the pin.
    pub(crate) fn upstream_for(&self, target: &Target) -> Option<&Upstream> {
        let upstream = self.upstream.as_ref()?;
        let pinned = match &target.host {
            Host::Name(name) => !self.egress.get().rules.pins(name).is_empty(),
            Host::Ip(_) => false,
        };
        (!pinned && upstream.serves(target)).then_some(upstream)
    }

    /// Puts an allowed request that failed on record.
    pub(crate) fn fail(&self, opening: &Opening, error: Unreachable) -> Refusal {
        let ask = opening.ask.clone();
        let rule = opening.rule.clone();
        self.ledger
            .fail(ask, &opening.target, rule, error.to_string());
        Refusal::Unreachable(error)
    }

    /// Puts an allowed request on record.
    pub(crate) fn begin(&self, opening: &Opening) -> Session {
        let ask = opening.ask.clone();
        self.ledger.open(ask, &opening.target, opening.rule.clone())
    }

    /// The addresses that may be dialled.
    async fn addresses(&self, opening: &Opening) -> Result<Vec<SocketAddr>, Refusal> {
        let Target { host, port } = &opening.target;
        let name = match host {
            // The decision was about this very address.
            Host::Ip(ip) => return Ok(vec![SocketAddr::new(*ip, *port)]),
            Host::Name(name) => name,
        };
        let egress = self.egress.get();
        let pins = egress.rules.pins(name);
        let found = if pins.is_empty() {
            self.resolve(name, *port)
                .await
                .map_err(|error| self.fail(opening, error))?
        } else {
            pins.to_vec()
        };
        let mut refused = None;
        let mut checked = Vec::new();
        for ip in found {
            let decision = egress.decide_address(name, ip, *port);
            if decision.is_allowed() {
                checked.push(SocketAddr::new(ip, *port));
            } else {
                refused.get_or_insert(decision);
            }
        }
        match refused {
            Some(decision) if checked.is_empty() => {
                let denial = Denial::new(&opening.target, decision);
                Err(Refusal::Denied(self.deny(opening.ask.clone(), denial)))
            }
            _ => Ok(checked),
        }
    }

    async fn resolve(&self, name: &HostName, port: u16) -> Result<Vec<IpAddr>, Unreachable> {
        let written = crate::hosts_file::lookup(name);
        if !written.is_empty() {
            return Ok(written);
        }
        let after = self.limits.connect;
        // The dot keeps the resolver from trying the search list: only this name was allowed.
        let question = format!("{name}.");
        let found = timeout(after, tokio::net::lookup_host((question, port)))
            .await
            .map_err(|_| Unreachable::ResolveTimeout {
                name: name.to_string(),
                after,
            })?
            .map_err(|source| Unreachable::Resolve {
                name: name.to_string(),
                source,
            })?;
        let mut addresses = Vec::new();
        for address in found {
            let ip = address.ip();
            if !addresses.contains(&ip) {
                addresses.push(ip);
            }
            if addresses.len() == MAX_ADDRESSES {
                break;
            }
        }
        if addresses.is_empty() {
            return Err(Unreachable::NoAddress(name.to_string()));
        }
        Ok(addresses)
    }
}

impl Target {
    /// Reads a host and takes the port.
    pub(crate) fn parse(host: &str, port: u16) -> Result<Self, stockade_policy::host::HostError> {
        Host::parse(host).map(|host| Self { host, port })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host {
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
            _ => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl Denial {
    pub(crate) fn new(target: &Target, decision: NetDecision) -> Self {
        Self {
            host: target.host.to_string(),
            port: target.port,
            rule: decision.rule,
            reason: decision.reason.to_string(),
            grant: decision.grant,
        }
    }

    /// What a client is told.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "stockade: {}:{} is blocked: {}\n",
            self.host, self.port, self.reason
        );
        text.push_str("rule: ");
        text.push_str(self.rule.as_deref().unwrap_or("no rule matches this host"));
        text.push('\n');
        if let Some(grant) = &self.grant {
            text.push_str("allow with: ");
            text.push_str(grant);
            text.push('\n');
        }
        text
    }
}

/// Ends a connection so that the other side knows at once.
pub(crate) fn reset(stream: TcpStream) {
    // Zero time to linger: closing sends RST (socket(7)).
    let _ = stream.set_zero_linger();
    drop(stream);
}

impl Opening {
    pub(crate) fn as_protocol(&mut self, protocol: Protocol) {
        self.ask.protocol = protocol;
    }
}

impl From<io::Error> for Refusal {
    fn from(source: io::Error) -> Self {
        Self::Unreachable(Unreachable::Connect {
            to: "the host".into(),
            source,
        })
    }
}
