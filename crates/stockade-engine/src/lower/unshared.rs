//! The tier without namespaces: rules become Landlock rules and the mediator's.
//!
//! Landlock only grants, and a grant holds for everything below. So a directory with something
//! denied in it is not granted itself; each of its other entries is, and so on down to what is
//! denied. Directories that may be written are granted whole, because names are made in them: what
//! is denied below those is the mediator's to hold, which sees every open in this tier.
//!
//! What that leaves open is in [`clauses`], in words.

use std::collections::BTreeSet;
use std::path::Path;

use stockade_linux::plan::{Landlock, Resource, Rlimit, Root};
use stockade_linux::seccomp::{Mediation, ProfileOptions};
use stockade_policy::profile::{Base, Clause, Profile, SeccompMode};
use stockade_rules::{AbsPath, Access, Kind as Wish, PathRule, Pattern, RuleSet};

use super::Parts;
use super::mounts::stated_at;
use crate::host::Host;
use crate::plan::PlanError;
use crate::report::{ClauseReport, Enforcement};

pub(super) fn lower(
    profile: &Profile,
    rules: &RuleSet,
    host: &Host,
    network_off: bool,
) -> Result<(Parts, Vec<ClauseReport>), PlanError> {
    let name = format!("stockade-{:016x}", Host::random()?);
    let temporary = own(rules, "/tmp", &name);
    let shared_memory = own(rules, "/dev/shm", &name);
    let scratch: Vec<AbsPath> = temporary.iter().chain(&shared_memory).cloned().collect();
    let devices = devices(profile, host)?;
    let rules = with_engine_rules(rules, &devices, &scratch);
    let cwd = super::working_directory(profile, &rules, host)?;
    let mut grants = Grants::new(&rules, host, &devices);
    grants.add(&AbsPath::root());
    let reports = clauses(profile, host, network_off, &grants);
    let (readable, mut writable) = (grants.readable, grants.writable);
    // These do not exist yet.
    writable.extend(scratch.iter().cloned());
    let aliases = AbsPath::new("/dev/shm").ok().zip(shared_memory);
    let parts = Parts {
        root: Root::Host,
        mounts: Vec::new(),
        cwd,
        landlock: (host.landlock > 0).then(|| Landlock {
            abi: host.landlock,
            // Listing what may not be read is refused by the mediator.
            listable: match profile.base.value {
                Base::Host => vec![AbsPath::root()],
                Base::Minimal => Vec::new(),
            },
            readable,
            writable,
            devices,
        }),
        private: scratch.clone(),
        scratch,
        temporary,
        aliases: aliases.into_iter().collect(),
        rules,
        options: ProfileOptions {
            inet: !network_off,
            // A tracer reaches no further than its Landlock domain.
            allow_debug: host.landlock > 0,
            extra_blocked: SYSTEM_V.iter().map(|&name| name.to_owned()).collect(),
            ..ProfileOptions::shared_namespaces()
        },
        mediated: Mediation {
            files: true,
            reads: true,
            attributes: true,
            owners: true,
            times: true,
            unix_sockets: true,
        },
        abstract_sockets: host.landlock >= SCOPES,
        hide_processes: host.landlock >= SCOPES,
    };
    Ok((parts, reports))
}

/// Without an ipc namespace these are the host's.
const SYSTEM_V: &[&str] = &[
    "mq_open",
    "mq_unlink",
    "msgctl",
    "msgget",
    "msgrcv",
    "msgsnd",
    "semctl",
    "semget",
    "semop",
    "semtimedop",
    "shmat",
    "shmctl",
    "shmget",
];

/// Limits that mean something else without namespaces.
pub(super) fn adjust_limits(profile: &Profile, rlimits: &mut [Rlimit], report: &mut ClauseReport) {
    // The kernel counts all tasks of the user, so the run gets that many on top.
    for limit in rlimits {
        if limit.resource == Resource::Processes {
            limit.value = limit.value.saturating_add(Host::tasks_of_user());
        }
    }
    if profile.limits.tmp_size().is_some() {
        let gap = "the size of the directory for temporary files is not limited";
        report.enforcement = Enforcement::Partial;
        report.gap = Some(match report.gap.take() {
            Some(other) => format!("{other}; {gap}"),
            None => gap.to_owned(),
        });
    }
}

/// A directory of the run's own in one that is everyone's; none if that is not there, or if the
/// user granted it as it is.
fn own(rules: &RuleSet, shared: &str, name: &str) -> Option<AbsPath> {
    let shared = AbsPath::new(shared).ok()?;
    let is_there = shared.as_path().is_dir();
    (is_there && !stated_at(rules, &shared)).then(|| shared.join(name).ok())?
}

