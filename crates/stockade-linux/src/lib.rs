//! The Linux mechanism: executes a [`LinuxPlan`] with namespaces, mounts, Landlock and seccomp.
//!
//! It knows no policy. What to mount, filter and limit was decided before, in plain data; the
//! code here carries it out in a fixed order and reports which step failed if one did.
//!
//! Three processes take part beside the command:
//!
//! | process | where | does |
//! |---|---|---|
//! | launcher | the caller | [`spawn()`]s the helper, waits, forwards signals, enforces wall time |
//! | outer helper | outside the namespaces | enters cgroups, makes the namespaces, waits; when the launcher dies, however it dies, it kills the sandbox and removes its cgroups |
//! | pid 1 | inside | builds the file-system view, starts the command, reaps, mediates |
//!
//! Needs Linux 5.12 (`mount_setattr`), user namespaces, and for the mediator 5.14
//! (`SECCOMP_ADDFD_FLAG_SEND`).

#![cfg(target_os = "linux")]

mod capabilities;
mod cgroup;
mod control;
mod door;
pub mod helper;
mod landlock;
mod landlock_self;
mod limits;
mod mediator;
mod mounts;
mod namespaces;
mod network;
pub mod plan;
pub mod probe;
pub mod search;
pub mod seccomp;
mod signals;
mod spawn;
mod stage;
mod sys;

pub use door::Door;
pub use landlock_self::{LandlockApplied, LandlockError, LandlockGap, LandlockSandbox};
pub use mediator::{Denial, Operation};
pub use plan::LinuxPlan;
pub use signals::Signals;
pub use spawn::{Builder, Outcome, Running, SpawnError, Usage, inherited_descriptor, spawn};
pub use stage::Stage;
pub use sys::arena::Arena;
