//! Collects what a command writes, and prints what was enforced and refused.
//!
//! `cargo run --example output -- sh -c 'echo x > /etc/motd'`
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::env;
use std::error::Error;

use stockade::{Sandbox, Stdio};

fn main() -> Result<(), Box<dyn Error>> {
    stockade::init();
    let mut words = env::args_os().skip(1);
    let program = words.next().ok_or("usage: output PROGRAM [ARGUMENT…]")?;

    let sandbox = Sandbox::builder().read_only().build()?;
    let mut command = sandbox.command(program);
    let output = command.args(words).stdin(Stdio::null()).output()?;

    println!("{:?}", output.ending());
    println!("{} bytes of output", output.stdout.len());
    println!("{}", String::from_utf8_lossy(&output.stderr));
    for clause in &output.finished.report.enforcement {
        println!(
            "{}: {} by {}",
            clause.clause, clause.enforcement, clause.mechanism
        );
    }
    for denial in output.denials() {
        println!("refused: {denial}; allow with {}", denial.grant);
    }
    Ok(())
}