/// Nodes that do no harm, and those that the user granted.
fn devices(profile: &Profile, host: &Host) -> Result<Vec<AbsPath>, PlanError> {
    let mut devices = Vec::new();
    for path in HARMLESS.iter().filter_map(|path| AbsPath::new(path).ok()) {
        if host.find(&path).real() == Some(&path) {
            devices.push(path);
        }
    }
    for device in &profile.devices {
        let found = host.find(&device.value);
        let real = found.real();
        devices.push(
            real.ok_or_else(|| PlanError::Device(device.value.clone()))?
                .clone(),
        );
    }
    Ok(devices)
}

const HARMLESS: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// The host's own places, as far as they are no place for a sandbox.
fn with_engine_rules(rules: &RuleSet, devices: &[AbsPath], scratch: &[AbsPath]) -> RuleSet {
    let mut all = rules.clone();
    let mut push = |path: &AbsPath, access| {
        let pattern = Pattern::Subtree(path.clone());
        let origin = "built-in: without namespaces";
        all.push(PathRule::built_in(pattern, access, origin));
    };
    for (path, access) in [
        ("/dev", Access::Deny),
        ("/dev/shm", Access::Deny),
        ("/run", Access::Deny),
        ("/tmp", Access::Deny),
        ("/var/run", Access::Deny),
        ("/proc", Access::Read),
        ("/proc/sysvipc", Access::Deny),
        ("/sys", Access::Read),
    ] {
        if let Ok(path) = AbsPath::new(path)
            && !stated_at(rules, &path)
        {
            push(&path, access);
        }
    }
    // New terminals are the command's; those that are there are the user's.
    if let Ok(terminals) = AbsPath::new("/dev/pts") {
        for terminal in Host::entries(&terminals).0 {
            push(&terminal, Access::Deny);
        }
    }
    for path in devices.iter().chain(scratch) {
        push(path, Access::Write);
    }
    all
}

/// What Landlock is told.
struct Grants<'a> {
    rules: &'a RuleSet,
    /// Granted by rules of their own.
    devices: &'a [AbsPath],
    /// Every existing path that a rule names.
    points: BTreeSet<AbsPath>,
    readable: Vec<AbsPath>,
    writable: Vec<AbsPath>,
    /// A denial below something writable: the mediator alone holds it.
    leans_on_mediator: bool,
    /// A directory had too many entries to grant each.
    left_out: Option<AbsPath>,
}

impl<'a> Grants<'a> {
    fn new(rules: &'a RuleSet, host: &Host, devices: &'a [AbsPath]) -> Self {
        let named = rules.iter().filter_map(|rule| match &rule.pattern {
            Pattern::Subtree(path) => Some(path),
            Pattern::Glob(_) => None,
        });
        let points = named.filter_map(|path| host.find(path).real().cloned());
        Self {
            rules,
            devices,
            points: points.collect(),
            readable: Vec::new(),
            writable: Vec::new(),
            leans_on_mediator: false,
            left_out: None,
        }
    }

    /// Grants what may be done at `path` and below it.
    fn add(&mut self, path: &AbsPath) {
        if self.devices.contains(path) {
            return;
        }
        let below = self.below(path);
        // Its entries come and go with the processes; the mediator holds what is denied there.
        let changes = path.as_path() == Path::new("/proc");
        let hides = !changes && below.iter().any(|point| !self.allows(Wish::Read, point));
        if self.allows(Wish::Write, path) {
            self.leans_on_mediator |= hides;
            self.writable.push(path.clone());
        } else if !self.allows(Wish::Read, path) {
            self.add_islands(&below, Wish::Read);
        } else if !hides {
            self.readable.push(path.clone());
            self.add_islands(&below, Wish::Write);
        } else {
            self.add_entries(path, &below);
        }
    }

    /// Those of `points` that are granted again, and what is below them.
    fn add_islands(&mut self, points: &[AbsPath], wish: Wish) {
        let mut done: Option<&AbsPath> = None;
        for point in points {
            let is_done = done.is_some_and(|done| point.is_within(done));
            if !is_done && self.allows(wish, point) {
                self.add(point);
                done = Some(point);
            }
        }
    }

    /// The entries of a directory in which something is denied.
    fn add_entries(&mut self, directory: &AbsPath, points: &[AbsPath]) {
        let (entries, is_all) = Host::entries(directory);
        if !is_all {
            self.left_out = Some(directory.clone());
        }
        for entry in entries {
            if points.iter().any(|point| point.is_within(&entry)) {
                self.add(&entry);
            } else if self.allows(Wish::Read, &entry) {
                self.readable.push(entry);
            }
        }
    }

    /// The points strictly below, in order: what is above comes first.
    fn below(&self, path: &AbsPath) -> Vec<AbsPath> {
        let is_below = |point: &&AbsPath| *point != path && point.is_within(path);
        self.points.iter().filter(is_below).cloned().collect()
    }

