//! Why a specification is not a filter.

use std::fmt;

use super::bpf::MAX_INSTRUCTIONS;
use super::filter::Condition;

/// A specification that can't be a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// A condition no argument can meet, or an argument that does not exist.
    Condition {
        /// The call whose rule holds it.
        syscall: String,
        /// The condition.
        condition: Condition,
    },
    /// A call named by two rules.
    DuplicateSyscall(String),
    /// An errno of 0, which would fake success, or beyond the kernel's 4095.
    Errno(u16),
    /// The filter is longer than the kernel takes.
    TooLong {
        /// Its number of instructions.
        instructions: usize,
    },
    /// A name that no architecture has.
    UnknownSyscall(String),
    /// There is no table of system calls for this architecture, or it has no programs of its own.
    UnsupportedArch,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Condition { syscall, condition } => write!(
                f,
                "the rule about `{syscall}` has a condition that can't hold: argument {} & {:#x} == {:#x}",
                condition.arg, condition.mask, condition.value
            ),
            Self::DuplicateSyscall(name) => write!(f, "two rules name the system call `{name}`"),
            Self::Errno(number) => write!(f, "{number} is no errno (1 to 4095)"),
            Self::TooLong { instructions } => write!(
                f,
                "the system call filter needs {instructions} instructions, the kernel takes {MAX_INSTRUCTIONS}"
            ),
            Self::UnknownSyscall(name) => write!(f, "there is no system call `{name}`"),
            Self::UnsupportedArch => f.write_str("no system call table for this architecture"),
        }
    }
}

impl std::error::Error for SpecError {}
