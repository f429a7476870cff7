//! The behaviour contract: what `stockade run` must do, seen from outside.
//!
//! One file for each area. `cargo test -p stockade-cli --test contract -- F02` runs one row;
//! `F02/user` and `F02/root` are its two halves, and `F02/user/library` is the same case through the
//! library (row C07). The harness is described in `stockade-test`.

#![expect(clippy::too_many_lines, reason = "a function here is a table of cases")]

mod config;
mod denials;
mod env;
mod fidelity;
mod fs_read_write;
mod git;
mod git_links;
mod git_ordinary;
mod history;
mod home;
mod input;
mod ipc;
mod kernel_surface;
mod lifecycle;
mod limits;
mod litter;
mod mediator;
mod network_clients;
mod network_disguises;
mod network_list;
mod network_off;
mod network_requests;
mod planting;
mod privileges;
mod protected_names;
mod renames;
mod symlinks;
mod terminal;
mod tmp_dev;
#[path = "../workloads/toolchain.rs"]
mod toolchain;
mod transactions;

use std::process::ExitCode;

use stockade_test::{Case, Failure, LibraryPass, Suite, driver, ledger};

/// Cases that run as root through the library too; the rest run as the ordinary user there.
const LIBRARY_AS_ROOT: &[&str] = &[
    "F02", "F09", "G02", "I01", "L06", "L07b", "R02", "U01", "X04",
];

fn main() -> ExitCode {
    // Boxed commands of the library's pass go through this very program.
    if let Some(code) = driver::dispatch() {
        return code;
    }
    let cases = [
        config::cases(),
        denials::cases(),
        env::cases(),
        fidelity::cases(),
        fs_read_write::cases(),
        git::cases(),
        git_links::cases(),
        git_ordinary::cases(),
        history::cases(),
        home::cases(),
        input::cases(),
        ipc::cases(),
        kernel_surface::cases(),
        lifecycle::cases(),
        limits::cases(),
        litter::cases(),
        mediator::cases(),
        network_clients::cases(),
        network_disguises::cases(),
        network_list::cases(),
        network_off::cases(),
        network_requests::cases(),
        planting::cases(),
        privileges::cases(),
        protected_names::cases(),
        renames::cases(),
        symlinks::cases(),
        terminal::cases(),
        tmp_dev::cases(),
        transactions::cases(),
    ];
    stockade_test::main(Suite {
        program: env!("CARGO_BIN_EXE_stockade").into(),
        cases: cases.into_iter().flatten().collect(),
        prepare: toolchain::share,
        checks: vec![("ledger", ledger_lists_the_same_attacks)],
        library: Some(LibraryPass {
            as_root: LIBRARY_AS_ROOT,
        }),
    })
}

fn ledger_lists_the_same_attacks(cases: &[Case]) -> Result<(), Failure> {
    ledger::compare(include_str!("../../../../docs/attacks.md"), cases)
}
