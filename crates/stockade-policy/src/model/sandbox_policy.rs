//! The policy itself.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stockade_rules::{AbsPath, PathError};

use super::limits::ResourceLimits;
use super::network::Network;
use super::network_entry::NetworkAllowlistEntry;
use super::permissions::AdditionalPermissions;
use super::seccomp_profile::SeccompProfile;
use super::sensitive::{SensitivePath, default_sensitive_paths};
use super::surroundings::Surroundings;
use super::wire::PolicyWire;
use super::writable_root::WritableRoot;
use crate::host::{Host, NetDecision};

/// What a command may do.
///
/// In JSON the variant is the tag `type` in snake case; unknown keys are refused, also keys of
/// another variant.
///
/// # Differences from the model that the seeds describe
///
/// - The network is one value, [`Network`]; `network_access` and `network_allowlist` exist in
///   JSON only. An explicit `false` wins over a list.
/// - `ReadOnly` has sensitive paths, limits and a system-call profile of its own.
/// - `readable_paths` gives a granted read an effect, and `exclude_cwd` lets a policy that was
///   widened by a grant leave the working directory as it was.
/// - The two flags about temporary directories work, and default to `true` in JSON as well.
/// - Paths are normalised before they are judged, and judged by the one decision function: the
///   longest rule wins, so a writable root below a sensitive path opens that root.
/// - `has_full_disk_read_access` is false where places are hidden.
/// - In a writable root, what makes git run programs is protected, not all of `.git`.
/// - Replacing a policy goes by a partial order, see [`SandboxPolicy::is_at_most_in`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PolicyWire", into = "PolicyWire")]
#[expect(
    clippy::exhaustive_enums,
    reason = "a new variant must stop every enforcement point from compiling"
)]
pub enum SandboxPolicy {
    /// Nothing may be written.
    ReadOnly {
        /// Who may be reached.
        network: Network,
        /// Paths that may be read although they lie in a sensitive place.
        readable_paths: Vec<PathBuf>,
        /// Places to hide; the default list if none is stated.
        sensitive_paths: Option<Vec<SensitivePath>>,
        /// How much may be used; conservative if not stated.
        resource_limits: ResourceLimits,
        /// Which system calls are refused.
        seccomp_profile: SeccompProfile,
    },
    /// Some directories may be written.
    WorkspaceWrite {
        /// Those directories, beside the working directory.
        writable_roots: Vec<WritableRoot>,
        /// Who may be reached.
        network: Network,
        /// Paths that may be read although they lie in a sensitive place.
        readable_paths: Vec<PathBuf>,
        /// Places to hide; the default list if none is stated.
        sensitive_paths: Option<Vec<SensitivePath>>,
        /// How much may be used.
        resource_limits: ResourceLimits,
        /// Which system calls are refused.
        seccomp_profile: SeccompProfile,
        /// Whether the working directory is *not* writable unless listed.
        exclude_cwd: bool,
        /// Whether the host's `TMPDIR` is *not* writable. The command has a private `/tmp` anyway.
        exclude_tmpdir_env_var: bool,
        /// Whether the host's `/tmp` is *not* writable. The command has a private one anyway.
        exclude_slash_tmp: bool,
    },
    /// No restrictions.
    DangerFullAccess,
    /// The caller says that a sandbox is already around it; nothing is known about that sandbox.
    ExternalSandbox {
        /// What the caller says about it.
        description: String,
    },
}

/// Constructors.
impl SandboxPolicy {
    /// Nothing may be written, nobody reached.
    pub fn read_only() -> Self {
        Self::read_only_on(Network::Off)
    }

    /// The same as [`SandboxPolicy::read_only`], under an older name.
    pub fn new_read_only_policy() -> Self {
        Self::read_only()
    }

    /// Nothing may be written, only these reached. An empty list means nobody.
    pub fn read_only_with_network(network_allowlist: Vec<NetworkAllowlistEntry>) -> Self {
        Self::read_only_on(Network::only(network_allowlist))
    }

    /// Nothing may be written, everybody reached.
    pub fn read_only_with_full_network() -> Self {
        Self::read_only_on(Network::Open)
    }

    /// These roots and the working directory may be written, nobody reached.
    pub fn workspace_write(writable_roots: Vec<PathBuf>) -> Self {
        Self::workspace_write_with_network(writable_roots, Vec::new())
    }

    /// These roots may be written, only these hosts reached. An empty list means nobody.
    pub fn workspace_write_with_network(
        writable_roots: Vec<PathBuf>,
        network_allowlist: Vec<NetworkAllowlistEntry>,
    ) -> Self {
        Self::workspace_write_full(
            writable_roots,
            network_allowlist,
            None,
            ResourceLimits::default(),
            SeccompProfile::strict(),
        )
    }

    /// These roots may be written; these places, and not the default ones, are hidden.
    pub fn workspace_write_with_sensitive_paths(
        writable_roots: Vec<PathBuf>,
        sensitive_paths: Vec<SensitivePath>,
    ) -> Self {
        Self::workspace_write_full(
            writable_roots,
            Vec::new(),
            Some(sensitive_paths),
            ResourceLimits::default(),
            SeccompProfile::strict(),
        )
    }

