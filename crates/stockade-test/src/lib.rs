//! The black-box harness: attacks and ordinary work, judged from outside the sandbox.
//!
//! A [`Case`] is a policy, a command and the signs by which the host can tell what happened. The
//! harness runs every case twice, each time in a fresh fixture: first *without* the sandbox (the
//! control), where every sign must show, leaks included; then inside it, where every leak must be
//! absent and everything else must still show. A denial whose attack never worked proves nothing,
//! so a control that does not leak is a failure.
//!
//! What it guards against in itself:
//!
//! - *A sandbox that starts nothing denies everything.* Each script first prints a token that
//!   nobody else can know; a boxed run without the token is a failure.
//! - *Exit codes lie.* Leaks are judged by effect: files on the host, bytes that reached a
//!   listener, processes that outlived the run.
//! - *Skips hide gaps.* A [`Need`] that this machine can't meet is printed with its reason, and
//!   `STOCKADE_REQUIRE` (a comma list) turns it into a failure.
//! - *Tests litter.* A separate watcher process removes the ordinary user and the temporary
//!   directory however the suite ends, SIGKILL included; see [`stage`].
//!
//! Not covered here: timing promises (those are benchmarks), and anything that needs a second
//! machine.

pub mod case;
pub mod census;
pub mod digest;
pub mod dockerd;
pub mod driver;
pub mod exec;
pub mod flag;
pub mod hostside;
pub mod judge;
pub mod keeper;
pub mod ledger;
pub mod matrix;
pub mod need;
pub mod podman;
pub mod report;
pub mod runner;
pub mod sign;
mod signals;
pub mod stage;
pub mod suite;
mod traces;
pub mod world;

pub use case::{Case, allowed, attack};
pub use flag::{Base, Flag, Limit, Net};
pub use hostside::HostSide;
pub use need::Need;
pub use sign::{
    Sign, closure, exits, heard, host, not, prints, quiet, stderr_has, stdout_is, survives, touched,
};
pub use suite::{LibraryPass, Suite, main};

/// Why a case failed, or why the harness could not try it, in words for a person.
pub type Failure = String;
