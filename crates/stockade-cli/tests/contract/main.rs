//! The behaviour contract: what `stockade run` must do, seen from outside.
//!
//! One file for each area. `cargo test -p stockade-cli --test contract -- F02` runs one row;
//! `F02/user` and `F02/root` are its two halves. The harness is described in `stockade-test`.

#![expect(clippy::too_many_lines, reason = "a function here is a table of cases")]

mod config;
mod denials;
mod env;
mod fs_read_write;
mod git;
mod input;
mod ipc;
mod kernel_surface;
mod lifecycle;
mod limits;
mod litter;
mod network_off;
mod privileges;
mod protected_names;
mod renames;
mod symlinks;
mod terminal;
mod tmp_dev;

use std::process::ExitCode;

use stockade_test::{Case, Failure, Suite, ledger};

fn main() -> ExitCode {
    let cases = [
        config::cases(),
        denials::cases(),
        env::cases(),
        fs_read_write::cases(),
        git::cases(),
        input::cases(),
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
    stockade_test::main(Suite {
        program: env!("CARGO_BIN_EXE_stockade").into(),
        cases: cases.into_iter().flatten().collect(),
        prepare: |_| Vec::new(),
        checks: vec![("ledger", ledger_lists_the_same_attacks)],
    })
}

fn ledger_lists_the_same_attacks(cases: &[Case]) -> Result<(), Failure> {
    ledger::compare(include_str!("../../../../docs/attacks.md"), cases)
}
