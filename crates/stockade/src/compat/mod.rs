//! The APIs of other sandboxes, mapped onto [`Sandbox`](crate::Sandbox): [`vtcode`], `hawk` and
//! `errata`.
//!
//! Each is thin: it reads that program's words into a [`Profile`](stockade_policy::profile::Profile), and everything behind it is the
//! same engine, the same report and the same exit codes as for everybody else. Where those programs
//! run the command bare because something is missing or misspelt, this is an error: an unknown word,
//! a backend that does not work, a limit that can't be held.
//!
//! A command comes out as `Prepared`; that it is not confined can be seen in its type. `Context`
//! carries what was chosen from a task to its sub-tasks, and cancels them.
//!
//! `docs/compat-apis.md` lists every symbol of the three APIs, where it is here, and what differs.

#[cfg(target_os = "linux")]
mod cancel;
#[cfg(target_os = "linux")]
mod context;
#[cfg(target_os = "linux")]
mod door;
#[cfg(target_os = "linux")]
pub mod errata;
#[cfg(target_os = "linux")]
pub mod hawk;
pub mod vtcode;

#[cfg(target_os = "linux")]
pub use cancel::{Cancel, CancelGuard};
#[cfg(target_os = "linux")]
pub use context::Context;
#[cfg(target_os = "linux")]
pub use door::{Door, Ended, FrontError, Prepared, PreparedCommand};
#[cfg(target_os = "linux")]
use door::{or_current, profile};
