//! From profile, command and host to plan. Pure: everything that is looked at is in `Host`.

mod environment;
mod home;
pub(crate) mod limits;
mod mounts;
pub(crate) mod network;
pub(crate) mod rules;
mod settings;
mod unshared;

use stockade_linux::plan::{self, Command, LinuxPlan, Text};
use stockade_linux::seccomp::{Arch, Mediation, ProfileKind, ProfileOptions};
use stockade_policy::CERTIFICATE_FILES;
use stockade_policy::profile::{Backend, Clause, HomeMode, Level, Profile, SeccompMode};
use stockade_rules::{AbsPath, Kind, RuleSet};

use self::network::Network;
use crate::host::{self, Found, Host};
use crate::network::{Addresses, TRUST_FILE};
use crate::plan::{Carrier, ExecPlan, PlanError, Spec};
use crate::probe::Tier;
use crate::report::{ClauseReport, Enforcement};

/// What a tier makes of the rules.
struct Parts {
    root: plan::Root,
    mounts: Vec<plan::Mount>,
    cwd: AbsPath,
    landlock: Option<plan::Landlock>,
    /// Directories to make for the run.
    scratch: Vec<AbsPath>,
    /// Which of them is for temporary files, in place of `/tmp`.
    temporary: Option<AbsPath>,
    /// Directories of the host that are another one for the command.
    aliases: Vec<(AbsPath, AbsPath)>,
    /// Directories that only this sandbox has.
    private: Vec<AbsPath>,
    /// The rules with those about what the engine itself provides.
    rules: RuleSet,
    /// What the filter starts from.
    options: ProfileOptions,
    /// What the mediator sees.
    mediated: Mediation,
    /// Whether abstract sockets of the host are out of reach by other means.
    abstract_sockets: bool,
    /// Whether the mediator withholds what `/proc` says about the host's processes.
    hide_processes: bool,
}

