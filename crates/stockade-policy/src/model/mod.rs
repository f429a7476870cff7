//! The policy: what a command may read, write, reach and use.
//!
//! [`SandboxPolicy`] is the small, stable document that agents and callers exchange. The profile
//! file is richer and lowers to the same rules. Everything here is data and pure functions; the
//! few seed signatures that need `HOME`, `TMPDIR` or the working directory read them at the edge
//! and call a variant that takes [`Surroundings`].

mod approval;
mod homes;
mod limits;
mod network;
mod network_entry;
mod order;
mod path_text;
mod paths;
mod permissions;
mod sandbox_policy;
mod seccomp_profile;
mod sensitive;
mod surroundings;
mod wire;
mod writable_root;

pub use approval::{Approval, ApprovalError, ApprovalScope, Approver};
pub use limits::ResourceLimits;
pub use network::Network;
pub use network_entry::{NetworkAllowlistEntry, Protocol};
pub use order::{CanSetError, Widening};
pub use paths::PROTECTED_IN_ROOTS;
pub use permissions::{AdditionalPermissions, PermissionsError, SandboxPermissions};
pub use sandbox_policy::SandboxPolicy;
pub use seccomp_profile::{
    BLOCKED_SYSCALLS, FILTERED_SYSCALLS, MORE_BLOCKED_SYSCALLS, SeccompProfile,
};
pub use sensitive::{
    DEFAULT_SENSITIVE_PATHS, MORE_SENSITIVE_PATHS, SensitivePath, default_sensitive_paths,
    default_sensitive_paths_with_home, project_env_files,
};
pub use surroundings::{Surroundings, state_directory};
pub use wire::{MAX_POLICY_BYTES, PolicyJsonError};
pub use writable_root::WritableRoot;

#[cfg(test)]
mod tests;
