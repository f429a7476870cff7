//! Runs untrusted commands in a sandbox that the kernel enforces.
//!
//! ```no_run
//! fn main() -> Result<(), stockade::Error> {
//!     stockade::init(); // first: this program is also the helper that builds sandboxes
//!     let sandbox = stockade::Sandbox::builder()
//!         .workspace("/home/me/project")
//!         .allow("api.example.org")
//!         .limit("mem=2G")
//!         .build()?;
//!     let output = sandbox.command("cargo").arg("test").output()?;
//!     for denial in output.denials() {
//!         eprintln!("refused: {denial}; allow with {}", denial.grant);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Limits
//! - Only Linux enforces anything. Elsewhere [`compat::vtcode`] refuses every policy but full access.
//! - What can't be enforced is an error, unless [`SandboxBuilder::best_effort`] was called; then the
//!   [`Report`] names each gap.
//! - The calling process is never forked: a helper builds the sandbox, see [`init`].

#[cfg(target_os = "linux")]
mod builder;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod command;
pub mod compat;
#[cfg(target_os = "linux")]
mod error;
#[cfg(all(target_os = "linux", feature = "overlay"))]
mod guard;
#[cfg(target_os = "linux")]
mod helper;
#[cfg(all(target_os = "linux", feature = "overlay"))]
pub mod overlay;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod session;
#[cfg(all(target_os = "linux", feature = "tokio"))]
mod tokio_child;

#[cfg(target_os = "linux")]
pub use builder::SandboxBuilder;
#[cfg(target_os = "linux")]
pub use child::Child;
#[cfg(target_os = "linux")]
pub use command::{Command, Output, Stdio};
#[cfg(target_os = "linux")]
pub use error::Error;
#[cfg(target_os = "linux")]
pub use helper::init;
#[cfg(target_os = "linux")]
pub use sandbox::Sandbox;
#[cfg(target_os = "linux")]
pub use session::{Session, SessionCommand};
pub use stockade_engine as engine;
#[cfg(target_os = "linux")]
pub use stockade_engine::{
    ClauseReport, Denial, Ending, Enforcement, Finished, Grant, PlanError, Report, RunError,
    SandboxSelection, SelectError, Subject, UsageReport, UsageScope,
};
pub use stockade_policy::profile::{Backend, Clause, HomeMode, Level, NetworkMode, Profile};
pub use stockade_policy::{self as policy, SandboxPolicy};
#[cfg(all(target_os = "linux", feature = "tokio"))]
pub use tokio_child::AsyncChild;

/// The library example of the README must compile.
#[cfg(all(doctest, target_os = "linux"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
