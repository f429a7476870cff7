//! Parts of tests that run in a process of their own, single-threaded from its start.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::{confine, parent, session};

/// A part of a test, by name; it gets the test's directory.
pub(crate) type Part = (&'static str, fn(&Path));

const WORD: &str = "--child";

/// Runs the part that this program was started for.
pub(crate) fn dispatch() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != WORD {
        return None;
    }
    let name = words.next()?.into_string().ok()?;
    let dir = PathBuf::from(words.next()?);
    let parts = [confine::CHILDREN, parent::CHILDREN, session::CHILDREN];
    let parts = parts.into_iter().flatten();
    let (_, part) = parts.into_iter().find(|(known, _)| *known == name)?;
    part(&dir);
    Some(ExitCode::SUCCESS)
}

/// The command that starts a part.
pub(crate) fn command(name: &str, dir: &Path) -> Command {
    let mut command = Command::new(crate::own_path());
    command.args([WORD, name]).arg(dir).stdin(Stdio::null());
    command
}

/// Runs a part to its end; what it printed.
pub(crate) fn run(name: &str, dir: &Path) -> String {
    let output = command(name, dir).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {complaints}");
    String::from_utf8(output.stdout).unwrap()
}

/// Prints how something went: `name=ok`, or the error's name.
pub(crate) fn say<T>(name: &str, result: io::Result<T>) {
    let word = match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => match error.raw_os_error() {
            Some(code) => format!("errno-{code}"),
            None => error.to_string(),
        },
    };
    print(&format!("{name}={word}"));
}

#[expect(clippy::print_stdout, reason = "standard output is how a part answers")]
pub(crate) fn print(line: &str) {
    println!("{line}");
}
