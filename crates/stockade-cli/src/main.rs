//! The stockade command.
mod args;
use clap::Parser;
fn main() {
    let c = args::Cli::parse();
    println!("{}", matches!(c.command, args::Command::Doctor(_)));
}
