//! Confines the current process to one directory and the system's, then tries to leave.
//!
//! `cargo run --example landlock -- /some/project /home/me/.bashrc`
#![expect(clippy::print_stdout, reason = "an example shows what it got")]

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use stockade::compat::vtcode::LandlockSandbox;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args_os().skip(1).map(PathBuf::from);
    let (Some(project), Some(file)) = (words.next(), words.next()) else {
        return Err("usage: landlock PROJECT FILE".into());
    };
    println!("before: {}", told(fs::read(&file)));

    // Before any thread is started: until Linux 7.0 Landlock can't reach the others.
    let applied = LandlockSandbox::for_project(&project).apply()?;
    println!("Landlock ABI {} for good", applied.abi);

    println!("after: {}", told(fs::read(&file)));
    println!(
        "project: {}",
        told(fs::write(project.join("note"), "written"))
    );
    Ok(())
}

fn told<T>(result: std::io::Result<T>) -> String {
    result.map_or_else(|error| error.to_string(), |_| "ok".to_owned())
}
