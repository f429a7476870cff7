//! One module for each command.

mod completions;
mod doctor;
mod man;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::args::{Command, PolicyCommand};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Format;

/// Does what was asked.
pub(crate) fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        _ => Ok(Exit::Success),
    }
}

/// Help and version go to stdout, refusals to stderr.
pub(crate) fn usage(refusal: &clap::Error) -> ExitCode {
    // A closed stream is no reason for another code.
    let _ = refusal.print();
    let _ = io::stdout().flush();
    if refusal.use_stderr() {
        Exit::Usage.into()
    } else {
        Exit::Success.into()
    }
}

impl Command {
    /// How results and failures of this command are printed.
    pub(crate) fn format(&self) -> Format {
        let output = match self {
            Self::Completions(args) => args.output,
            Self::Doctor(args) => args.output,
            Self::Explain(args) => args.output,
            Self::Man(args) => args.output,
            Self::Policy(args) => match &args.command {
                PolicyCommand::Check(args) => args.output,
                PolicyCommand::Schema(args) => args.output,
                PolicyCommand::Show(args) => args.output,
            },
            Self::Run(args) => args.output,
        };
        Format::of(output.json)
    }
}
