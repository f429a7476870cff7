//! Limits: rlimits as the floor, control groups where a limit is of the whole sandbox.

use stockade_linux::plan::{Cgroup, CgroupDir, Resource, Rlimit};
use stockade_policy::profile::{BUILT_IN, Clause, LimitKey, Profile};
use stockade_rules::AbsPath;

use crate::host::Host;
use crate::probe::{CPU_ACCOUNTING, Tier};
use crate::report::ClauseReport;

/// Whether a limit was stated that only a control group holds for the whole sandbox.
///
/// Entering a control group costs milliseconds (the kernel waits for all CPUs to notice), so the
/// generous defaults are left to rlimits and what the user states gets the real thing.
pub(crate) fn wants_cgroup(profile: &Profile) -> bool {
    [LimitKey::Memory, LimitKey::Pids]
        .into_iter()
        .any(|key| stated(profile, key))
}

pub(super) fn lower(
    profile: &Profile,
    host: &Host,
    tier: Tier,
    session: bool,
) -> (Vec<Rlimit>, Option<Cgroup>, ClauseReport) {
    let limits = &profile.limits;
    let cgroup = wants_cgroup(profile)
        .then(|| groups(profile, host, session))
        .flatten();
    let held = |file: &str| {
        let groups = cgroup.iter().flat_map(|cgroup| &cgroup.groups);
        groups
            .flat_map(|group| &group.settings)
            .any(|(name, _)| name.starts_with(file))
    };
    let mut rlimits = vec![Rlimit {
        resource: Resource::Core,
        value: 0,
    }];
    let mut add = |resource, value: Option<u64>| {
        rlimits.extend(value.map(|value| Rlimit { resource, value }));
    };
    add(
        Resource::Cpu,
        limits.cpu_time().map(|time| time.as_secs().max(1)),
    );
    add(Resource::FileSize, limits.file_size());
    add(Resource::OpenFiles, limits.open_files());
    if !held("pids") {
        let others = match tier {
            Tier::Native if !host.counts_tasks_of_namespace => Host::tasks_of_user(),
            // The tier without namespaces adds them itself.
            Tier::Native | Tier::Landlock => 0,
        };
        let limit = limits.pids().map(|limit| limit.saturating_add(others));
        add(Resource::Processes, limit);
    }
    if !held("memory") {
        add(Resource::Data, limits.memory());
    }

    let mut gaps = Vec::new();
    if limits.memory().is_some() && !held("memory") && stated(profile, LimitKey::Memory) {
        gaps.push("memory is limited for each process, not for all together");
    }
    if limits.pids().is_some() && !held("pids") && host.root {
        gaps.push("the number of processes is not limited for root without a control group");
    }
    gaps.extend(disk_gap(profile));
    let mechanism = match (&cgroup, held("pids") || held("memory")) {
        (Some(_), true) => "control groups, rlimits, tmpfs size, timer",
        _ => "rlimits, tmpfs size, timer",
    };
    let report = if gaps.is_empty() {
        ClauseReport::full(Clause::Limits, mechanism)
    } else {
        ClauseReport::partial(Clause::Limits, mechanism, gaps.join("; "))
    };
    (rlimits, cgroup, report)
}

/// What a limit of disk space leaves open, where there is one.
pub(crate) fn disk_gap(profile: &Profile) -> Option<&'static str> {
    profile.limits.disk().map(|_| {
        "disk space is checked ten times a second: a run that takes too much is ended, what it \
         wrote stays, and what others write or free counts"
    })
}

fn groups(profile: &Profile, host: &Host, session: bool) -> Option<Cgroup> {
    let mut groups: Vec<CgroupDir> = Vec::new();
    let name = name();
    for (controller, limit) in [
        ("memory", profile.limits.memory()),
        ("pids", profile.limits.pids()),
    ] {
        let mut known = host.controllers.iter();
        let Some(found) = known.find(|found| found.name == controller) else {
            continue;
        };
        let Some(limit) = limit.into_iter().chain(found.bound).min() else {
            continue;
        };
        let paths = AbsPath::new(found.parent.join(&name)).ok();
        let Some((path, origin)) = paths.zip(AbsPath::new(&found.origin).ok()) else {
            continue;
        };
        let file = match (controller, found.version) {
            ("memory", 1) => "memory.limit_in_bytes",
            ("memory", _) => "memory.max",
            _ => "pids.max",
        };
        let known = groups.iter().position(|group| group.path == path);
        let at = known.unwrap_or_else(|| {
            groups.push(CgroupDir {
                path,
                origin,
                enable: Vec::new(),
                settings: Vec::new(),
            });
            groups.len() - 1
        });
        let group = &mut groups[at];
        group.settings.push((file.to_owned(), limit.to_string()));
        if !found.enabled {
            group.enable.push(controller.to_owned());
        }
    }
    let first = groups.first()?.path.clone();
    let commands = session.then(|| cpu_group(&mut groups, host, &name).unwrap_or(first));
    Some(Cgroup { groups, commands })
}

/// The group in which CPU time is counted, if that is a hierarchy of its own: in version 2 every
/// group counts it.
fn cpu_group(groups: &mut Vec<CgroupDir>, host: &Host, name: &str) -> Option<AbsPath> {
    let mut known = host.controllers.iter();
    let found = known.find(|found| found.name == CPU_ACCOUNTING && found.version == 1)?;
    let path = AbsPath::new(found.parent.join(name)).ok()?;
    if groups.iter().all(|group| group.path != path) {
        groups.push(CgroupDir {
            path: path.clone(),
            origin: AbsPath::new(&found.origin).ok()?,
            enable: Vec::new(),
            settings: Vec::new(),
        });
    }
    Some(path)
}

/// Unique among the runs of this machine: the launcher's id and a count.
fn name() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    format!("stockade-{}-{run}", std::process::id())
}

fn stated(profile: &Profile, key: LimitKey) -> bool {
    let limit = profile.limits.get(key);
    limit.value.is_some() && limit.origin != BUILT_IN
}
