//! `stockade completions`: generated from the parser, so that they can't drift.

use clap::CommandFactory;
use serde::Serialize;

use crate::args::{Cli, CompletionsArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

#[derive(Serialize)]
struct Document {
    shell: String,
    script: String,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "stockade", &mut script);
    if args.output.json {
        output::json(Document {
            shell: args.shell.to_string(),
            script: String::from_utf8_lossy(&script).into_owned(),
        })?;
    } else {
        output::raw(&script)?;
    }
    Ok(Exit::Success)
}
