//! Puts the current process, all of its threads, under the default filter, then executes a
//! command: what it and its children may ask of the kernel is filtered for good.
//!
//! `cargo run --example seccomp -- unshare -U true`
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::env;
use std::error::Error;
use std::process::Command;

use stockade::compat::vtcode::{apply_seccomp, default_seccomp_profile};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args_os().skip(1);
    let program = words.next().ok_or("usage: seccomp PROGRAM [ARGUMENT…]")?;

    apply_seccomp(&default_seccomp_profile()?)?;

    let status = Command::new(program).args(words).status()?;
    println!("code {:?}", status.code());
    Ok(())
}
