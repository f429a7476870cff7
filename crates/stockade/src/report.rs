//! The enforcement report: what was asked for, what held it, what was refused, how it ended.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;
use serde::Serialize;
use stockade_linux::{Denial, Operation, Usage};
use stockade_policy::host::decide_network;
use stockade_policy::profile::{Backend, Clause};
use stockade_rules::{AbsPath, Grant, Kind, shell_word};

use crate::network::{NetworkGuard, NetworkRecord};
use crate::plan::ExecPlan;

/// What one run enforced and how it ended.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The version of this shape.
    pub schema: u32,
    /// What enforced it.
    pub backend: Backend,
    /// Landlock's ABI; 0 where it was not used.
    pub landlock_abi: u32,
    /// Each clause of the policy.
    pub enforcement: Vec<ClauseReport>,
    /// Names of environment variables that were not handed on.
    pub env_removed: Vec<String>,
    /// What was refused.
    pub denials: Vec<DenialRecord>,
    /// Who was asked for on the network, and what was decided.
    pub network: Vec<NetworkRecord>,
    /// What was used.
    pub usage: UsageReport,
    /// How it ended.
    pub ending: Ending,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// One clause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClauseReport {
    /// Which one.
    pub clause: Clause,
    /// How far it holds.
    pub enforcement: Enforcement,
    /// By what.
    pub mechanism: String,
    /// What is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
}

/// How far a clause holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "there are three")]
pub enum Enforcement {
    /// In full.
    Full,
    /// With a gap that is named.
    Partial,
    /// Not at all.
    None,
}

/// Something that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DenialRecord {
    /// What was tried.
    pub operation: Operation,
    /// On what: the absolute real path.
    pub path: PathBuf,
    /// Which host, for connections to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// On which port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The rule that decided.
    pub rule: String,
    /// Who stated that rule.
    pub origin: Option<String>,
    /// The smallest change that would let it pass.
    pub grant: String,
    /// The error that the program got.
    pub errno: i32,
    /// The process, by its id inside.
    pub pid: i32,
    /// What the program called itself.
    pub argv0: PathBuf,
}

/// What a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UsageReport {
    /// Wall time in microseconds.
    pub wall_micros: u64,
    /// CPU time in microseconds, user and kernel.
    pub cpu_micros: u64,
    /// The largest resident size of any one process, in KiB.
    pub peak_memory_kib: u64,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// It used more CPU time than was allowed. Told of the command itself, in the tiers `native`
    /// and `landlock`; elsewhere, and of its children, it is a signal or a code like any other.
    CpuLimit,
    /// The command ended with this code.
    Exited(i32),
    /// The sandbox was ended by its caller.
    Killed,
    /// It wrote more than was allowed.
    OutputLimit,
    /// A signal ended the command.
    Signalled(i32),
    /// It took longer than was allowed.
    TimedOut,
}

impl ClauseReport {
    pub(crate) fn full(clause: Clause, mechanism: &str) -> Self {
        Self {
            clause,
            enforcement: Enforcement::Full,
            mechanism: mechanism.to_owned(),
            gap: None,
        }
    }

    pub(crate) fn partial(clause: Clause, mechanism: &str, gap: String) -> Self {
        Self {
            clause,
            enforcement: Enforcement::Partial,
            mechanism: mechanism.to_owned(),
            gap: Some(gap),
        }
    }

    /// Full, unless the gap is there.
    pub(crate) fn partly_if(has_gap: bool, clause: Clause, mechanism: &str, gap: &str) -> Self {
        if has_gap {
            Self::partial(clause, mechanism, gap.to_owned())
        } else {
            Self::full(clause, mechanism)
        }
    }
}

impl fmt::Display for Enforcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "fully",
            Self::Partial => "partly",
            Self::None => "not at all",
        })
    }
}

/// What there was in the sandbox's network.
#[derive(Debug, Default)]
pub(crate) struct NetworkOutcome {
    records: Vec<NetworkRecord>,
    /// What the addresses of the mediator's denials stand for.
    names: BTreeMap<IpAddr, String>,
}

impl NetworkOutcome {
    pub(crate) fn new(guard: Box<dyn NetworkGuard>, denials: &[Denial]) -> Self {
        let reached = denials
            .iter()
            .filter(|denial| denial.operation == Operation::Reach);
        let addresses = reached.filter_map(|denial| {
            let place: SocketAddr = denial.path.to_str()?.parse().ok()?;
            Some((place.ip(), guard.name_of(place.ip())?))
        });
        let names = addresses.collect();
        Self {
            records: guard.finish(),
            names,
        }
    }
}

/// The version of the report's shape.
const SCHEMA: u32 = 1;

impl Report {
    /// What is known before the end. Made while the sandbox is taken apart, so that nobody waits
    /// for it.
    pub(crate) fn begin(plan: &ExecPlan) -> Self {
        let landlock = plan.linux.landlock.as_ref();
        Self {
            schema: SCHEMA,
            backend: plan.backend,
            landlock_abi: landlock.map_or(0, |landlock| landlock.abi),
            enforcement: plan.enforcement.clone(),
            env_removed: plan.env_removed.clone(),
            denials: Vec::new(),
            network: Vec::new(),
            usage: UsageReport::default(),
            ending: Ending::Killed,
            warnings: plan.warnings.clone(),
        }
    }

