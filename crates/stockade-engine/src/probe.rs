//! What this machine offers for isolation, each thing tried by doing it.
//!
//! A file that exists, a version number or a setting proves nothing: a container may forbid with
//! a filter what its kernel offers. So namespaces are made, filters installed, cgroups created
//! and backends run `true`. What can't be taken back happens in short-lived children. Where
//! something fails the reason is kept in words, with the way to mend it.
//!
//! The result describes the moment. It is information for people and for the choice of a
//! backend; a run that then fails to get what it needs still refuses to start.

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
pub mod deadline;
mod diagnose;
#[cfg(target_os = "linux")]
mod docker;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod tools;

use std::path::{Path, PathBuf};

use serde::Serialize;

#[cfg(target_os = "linux")]
pub(crate) use self::cgroup::CPU_ACCOUNTING;

/// The controllers that limits can use here, and where their groups are made.
#[cfg(target_os = "linux")]
pub(crate) fn usable_controllers() -> Vec<Controller> {
    cgroup::probe().controllers
}

/// Whether a tier holds here.
#[cfg(target_os = "linux")]
pub(crate) fn engine(helper: &Path, tier: Tier) -> Support {
    kernel::engine(helper, tier)
}

/// Whether Landlock and a filter hold here where another sandbox has the only listener.
#[cfg(target_os = "linux")]
pub(crate) fn unmediated(helper: &Path) -> Support {
    kernel::unmediated(helper)
}

/// What a sandbox around this process is seen to hold, in words for a warning.
#[cfg(target_os = "linux")]
pub(crate) fn surroundings() -> Option<String> {
    kernel::surroundings()
}

/// Whether bubblewrap confines a command here.
#[cfg(target_os = "linux")]
pub(crate) fn bwrap(given: Option<&Path>) -> Support {
    tools::bwrap(given).support
}

/// Whether nsjail confines a command here.
#[cfg(target_os = "linux")]
pub(crate) fn nsjail(given: Option<&Path>) -> Support {
    tools::nsjail(given).support
}

/// Whether gVisor confines a command here.
#[cfg(target_os = "linux")]
pub(crate) fn runsc(given: Option<&Path>) -> Support {
    tools::runsc(given).support
}

/// A program on the search path, whose relative entries are left out.
#[cfg(target_os = "linux")]
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    tools::find(name)
}

/// Everything that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The machine.
    pub system: System,
    /// The strongest tier that holds here; none if nothing can confine a command.
    pub tier: Option<Tier>,
    /// Landlock, the access control a process puts on itself.
    pub landlock: Landlock,
    /// Namespaces and mounts inside them.
    pub user_namespaces: Check,
    /// Filters on system calls.
    pub seccomp: Seccomp,
    /// Control groups, for limits.
    pub cgroup: Cgroup,
    /// An overlay mounted inside a user namespace.
    pub overlay: Check,
    /// The program `bwrap`.
    pub bwrap: Tool,
    /// The program `nsjail`.
    pub nsjail: Tool,
    /// The Docker daemon behind its socket.
    pub docker: Docker,
    /// gVisor's runtime.
    pub runsc: Tool,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct System {
    /// `linux`, `macos`, `windows` …
    pub os: &'static str,
    /// `x86_64`, `aarch64` …
    pub arch: &'static str,
    /// The kernel's release where it is known.
    pub kernel: Option<String>,
}

/// What confines a command on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "callers describe each")]
pub enum Tier {
    /// Landlock, a system call filter and limits, without namespaces.
    Landlock,
    /// Namespaces, mounts, Landlock, a system call filter and limits.
    Native,
}

/// How far something is available.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "callers must handle each")]
pub enum Support {
    /// All of it.
    Full,
    /// Some of it.
    Partial {
        /// What is missing.
        gaps: Vec<Gap>,
    },
    /// Nothing.
    None {
        /// Why.
        gaps: Vec<Gap>,
    },
}

/// Something that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Gap {
    /// What was tried.
    pub what: String,
    /// Why it failed.
    pub reason: String,
    /// How to mend it, where it can be.
    pub fix: Option<String>,
}

/// A result without details.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// How far it is available.
    #[serde(flatten)]
    pub support: Support,
}

/// What Landlock offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Landlock {
    /// How far it is available.
    #[serde(flatten)]
    pub support: Support,
    /// The version of its interface.
    pub abi: Option<u32>,
    /// The errata that this kernel has mended, as a bit set.
    pub errata: u32,
}

