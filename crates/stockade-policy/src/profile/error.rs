//! Why a profile can't be had. No message carries what a terminal would obey.

use std::borrow::Cow;
use std::io;

use stockade_rules::{AbsPath, Origin};

use crate::host::Preset;
use crate::model::PolicyJsonError;

use super::diagnostic::Diagnostic;
use super::file::MAX_FILE_BYTES;
use super::from_policy::PolicyError;
use super::printable::printable_text;

/// Why a file can't be read as a profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It is not UTF-8.
    #[error("{}:{line}:{column}: the file is not UTF-8", printable_text(path))]
    Encoding {
        /// The file.
        path: AbsPath,
        /// The line of the first bad byte, from 1.
        line: usize,
        /// The byte in the line, from 1.
        column: usize,
    },
    /// It extends what can't be extended.
    #[error("{0}")]
    Extends(Box<Diagnostic>),
    /// A policy in JSON is malformed.
    #[error("can't read policy {}", printable_text(path))]
    Json {
        /// The file.
        path: AbsPath,
        /// What is wrong, and where.
        source: PolicyJsonError,
    },
    /// It can't be read at all.
    #[error("can't read profile {}", printable_text(path))]
    Read {
        /// The file.
        path: AbsPath,
        /// The reason.
        source: io::Error,
    },
    /// It is not TOML.
    #[error("{0}")]
    Syntax(Box<Diagnostic>),
    /// It is too large to be a profile.
    #[error(
        "profile {} is larger than {MAX_FILE_BYTES} bytes",
        printable_text(path)
    )]
    TooLarge {
        /// The file.
        path: AbsPath,
    },
    /// A key that does not exist.
    #[error("{0}")]
    UnknownKey(Box<Diagnostic>),
    /// A value that can't be read.
    #[error("{0}")]
    Value(Box<Diagnostic>),
    /// The version is missing or not known.
    #[error("{0}")]
    Version(Box<Diagnostic>),
    /// A project's file asks for more than the user granted.
    #[error("{0}")]
    Widens(Box<Diagnostic>),
}

/// Why the layers don't make a profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Two settings can't hold at once.
    #[error(
        "`{}` ({}) and `{}` ({}) contradict each other",
        printable_text(first),
        printable_text(first_origin),
        printable_text(second),
        printable_text(second_origin)
    )]
    Contradiction {
        /// One setting.
        first: String,
        /// Who made it.
        first_origin: Origin,
        /// The other.
        second: String,
        /// Who made it.
        second_origin: Origin,
        /// What to do about it.
        hint: &'static str,
    },
    /// A flag's value can't be read.
    #[error("{flag} `{value}`: {reason}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// Its value, with control characters escaped.
        value: String,
        /// What is wrong.
        reason: String,
    },
    /// A file can't be read as a profile.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Nothing on this machine says which hosts a preset means.
    #[error(
        "`{preset}` ({}) names no host: its client is not installed or has none configured",
        printable_text(origin)
    )]
    Preset {
        /// Which one.
        preset: Preset,
        /// Who stated it.
        origin: Origin,
    },
    /// A policy can't be made into a profile.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

impl LoadError {
    /// The place in the file, where there is one.
    pub fn diagnostic(&self) -> Option<&Diagnostic> {
        match self {
            Self::Extends(at)
            | Self::Syntax(at)
            | Self::UnknownKey(at)
            | Self::Value(at)
            | Self::Version(at)
            | Self::Widens(at) => Some(at),
            Self::Encoding { .. }
            | Self::Json { .. }
            | Self::Read { .. }
            | Self::TooLarge { .. } => None,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Encoding { .. } => Some("save the file as UTF-8".into()),
            _ => self.diagnostic()?.hint.as_deref().map(Cow::Borrowed),
        }
    }
}

impl ProfileError {
    /// What to do about it.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Contradiction { hint, .. } => Some((*hint).into()),
            Self::Preset { .. } => Some("name the hosts themselves: `--allow HOST`".into()),
            Self::Flag { .. } | Self::Policy(_) => None,
            Self::Load(error) => error.hint(),
        }
    }
}
