//! Real work, unmodified, under the default policy in a project directory, without network.
//!
//! Each workload first runs bare, where it must pass, and then as `stockade run -- …`, as an
//! ordinary user and as root. A sandbox that breaks these gets switched off.
//! `cargo test -p stockade-cli --test workloads -- cargo` runs the ones named so.

mod languages;
mod toolchain;
mod tools;
mod version_control;

use std::process::ExitCode;
use std::time::Duration;

use stockade_test::{Case, Need, Suite, allowed, exits};

fn main() -> ExitCode {
    let cases = [languages::cases(), tools::cases(), version_control::cases()];
    stockade_test::main(Suite {
        program: env!("CARGO_BIN_EXE_stockade").into(),
        cases: cases.into_iter().flatten().collect(),
        prepare: toolchain::share,
        checks: Vec::new(),
        library: None,
    })
}

/// A workload: a shell script that stops at its first failure, and the tools it needs.
fn workload(id: &'static str, title: &'static str, tools: &[&'static str], script: &str) -> Case {
    let case = allowed(id, title)
        .sh(format!("set -e\n{script}"))
        .works(exits(0))
        .bound(Duration::from_secs(600));
    tools
        .iter()
        .fold(case, |case, tool| case.needs(Need::Tool(tool)))
}
