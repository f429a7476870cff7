//! What holds without a mediator: mounts, namespaces and a filter, and what they leave open.

use stockade_policy::profile::{Clause, Profile, SeccompMode};
use stockade_rules::{AbsPath, Access, Pattern, Rank};

use crate::network::Addresses;
use crate::plan::ExecPlan;
use crate::report::{ClauseReport, Enforcement};

/// What holds by mounts, namespaces and a filter, without a mediator; `limits` as they were
/// worked out.
pub(super) fn clauses(profile: &Profile, plan: &ExecPlan, words: &Words) -> Vec<ClauseReport> {
    let full = ClauseReport::full;
    let patterns = Patterns::of(profile);
    let mut reports = vec![
        patterns.reads(words.files),
        patterns.writes(words.files),
        patterns.names(words.files),
        full(Clause::Devices, words.devices),
        full(Clause::Processes, words.processes),
        full(Clause::Environment, "allowlist"),
        privileges(profile, words),
        filter(profile, words),
        full(
            Clause::Network,
            match (&plan.network, words.hosts) {
                (Some(_), Some(hosts)) => hosts.mechanism,
                _ if plan.linux.own_network => words.network,
                _ => "open by policy",
            },
        ),
        ClauseReport::partly_if(
            words.ipc_gap.is_some(),
            Clause::Ipc,
            words.ipc,
            words.ipc_gap.unwrap_or_default(),
        ),
    ];
    let limits = plan.enforcement.iter();
    reports.extend(
        limits
            .filter(|report| report.clause == Clause::Limits)
            .cloned(),
    );
    reports.sort_by_key(|report| report.clause);
    reports
}

fn privileges(profile: &Profile, words: &Words) -> ClauseReport {
    let nested = profile.danger_nested_namespaces.value;
    let gap = if nested {
        Some("the command may make user namespaces of its own")
    } else {
        words.privileges_gap
    };
    let gap_or_nothing = gap.unwrap_or_default();
    ClauseReport::partly_if(
        gap.is_some(),
        Clause::Privileges,
        words.privileges,
        gap_or_nothing,
    )
}

fn filter(profile: &Profile, words: &Words) -> ClauseReport {
    let gap = if profile.seccomp.mode.value == SeccompMode::Logging {
        Some("refusals are only logged")
    } else {
        words.seccomp_gap
    };
    let gap_or_nothing = gap.unwrap_or_default();
    ClauseReport::partly_if(
        gap.is_some(),
        Clause::Seccomp,
        words.seccomp,
        gap_or_nothing,
    )
}

/// The mechanisms of a backend, in words.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "backends fill it in")]
pub struct Words {
    /// What shows and hides files.
    pub files: &'static str,
    /// What makes `/dev`.
    pub devices: &'static str,
    /// What keeps processes apart.
    pub processes: &'static str,
    /// What takes privileges away.
    pub privileges: &'static str,
    /// What could grant privileges all the same.
    pub privileges_gap: Option<&'static str>,
    /// What filters system calls.
    pub seccomp: &'static str,
    /// What the filter does not bind.
    pub seccomp_gap: Option<&'static str>,
    /// What cuts the network.
    pub network: &'static str,
    /// What lets single hosts through; none if nothing can.
    pub hosts: Option<Hosts>,
    /// What keeps sockets and shared memory apart.
    pub ipc: &'static str,
    /// What is in reach all the same.
    pub ipc_gap: Option<&'static str>,
}

/// How a backend lets single hosts through.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "backends fill it in")]
pub struct Hosts {
    /// By what.
    pub mechanism: &'static str,
    /// Which addresses stand for names inside.
    pub addresses: Addresses,
    /// Whether a process of ours is inside that connects to ports there.
    pub expose: bool,
    /// Whether programs inside can be shown the certificates of a proxy that opens TLS.
    pub opens_tls: bool,
}

/// What rules ask for that mounts can't give.
struct Patterns {
    /// A stated pattern that denies reading.
    read: Option<String>,
    /// A stated pattern that denies writing.
    write: Option<String>,
    /// A denial inside a writable directory whose ancestors can be renamed.
    deep_read: Option<AbsPath>,
    deep_write: Option<AbsPath>,
}

const RENAMES: &str = "can be moved away with the directory above it, by its old name only";

impl Patterns {
    fn of(profile: &Profile) -> Self {
        let mut found = Self {
            read: None,
            write: None,
            deep_read: None,
            deep_write: None,
        };
        for rule in &profile.rules {
            let reads = matches!(rule.access, Access::Deny | Access::DenyRead);
            let writes = matches!(rule.access, Access::Deny | Access::DenyWrite);
            if rule.rank != Rank::Stated || !(reads || writes) {
                continue;
            }
            match &rule.pattern {
                Pattern::Glob(glob) => {
                    let slot = if reads {
                        &mut found.read
                    } else {
                        &mut found.write
                    };
                    slot.get_or_insert(glob.to_string());
                }
                Pattern::Subtree(path) => {
                    let root = profile
                        .writable_roots
                        .iter()
                        .find(|root| path.is_within(root) && path.parent().as_ref() != Some(root));
                    if root.is_some() && reads {
                        found.deep_read.get_or_insert(path.clone());
                    } else if root.is_some() {
                        found.deep_write.get_or_insert(path.clone());
                    }
                }
            }
        }
        found
    }

    fn reads(&self, mechanism: &str) -> ClauseReport {
        match (&self.read, &self.deep_read) {
            (Some(pattern), _) => none(Clause::FsRead, mechanism, pattern),
            (None, Some(path)) => {
                ClauseReport::partial(Clause::FsRead, mechanism, format!("`{path}` {RENAMES}"))
            }
            (None, None) => ClauseReport::full(Clause::FsRead, mechanism),
        }
    }

    fn writes(&self, mechanism: &str) -> ClauseReport {
        match (&self.write, &self.deep_write) {
            (Some(pattern), _) => none(Clause::FsWrite, mechanism, pattern),
            (None, Some(path)) => {
                ClauseReport::partial(Clause::FsWrite, mechanism, format!("`{path}` {RENAMES}"))
            }
            (None, None) => ClauseReport::full(Clause::FsWrite, mechanism),
        }
    }

    fn names(&self, mechanism: &str) -> ClauseReport {
        let gap = "protected names that do not exist yet, or lie deeper in a writable directory, \
                   can be made and written";
        match self.read.as_ref().or(self.write.as_ref()) {
            Some(pattern) => none(Clause::Names, mechanism, pattern),
            None => ClauseReport::partial(Clause::Names, mechanism, gap.to_owned()),
        }
    }
}

fn none(clause: Clause, mechanism: &str, pattern: &str) -> ClauseReport {
    let mut report = ClauseReport::partial(
        clause,
        mechanism,
        format!("the pattern `{pattern}` needs the mediator, which this backend does not have"),
    );
    report.enforcement = Enforcement::None;
    report
}
