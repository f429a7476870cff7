//! Workspaces as an ordinary user and as root: the contract's attacks under `--overlay`, what an
//! overlay keeps from the host, and the life of a workspace from outside.
//!
//! `cargo test -p stockade-cli --test workspaces -- O01` runs one row.

#![expect(clippy::too_many_lines, reason = "a function here is a table of cases")]

#[path = "../contract/fs_read_write.rs"]
mod fs_read_write;
#[path = "../contract/git.rs"]
mod git;
mod lives;
mod overlays;
#[path = "../contract/protected_names.rs"]
mod protected_names;
#[path = "../contract/renames.rs"]
mod renames;
#[path = "../contract/symlinks.rs"]
mod symlinks;

use std::process::ExitCode;

use stockade_test::{Case, Flag, Need, Suite};

/// Rows of the contract that are about something else here, and what that is.
const BESIDE: &[(&str, &str)] = &[
    (
        "F02c",
        "the store, which is made in the home, would be taken for a change",
    ),
    ("F07", CHANGES),
    ("F11", CHANGES),
    ("F12", CHANGES),
    ("F13", CHANGES),
    ("F15", CHANGES),
    (
        "F17c",
        "the store lies in the home, which is therefore refused",
    ),
    ("F20b", CHANGES),
    ("F25", CHANGES),
    ("G03", AT_COMMIT),
    ("G03d", AT_COMMIT),
    ("G05", CHANGES),
    (
        "G14",
        "it is not stopped elsewhere, and here nothing is planted before a commit",
    ),
    (
        "M01b",
        "the store lies in the home, which is therefore refused",
    ),
    ("M01c", CHANGES),
    ("M04", AT_COMMIT),
    ("N07b", CHANGES),
    (
        "S11",
        "the store, which is made in the home, would be taken for a change",
    ),
    ("S16", CHANGES),
];

/// Nothing of it reaches the host before a commit, which rows G27 to G29 of the contract are about.
const AT_COMMIT: &str = "it may be done inside, and a commit keeps it back";

/// Most of what works in the contract shows on the host, where nothing shows here.
const CHANGES: &str = "what it may do must show on the host";

fn main() -> ExitCode {
    let contract = [
        fs_read_write::cases(),
        git::cases(),
        protected_names::cases(),
        renames::cases(),
        symlinks::cases(),
    ];
    let beside = |case: &Case| BESIDE.iter().any(|(id, _)| *id == case.id());
    let mut cases: Vec<Case> = contract
        .into_iter()
        .flatten()
        .filter(|case| case.denies() && !beside(case))
        .chain(overlays::cases())
        .map(|case| case.needs(Need::Userns).everywhere(&Flag::Overlay))
        .collect();
    cases.extend(lives::cases());
    stockade_test::main(Suite {
        program: env!("CARGO_BIN_EXE_stockade").into(),
        cases,
        prepare: |_| Vec::new(),
        checks: Vec::new(),
        library: None,
    })
}
