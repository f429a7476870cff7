//! The VT Code-compatible API: policies and commands in, something to execute out.
//!
//! [`SandboxManager::transform`] turns a command and a policy into one that starts the helper, for
//! programs with a way of their own to start processes. [`LandlockSandbox`] and the seccomp
//! functions confine the calling process itself. [`debug_sandbox`] and the self-tests try on this
//! machine what a policy promises. Everybody else is better off with
//! [`Sandbox`](crate::Sandbox).

mod debug;

pub use debug::{
    DebugError, DebugSubcommand, SandboxDebugResult, debug_sandbox, sandbox_capabilities_summary,
};
#[cfg(target_os = "linux")]
pub use debug::{SelfTest, Verdict, test_network_blocked, test_path_writable};
#[cfg(target_os = "linux")]
pub use stockade_engine::{
    ApplyError, FilterSpec, LandlockApplied, LandlockError, LandlockGap, LandlockSandbox,
    apply_seccomp, default_seccomp_profile, setup_parent_death_signal,
    setup_parent_death_signal_with_check,
};
pub use stockade_engine::{HandOverError, PolicyVariable, STOCKADE_POLICY, SandboxManager};
pub use stockade_policy::{
    AdditionalPermissions, Approval, ApprovalScope, Approver, BLOCKED_SYSCALLS, CancellationToken,
    CommandSpec, DEFAULT_SENSITIVE_PATHS, ExecEnv, ExecExpiration, FILTERED_ENV_VARS,
    FILTERED_SYSCALLS, Network, NetworkAllowlistEntry, PRESERVED_ENV_VARS, ResourceLimits,
    SandboxPermissions, SandboxPolicy, SandboxTransformError, SandboxType, SeccompProfile,
    SensitivePath, WritableRoot, build_sanitized_env, default_sensitive_paths,
    filter_sensitive_env, should_filter_env_var,
};
/// Markers in the environment of commands. Their values begin with `STOCKADE_`, not `VTCODE_`:
/// a program that looks for VT Code's own sandbox must not find another one.
pub use stockade_policy::{
    STOCKADE_SANDBOX_ACTIVE as VTCODE_SANDBOX_ACTIVE,
    STOCKADE_SANDBOX_NETWORK_DISABLED as VTCODE_SANDBOX_NETWORK_DISABLED,
    STOCKADE_SANDBOX_TYPE as VTCODE_SANDBOX_TYPE,
    STOCKADE_SANDBOX_WRITABLE_ROOTS as VTCODE_SANDBOX_WRITABLE_ROOTS,
};
