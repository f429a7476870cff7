//! The system-call part of a profile.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::choice::SeccompMode;
use super::sourced::Sourced;

/// Which filter of system calls, and what it refuses beyond its own list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seccomp {
    /// The filter.
    pub mode: Sourced<SeccompMode>,
    /// Names of system calls that are refused as well. Whether the architecture has them is the
    /// engine's to say.
    pub block: Vec<Sourced<SyscallName>>,
}

/// Something that can be the name of a system call: lower-case letters, digits, `_`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SyscallName(String);

/// A text that can't be the name of a system call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` can't be the name of a system call")]
#[non_exhaustive]
pub struct SyscallNameError(String);

impl SyscallName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SyscallName {
    type Err = SyscallNameError;

    fn from_str(text: &str) -> Result<Self, SyscallNameError> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if text.is_empty() || text.len() > 64 || !text.bytes().all(fits) {
            let start: String = text.chars().take(64).collect();
            return Err(SyscallNameError(start.escape_debug().to_string()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for SyscallName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
