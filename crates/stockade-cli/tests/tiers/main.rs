//! The behaviour contract in backend `landlock`: the same cases, without namespaces.
//!
//! What this tier can't do is listed below, and nothing else may differ: a case that leaks must
//! belong to a clause that the report calls partial, and must still leak; a case that asks for
//! more than the tier offers is left out, with the reason. `cargo test -p stockade-cli --test tiers
//! -- F02` runs one row.

#![expect(clippy::too_many_lines, reason = "a function here is a table of cases")]

#[path = "../contract/denials.rs"]
mod denials;
#[path = "../contract/env.rs"]
mod env;
#[path = "../contract/fs_read_write.rs"]
mod fs_read_write;
#[path = "../contract/git.rs"]
mod git;
#[path = "../contract/ipc.rs"]
mod ipc;
#[path = "../contract/kernel_surface.rs"]
mod kernel_surface;
#[path = "../contract/lifecycle.rs"]
mod lifecycle;
#[path = "../contract/limits.rs"]
mod limits;
#[path = "../contract/litter.rs"]
mod litter;
#[path = "../contract/network_off.rs"]
mod network_off;
#[path = "../contract/privileges.rs"]
mod privileges;
#[path = "../contract/protected_names.rs"]
mod protected_names;
#[path = "../contract/renames.rs"]
mod renames;
#[path = "../contract/symlinks.rs"]
mod symlinks;
#[path = "../contract/terminal.rs"]
mod terminal;
#[path = "../contract/tmp_dev.rs"]
mod tmp_dev;

use std::process::{Command, ExitCode};

use stockade_test::stage::Role;
use stockade_test::{Case, Failure, Flag, Need, Suite};

/// Cases that leak here, and the clause that the report must not call full.
const GAPS: &[(&str, &str)] = &[
    ("D02", "devices"),
    ("D02b", "devices"),
    ("F09c", "fs-read"),
    ("F27d", "fs-read"),
    ("R03c", "limits"),
    ("X14", "processes"),
];

/// Cases that need what only namespaces offer, and what that is.
const BEYOND: &[(&str, &str)] = &[
    (
        "F34",
        "the kernel's own error where a file without a name can't be linked",
    ),
    ("I05", "a /tmp of its own"),
    ("L23b", "a first process of its own"),
    ("T01", "a /tmp of its own"),
    ("V03", "a network of its own"),
    ("W03", "a loopback of its own"),
    ("W03b", "a loopback of its own"),
    ("W04b", "a loopback of its own"),
    ("X06b", "a /proc whose id maps may be written"),
];

fn main() -> ExitCode {
    let cases = [
        denials::cases(),
        env::cases(),
        fs_read_write::cases(),
        git::cases(),
        ipc::cases(),
        kernel_surface::cases(),
        lifecycle::cases(),
        limits::cases(),
        litter::cases(),
        network_off::cases(),
        privileges::cases(),
        protected_names::cases(),
        renames::cases(),
        symlinks::cases(),
        terminal::cases(),
        tmp_dev::cases(),
    ];
    let tier = Flag::Backend("landlock".into());
    let beyond = |case: &Case| BEYOND.iter().any(|(id, _)| *id == case.id());
    let cases = cases
        .into_iter()
        .flatten()
        .filter(|case| !beyond(case))
        .map(|case| here(case).needs(Need::Landlock(6)).everywhere(&tier));
    stockade_test::main(Suite {
        program: env!("CARGO_BIN_EXE_stockade").into(),
        cases: cases.collect(),
        prepare: |_| Vec::new(),
        checks: vec![("gaps", every_gap_is_reported)],
        library: None,
    })
}

/// The case as far as it holds in this tier.
fn here(case: Case) -> Case {
    if GAPS.iter().any(|(id, _)| *id == case.id()) {
        return case.known_gap("what the tier without namespaces leaves open");
    }
    match case.id() {
        // no_new_privs keeps what is left in the bounding set from meaning anything.
        "U02" => case.only(Role::Root, "only root can empty the bounding set"),
        _ => case,
    }
}

/// The report of a run names each clause of [`GAPS`] as partial, with words for it.
fn every_gap_is_reported(cases: &[Case]) -> Result<(), Failure> {
    for (id, _) in GAPS {
        if !cases.iter().any(|case| case.id() == *id) {
            return Err(format!("there is no case {id} any more"));
        }
    }
    let plan = Command::new(env!("CARGO_BIN_EXE_stockade"))
        .args([
            "run",
            "--backend",
            "landlock",
            "--dry-run",
            "--json",
            "--",
            "true",
        ])
        .output()
        .map_err(|error| error.to_string())?;
    let plan: serde_json::Value =
        serde_json::from_slice(&plan.stdout).map_err(|error| error.to_string())?;
    let reports = plan["enforcement"].as_array().cloned().unwrap_or_default();
    for (id, clause) in GAPS {
        let report = reports.iter().find(|report| report["clause"] == *clause);
        let report = report.ok_or_else(|| format!("no clause {clause} in the report"))?;
        let is_said = report["enforcement"] == "partial" && report["gap"].is_string();
        if !is_said {
            return Err(format!("{id} leaks, but the report says {report}"));
        }
    }
    Ok(())
}
