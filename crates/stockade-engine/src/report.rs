//! The enforcement report: what was asked for, what held it, what was refused, how it ended.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::Serialize;
use stockade_linux::{Denial as Refusal, Operation, Usage, UsageScope};
use stockade_policy::profile::{Backend, Clause, HomeMode};

use crate::denial::{self, Denial};
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
    /// What became of what was written to the home directory.
    pub home: HomeMode,
    /// Names of environment variables that were not handed on.
    pub env_removed: Vec<String>,
    /// What was refused.
    pub denials: Vec<Denial>,
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
    /// Whose CPU time it is.
    pub scope: UsageScope,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// It used more CPU time than was allowed. Told of the command itself, in the tiers `native`
    /// and `landlock`; elsewhere, and of its children, it is a signal or a code like any other.
    CpuLimit,
    /// A file system that it can write lost more free space than was allowed.
    DiskLimit,
    /// The command ended with this code.
    Exited(i32),
    /// The sandbox was ended by its caller.
    Killed,
    /// The command ran, and how it ended is not known.
    Lost,
    /// A process inside was killed because the memory of the whole sandbox was used up, and the
    /// command did not succeed. Known where a control group or an engine limits memory; elsewhere
    /// an allocation fails, and what becomes of that is the command's.
    MemoryLimit,
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
    pub(crate) records: Vec<NetworkRecord>,
    /// What the addresses that the mediator refused stand for.
    pub(crate) names: BTreeMap<IpAddr, String>,
}

impl NetworkOutcome {
    pub(crate) fn new(guard: Box<dyn NetworkGuard>, refusals: &[Refusal]) -> Self {
        let reached = refusals
            .iter()
            .filter(|refusal| refusal.operation == Operation::Reach);
        let addresses = reached.filter_map(|refusal| {
            let place: SocketAddr = refusal.path.to_str()?.parse().ok()?;
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
            home: plan.home,
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
        refusals: &[Refusal],
        usage: Usage,
        wall: Duration,
        ending: Ending,
        network: NetworkOutcome,
    ) -> Self {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self {
            denials: denial::denials(plan, refusals, &network),
            network: network.records,
            usage: UsageReport {
                wall_micros: micros(wall),
                cpu_micros: usage.user_micros.saturating_add(usage.system_micros),
                peak_memory_kib: usage.peak_kib,
                scope: usage.scope,
            },
            ending,
            ..self
        }
    }
}