/// The plan of a run in `tier`, for `backend`: the tier's own, or one that takes its view and
/// rules and has them enforced by others.
pub(crate) fn lower(
    profile: &Profile,
    spec: &Spec,
    host: &Host,
    (tier, mediator): (Tier, Mediator),
    backend: Backend,
    addresses: Addresses,
) -> Result<ExecPlan, PlanError> {
    let network = network::lower(profile, host, tier, addresses)?;
    let mut warnings = profile.warnings.clone();
    let nested = profile.danger_nested_namespaces.value;
    warnings.extend(nested.then(|| "the command may make user namespaces of its own".to_owned()));
    let (mut rules, unmounted) = rules::real(profile, host, &mut warnings);
    let layer = home::Layer::over(profile, spec, backend, &rules, host);
    warnings.extend(home::not_kept(profile, backend, layer.mode()));
    let copies;
    (rules, copies) = settings::lower(profile, backend, rules, &layer, host, &mut warnings);
    let hides_unseen = |home: &AbsPath| rules::hides_unseen(&rules, home, host);
    let unmounted = unmounted || layer.home.as_ref().is_some_and(hides_unseen);
    if spec.overlay && tier == Tier::Native {
        rules = rules::without_kept_paths(profile, &rules);
    }
    let (mut rlimits, cgroup, mut limits_report) = limits::lower(profile, host, tier, spec.session);
    let (mut parts, mut enforcement) = match tier {
        Tier::Native => (
            native(profile, rules, unmounted, host, (backend, &layer))?,
            clauses(profile, host, &network, spec.overlay, layer.mode()),
        ),
        Tier::Landlock => {
            unshared::adjust_limits(profile, &mut rlimits, &mut limits_report);
            unshared::lower(profile, &rules, host, network.own)?
        }
    };
    if mediator == Mediator::Absent {
        unshared::lose_mediator(&mut enforcement);
    }
    // The copy stands where the host's file would.
    let is_copied = |path: &AbsPath| copies.iter().any(|copy| copy.path == *path);
    parts.mounts.retain(|mount| !is_copied(&mount.path));
    let temporary = parts.temporary.as_ref().map(AbsPath::as_path);
    let files = (&parts.rules, temporary);
    let environment = environment::lower(profile, spec, backend, &network, &host.masks, files)?;
    enforcement.push(limits_report);
    enforcement.sort_by_key(|report| report.clause);

    let files = trust_files(profile, host, &network);
    let overlaid = if spec.overlay && tier == Tier::Native {
        parts.overlay(spec.explain)
    } else {
        Vec::new()
    };
    let protects = overlaid.is_empty();
    let protection = protects.then(|| rules::protection(profile, &environment.entries));
    let cut_off = network.own && network.order.is_none();
    let linux = LinuxPlan {
        command: Command {
            argv: spec.argv.iter().map(text).collect::<Result<_, _>>()?,
            env: environment.entries,
            cwd: parts.cwd,
        },
        own_namespaces: tier == Tier::Native,
        scratch: parts.scratch,
        own_network: network.own && tier == Tier::Native,
        resolvers: network.unanswered_resolvers(host, backend),
        network: network.sockets,
        root: parts.root,
        mounts: parts.mounts,
        files,
        copies,
        rlimits,
        cgroup,
        landlock: parts.landlock,
        seccomp: mediated_filter(profile, mediator, parts.options, parts.mediated, spec)?,
        mediation: (mediator == Mediator::Present).then(|| plan::Mediation {
            rules: rules::without_protected_names(&parts.rules),
            unix_sockets: rules::sockets(profile, host, &mut warnings),
            private: parts.private,
            aliases: parts.aliases,
            abstract_sockets: parts.abstract_sockets,
            hide_processes: parts.hide_processes,
            inet: network.inet,
            cut_off,
            protection: protection.flatten(),
        }),
        nested_namespaces: nested,
        keep_descriptors: spec.keep_descriptors.clone(),
        terminal: spec.terminal,
        session: false,
        trusted: false,
    };
    if linux.command.argv.is_empty() {
        return Err(PlanError::Empty);
    }
    Ok(ExecPlan {
        backend,
        enforcement,
        env_removed: environment.removed,
        warnings,
        wall_time: profile.limits.wall_time(),
        output: profile.limits.output(),
        disk: profile.limits.disk(),
        network: network.order,
        home: layer.mode(),
        linux,
        overlaid,
        carrier: Carrier::Helper,
    })
}

impl Parts {
    /// Has every writable directory of the host wait for its layer, and lists them. Until it has
    /// one it can only be read, so that a plan without layers changes nothing either.
    ///
    /// What is written reaches the host by a commit, which judges names when nothing runs any more.
    /// So no file is mediated, unless opens must be watched for denied reads: then names are too,
    /// or a rename would get around the rule.
    fn overlay(&mut self, explain: bool) -> Vec<AbsPath> {
        let mut roots = Vec::new();
        for mount in &mut self.mounts {
            if mount.view == plan::View::Writable {
                mount.view = plan::View::ReadOnly;
                roots.push(mount.path.clone());
            }
        }
        self.mediated.files = self.mediated.reads || explain;
        // A denied file that becomes executable would be readable by executing it.
        self.mediated.attributes &= self.mediated.files;
        roots
    }
}

/// Where the certificates go that are made for the run, if there are any: to a place of their own
/// and, for programs that read no variable, over the host's.
fn trust_files(profile: &Profile, host: &Host, network: &Network) -> Vec<plan::PlacedFile> {
    if !network.opens_tls() {
        return Vec::new();
    }
    let known =
        CERTIFICATE_FILES
            .iter()
            .filter_map(|path| match &*host.find(&AbsPath::new(*path).ok()?) {
                Found::Present { real, kind, .. } if kind.is_file() => Some(real.clone()),
                _ => None,
            });
    let mut paths: Vec<AbsPath> = known
        .filter(|path| profile.rules.decide(Kind::Read, path.as_path()).allowed)
        .chain(AbsPath::new(TRUST_FILE).ok())
        .collect();
    paths.sort();
    paths.dedup();
    vec![plan::PlacedFile {
        paths,
        content: String::new(),
    }]
}

