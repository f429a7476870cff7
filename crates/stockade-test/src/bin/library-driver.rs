//! The library's door as a program of its own: `library-driver --case FILE -- command`.

use std::process::ExitCode;

fn main() -> ExitCode {
    stockade_test::driver::dispatch().unwrap_or(ExitCode::from(2))
}
