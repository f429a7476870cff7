//! Runs a script as an agent's tool would: one allowed host, limits, every change in an overlay,
//! which is committed only if the script succeeds.
//!
//! `cargo run --example full_job -- example.org 'curl -s https://example.org > page'`
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::time::Duration;

use stockade::{Ending, Error, Sandbox};

fn main() -> Result<(), Error> {
    stockade::init();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [host, script, pins @ ..] = &words[..] else {
        println!("usage: full_job HOST SCRIPT [NAME=ADDRESS]");
        return Ok(());
    };
    let mut builder = Sandbox::builder();
    builder
        .allow(host)
        .limit("mem=512M")
        .limit("output=1M")
        .timeout(Duration::from_secs(60))
        .overlay();
    for pin in pins {
        builder.resolve(pin);
    }
    let sandbox = builder.build()?;
    let output = sandbox.command("bash").args(["-c", script]).output()?;

    match output.ending() {
        Ending::Exited(code) => println!("ended with {code}"),
        Ending::TimedOut => println!("timed out"),
        other => println!("ended by {other:?}"),
    }
    for denial in output.denials() {
        println!("refused: {denial}; allow with {}", denial.grant);
    }
    for change in &sandbox.diff()?.changes {
        println!("changed: {}", change.path.display());
    }
    if output.success() {
        let report = sandbox.commit()?;
        println!(
            "{} files written, {} kept back",
            report.written,
            report.kept_back.len()
        );
    } else {
        sandbox.discard()?;
    }
    Ok(())
}