    /// These roots may be written; nothing is hidden. Dangerous: every credential can be read.
    pub fn workspace_write_no_sensitive_blocking(writable_roots: Vec<PathBuf>) -> Self {
        Self::workspace_write_with_sensitive_paths(writable_roots, Vec::new())
    }

    /// These roots may be written, within these limits.
    pub fn workspace_write_with_limits(
        writable_roots: Vec<PathBuf>,
        resource_limits: ResourceLimits,
    ) -> Self {
        Self::workspace_write_full(
            writable_roots,
            Vec::new(),
            None,
            resource_limits,
            SeccompProfile::strict(),
        )
    }

    /// All of it.
    pub fn workspace_write_full(
        writable_roots: Vec<PathBuf>,
        network_allowlist: Vec<NetworkAllowlistEntry>,
        sensitive_paths: Option<Vec<SensitivePath>>,
        resource_limits: ResourceLimits,
        seccomp_profile: SeccompProfile,
    ) -> Self {
        Self::WorkspaceWrite {
            writable_roots: writable_roots.into_iter().map(WritableRoot::new).collect(),
            network: Network::only(network_allowlist),
            readable_paths: Vec::new(),
            sensitive_paths,
            resource_limits,
            seccomp_profile,
            exclude_cwd: false,
            exclude_tmpdir_env_var: true,
            exclude_slash_tmp: true,
        }
    }

    /// No restrictions (dangerous).
    pub fn full_access() -> Self {
        Self::DangerFullAccess
    }

    /// This policy with some paths more.
    ///
    /// Adds exactly what is named: a read-only policy that gets a path to write does not get the
    /// working directory with it, and keeps its network, limits and hidden places. The result is
    /// wider, so putting it in force needs an [`Approval`](super::Approval).
    ///
    /// # Errors
    /// If a path can't be one.
    pub fn with_additional_permissions(
        &self,
        extra: &AdditionalPermissions,
        place: &Surroundings,
    ) -> Result<Self, PathError> {
        let resolve = |paths: &[PathBuf]| -> Result<Vec<AbsPath>, PathError> {
            let resolved = paths
                .iter()
                .map(|path| AbsPath::resolve(path.as_os_str(), &place.cwd, place.home.as_ref()));
            resolved.collect()
        };
        let (reads, writes) = (resolve(&extra.fs_read)?, resolve(&extra.fs_write)?);
        let mut widened = match self.clone() {
            Self::ReadOnly {
                network,
                readable_paths,
                sensitive_paths,
                resource_limits,
                seccomp_profile,
            } if !writes.is_empty() => Self::WorkspaceWrite {
                writable_roots: Vec::new(),
                network,
                readable_paths,
                sensitive_paths,
                resource_limits,
                seccomp_profile,
                exclude_cwd: true,
                exclude_tmpdir_env_var: true,
                exclude_slash_tmp: true,
            },
            policy => policy,
        };
        if let Self::ReadOnly { readable_paths, .. } | Self::WorkspaceWrite { readable_paths, .. } =
            &mut widened
        {
            for path in reads.into_iter().map(AbsPath::into_path_buf) {
                push_new(readable_paths, path);
            }
        }
        if let Self::WorkspaceWrite { writable_roots, .. } = &mut widened {
            for root in writes.into_iter().map(WritableRoot::from) {
                push_new(writable_roots, root);
            }
        }
        Ok(widened)
    }

    fn read_only_on(network: Network) -> Self {
        Self::ReadOnly {
            network,
            readable_paths: Vec::new(),
            sensitive_paths: None,
            resource_limits: ResourceLimits::conservative(),
            seccomp_profile: SeccompProfile::strict(),
        }
    }
}

/// What the policy says. Where a policy has no sandbox, Stockade forbids nothing.
impl SandboxPolicy {
    /// The network. For a policy without a sandbox it is open.
    pub fn network(&self) -> &Network {
        match self {
            Self::ReadOnly { network, .. } | Self::WorkspaceWrite { network, .. } => network,
            Self::DangerFullAccess | Self::ExternalSandbox { .. } => &Network::Open,
        }
    }

    /// Whether everybody may be reached.
    pub fn has_full_network_access(&self) -> bool {
        *self.network() == Network::Open
    }

    /// Whether only some may be reached.
    pub fn has_network_allowlist(&self) -> bool {
        !self.network_allowlist().is_empty()
    }

    /// Those who may be reached, if only some may.
    pub fn network_allowlist(&self) -> &[NetworkAllowlistEntry] {
        self.network().allowlist()
    }

    /// Whether a TCP connection to this host and port is permitted. What is no host is not.
    pub fn is_network_allowed(&self, domain: &str, port: u16) -> bool {
        self.decide_network(domain, port).is_allowed()
    }

    /// The decision behind [`SandboxPolicy::is_network_allowed`], with its reason.
    pub fn decide_network(&self, domain: &str, port: u16) -> NetDecision {
        match (self.network(), Host::parse(domain)) {
            (Network::Open, _) => NetDecision::open(),
            (network, Ok(host)) => network.decide(&host, port),
            (_, Err(error)) => NetDecision::bad_host(error),
        }
    }

