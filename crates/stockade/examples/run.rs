//! Runs a command in a sandbox: the current directory is writable, there is no network.
//!
//! `cargo run --example run -- ls -l`

use std::env;
use std::error::Error;
use std::process::ExitCode;

use stockade::Sandbox;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    stockade::init();
    let mut words = env::args_os().skip(1);
    let program = words.next().ok_or("usage: run PROGRAM [ARGUMENT…]")?;

    let sandbox = Sandbox::builder().build()?;
    let finished = sandbox.command(program).args(words).status()?;
    Ok(ExitCode::from(u8::try_from(finished.status_code())?))
}