/// What seccomp offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Seccomp {
    /// How far it is available.
    #[serde(flatten)]
    pub support: Support,
    /// Whether a filter may ask a supervisor, which the mediator needs.
    pub listener: bool,
    /// Whether the supervisor can be woken on the caller's core (Linux 6.6).
    pub sync_wake_up: bool,
}

/// Which control groups this process may make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cgroup {
    /// How far limits can be set with them.
    #[serde(flatten)]
    pub support: Support,
    /// The versions that are mounted.
    pub versions: Vec<u8>,
    /// Controllers that a child group of ours can use.
    pub controllers: Vec<Controller>,
}

/// A controller that a child group of ours can use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Controller {
    /// `memory`, `pids` …
    pub name: String,
    /// The cgroup version that offers it.
    pub version: u8,
    /// The group below which a child was made.
    pub parent: PathBuf,
    /// Whether the group hands the controller down already; a run enables it otherwise.
    pub enabled: bool,
    /// This process's own group, which it returns to.
    #[serde(skip)]
    pub(crate) origin: PathBuf,
    /// The tightest limit of the groups that a child of `parent` is not in.
    #[serde(skip)]
    pub(crate) bound: Option<u64>,
}

/// A program that can confine a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Tool {
    /// Whether it confined a command here.
    #[serde(flatten)]
    pub support: Support,
    /// Where it was found.
    pub path: Option<PathBuf>,
    /// What it says its version is.
    pub version: Option<String>,
}

/// The Docker daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Docker {
    /// Whether the daemon answered.
    #[serde(flatten)]
    pub support: Support,
    /// The socket that was asked.
    pub socket: Option<PathBuf>,
    /// The daemon's version.
    pub version: Option<String>,
    /// The runtimes it knows.
    pub runtimes: Vec<String>,
}

/// Tries everything. `helper` is the program whose hidden mode makes the attempts: for the CLI,
/// itself.
pub fn probe(helper: &Path) -> Report {
    #[cfg(target_os = "linux")]
    return kernel::probe(helper);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = helper;
        Report::unavailable()
    }
}

impl Report {
    #[cfg(not(target_os = "linux"))]
    fn unavailable() -> Self {
        let gap = |what: &str| {
            Support::none(
                what,
                format!("there is no backend for {} yet", std::env::consts::OS),
                Some(/*hint*/ "run Stockade on Linux".to_owned()),
            )
        };
        let tool = |what: &str| Tool {
            support: gap(what),
            path: None,
            version: None,
        };
        Self {
            system: System::of(None),
            tier: None,
            landlock: Landlock {
                support: gap("landlock"),
                abi: None,
                errata: 0,
            },
            user_namespaces: Check {
                support: gap("user namespaces"),
            },
            seccomp: Seccomp {
                support: gap("seccomp"),
                listener: false,
                sync_wake_up: false,
            },
            cgroup: Cgroup {
                support: gap("cgroups"),
                versions: Vec::new(),
                controllers: Vec::new(),
            },
            overlay: Check {
                support: gap("overlayfs"),
            },
            bwrap: tool("bwrap"),
            nsjail: tool("nsjail"),
            docker: Docker {
                support: gap("docker"),
                socket: None,
                version: None,
                runtimes: Vec::new(),
            },
            runsc: tool("runsc"),
        }
    }
}

impl System {
    fn of(kernel: Option<String>) -> Self {
        Self {
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            kernel,
        }
    }
}

impl Support {
    /// Whether any of it can be used.
    pub fn is_usable(&self) -> bool {
        !matches!(self, Self::None { .. })
    }

    /// What is missing.
    pub fn gaps(&self) -> &[Gap] {
        match self {
            Self::Full => &[],
            Self::Partial { gaps } | Self::None { gaps } => gaps,
        }
    }

    fn none(what: &str, reason: impl Into<String>, fix: Option<String>) -> Self {
        Self::None {
            gaps: vec![Gap::new(what, reason, fix)],
        }
    }

    #[cfg(target_os = "linux")]
    fn from_gaps(gaps: Vec<Gap>) -> Self {
        if gaps.is_empty() {
            Self::Full
        } else {
            Self::Partial { gaps }
        }
    }
}

impl Gap {
    /// For backends of other crates.
    pub fn of(what: &str, reason: impl Into<String>, fix: Option<String>) -> Self {
        Self::new(what, reason, fix)
    }

    fn new(what: &str, reason: impl Into<String>, fix: Option<String>) -> Self {
        Self {
            what: what.to_owned(),
            reason: reason.into(),
            fix,
        }
    }
}
