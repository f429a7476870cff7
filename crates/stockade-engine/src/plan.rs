//! The plan of one run: everything that will be done, as plain data, before anything is done.

use std::ffi::OsString;
use std::time::Duration;

use serde::Serialize;
use stockade_linux::LinuxPlan;
use stockade_linux::plan::{Text, View};
use stockade_policy::profile::{Backend, BasePolicy, Clause, HomeMode, Profile};
use stockade_rules::{AbsPath, Grant};

use crate::backend::Backends;
use crate::host::Host;
use crate::lower::{self, Mediator, Weaker};
use crate::network::{Addresses, NetworkOrder};
use crate::probe::Tier;
use crate::report::{ClauseReport, Enforcement};

/// What to execute.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "callers fill it in")]
#[expect(clippy::struct_excessive_bools, reason = "independent choices")]
pub struct Spec {
    /// Program and arguments.
    pub argv: Vec<OsString>,
    /// The environment to choose from.
    pub env: Vec<(OsString, OsString)>,
    /// Descriptors that the command keeps, by number.
    pub keep_descriptors: Vec<i32>,
    /// Whether the command gets a terminal of its own.
    pub terminal: bool,
    /// Whether refused reads are recorded too, which makes every open a little slower.
    pub explain: bool,
    /// Whether every change goes to a layer, to be given by [`ExecPlan::overlay`], instead of the
    /// host's directories.
    pub overlay: bool,
    /// The layer over the home directory that is kept, with the directories `upper` and `work`.
    /// Nobody else may use it meanwhile.
    pub kept_home: Option<AbsPath>,
    /// Whether the sandbox stays open for many commands.
    pub session: bool,
}

/// What one run will do. `stockade run --dry-run` prints it, `stockade run` executes it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ExecPlan {
    /// What will enforce it.
    pub backend: Backend,
    /// What will be enforced, clause by clause.
    pub enforcement: Vec<ClauseReport>,
    /// Names of environment variables that are not handed on.
    pub env_removed: Vec<String>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// When the run is ended, if it has not ended by itself.
    pub wall_time: Option<Duration>,
    /// After how many bytes of output the run is ended.
    pub output: Option<u64>,
    /// After how many bytes of lost free space the run is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<u64>,
    /// What is to be answered in the sandbox's network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkOrder>,
    /// What becomes of what is written to the home directory.
    pub home: HomeMode,
    /// The view, the rules and the limits; what the helper carries out, if it is the carrier.
    pub linux: LinuxPlan,
    /// The host's writable directories that have no layer yet; they can only be read until then.
    #[serde(skip)]
    pub(crate) overlaid: Vec<AbsPath>,
    /// Who builds the sandbox.
    pub carrier: Carrier,
}

/// Who builds the sandbox.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Carrier {
    /// A container engine, by this request.
    Engine(serde_json::Value),
    /// The helper, from the plan's `linux`.
    Helper,
    /// Another program, which the helper limits and supervises.
    Program(Box<Program>),
}

/// Another program that builds the sandbox.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Program {
    /// How it is started, limited and supervised.
    pub run: LinuxPlan,
    /// What it reads from descriptors.
    pub inputs: Vec<Input>,
    /// The descriptor in which it says how far it came.
    pub status: Option<i32>,
}

/// What a program reads from a descriptor, so that no argument list is too long and nothing shows
/// in `/proc`.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Input {
    /// Its number.
    pub descriptor: i32,
    /// What is in it.
    pub content: Content,
}

/// What is in a descriptor.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Arguments, with a NUL byte behind each.
    Arguments(Vec<Text>),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Text.
    Text(String),
}

