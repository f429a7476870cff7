//! Where a policy is applied: the directories that its words depend on.

use std::path::Path;

use stockade_rules::{AbsPath, PathError};

use super::homes;

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
    /// Homes beside it whose credentials the user could read: the one that the system has for the
    /// user, if the environment names another; for root everybody's.
    pub other_homes: Vec<AbsPath>,
    /// `TMPDIR`, if set.
    pub tmpdir: Option<AbsPath>,
    /// Where workspaces may be stored. Nothing in a sandbox reaches these: they hold copies of
    /// files that are denied elsewhere, and what commits write to the host.
    pub stores: Vec<AbsPath>,
}

impl Surroundings {
    /// A working directory, without a home or temporary directory.
    pub fn new(cwd: AbsPath) -> Self {
        Self {
            cwd,
            home: None,
            other_homes: Vec::new(),
            tmpdir: None,
            stores: Vec::new(),
        }
    }

    /// The same with a home.
    #[must_use]
    pub fn with_home(mut self, home: AbsPath) -> Self {
        self.home = Some(home);
        self
    }

    /// The same with further homes.
    #[must_use]
    pub fn with_other_homes(mut self, homes: Vec<AbsPath>) -> Self {
        self.other_homes = homes;
        self
    }

    /// The same with a temporary directory.
    #[must_use]
    pub fn with_tmpdir(mut self, tmpdir: AbsPath) -> Self {
        self.tmpdir = Some(tmpdir);
        self
    }

    /// The same with one more place for workspaces.
    #[must_use]
    pub fn with_store(mut self, store: AbsPath) -> Self {
        if !self.stores.contains(&store) {
            self.stores.push(store);
        }
        self
    }

    /// Takes home, stores and temporary directory from the environment, and other homes from the
    /// system. Relative or empty values count as unset.
    ///
    /// # Errors
    /// If `cwd` is not absolute or holds NUL.
    pub fn from_env(cwd: &Path) -> Result<Self, PathError> {
        let home = home_from_env();
        Ok(Self {
            cwd: AbsPath::new(cwd)?,
            other_homes: homes::others(home.as_ref()),
            home,
            tmpdir: path_from_env("TMPDIR"),
            stores: stores_from_env(),
        })
    }
}

fn path_from_env(name: &str) -> Option<AbsPath> {
    std::env::var_os(name).and_then(|dir| AbsPath::new(dir).ok())
}

/// Where the command line notes what runs were refused: closed to every sandbox, as stores are.
pub fn state_directory() -> Option<AbsPath> {
    let stated = path_from_env("XDG_STATE_HOME");
    let above = stated.or_else(|| home_from_env()?.join(".local/state").ok());
    above?.join("stockade").ok()
}

/// Every place where `stockade ws` would look for its store, and where refusals are noted.
fn stores_from_env() -> Vec<AbsPath> {
    let below = |dir: Option<AbsPath>, name: &str| dir.and_then(|dir| dir.join(name).ok());
    let places = [
        path_from_env("STOCKADE_HOME"),
        below(path_from_env("XDG_DATA_HOME"), "stockade"),
        below(home_from_env(), ".local/share/stockade"),
        state_directory(),
        below(home_from_env(), ".local/state/stockade"),
    ];
    let mut places: Vec<AbsPath> = places.into_iter().flatten().collect();
    places.dedup();
    places
}

/// The home directory, as the environment states it.
pub(super) fn home_from_env() -> Option<AbsPath> {
    let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    std::env::var_os(name).and_then(|home| AbsPath::new(home).ok())
}
