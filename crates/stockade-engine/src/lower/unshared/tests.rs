use std::fs;
use std::path::Path;

use stockade_linux::plan::Landlock;
use stockade_policy::profile::{Clause, Profile, SeccompMode};
use stockade_policy::{SandboxPolicy, Surroundings};
use stockade_rules::{AbsPath, Access, Origin, PathRule, Pattern};

use crate::host::Host;
use crate::lower::{Mediator, Weaker, check, lower};
use crate::plan::{ExecPlan, PlanError, Spec};
use crate::probe::Tier;
use crate::report::{ClauseReport, Enforcement};

/// A project with a directory beside it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        // Not below /tmp, which is denied as a whole.
        let place = Self(tempfile::tempdir_in("/var/tmp").unwrap());
        for name in ["project/sub", "beside/open", "beside/closed/deep"] {
            fs::create_dir_all(place.0.path().join(name)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> AbsPath {
        AbsPath::new(self.0.path().join(name)).unwrap()
    }

    fn profile(&self) -> Profile {
        let around = Surroundings::from_env(self.path("project").as_path()).unwrap();
        Profile::from_policy(&SandboxPolicy::workspace_write(vec![]), &around).unwrap()
    }

    fn denying(&self, name: &str) -> Profile {
        let mut profile = self.profile();
        profile.rules.push(PathRule::stated(
            Pattern::Subtree(self.path(name)),
            Access::DenyRead,
            Origin::flag("test"),
        ));
        profile
    }
}

/// The plan on a kernel with this ABI.
fn plan(profile: &Profile, abi: u32) -> Result<ExecPlan, PlanError> {
    let mut host = Host::look();
    host.landlock = abi;
    let spec = Spec {
        argv: vec!["true".into()],
        ..Spec::default()
    };
    let backend = stockade_policy::profile::Backend::Landlock;
    let addresses = crate::network::Addresses::ROUTED;
    let plan = lower(
        profile,
        &spec,
        &host,
        (Tier::Landlock, Mediator::Present),
        backend,
        addresses,
    )?;
    check(profile, Weaker::Chosen, &plan.enforcement)?;
    Ok(plan)
}

fn grants(profile: &Profile) -> Landlock {
    plan(profile, 7).unwrap().linux.landlock.unwrap()
}

/// Whether a rule of Landlock covers the path.
fn covers(rules: &[AbsPath], path: &AbsPath) -> bool {
    rules.iter().any(|rule| path.is_within(rule))
}

fn clause(plan: &ExecPlan, clause: Clause) -> &ClauseReport {
    let mut reports = plan.enforcement.iter();
    reports.find(|report| report.clause == clause).unwrap()
}

#[test]
fn what_lies_beside_a_denied_directory_is_granted_and_it_is_not() {
    let place = Place::new();
    let grants = grants(&place.denying("beside/closed"));
    assert!(covers(&grants.readable, &place.path("beside/open")));
    for name in ["beside/closed", "beside/closed/deep", "beside"] {
        let path = place.path(name);
        assert!(!covers(&grants.readable, &path), "{path}");
    }
    assert!(covers(&grants.writable, &place.path("project/sub")));
    assert!(!covers(&grants.writable, &place.path("beside/open")));
}

#[test]
fn a_writable_directory_is_granted_whole_and_the_report_says_who_holds_the_rest() {
    let place = Place::new();
    let profile = place.denying("project/sub");
    assert!(grants(&profile).writable.contains(&place.path("project")));
    let gap = |profile: &Profile| {
        let plan = plan(profile, 7).unwrap();
        clause(&plan, Clause::FsRead).gap.clone().unwrap()
    };
    assert!(gap(&profile).contains("executed"));
    assert!(!gap(&place.profile()).contains("executed"));
}

#[test]
fn the_host_keeps_its_devices_sockets_and_temporary_files() {
    let place = Place::new();
    let grants = grants(&place.profile());
    for path in ["/", "/dev", "/dev/kmsg", "/run", "/tmp", "/dev/shm"] {
        let path = AbsPath::new(path).unwrap();
        assert!(!covers(&grants.readable, &path), "{path}");
        assert!(!covers(&grants.writable, &path), "{path}");
    }
    for path in ["/proc", "/proc/sys", "/sys", "/usr"] {
        let path = AbsPath::new(path).unwrap();
        assert!(covers(&grants.readable, &path), "{path}");
        assert!(!covers(&grants.writable, &path), "{path}");
    }
}

#[test]
fn each_abi_names_its_gaps() {
    let place = Place::new();
    let profile = place.profile();
    for abi in 1..=7 {
        let plan = plan(&profile, abi).unwrap();
        let writes = clause(&plan, Clause::FsWrite);
        assert_eq!(writes.gap.is_some(), abi < 2, "ABI {abi}");
        let processes = clause(&plan, Clause::Processes);
        let gap = processes.gap.as_deref().unwrap();
        assert_eq!(gap.contains("signalled"), abi < 6, "ABI {abi}");
        let mediation = plan.linux.mediation.as_ref().unwrap();
        assert_eq!(mediation.abstract_sockets, abi >= 6, "ABI {abi}");
        assert_eq!(mediation.hide_processes, abi >= 6, "ABI {abi}");
        assert_eq!(plan.linux.landlock.as_ref().unwrap().abi, abi);
    }
}

#[test]
fn without_landlock_only_best_effort_runs() {
    let place = Place::new();
    let mut profile = place.profile();
    assert!(matches!(
        plan(&profile, 0),
        Err(PlanError::Unenforced { .. })
    ));
    profile.best_effort.value = true;
    let plan = plan(&profile, 0).unwrap();
    assert_eq!(plan.linux.landlock, None);
    for weak in [Clause::FsRead, Clause::FsWrite, Clause::Processes] {
        assert_eq!(clause(&plan, weak).enforcement, Enforcement::None, "{weak}");
    }
}

/// The filter is the only lock on the network here.
#[test]
fn a_filter_that_only_logs_does_not_cut_the_network() {
    let place = Place::new();
    let mut profile = place.profile();
    profile.seccomp.mode.value = SeccompMode::Logging;
    let refused = plan(&profile, 7);
    assert!(matches!(refused, Err(PlanError::Unenforced { .. })));
    profile.best_effort.value = true;
    let plan = plan(&profile, 7).unwrap();
    let network = clause(&plan, Clause::Network);
    assert_eq!(network.enforcement, Enforcement::None);
}

#[test]
fn temporary_files_go_to_a_directory_that_nobody_knows_before() {
    let place = Place::new();
    let names: Vec<AbsPath> = (0..2)
        .flat_map(|_| plan(&place.profile(), 7).unwrap().linux.scratch)
        .collect();
    assert_eq!(names.len(), 4);
    assert_ne!(names[0], names[2]);
    assert!(names[0].as_path().starts_with(Path::new("/tmp")));
    let mut granted = place.profile();
    granted.rules.push(PathRule::stated(
        Pattern::Subtree(AbsPath::new("/tmp").unwrap()),
        Access::Write,
        Origin::flag("test"),
    ));
    let plan = plan(&granted, 7).unwrap();
    let tmp = AbsPath::new("/tmp").unwrap();
    assert!(!plan.linux.scratch.iter().any(|path| path.is_within(&tmp)));
    assert!(plan.linux.landlock.unwrap().writable.contains(&tmp));
}
