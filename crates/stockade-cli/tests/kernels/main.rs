//! Rows of the behaviour contract on other kernels, with control groups of version 2 only.
//!
//! This program is two. On the host it has `scripts/test-kernels` boot Debian's kernels in QEMU and
//! compares what they print with the table in docs/compatibility.md. In the guest it is the suite
//! of rows, which run as root and as an ordinary user, each with its control.
//!
//! It takes minutes, so that it runs only if `STOCKADE_REQUIRE` has the word `kernels`;
//! `make test-kernels` does that with the program that is released.
#![expect(clippy::too_many_lines, reason = "a function here is a table of cases")]

#[path = "../contract/fidelity.rs"]
mod fidelity;
#[path = "../contract/fs_read_write.rs"]
mod fs_read_write;
#[path = "../contract/ipc.rs"]
mod ipc;
#[path = "../contract/kernel_surface.rs"]
mod kernel_surface;
#[path = "../contract/lifecycle.rs"]
mod lifecycle;
#[path = "../contract/limits.rs"]
mod limits;
#[path = "../contract/network_list.rs"]
mod network_list;
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
#[path = "../contract/tmp_dev.rs"]
mod tmp_dev;

mod host;

use std::process::ExitCode;

use stockade_test::Suite;

/// Set in the guest: which of [`PASSES`] this is.
const GUEST: &str = "STOCKADE_GUEST";

/// What the suite is started for in a guest: with all rows, then as a user with a delegated group.
const PASSES: [(&str, &[&str]); 2] = [("all", ROWS), ("delegated", DELEGATED)];

/// What differs between kernels: mounts and their attributes, descriptors that the mediator hands
/// over, control groups, namespaces, Landlock, sockets, and the calls that each of them brought.
const ROWS: &[&str] = &[
    "D02", "D03", "D03b", "D04", "F02", "F02b", "F02c", "F03", "F05", "F09", "F10", "F22", "F31",
    "F40", "F64", "I01", "I04", "L01", "L06", "L07b", "M02", "M04", "N01", "N08", "R01", "R02",
    "R02b", "R04", "R04b", "S06", "S14", "T01", "U01", "U02", "U03", "U03b", "U04", "W01g", "W01h",
    "W04", "W06", "W07", "W20", "W20b", "X04", "X06", "X06c", "X14", "X15", "X16",
];

/// Limits that a control group keeps, and CPU time, which none does: it must hold beside them.
const DELEGATED: &[&str] = &["R01", "R02b", "R02c", "R04", "R04b"];

fn main() -> ExitCode {
    let Ok(pass) = std::env::var(GUEST) else {
        return host::main();
    };
    let passes = PASSES.into_iter().filter(|(name, _)| *name == pass);
    let ids: Vec<&str> = passes.flat_map(|(_, ids)| ids).copied().collect();
    let cases = [
        fidelity::cases(),
        fs_read_write::cases(),
        ipc::cases(),
        kernel_surface::cases(),
        lifecycle::cases(),
        limits::cases(),
        network_list::cases(),
        network_off::cases(),
        privileges::cases(),
        protected_names::cases(),
        renames::cases(),
        symlinks::cases(),
        tmp_dev::cases(),
    ];
    let chosen = cases.into_iter().flatten();
    let chosen = chosen.filter(|case| ids.contains(&case.id()));
    stockade_test::main(Suite {
        program: env!("CARGO_BIN_EXE_stockade").into(),
        cases: chosen.collect(),
        prepare: |_| Vec::new(),
        checks: Vec::new(),
        library: None,
    })
}