fn native(
    profile: &Profile,
    rules: RuleSet,
    unmounted: bool,
    host: &Host,
    (backend, layer): (Backend, &home::Layer<'_>),
) -> Result<Parts, PlanError> {
    // Others that take this view have no mediator.
    let mediated = backend == Backend::Native;
    let most_covered = if mediated { MOST_COVERED } else { usize::MAX };
    let view = mounts::lower(profile, rules, host, most_covered, mediated, layer)?;
    Ok(Parts {
        root: view.root,
        mounts: view.mounts,
        cwd: view.cwd,
        landlock: (host.landlock > 0).then(|| plan::Landlock {
            abi: host.landlock,
            listable: Vec::new(),
            readable: vec![AbsPath::root()],
            writable: view.writable,
            devices: view.devices,
        }),
        scratch: Vec::new(),
        temporary: None,
        aliases: Vec::new(),
        private: view.private,
        rules: view.rules,
        options: ProfileOptions::native(),
        mediated: Mediation {
            files: true,
            reads: unmounted || view.has_uncovered,
            attributes: true,
            owners: false,
            times: false,
            unix_sockets: true,
        },
        // Without a network namespace they are in reach before Landlock ABI 6; the report says so.
        abstract_sockets: true,
        hide_processes: false,
    })
}

/// Up to how many files that the user denied one by one get a mount each; if there are more the
/// mediator refuses them, as it does with patterns. The kernel takes some 25 µs to make a mount and
/// to end it, so that 500 of them would be a start of 13 ms; a mediated open costs the command
/// some 20 µs. A file that somebody may execute gets its mount in any case: to execute it nobody
/// has to open it.
const MOST_COVERED: usize = 64;

/// Where the command starts: a directory that exists and may be read.
fn working_directory(
    profile: &Profile,
    rules: &RuleSet,
    host: &Host,
) -> Result<AbsPath, PlanError> {
    let Found::Present {
        real,
        kind: host::Kind::Directory,
        ..
    } = &*host.find(&profile.cwd)
    else {
        return Err(PlanError::MissingCwd(profile.cwd.clone()));
    };
    if let Some(grant) = rules.smallest_grant(Kind::Read, real) {
        let path = real.clone();
        return Err(PlanError::HiddenCwd { path, grant });
    }
    Ok(real.clone())
}

/// The filter of a run, whose mediated calls somebody answers or nobody does.
fn mediated_filter(
    profile: &Profile,
    mediator: Mediator,
    options: ProfileOptions,
    mediated: Mediation,
    spec: &Spec,
) -> Result<stockade_linux::seccomp::FilterSpec, PlanError> {
    let options = ProfileOptions {
        refuse_set_id: mediator == Mediator::Absent,
        ..options
    };
    let mediated = Mediation {
        reads: mediated.reads || spec.explain,
        ..mediated
    };
    let is_present = mediator == Mediator::Present;
    filter(profile, options, is_present.then_some(mediated))
}

pub(crate) fn filter(
    profile: &Profile,
    mut options: ProfileOptions,
    mediated: Option<Mediation>,
) -> Result<stockade_linux::seccomp::FilterSpec, PlanError> {
    options.kind = match profile.seccomp.mode.value {
        SeccompMode::Strict => ProfileKind::Strict,
        SeccompMode::Permissive => ProfileKind::Permissive,
        SeccompMode::Logging => ProfileKind::Logging,
    };
    let stated = profile.seccomp.block.iter();
    options
        .extra_blocked
        .extend(stated.map(|name| name.value.as_str().to_owned()));
    options.allow_namespaces = profile.danger_nested_namespaces.value;
    // A debugger can do more harm than good where the level asks for the smallest surface.
    options.allow_debug &= profile.level.value < Level::Enhanced;
    options.mediation = mediated;
    let arch = Arch::native().ok_or(PlanError::Architecture)?;
    options.filter(arch).map_err(PlanError::Seccomp)
}

/// What holds, by what.
fn clauses(
    profile: &Profile,
    host: &Host,
    network: &Network,
    overlay: bool,
    home: HomeMode,
) -> Vec<ClauseReport> {
    let full = |clause, mechanism: &str| ClauseReport::full(clause, mechanism);
    let landlock = if host.landlock > 0 {
        " and Landlock"
    } else {
        ""
    };
    let layer = match home {
        HomeMode::Copy => "; a private layer over the home directory",
        HomeMode::Keep => "; a private layer over the home directory, which is kept",
        HomeMode::ReadOnly => "",
    };
    let names = if overlay {
        "an overlay: a commit keeps back what the policy protects"
    } else {
        "the mediator"
    };
    let mut reports = vec![
        full(
            Clause::FsRead,
            "mounts; the mediator for patterns and long lists",
        ),
        full(
            Clause::FsWrite,
            &format!("read-only mounts{landlock}{layer}"),
        ),
        full(Clause::Names, names),
        full(Clause::Devices, "a /dev of its own"),
        full(Clause::Processes, "pid namespace"),
        full(Clause::Environment, "allowlist"),
        ClauseReport::partly_if(
            profile.danger_nested_namespaces.value,
            Clause::Privileges,
            "no capabilities, no_new_privs, namespace limit",
            "the command may make user namespaces of its own",
        ),
        ClauseReport::partly_if(
            profile.seccomp.mode.value == SeccompMode::Logging,
            Clause::Seccomp,
            "seccomp filter",
            "refusals are only logged",
        ),
    ];
    reports.push(match (network.own, network.proxy.is_some()) {
        (false, _) => full(Clause::Network, "open by policy"),
        (true, false) => full(Clause::Network, "network namespace with a loopback only"),
        (true, true) => full(
            Clause::Network,
            "network namespace that leads to the filtering proxy only",
        ),
    });
    let ipc = "ipc namespace, hidden sockets, the mediator for Unix sockets";
    reports.push(ClauseReport::partly_if(
        !network.own && host.landlock < 6,
        Clause::Ipc,
        ipc,
        "abstract sockets of the host are reachable before Landlock ABI 6",
    ));
    reports
}

/// Refuses what would not hold, unless that was asked for.
pub(crate) fn check(
    profile: &Profile,
    weaker: Weaker,
    reports: &[ClauseReport],
) -> Result<(), PlanError> {
    for report in reports {
        if report.enforcement == Enforcement::Full {
            continue;
        }
        let reason = report.gap.clone().unwrap_or_default();
        let clause = report.clause;
        if profile
            .require
            .iter()
            .any(|required| required.value == clause)
        {
            return Err(PlanError::Required {
                clause,
                enforcement: report.enforcement,
                reason,
            });
        }
        // What the user weakened by name is no surprise; limits are told apart in their own file.
        let by_request = matches!(
            clause,
            Clause::Privileges | Clause::Seccomp | Clause::Limits
        );
        // A backend that was chosen, or is all that the host offers, has its gaps; they are said.
        let of_backend = weaker == Weaker::Chosen && report.enforcement == Enforcement::Partial;
        if !by_request && !of_backend && !profile.best_effort.value {
            return Err(PlanError::Unenforced { clause, reason });
        }
    }
    Ok(())
}

/// Whether somebody answers the calls that are mediated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mediator {
    /// Nobody: a sandbox around this process has the only listener that the kernel allows.
    Absent,
    /// The supervisor.
    Present,
}

/// Whether a clause may hold with a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weaker {
    /// The backend is one that has gaps, which was chosen or is all there is.
    Chosen,
    /// Nobody chose less than everything.
    No,
}

/// An argument or entry without NUL.
pub(crate) fn text(text: impl AsRef<std::ffi::OsStr>) -> Result<Text, PlanError> {
    let text = text.as_ref();
    Text::new(text).ok_or_else(|| PlanError::Nul(text.to_owned()))
}
