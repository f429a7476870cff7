//! The static helper for programs that embed Stockade as a library: it builds the jail that the
//! library planned and starts the command in it. It is not for people.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    if !stockade_linux::helper::is_requested() {
        let tried = stockade_linux::probe::dispatch(std::env::args_os());
        return ExitCode::from(tried.unwrap_or(2));
    }
    u8::try_from(stockade_linux::helper::main()).map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::from(2)
}
