//! One layer of a profile: what a single file, the flags or a built-in say.

use stockade_rules::{AbsPath, Origin, PathRule};

use crate::host::{HostPattern, Methods, Preset};

use super::choice::{Backend, Base, BasePolicy, HomeMode, Level, NetworkMode, SeccompMode};
use super::clause::Clause;
use super::environment::Environment;
use super::limits::LimitSetting;
use super::mask::Mask;
use super::network::Pin;
use super::seccomp::SyscallName;
use super::sourced::Sourced;
use super::words::words;

words! {
    /// A profile that ships with Stockade, for `extends`.
    pub enum BuiltIn("built-in profile") {
        /// The host is readable but for the sensitive paths; nothing is writable.
        ReadOnly = "read-only",
        /// The same, and the workspace is writable. What holds when nothing is said.
        WorkspaceWrite = "workspace-write",
        /// Only the system's directories and the workspace are there; the workspace is writable.
        Minimal = "minimal",
        /// No sandbox at all.
        DangerFullAccess = "danger-full-access",
    }
}

/// What one source says; what it leaves out is as the layers below say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) base_policy: Option<Sourced<BasePolicy>>,
    /// The base of a built-in, which a level may change.
    pub(super) implied_base: Option<Sourced<Base>>,
    /// The base that was stated by itself.
    pub(super) base: Option<Sourced<Base>>,
    /// Whether the working directory is left out of what the base policy grants.
    pub(super) exclude_cwd: Option<bool>,
    /// The sensitive paths, in place of the list that ships.
    pub(super) sensitive: Option<Vec<PathRule>>,
    /// What was stated about paths.
    pub(super) rules: Vec<PathRule>,
    pub(super) network: NetworkLayer,
    pub(super) devices: Vec<Sourced<AbsPath>>,
    pub(super) environment: Environment,
    pub(super) limits: Vec<Sourced<LimitSetting>>,
    pub(super) seccomp: Option<Sourced<SeccompMode>>,
    pub(super) seccomp_block: Vec<Sourced<SyscallName>>,
    pub(super) level: Option<Sourced<Level>>,
    pub(super) backend: Option<Sourced<Backend>>,
    pub(super) require: Vec<Sourced<Clause>>,
    pub(super) best_effort: Option<Sourced<bool>>,
    pub(super) git_config: Option<Sourced<bool>>,
    pub(super) home: Option<Sourced<HomeMode>>,
    pub(super) danger_nested_namespaces: Option<Sourced<bool>>,
}

/// What one source says about the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NetworkLayer {
    pub(super) mode: Option<Sourced<NetworkMode>>,
    pub(super) allow: Vec<Sourced<HostPattern>>,
    /// Hosts that the machine has to name.
    pub(super) presets: Vec<Sourced<Preset>>,
    pub(super) block: Vec<Sourced<HostPattern>>,
    pub(super) resolve: Vec<Sourced<Pin>>,
    pub(super) methods: Option<Sourced<Methods>>,
    pub(super) danger_hidden_names: Option<Sourced<bool>>,
    pub(super) mask: Vec<Sourced<Mask>>,
    pub(super) unix: Vec<Sourced<AbsPath>>,
    pub(super) expose: Vec<Sourced<u16>>,
    pub(super) host_port: Vec<Sourced<u16>>,
}

impl BuiltIn {
    /// What the sandbox is for.
    pub const fn base_policy(self) -> BasePolicy {
        match self {
            Self::ReadOnly => BasePolicy::ReadOnly,
            Self::WorkspaceWrite | Self::Minimal => BasePolicy::WorkspaceWrite,
            Self::DangerFullAccess => BasePolicy::DangerFullAccess,
        }
    }

    /// What is readable to begin with.
    pub const fn base(self) -> Base {
        match self {
            Self::Minimal => Base::Minimal,
            Self::ReadOnly | Self::WorkspaceWrite | Self::DangerFullAccess => Base::Host,
        }
    }

    pub(super) fn layer(self, origin: &Origin) -> Layer {
        Layer {
            base_policy: Some(Sourced::new(self.base_policy(), origin.clone())),
            implied_base: Some(Sourced::new(self.base(), origin.clone())),
            ..Layer::default()
        }
    }
}
