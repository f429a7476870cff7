//! The `stockade` command: flags, printing, exit codes. What it does lives in the libraries.
//!
//! The path of one run is the order of the modules: [`args`] is what was typed, [`resolve`] what
//! it means here, [`commands`] do it, [`output`] prints it, [`exit`] says how it ended.

mod args;
mod commands;
mod exit;
mod failure;
mod output;
mod resolve;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
#[global_allocator]
static HEAP: stockade_linux::Arena = stockade_linux::Arena::new();

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    HEAP.prepare();
    // Before anything else: as a helper this program must stay small, fast and single-threaded.
    #[cfg(target_os = "linux")]
    if stockade_linux::helper::is_requested() {
        let code = stockade_linux::helper::main();
        return u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from);
    }
    #[cfg(target_os = "linux")]
    if let Some(code) = stockade_linux::probe::dispatch(std::env::args_os()) {
        return ExitCode::from(code);
    }
    let command = match args::parse(std::env::args_os()) {
        Ok(command) => command,
        Err(refusal) => return commands::usage(&refusal),
    };
    let format = command.format();
    match commands::run(command) {
        Ok(exit) => exit.into(),
        Err(failure) if failure.is_broken_pipe() => exit::Exit::Success.into(),
        Err(failure) => {
            output::failure(&failure, format);
            failure.exit.into()
        }
    }
}
