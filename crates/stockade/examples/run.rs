//! Runs a command in a sandbox: the current directory is writable, there is no network.
//!
//! `cargo run --example run -- ls -l`

use std::env;
use std::error::Error;
use std::process::ExitCode;

use stockade::{Sandbox, helper};
use stockade_policy::SandboxPolicy;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // The library starts a small program that builds the sandbox. Installed programs name
    // `stockade-init` or `stockade`; this one is its own.
    if helper::is_requested() {
        return Ok(ExitCode::from(u8::try_from(helper::main())?));
    }
    let mut words = env::args_os().skip(1);
    let program = words.next().ok_or("usage: run PROGRAM [ARGUMENT…]")?;

    let policy = SandboxPolicy::workspace_write(vec![]);
    let sandbox = Sandbox::from_policy(&policy, &env::current_dir()?, "/proc/self/exe")?;
    let finished = sandbox.command(program).args(words).status()?;
    Ok(ExitCode::from(u8::try_from(finished.status_code())?))
}
