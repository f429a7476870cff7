//! Every exit code of the program, in one place.
//!
//! For `run` the codes are those of a shell and of env(1), timeout(1) and their kin, so that
//! scripts need to learn nothing new: the command's own code passes through, and what Stockade
//! itself has to say is above 123.

use std::process::{ExitCode, ExitStatus};

/// Why the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command ended by itself with this code.
    Command(u8),
    /// A negative answer: a policy that does not hold, a machine that can't confine.
    Negative,
    /// The command was found and can't be executed.
    NotExecutable,
    /// The command was not found.
    NotFound,
    /// The sandbox could not be set up; the command was not started.
    NotSetUp,
    /// This signal killed the command.
    Signal(u8),
    /// All is well.
    Success,
    /// The wall-time limit was reached.
    TimedOut,
    /// The command line makes no sense.
    Usage,
}

impl Exit {
    /// The number the caller sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Negative => 1,
            Self::Usage => 2,
            Self::TimedOut => 124,
            Self::NotSetUp => 125,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::Command(code) => code,
            Self::Signal(number) => 128u8.saturating_add(number),
        }
    }

    /// How a command ended.
    #[cfg_attr(
        all(unix, not(test)),
        expect(dead_code, reason = "there the program becomes the command")
    )]
    pub(crate) fn of(status: ExitStatus) -> Self {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return Self::Signal(u8::try_from(signal).unwrap_or(u8::MAX));
        }
        // Without a code and without a signal it was not a normal end.
        status.code().map_or(Self::NotSetUp, |code| {
            Self::Command(u8::try_from(code).unwrap_or(u8::MAX))
        })
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_of_the_specification() {
        let codes = [
            (Exit::Success, 0),
            (Exit::Negative, 1),
            (Exit::Usage, 2),
            (Exit::TimedOut, 124),
            (Exit::NotSetUp, 125),
            (Exit::NotExecutable, 126),
            (Exit::NotFound, 127),
            (Exit::Command(42), 42),
            (Exit::Signal(15), 143),
            (Exit::Signal(64), 192),
        ];
        for (exit, code) in codes {
            assert_eq!(exit.code(), code, "{exit:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_command_is_reported_as_a_shell_would() {
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(Exit::of(ExitStatus::from_raw(7 << 8)), Exit::Command(7));
        assert_eq!(Exit::of(ExitStatus::from_raw(9)), Exit::Signal(9));
    }
}
