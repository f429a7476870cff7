//! Run commands nobody vouches for: policy and command in, plan and enforcement out.
//!
//! The path of one run is the order of the modules: a [`Profile`](stockade_policy::profile::Profile)
//! says what may be touched; `host` looks at what it names on this machine; `lower` turns both into
//! an [`ExecPlan`], which is plain data and can be printed; [`Sandbox`] executes it; a [`Report`]
//! says what was enforced by what.
//!
//! Nothing runs unconfined by default: what can't be enforced is an error, unless the profile asks
//! for best effort, and then the report says so.
//!
//! # Limits
//! - Only Linux enforces anything so far. Elsewhere every policy but `danger-full-access` refuses.
//! - Reads are denied by mounts, patterns by the mediator; see the report for what holds where.

pub mod probe;

#[cfg(target_os = "linux")]
pub mod backend;
#[cfg(target_os = "linux")]
mod choice;
#[cfg(target_os = "linux")]
mod confine;
mod debug;
mod files;
#[cfg(target_os = "linux")]
mod from_policy;
#[cfg(target_os = "linux")]
pub mod front;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod lower;
mod manager;
#[cfg(target_os = "linux")]
pub mod network;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod sandbox;
pub mod seatbelt;
#[cfg(target_os = "linux")]
mod select;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod tier;

#[cfg(target_os = "linux")]
pub use choice::Choice;
#[cfg(target_os = "linux")]
pub use confine::{
    ApplyError, FilterSpec, LandlockApplied, LandlockError, LandlockGap, LandlockSandbox,
    apply_seccomp, default_seccomp_profile, setup_parent_death_signal,
    setup_parent_death_signal_with_check,
};
pub use debug::{
    DebugError, DebugSubcommand, SandboxDebugResult, debug_sandbox, sandbox_capabilities_summary,
};
#[cfg(target_os = "linux")]
pub use debug::{SelfTest, Verdict, test_network_blocked, test_path_writable};
pub use files::Files;
#[cfg(target_os = "linux")]
pub use from_policy::FromPolicyError;
pub use manager::{HandOverError, PolicyVariable, STOCKADE_POLICY, SandboxManager};
#[cfg(target_os = "linux")]
pub use plan::{Carrier, Content, ExecPlan, Input, PlanError, Program, Spec};
#[cfg(target_os = "linux")]
pub use report::{ClauseReport, DenialRecord, Ending, Enforcement, Report, UsageReport};
#[cfg(target_os = "linux")]
pub use sandbox::{Child, Command, Finished, Output, RunError, Sandbox, Stdio};
#[cfg(target_os = "linux")]
pub use select::{SandboxSelection, SelectError, select_sandbox};
#[cfg(target_os = "linux")]
pub use stockade_linux::helper;
pub use stockade_policy as policy;
#[cfg(target_os = "linux")]
pub use supervise::{Foreground, Stream, Tap, run_in_foreground};

/// The library example of the README must compile.
#[cfg(all(doctest, target_os = "linux"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