/// Why no plan can be made. Nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The policy says that somebody else confines the command.
    #[error("the policy is `{0}`, which confines nothing here")]
    NotConfined(BasePolicy),
    /// The backend is not one that this build has.
    #[error("the backend `{0}` is not available in this build")]
    Backend(Backend),
    /// The backend can't be used on this machine.
    #[error("the backend `{backend}` can't be used here: {reason}")]
    Unusable {
        /// Which one.
        backend: Backend,
        /// What happened when it was tried, or what it lacks.
        reason: String,
        /// What the user could do.
        fix: Option<String>,
    },
    /// A backend that confines nothing, without the word that says so.
    #[error("the backend `{0}` confines nothing")]
    Danger(Backend),
    /// The kernel gives no random number.
    #[error("a name that nobody can guess can't be made")]
    Random(#[source] std::io::Error),
    /// The backend is weaker than the level that was asked for.
    #[error("the backend `{backend}` is below the level `{level}`")]
    BelowLevel {
        /// What was named.
        backend: Backend,
        /// What was asked for.
        level: stockade_policy::profile::Level,
    },
    /// Nothing that the level means, or best effort allows, works here and holds the policy.
    #[error("nothing here reaches the level `{level}`: {}", .tried.join("; "))]
    Nothing {
        /// Which level.
        level: stockade_policy::profile::Level,
        /// What was tried, and what happened.
        tried: Vec<String>,
        /// What the user could do.
        hint: Option<String>,
    },
    /// The network rules can't be enforced.
    #[error("a list of allowed hosts can't be enforced without a network namespace")]
    Allowlist,
    /// The backend has nobody who answers in the sandbox's network.
    #[error("the backend `{0}` can neither let single hosts through nor forward ports")]
    Filtered(Backend),
    /// The backend has nobody inside who could connect to a port there.
    #[error("the backend `{0}` can't expose a port of the sandbox")]
    Expose(Backend),
    /// Methods and masks need TLS to be opened, for which the backend has no place.
    #[error("the backend `{0}` can neither filter methods nor mask variables")]
    Opened(Backend),
    /// A single port can't be forwarded.
    #[error("port {0} can't be forwarded without a network namespace")]
    Port(u16),
    /// The working directory is not visible inside.
    #[error("the working directory `{path}` can't be read under this policy")]
    HiddenCwd {
        /// Which one.
        path: AbsPath,
        /// The smallest change that would show it.
        grant: Grant,
    },
    /// The working directory is gone.
    #[error("the working directory `{0}` does not exist")]
    MissingCwd(AbsPath),
    /// A device does not exist.
    #[error("the device `{0}` does not exist")]
    Device(AbsPath),
    /// All of the host was granted for writing.
    #[error("`/` can't be made writable as a whole")]
    WholeRoot,
    /// An argument or environment entry contains NUL.
    #[error("`{}` contains a NUL byte", .0.display())]
    Nul(OsString),
    /// No command.
    #[error("no command was given")]
    Empty,
    /// There is no filter for this machine's architecture.
    #[error("there is no system-call filter for this architecture")]
    Architecture,
    /// The filter can't be built.
    #[error("the system-call filter can't be built")]
    Seccomp(#[source] stockade_linux::seccomp::SpecError),
    /// The environment can't be built.
    #[error("the environment can't be built")]
    Environment(#[source] stockade_policy::EnvError),
    /// The backend has no overlays.
    #[error("the backend `{0}` has no overlays")]
    NoOverlay(Backend),
    /// A writable path that is a file has no layer.
    #[error("`{0}` is not a directory and can't be seen through an overlay")]
    OverlayRoot(AbsPath),
    /// A variable can't be masked.
    #[error("the variable `{name}` can't be masked: {source}")]
    Mask {
        /// Which one.
        name: String,
        /// Why.
        source: stockade_policy::profile::MaskedError,
    },
    /// The value of a masked variable would be inside all the same.
    #[error("{place} has the value of the masked variable `{name}`")]
    Unmasked {
        /// Which variable.
        name: String,
        /// What has it.
        place: String,
    },
    /// A required clause does not hold fully.
    #[error("`--require {clause}` can't be met here: it would be enforced {enforcement}: {reason}")]
    Required {
        /// Which one.
        clause: Clause,
        /// How far it would hold.
        enforcement: Enforcement,
        /// What is missing.
        reason: String,
    },
    /// A clause would not hold and nobody asked for best effort.
    #[error("`{clause}` can't be enforced in full here: {reason}")]
    Unenforced {
        /// Which one.
        clause: Clause,
        /// What is missing.
        reason: String,
    },
}

impl PlanError {
    /// What the user could do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotConfined(_) => "name another base policy, such as --workspace-write".into(),
            Self::Unusable { fix: Some(fix), .. } => fix.clone(),
            Self::Nothing {
                hint: Some(hint), ..
            } => hint.clone(),
            Self::Backend(_) | Self::Nothing { .. } | Self::Unusable { .. } => {
                "`stockade doctor` shows what this machine offers".into()
            }
            Self::Danger(_) => "`--danger-full-access` says that this is what you want".into(),
            Self::BelowLevel { backend, .. } => {
                format!("leave out the level, or the backend `{backend}`")
            }
            Self::Allowlist => "--net off cuts the network, --net open leaves it unfiltered".into(),
            Self::Port(_) => "leave the port out, or open the whole network with --net open".into(),
            Self::Expose(backend) => format!("leave out --expose, or the backend `{backend}`"),
            Self::Opened(backend) => {
                format!("leave out the backend `{backend}` and its level: `native` can")
            }
            Self::Filtered(backend) => format!(
                "leave out the backend `{backend}` and its level: `native` can; or --net off, or \
                 --net open"
            ),
            Self::HiddenCwd { grant, .. } => format!("{grant}, or --cwd DIR"),
            Self::MissingCwd(_) => "enter another directory, or name one with --cwd".into(),
            Self::Device(_) => "`ls -l /dev` lists those that exist".into(),
            Self::Mask {
                name,
                source: stockade_policy::profile::MaskedError::Unset,
            } => format!("set it for Stockade itself: {name}=VALUE stockade run …"),
            Self::Mask { .. } => "mask a variable that holds a token".into(),
            Self::Unmasked { name, .. } => format!(
                "write `${name}` so that it is expanded inside, in single quotes for instance; or \
                 hand the other variable on no longer"
            ),
            Self::WholeRoot => {
                "name the directories, or confine nothing with --danger-full-access".into()
            }
            Self::Required { clause, .. } => {
                format!("leave out --require {clause}, or run on a machine that offers it")
            }
            Self::Unenforced { .. } => "--best-effort runs it anyway and reports the gap".into(),
            Self::NoOverlay(_) => "`--backend native` has".into(),
            Self::OverlayRoot(_) => "grant the directory it is in".into(),
            Self::Nul(_)
            | Self::Empty
            | Self::Architecture
            | Self::Random(_)
            | Self::Seccomp(_)
            | Self::Environment(_) => return None,
        })
    }
}

