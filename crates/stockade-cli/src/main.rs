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

use std::ffi::OsString;
use std::process::ExitCode;

#[cfg(target_os = "linux")]
#[global_allocator]
static HEAP: stockade_linux::Arena = stockade_linux::Arena::new();

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    HEAP.prepare();
    // Once: every call copies every word, of which there may be thousands.
    let argv: Vec<OsString> = std::env::args_os().collect();
    // Before anything else: as a helper this program must stay small, fast and single-threaded.
    #[cfg(target_os = "linux")]
    if let Some(code) = internal_mode(&argv) {
        return code;
    }
    let command = match args::parse(argv, std::env::args_os) {
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

/// What this program is when it was started by itself: the helper, a probe, or the guard of a
/// container. No command's name begins as their words do.
#[cfg(target_os = "linux")]
fn internal_mode(argv: &[OsString]) -> Option<ExitCode> {
    let word = argv.get(1)?.to_str()?;
    if !word.starts_with("--stockade-") && !word.starts_with("__stockade-") {
        return None;
    }
    if stockade_linux::helper::is_requested() {
        let code = stockade_linux::helper::main();
        return Some(u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from));
    }
    if let Some(code) = stockade_linux::probe::dispatch(argv.iter().cloned()) {
        return Some(ExitCode::from(code));
    }
    if stockade_serve::files::is_requested() {
        return Some(ExitCode::from(stockade_serve::files::main()));
    }
    stockade_container::guard::is_requested().then(|| stockade_container::guard::main().into())
}