    /// The places to hide: those stated, else the default ones.
    pub fn sensitive_paths(&self) -> Vec<SensitivePath> {
        match self {
            Self::ReadOnly { .. } | Self::WorkspaceWrite { .. } => self
                .stated_sensitive_paths()
                .map_or_else(default_sensitive_paths, <[_]>::to_vec),
            Self::DangerFullAccess | Self::ExternalSandbox { .. } => Vec::new(),
        }
    }

    /// The places to hide and, for each writable root, what is protected in it.
    ///
    /// Takes home and temporary directory from the environment; see
    /// [`SandboxPolicy::sensitive_paths_in`].
    pub fn sensitive_paths_for_execution(&self, cwd: &Path) -> Vec<SensitivePath> {
        surroundings(cwd).map_or_else(
            || self.sensitive_paths(),
            |place| self.sensitive_paths_in(&place),
        )
    }

    /// Whether a path is hidden.
    pub fn is_sensitive_path(&self, path: &Path) -> bool {
        !self.is_path_readable(path)
    }

    /// Whether a rule forbids writing to a path; see
    /// [`SandboxPolicy::is_path_write_blocked_in`].
    pub fn is_path_write_blocked(&self, path: &Path, cwd: &Path) -> bool {
        match surroundings(cwd) {
            Some(place) => self.is_path_write_blocked_in(path, &place),
            None => !self.has_full_disk_write_access(),
        }
    }

    /// Whether a path may be read; see [`SandboxPolicy::is_path_readable_in`].
    pub fn is_path_readable(&self, path: &Path) -> bool {
        // Only a relative path needs the working directory.
        let cwd = if path.has_root() {
            PathBuf::from("/")
        } else {
            std::env::current_dir().unwrap_or_default()
        };
        match surroundings(&cwd) {
            Some(place) => self.is_path_readable_in(path, &place),
            None => self.has_full_disk_read_access(),
        }
    }

    /// The limits.
    pub fn resource_limits(&self) -> ResourceLimits {
        match self {
            Self::ReadOnly {
                resource_limits, ..
            }
            | Self::WorkspaceWrite {
                resource_limits, ..
            } => *resource_limits,
            Self::DangerFullAccess | Self::ExternalSandbox { .. } => ResourceLimits::unlimited(),
        }
    }

    /// The system-call profile, with its socket rule derived from the network.
    pub fn seccomp_profile(&self) -> SeccompProfile {
        match self {
            Self::ReadOnly {
                seccomp_profile, ..
            }
            | Self::WorkspaceWrite {
                seccomp_profile, ..
            } => SeccompProfile {
                allow_network_sockets: !self.network().is_off(),
                ..seccomp_profile.clone()
            },
            Self::DangerFullAccess | Self::ExternalSandbox { .. } => SeccompProfile::permissive(),
        }
    }

    /// Whether everything may be written.
    pub fn has_full_disk_write_access(&self) -> bool {
        matches!(self, Self::DangerFullAccess | Self::ExternalSandbox { .. })
    }

    /// Whether everything may be read: no place is hidden.
    pub fn has_full_disk_read_access(&self) -> bool {
        !self.sensitive_paths().iter().any(|entry| entry.block_read)
    }

    /// The writable roots with the working directory; see
    /// [`SandboxPolicy::writable_roots_in`]. None if `cwd` is not absolute.
    pub fn get_writable_roots_with_cwd(&self, cwd: &Path) -> Vec<WritableRoot> {
        surroundings(cwd).map_or_else(Vec::new, |place| self.writable_roots_in(&place))
    }

    /// Whether a path may be written; see [`SandboxPolicy::is_path_writable_in`].
    pub fn is_path_writable(&self, path: &Path, cwd: &Path) -> bool {
        match surroundings(cwd) {
            Some(place) => self.is_path_writable_in(path, &place),
            None => self.has_full_disk_write_access(),
        }
    }

    /// The policy in a few words.
    pub fn description(&self) -> &'static str {
        match self {
            Self::ReadOnly { .. } => "read-only access",
            Self::WorkspaceWrite { .. } => "workspace write access",
            Self::DangerFullAccess => "full access (dangerous)",
            Self::ExternalSandbox { .. } => "external sandbox",
        }
    }

    pub(super) fn stated_sensitive_paths(&self) -> Option<&[SensitivePath]> {
        match self {
            Self::ReadOnly {
                sensitive_paths, ..
            }
            | Self::WorkspaceWrite {
                sensitive_paths, ..
            } => sensitive_paths.as_deref(),
            Self::DangerFullAccess | Self::ExternalSandbox { .. } => None,
        }
    }
}

/// Read-only, without network.
impl Default for SandboxPolicy {
    fn default() -> Self {
        Self::read_only()
    }
}

fn surroundings(cwd: &Path) -> Option<Surroundings> {
    Surroundings::from_env(cwd).ok()
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}
