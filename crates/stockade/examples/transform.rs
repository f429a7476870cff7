//! Turns a command into one that a program with its own way of starting processes can execute.
//!
//! `cargo run --example transform -- /usr/local/bin/stockade cat Cargo.toml`
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

use stockade::compat::vtcode::{CommandSpec, SandboxManager, SandboxPolicy};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args_os().skip(1);
    let (Some(helper), Some(program)) = (words.next(), words.next()) else {
        return Err("usage: transform STOCKADE PROGRAM [ARGUMENT…]".into());
    };
    let helper = PathBuf::from(helper);
    let spec = CommandSpec::new(program).with_args(words);
    let policy = SandboxPolicy::read_only();

    let cwd = env::current_dir()?;
    let prepared = SandboxManager::new().transform(spec, &policy, &cwd, Some(&helper))?;
    println!(
        "sandbox: {} {}",
        prepared.sandbox_type, prepared.sandbox_active
    );
    println!(
        "executes {} {:?}",
        prepared.program.display(),
        prepared.args
    );

    let status = Command::new(prepared.program)
        .args(prepared.args)
        .current_dir(prepared.cwd)
        .env_clear()
        .envs(prepared.env)
        .status()?;
    println!("code {:?}", status.code());
    Ok(())
}
