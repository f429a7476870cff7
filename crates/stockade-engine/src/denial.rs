//! What was refused, by which rule, and what would let it pass.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use rustix::io::Errno;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use stockade_linux::{Denial as Refusal, Operation};
use stockade_policy::host::{HostName, decide_network};

use crate::grant::Grant;
use crate::network::NetworkRecord;
use crate::plan::ExecPlan;
use crate::report::NetworkOutcome;

/// Something that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denial {
    /// What it was about.
    pub subject: Subject,
    /// What was tried.
    pub operation: Operation,
    /// The rule that decided.
    pub rule: String,
    /// Who stated that rule.
    pub origin: Option<String>,
    /// The smallest change that would let it pass.
    pub grant: Grant,
    /// The error that the program got.
    pub errno: i32,
    /// The process, by its id inside; 0 where it is not known.
    pub pid: i32,
    /// What the program called itself; empty where it is not known.
    pub argv0: PathBuf,
}

/// What a denial is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// A host on the network.
    Host {
        /// Its name or address.
        host: String,
        /// The port; none for questions about the name alone.
        port: Option<u16>,
    },
    /// The absolute real path of a file, directory or socket.
    Path(PathBuf),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host {
                host,
                port: Some(port),
            } => write!(f, "{host}:{port}"),
            Self::Host { host, port: None } => f.write_str(host),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

/// What was tried, on what, and the rule that decided.
impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`: ", self.operation, self.subject)?;
        match &self.origin {
            Some(origin) => write!(f, "`{}` ({origin})", self.rule),
            None => f.write_str(&self.rule),
        }
    }
}

/// The report's shape: `path` is there for every subject.
impl Serialize for Denial {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Denial", 9)?;
        fields.serialize_field("operation", &self.operation)?;
        match &self.subject {
            Subject::Path(path) => fields.serialize_field("path", path)?,
            Subject::Host { host, port } => {
                fields.serialize_field("path", &self.subject.to_string())?;
                fields.serialize_field("host", host)?;
                if let Some(port) = port {
                    fields.serialize_field("port", port)?;
                }
            }
        }
        fields.serialize_field("rule", &self.rule)?;
        fields.serialize_field("origin", &self.origin)?;
        fields.serialize_field("grant", &self.grant)?;
        fields.serialize_field("errno", &self.errno)?;
        fields.serialize_field("pid", &self.pid)?;
        fields.serialize_field("argv0", &self.argv0)?;
        fields.end()
    }
}

/// What was refused by the mediator and by whoever answers in the network.
pub(crate) fn denials(
    plan: &ExecPlan,
    refusals: &[Refusal],
    network: &NetworkOutcome,
) -> Vec<Denial> {
    let refused = network.records.iter().filter(|record| !record.allowed);
    let mut denials: Vec<Denial> = refused.map(Denial::of_network).collect();
    for refusal in refusals {
        if refusal.operation != Operation::Reach {
            denials.push(Denial::of_path(plan, refusal));
        } else if let Some(denial) = Denial::of_reach(plan, refusal, network)
            // A name has an address of each family, and clients try both.
            && !denials.iter().any(|known| known.subject == denial.subject)
        {
            denials.push(denial);
        }
    }
    denials
}

impl Denial {
    /// What the proxy refused; it does not know which process asked.
    fn of_network(record: &NetworkRecord) -> Self {
        Self {
            subject: Subject::Host {
                host: record.host.clone(),
                port: (record.port != 0).then_some(record.port),
            },
            operation: Operation::Reach,
            rule: record.rule.clone().unwrap_or_else(|| record.reason.clone()),
            origin: None,
            grant: Grant::of_host(record.grant.as_deref()),
            errno: Errno::CONNREFUSED.raw_os_error(),
            pid: 0,
            argv0: PathBuf::new(),
        }
    }

    /// What the mediator refused: an address, which may stand for a name.
    fn of_reach(plan: &ExecPlan, refusal: &Refusal, network: &NetworkOutcome) -> Option<Self> {
        let text = refusal.path.to_str()?;
        let Ok(place) = text.parse::<SocketAddr>() else {
            return Self::of_name(text, refusal);
        };
        let name = network.names.get(&place.ip());
        let host = name.cloned().unwrap_or_else(|| place.ip().to_string());
        let (rule, grant) = match &plan.network {
            Some(order) => {
                let decision = decide_network(&order.rules, &host, place.port());
                let rule = decision.rule.unwrap_or_else(|| decision.reason.to_string());
                (rule, Grant::of_host(decision.grant.as_deref()))
            }
            // Whoever asks a resolver wants a host whose name is not known here.
            None if place.port() == DNS => (NETWORK_OFF.to_owned(), Grant::Allow("HOST".into())),
            None => (NETWORK_OFF.to_owned(), Grant::Allow(place.to_string())),
        };
        Some(Self {
            subject: Subject::Host {
                host,
                port: Some(place.port()),
            },
            operation: refusal.operation,
            rule,
            origin: None,
            grant,
            errno: refusal.errno,
            pid: refusal.pid,
            argv0: refusal.program.clone(),
        })
    }

    /// A name that was asked for where there is no network.
    fn of_name(name: &str, refusal: &Refusal) -> Option<Self> {
        // A name that no rule could list can't be allowed either, and a word without a dot is one of
        // this machine.
        let host = HostName::parse(name).ok()?;
        let host = host.as_str().contains('.').then(|| host.to_string())?;
        Some(Self {
            grant: Grant::Allow(host.clone()),
            subject: Subject::Host { host, port: None },
            operation: refusal.operation,
            rule: NETWORK_OFF.to_owned(),
            origin: None,
            errno: refusal.errno,
            pid: refusal.pid,
            argv0: refusal.program.clone(),
        })
    }

    fn of_path(plan: &ExecPlan, refusal: &Refusal) -> Self {
        let mediation = plan.linux.mediation.as_ref();
        let rules = mediation.map(|mediation| &mediation.rules);
        let rule = refusal.rule.and_then(|index| rules?.iter().nth(index));
        Self {
            subject: Subject::Path(refusal.path.clone()),
            operation: refusal.operation,
            rule: match &refusal.protected {
                Some(_) => format!("deny_write {}", refusal.path.display()),
                None => rule.map_or_else(|| NOT_ALLOWED.to_owned(), ToString::to_string),
            },
            origin: match &refusal.protected {
                Some(reason) => Some(format!("built-in: {reason}")),
                None => rule.map(|rule| rule.origin.to_string()),
            },
            grant: Grant::of_refusal(plan, refusal),
            errno: refusal.errno,
            pid: refusal.pid,
            argv0: refusal.program.clone(),
        }
    }
}

const DNS: u16 = 53;

/// Stands for a rule where there is no network.
const NETWORK_OFF: &str = "the network is off";

/// Stands for a rule where no rule matches the path.
const NOT_ALLOWED: &str = "the policy does not allow it";
