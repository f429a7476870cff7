//! `stockade shell`, or `stockade run` without a command: the user's own shell.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use crate::args::RunArgs;
use crate::exit::Exit;
use crate::failure::Failure;

/// What everybody has.
const PLAIN_SHELL: &str = "/bin/sh";

/// The same flags with the user's shell as the command, if no command was typed.
///
/// A shell waits for somebody who types. Where nobody does, a missing command is a mistake.
pub(super) fn with_command(args: &RunArgs) -> Result<Cow<'_, RunArgs>, Failure> {
    if !args.command.is_empty() {
        return Ok(Cow::Borrowed(args));
    }
    if !std::io::stdin().is_terminal() && !args.dry_run {
        let failure = Failure::text(Exit::Usage, "no command was given, and nobody types here");
        return Err(failure.hint("write the command after the flags: stockade run make"));
    }
    let command = vec![shell(std::env::var_os("SHELL"))];
    Ok(Cow::Owned(RunArgs {
        command,
        ..args.clone()
    }))
}

/// The shell that the environment names, if it is there.
fn shell(named: Option<OsString>) -> OsString {
    let named = named.filter(|path| Path::new(path).is_absolute() && Path::new(path).is_file());
    named.unwrap_or_else(|| PathBuf::from(PLAIN_SHELL).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_of_the_environment_is_used_if_it_exists() {
        assert_eq!(shell(Some("/bin/bash".into())), "/bin/bash");
        assert_eq!(shell(Some("/bin/missing-shell".into())), PLAIN_SHELL);
        assert_eq!(shell(Some("bash".into())), PLAIN_SHELL);
        assert_eq!(shell(None), PLAIN_SHELL);
    }
}
