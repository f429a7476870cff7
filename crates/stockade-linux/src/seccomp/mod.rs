//! The system call filter: what may be asked of the kernel at all.
//!
//! ```text
//! ProfileOptions ──► FilterSpec ──► Program ──► kernel
//!                    printable      proved equal to the FilterSpec,
//!                    plain data     for every number on every architecture
//! ```
//!
//! Protects the kernel and the other locks of the sandbox from the program inside. It is the last
//! lock to close, needs no privilege, holds for every descendant and can't be opened again. It does
//! not know paths or hosts; those are the business of mounts, Landlock and the network namespace,
//! and of the mediator that it can hand single calls to ([`mediation`](Mediation)).
//!
//! All of this but the installation is pure.

mod apply;
mod arguments;
mod bpf;
mod docker;
mod emulate;
mod error;
mod filter;
mod mediation;
mod profile;
mod set_id;
mod table;

#[cfg(test)]
mod proof;

pub use crate::sys::seccomp::{
    Inherit, InstallFlags, Listener, Notification, install, is_available,
};
pub use apply::default_seccomp_profile;
pub use apply::{ApplyError, apply_seccomp};
pub use bpf::{Instruction, MAX_INSTRUCTIONS, Program, compile};
pub use emulate::{Fault, Outcome, run as emulate};
pub use error::SpecError;
pub use filter::{Action, Case, Condition, FilterSpec, Rule, SyscallData, Width};
pub use mediation::Mediation;
pub use profile::{ProfileKind, ProfileOptions, UnixDatagrams};
pub use table::{Arch, X32_BIT, is_known};
