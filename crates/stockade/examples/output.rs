//! Collects what a command writes, and tells what was enforced and refused.
//!
//! `cargo run --example output -- sh -c 'echo x > /etc/motd'`
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::env;
use std::error::Error;
use std::process::ExitCode;

use stockade::{Sandbox, Stdio, helper};
use stockade_policy::SandboxPolicy;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if helper::is_requested() {
        return Ok(ExitCode::from(u8::try_from(helper::main())?));
    }
    let mut words = env::args_os().skip(1);
    let program = words.next().ok_or("usage: output PROGRAM [ARGUMENT…]")?;

    let policy = SandboxPolicy::read_only();
    let sandbox = Sandbox::from_policy(&policy, &env::current_dir()?, "/proc/self/exe")?;
    let command = sandbox.command(program).args(words).stdin(Stdio::Null);
    let output = command.output()?;

    println!("code {}", output.finished.status_code());
    println!("{} bytes of output", output.stdout.len());
    println!("{}", String::from_utf8_lossy(&output.stderr));
    let report = output.finished.report;
    for clause in &report.enforcement {
        println!(
            "{}: {} by {}",
            clause.clause, clause.enforcement, clause.mechanism
        );
    }
    for denial in &report.denials {
        println!("refused: {} {}", denial.operation, denial.path.display());
    }
    Ok(ExitCode::SUCCESS)
}
