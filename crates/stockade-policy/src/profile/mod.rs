//! The profile: everything that one sandbox may touch, merged from files and flags.
//!
//! [`Profile::resolve`] reads the layers (built-in, the user's file, `--policy`, the project's
//! file, flags) and merges them into a [`Profile`], which is what the engine plans from. Each
//! setting remembers who made it.
//!
//! Protects the user's grants from the project: a `stockade.toml` that comes with the code can
//! only narrow. Does not protect the user from their own file or flags.
//!
//! Everything here is pure. Files are read through a [`Loader`] that the caller provides.

mod base;
mod build;
mod choice;
mod clause;
mod diagnostic;
mod duration;
mod environment;
mod error;
mod explain;
mod file;
mod flags;
mod from_policy;
mod keys;
mod layer;
mod limits;
mod mask;
mod masked;
mod merge;
mod named;
mod network;
mod place;
mod printable;
mod protected;
mod repository;
mod reveal;
mod schema;
mod seccomp;
mod show;
mod size;
mod sourced;
mod sources;
mod store;
mod suggest;
mod to_policy;
pub(crate) mod words;
mod worktree;

#[cfg(test)]
mod tests;

use serde::Serialize;
use stockade_rules::{AbsPath, RuleSet};

pub use base::SYSTEM_DIRECTORIES;
pub use choice::{Backend, Base, BasePolicy, HomeMode, Level, NetworkMode, SeccompMode};
pub use clause::Clause;
pub use diagnostic::Diagnostic;
pub use duration::{format_duration, parse_duration};
pub use environment::{EnvName, EnvVar, Environment};
pub use error::{LoadError, ProfileError};
pub use explain::{
    NetworkExplanation, PathExplanation, PathVerdict, explain_network, explain_path,
};
pub use file::MAX_FILE_BYTES;
pub use flags::Flags;
pub use from_policy::PolicyError;
pub use layer::BuiltIn;
pub use limits::{LimitError, LimitKey, LimitSetting, Limits};
pub use mask::{Mask, MaskError};
pub use masked::{Masked, MaskedError, Secret};
pub use named::{BadProfileName, ProfileName, profile_directory};
pub use network::{NetworkProfile, Pin, PinError};
pub use place::PathTextError;
pub use protected::{Guard, PROTECTED_NAMES, Protected, is_protection, protection_bases};
pub use repository::{Link, OwnRepository, own_repository};
pub use schema::schema;
pub use seccomp::{Seccomp, SyscallName, SyscallNameError};
pub use show::Shown;
pub use size::{format_size, parse_size};
pub use sourced::{BUILT_IN, Sourced};
pub use sources::{Loader, PROJECT_FILE, Sources, check_file, user_file};
pub use to_policy::Inexpressible;
pub use words::UnknownWord;

/// What one sandbox may touch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// The directory that the profile is about, and the command starts in.
    pub cwd: AbsPath,
    /// What the sandbox is for.
    pub base_policy: Sourced<BasePolicy>,
    /// What is readable to begin with.
    pub base: Sourced<Base>,
    /// Every rule about paths: the base, the workspace, the sensitive paths, the protected names,
    /// and what was stated. `/proc`, `/sys`, `/dev` and the private `/tmp` are the engine's.
    pub rules: RuleSet,
    /// The directories and files that are writable as a whole, outermost first; what the rules
    /// protect below them is not.
    pub writable_roots: Vec<AbsPath>,
    /// The user's home directory, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home_directory: Option<AbsPath>,
    /// What becomes of what is written there.
    pub home: Sourced<HomeMode>,
    /// The git repository that the working directory belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_repository: Option<OwnRepository>,
    /// The network.
    pub network: NetworkProfile,
    /// Device nodes beyond the harmless ones.
    pub devices: Vec<Sourced<AbsPath>>,
    /// The environment.
    pub environment: Environment,
    /// How much may be used up.
    pub limits: Limits,
    /// Which system calls are refused.
    pub seccomp: Seccomp,
    /// How strong the isolation must be.
    pub level: Sourced<Level>,
    /// Which backend must be used, if one was named.
    pub backend: Option<Sourced<Backend>>,
    /// What must hold fully, or the command is not started.
    pub require: Vec<Sourced<Clause>>,
    /// Whether a policy that can't be enforced in full is good enough.
    pub best_effort: Sourced<bool>,
    /// Whether git's configuration inside writable roots may be written.
    pub git_config: Sourced<bool>,
    /// Whether the command may make namespaces of its own.
    pub danger_nested_namespaces: Sourced<bool>,
    /// What the user should know about how the layers were read.
    pub warnings: Vec<String>,
}
