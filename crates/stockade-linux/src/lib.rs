//! The Linux mechanism: executes a [`LinuxPlan`] with namespaces, mounts, Landlock and seccomp.
//!
//! It knows no policy. What to mount, filter and limit was decided before, in plain data; the
//! code here carries it out in a fixed order and reports which step failed if one did.
//!
//! Four processes take part beside the command:
//!
//! | process | where | does |
//! |---|---|---|
//! | launcher | the caller | [`spawn()`]s the helper, waits, forwards signals, enforces wall time |
//! | outer helper | outside the namespaces | enters cgroups, makes the namespaces, waits; when the launcher dies, however it dies, it kills the sandbox and removes its cgroups |
//! | supervisor | inside, but for the pid namespace | builds the file-system view, starts the command, mediates |
//! | init, pid 1 | inside | reaps orphans |
//!
//! Needs Linux 5.8 (mount ids of `statx`), user namespaces, and for the mediator 5.9
//! (`SECCOMP_IOCTL_NOTIF_ADDFD`).

#![cfg(target_os = "linux")]

mod capabilities;
mod cgroup;
mod channel;
mod commands;
mod control;
mod door;
mod heard;
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
mod resolver;
pub mod search;
pub mod seccomp;
mod session;
mod signals;
mod socket_owners;
mod spawn;
mod stage;
mod sys;
mod title;

pub use channel::{Channel, ChannelListener};
pub use door::Door;
pub use landlock_self::{LandlockApplied, LandlockError, LandlockGap, LandlockSandbox};
pub use mediator::{Denial, Operation};
pub use plan::LinuxPlan;
pub use session::{Order, OwnerLookup, Session, SessionCommand};
pub use signals::Signals;
pub use socket_owners::{ClientSocket, CommandId};
pub use spawn::{
    Builder, Lifeline, Outcome, Running, SpawnError, Usage, UsageScope, inherited_descriptor,
    keep_descriptors_to_oneself, spawn,
};
pub use stage::Stage;
pub use sys::arena::Arena;