    pub(crate) fn end(
        self,
        plan: &ExecPlan,
        denials: &[Denial],
        usage: Usage,
        wall: Duration,
        ending: Ending,
        network: NetworkOutcome,
    ) -> Self {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self {
            denials: denial_records(plan, denials, &network),
            network: network.records,
            usage: UsageReport {
                wall_micros: micros(wall),
                cpu_micros: usage.user_micros.saturating_add(usage.system_micros),
                peak_memory_kib: usage.peak_kib,
            },
            ending,
            ..self
        }
    }
}

/// What was refused by the mediator and by whoever answers in the network.
fn denial_records(
    plan: &ExecPlan,
    denials: &[Denial],
    network: &NetworkOutcome,
) -> Vec<DenialRecord> {
    let refused = network.records.iter().filter(|record| !record.allowed);
    let mut records: Vec<DenialRecord> = refused.map(DenialRecord::of_network).collect();
    for denial in denials {
        if denial.operation != Operation::Reach {
            records.push(DenialRecord::new(plan, denial));
        } else if let Some(record) = DenialRecord::of_reach(plan, denial, network)
            // A name has an address of each family, and clients try both.
            && !records.iter().any(|known| known.path == record.path)
        {
            records.push(record);
        }
    }
    records
}

impl DenialRecord {
    /// What the proxy refused; it does not know which process asked.
    fn of_network(record: &NetworkRecord) -> Self {
        let place = match record.port {
            0 => record.host.clone(),
            port => format!("{}:{port}", record.host),
        };
        Self {
            operation: Operation::Reach,
            path: place.into(),
            host: Some(record.host.clone()),
            port: (record.port != 0).then_some(record.port),
            rule: record.rule.clone().unwrap_or_else(|| record.reason.clone()),
            origin: None,
            grant: record.grant.clone().unwrap_or_default(),
            errno: Errno::CONNREFUSED.raw_os_error(),
            pid: 0,
            argv0: PathBuf::new(),
        }
    }

    /// What the mediator refused: an address, which may stand for a name.
    fn of_reach(plan: &ExecPlan, denial: &Denial, network: &NetworkOutcome) -> Option<Self> {
        let place: SocketAddr = denial.path.to_str()?.parse().ok()?;
        let name = network.names.get(&place.ip());
        let host = name.cloned().unwrap_or_else(|| place.ip().to_string());
        let (rule, grant) = match &plan.network {
            Some(order) => {
                let decision = decide_network(&order.rules, &host, place.port());
                let rule = decision.rule.unwrap_or_else(|| decision.reason.to_string());
                (rule, decision.grant.unwrap_or_default())
            }
            // Whoever asks a resolver wants a host whose name is not known here.
            None if place.port() == DNS => (NETWORK_OFF.to_owned(), "--allow HOST".to_owned()),
            None => (NETWORK_OFF.to_owned(), format!("--allow {place}")),
        };
        Some(Self {
            operation: denial.operation,
            path: format!("{host}:{}", place.port()).into(),
            host: Some(host),
            port: Some(place.port()),
            rule,
            origin: None,
            grant,
            errno: denial.errno,
            pid: denial.pid,
            argv0: denial.program.clone(),
        })
    }

    fn new(plan: &ExecPlan, denial: &Denial) -> Self {
        let rules = plan
            .linux
            .mediation
            .as_ref()
            .map(|mediation| &mediation.rules);
        let rule = denial.rule.and_then(|index| rules?.iter().nth(index));
        Self {
            operation: denial.operation,
            path: denial.path.clone(),
            host: None,
            port: None,
            rule: rule.map_or_else(|| NOTHING_GRANTS_IT.to_owned(), ToString::to_string),
            origin: rule.map(|rule| rule.origin.to_string()),
            grant: grant(plan, denial),
            errno: denial.errno,
            pid: denial.pid,
            argv0: denial.program.clone(),
        }
    }
}

const DNS: u16 = 53;

/// What stands for a rule where there is no network.
const NETWORK_OFF: &str = "the network is off";

/// What stands for a rule where none speaks about the path.
const NOTHING_GRANTS_IT: &str = "no rule grants it";

/// The flag that would let it pass.
fn grant(plan: &ExecPlan, denial: &Denial) -> String {
    match denial.operation {
        Operation::Connect => {
            let path = denial.path.to_string_lossy();
            return format!("--unix {}", shell_word(&path));
        }
        Operation::GitConfig => return "--git-config".to_owned(),
        _ => {}
    }
    let rules = plan
        .linux
        .mediation
        .as_ref()
        .map(|mediation| &mediation.rules);
    let path = AbsPath::new(&denial.path).ok();
    let smallest = rules.zip(path).and_then(|(rules, path)| {
        let kind = if denial.operation == Operation::Read {
            Kind::Read
        } else {
            Kind::Write
        };
        rules.smallest_grant(kind, &path)
    });
    match smallest {
        Some(grant) => grant.to_string(),
        // Each name alone may be written; it is the move that would free or redirect one.
        None => Grant::Add {
            access: stockade_rules::Access::Write,
            path: AbsPath::new(&denial.path).unwrap_or_else(|_| AbsPath::root()),
        }
        .to_string(),
    }
}
