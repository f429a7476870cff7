//! What sandboxed code may touch: policies, profile files, network names, environment.
//!
//! Pure data and pure functions: nothing here looks at the file system, opens a socket or starts
//! a process. What decides about paths is in `stockade-rules`; what decides about hosts is in
//! [`host`].
//!
//! # Limits
//!
//! Paths and names are judged as text. Symbolic links, the real address of a name and the
//! running kernel are the business of whoever enforces the policy, which asks the same functions
//! about what it found.

mod agent;
mod command;
mod env;
pub mod exchange;
pub mod host;
mod model;
pub mod profile;
mod settings;

pub use agent::{Agent, AgentError, AgentGrants, Api, KeyUse, Login};
pub use command::{
    CancellationToken, CommandSpec, ExecEnv, ExecExpiration, SandboxTransformError, SandboxType,
};
pub use env::{
    CERTIFICATE_FILES, CERTIFICATE_VARIABLES, Env, EnvError, EnvNote, EnvReason, EnvRequest,
    FILTERED_ENV_VARS, PRESERVED_ENV_VARS, STOCKADE_SANDBOX_ACTIVE,
    STOCKADE_SANDBOX_NETWORK_DISABLED, STOCKADE_SANDBOX_TYPE, STOCKADE_SANDBOX_WRITABLE_ROOTS,
    SanitizedEnv, build_sanitized_env, filter_sensitive_env, should_filter_env_var,
};
pub use model::{
    AdditionalPermissions, Approval, ApprovalError, ApprovalScope, Approver, BLOCKED_SYSCALLS,
    CanSetError, DEFAULT_SENSITIVE_PATHS, FILTERED_SYSCALLS, MAX_POLICY_BYTES,
    MORE_BLOCKED_SYSCALLS, MORE_SENSITIVE_PATHS, Network, NetworkAllowlistEntry,
    PROTECTED_IN_ROOTS, PermissionsError, PolicyJsonError, Protocol, ResourceLimits,
    SandboxPermissions, SandboxPolicy, SeccompProfile, SensitivePath, Surroundings, Widening,
    WritableRoot, default_sensitive_paths, default_sensitive_paths_with_home, project_env_files,
    state_directory,
};
pub use settings::{
    MAX_SETTINGS_BYTES, SETTINGS_FILES, SettingsFile, SettingsFormat, without_secrets,
};
pub use stockade_rules::{AbsPath, PathError};