impl ExecPlan {
    /// Plans a run with the backends that are built in: looks at what the profile names on this
    /// host, then decides everything.
    ///
    /// # Errors
    /// If the profile can't be enforced here.
    pub fn new(profile: &Profile, spec: &Spec) -> Result<Self, PlanError> {
        Backends::built_in().plan(profile, spec)
    }

    /// Has every change go to a layer instead of the host's directory: `layer` answers with the
    /// layer for each writable one. For a plan that was made with [`Spec::overlay`].
    ///
    /// # Errors
    /// If this plan can have no overlay, and what `layer` says.
    pub fn overlay<E: From<PlanError>>(
        &mut self,
        mut layer: impl FnMut(&AbsPath) -> Result<AbsPath, E>,
    ) -> Result<(), E> {
        self.check_overlay()?;
        for root in std::mem::take(&mut self.overlaid) {
            if !root.as_path().is_dir() {
                return Err(PlanError::OverlayRoot(root).into());
            }
            let layer = layer(&root)?;
            let mounts = self.linux.mounts.iter_mut();
            for mount in mounts.filter(|mount| mount.path == root) {
                mount.view = View::Overlay {
                    layer: layer.clone(),
                };
            }
        }
        Ok(())
    }

    /// Whether this plan can have an overlay.
    ///
    /// # Errors
    /// If its backend has none, or has none here.
    pub fn check_overlay(&self) -> Result<(), PlanError> {
        match self.backend {
            Backend::Native => Ok(()),
            other => Err(PlanError::NoOverlay(other)),
        }
    }

    /// The plan for one of the tiers that the helper carries out.
    pub(crate) fn in_tier(
        profile: &Profile,
        spec: &Spec,
        tier: Tier,
        mediator: Mediator,
    ) -> Result<Self, PlanError> {
        let (backend, weaker) = match tier {
            Tier::Native => (Backend::Native, Weaker::No),
            Tier::Landlock => (Backend::Landlock, Weaker::Chosen),
        };
        let addresses = Addresses::ROUTED;
        let plan = Self::unchecked(profile, spec, (tier, mediator), backend, addresses)?;
        lower::check(profile, weaker, &plan.enforcement)?;
        Ok(plan)
    }

    /// The plan with the view of the strongest tier, for a backend that builds it by other means
    /// and says itself what holds.
    pub(crate) fn for_backend(
        profile: &Profile,
        spec: &Spec,
        backend: Backend,
        addresses: Addresses,
    ) -> Result<Self, PlanError> {
        let base = (Tier::Native, Mediator::Present);
        Self::unchecked(profile, spec, base, backend, addresses)
    }

    fn unchecked(
        profile: &Profile,
        spec: &Spec,
        base: (Tier, Mediator),
        backend: Backend,
        addresses: Addresses,
    ) -> Result<Self, PlanError> {
        let mut host = Host::look();
        if lower::limits::wants_cgroup(profile) {
            host.look_for_cgroups();
        }
        if lower::network::needs_resolvers(profile) {
            host.look_for_resolvers();
        }
        host.look_for_masks(profile, spec)?;
        lower::lower(profile, spec, &host, base, backend, addresses)
    }
}
