//! Where a policy is applied: the directories that its words depend on.

use std::path::Path;

use stockade_rules::{AbsPath, PathError};

/// The working directory, home and temporary directory that a policy speaks about.
///
/// A value of this type is the only way in which they enter a decision, so that the same policy
/// can be judged for any user on any machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// The directory the command starts in.
    pub cwd: AbsPath,
    /// The user's home. Where it is unknown, `~/.ssh` stands for `.ssh` anywhere.
    pub home: Option<AbsPath>,
    /// `TMPDIR`, if set.
    pub tmpdir: Option<AbsPath>,
}

impl Surroundings {
    /// A working directory, without a home or temporary directory.
    pub fn new(cwd: AbsPath) -> Self {
        Self {
            cwd,
            home: None,
            tmpdir: None,
        }
    }

    /// The same with a home.
    #[must_use]
    pub fn with_home(mut self, home: AbsPath) -> Self {
        self.home = Some(home);
        self
    }

    /// The same with a temporary directory.
    #[must_use]
    pub fn with_tmpdir(mut self, tmpdir: AbsPath) -> Self {
        self.tmpdir = Some(tmpdir);
        self
    }

    /// Takes home and temporary directory from the environment. Relative or empty values there
    /// count as unset.
    ///
    /// # Errors
    /// If `cwd` is not absolute or holds NUL.
    pub fn from_env(cwd: &Path) -> Result<Self, PathError> {
        Ok(Self {
            cwd: AbsPath::new(cwd)?,
            home: home_from_env(),
            tmpdir: std::env::var_os("TMPDIR").and_then(|dir| AbsPath::new(dir).ok()),
        })
    }
}

/// The home directory, as the environment states it.
pub(super) fn home_from_env() -> Option<AbsPath> {
    let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    std::env::var_os(name).and_then(|home| AbsPath::new(home).ok())
}
