//! The engine of Stockade: policy and command in, plan, run and report out.
//!
//! The path of one run is the order of the modules: a [`Profile`](stockade_policy::profile::Profile)
//! says what may be touched; `host` looks at what it names on this machine; `lower` turns both into
//! an [`ExecPlan`], which is plain data and can be printed; a [`Child`] is that plan being executed;
//! a [`Report`] says what was enforced by what.
//!
//! This is the inside of the crate `stockade`, which most programs should use instead.
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
mod child;
#[cfg(target_os = "linux")]
mod choice;
#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod denial;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
mod effective;
mod files;
#[cfg(target_os = "linux")]
mod grant;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod lower;
mod manager;
#[cfg(target_os = "linux")]
pub mod network;
#[cfg(target_os = "linux")]
mod output_file;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod report;
pub mod seatbelt;
#[cfg(target_os = "linux")]
mod select;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod tier;

#[cfg(target_os = "linux")]
pub use child::{Child, CountedOutput, Finished, RunError, shell_code};
#[cfg(target_os = "linux")]
pub use choice::{Attempt, Choice};
#[cfg(target_os = "linux")]
pub use confine::{
    ApplyError, FilterSpec, LandlockApplied, LandlockError, LandlockGap, LandlockSandbox,
    apply_seccomp, default_seccomp_profile, setup_parent_death_signal,
    setup_parent_death_signal_with_check,
};
#[cfg(target_os = "linux")]
pub use denial::{Denial, Subject};
#[cfg(target_os = "linux")]
pub use effective::effective_rules;
pub use files::Files;
#[cfg(target_os = "linux")]
pub use grant::Grant;
pub use manager::{HandOverError, PolicyVariable, STOCKADE_POLICY, SandboxManager};
#[cfg(target_os = "linux")]
pub use output_file::open_output;
#[cfg(target_os = "linux")]
pub use plan::{Carrier, Content, ExecPlan, Input, PlanError, Program, Spec};
#[cfg(target_os = "linux")]
pub use report::{ClauseReport, Ending, Enforcement, Report, UsageReport};
#[cfg(target_os = "linux")]
pub use select::{SandboxSelection, SelectError};
#[cfg(target_os = "linux")]
pub use session::{Session, SessionSpec};
#[cfg(target_os = "linux")]
pub use stockade_linux::UsageScope;
#[cfg(target_os = "linux")]
pub use stockade_linux::helper;
pub use stockade_policy as policy;
#[cfg(target_os = "linux")]
pub use supervise::{Attended, Foreground, Stream, Tap, attend, catch_signals, run_in_foreground};