    fn allows(&self, wish: Wish, path: &AbsPath) -> bool {
        self.rules.decide(wish, path.as_path()).allowed
    }
}

/// What holds, by what, and what does not.
fn clauses(
    profile: &Profile,
    host: &Host,
    network_off: bool,
    grants: &Grants<'_>,
) -> Vec<ClauseReport> {
    let abi = host.landlock;
    let full = ClauseReport::full;
    let partial = |clause, mechanism, gaps: &[&str]| {
        ClauseReport::partial(clause, mechanism, gaps.join("; "))
    };
    let mut reads = vec!["names, sizes and attributes of what may not be read can be asked for"];
    if grants.leans_on_mediator {
        reads.push("a denied program below a writable directory can be executed");
    }
    let left_out = grants.left_out.as_ref().map(|directory| {
        format!("`{directory}` has too many entries beside a denied one: some can't be read")
    });
    reads.extend(left_out.as_deref());
    let processes: &[&str] = if abi < SCOPES {
        &[
            "before Landlock ABI 6 the user's processes can be signalled and their command lines read",
            "a command that forks faster than it is killed may outlive the run",
        ]
    } else {
        &["which processes there are can be seen, not what they are"]
    };
    let mut reports = vec![
        partial(Clause::FsRead, "Landlock and the mediator", &reads),
        ClauseReport::partly_if(
            abi < 2,
            Clause::FsWrite,
            "Landlock and the mediator; of /tmp only TMPDIR",
            "before Landlock ABI 2 renames between directories fail",
        ),
        full(Clause::Names, "the mediator"),
        partial(
            Clause::Devices,
            "Landlock and the mediator",
            &[
                "the names in /dev are the host's",
                "terminals that the user opens during the run can be opened",
            ],
        ),
        partial(Clause::Processes, "Landlock domain, subreaper", processes),
        full(Clause::Environment, "allowlist"),
        ClauseReport::partly_if(
            profile.danger_nested_namespaces.value,
            Clause::Privileges,
            "no capabilities, no_new_privs, seccomp filter",
            "the command may make user namespaces of its own",
        ),
        ClauseReport::partly_if(
            profile.seccomp.mode.value == SeccompMode::Logging,
            Clause::Seccomp,
            "seccomp filter",
            "refusals are only logged",
        ),
        full(
            Clause::Ipc,
            "seccomp filter, Landlock, the mediator for Unix sockets and /dev/shm",
        ),
    ];
    reports.push(if network_off {
        full(
            Clause::Network,
            "seccomp filter: no internet socket, not even of the loopback",
        )
    } else {
        full(Clause::Network, "open by policy")
    });
    if abi == 0 {
        lose(
            &mut reports,
            "Landlock",
            "this kernel has no Landlock, or it is switched off",
        );
    }
    if profile.seccomp.mode.value == SeccompMode::Logging {
        // Here the filter is no second lock: the network and System V objects have no other.
        lose(&mut reports, "seccomp filter", "refusals are only logged");
    }
    reports
}

/// The first ABI with scopes.
const SCOPES: u32 = 6;

/// What does not hold without the mediator.
pub(super) fn lose_mediator(reports: &mut [ClauseReport]) {
    for report in reports {
        let (mechanism, gap) = match report.clause {
            Clause::Names => (
                "nothing of ours",
                "nobody mediates here: a sandbox around this one has the only listener, or its \
                 /proc shows other processes",
            ),
            Clause::FsRead => (
                "Landlock",
                "patterns, and denials below a writable directory, do not hold; names, sizes and \
                 attributes of what may not be read can be asked for",
            ),
            // Landlock binds the caller, not somebody outside who opens a file for it.
            Clause::FsWrite => (
                "Landlock",
                "the sandbox around this one may open files for the command, by its own policy",
            ),
            Clause::Devices => ("Landlock", "the names in /dev are the host's"),
            Clause::Processes => (
                "Landlock domain, subreaper",
                "the user's processes and their command lines can be seen",
            ),
            Clause::Ipc => (
                "seccomp filter, Landlock",
                "Unix sockets can be connected to as their permissions say",
            ),
            _ => continue,
        };
        *report = ClauseReport::partial(report.clause, mechanism, gap.to_owned());
        if matches!(report.clause, Clause::FsWrite | Clause::Names) {
            report.enforcement = Enforcement::None;
        }
    }
}

/// What rested on a mechanism that does not hold.
fn lose(reports: &mut [ClauseReport], mechanism: &str, reason: &str) {
    let rested = |report: &&mut ClauseReport| report.mechanism.contains(mechanism);
    for report in reports.iter_mut().filter(rested) {
        report.enforcement = Enforcement::None;
        report.gap = Some(reason.to_owned());
    }
}

#[cfg(test)]
mod tests;
