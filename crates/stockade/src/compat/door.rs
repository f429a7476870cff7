//! What prepares commands for the compatible APIs.

mod prepared;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use stockade_policy::profile::{Flags, Profile, ProfileError, Sources};
use stockade_policy::{PathError, Surroundings};

use stockade_engine::backend::Backends;
use stockade_engine::{Files, PlanError};

use super::Context;
use crate::error::Error;
use crate::sandbox::Sandbox;

pub use prepared::{Ended, Prepared, PreparedCommand};

/// What sandboxes are made with: the helper, and the backends to choose from.
#[derive(Clone, Debug)]
pub struct Door {
    helper: PathBuf,
    backends: Backends,
}

impl Door {
    /// The built-in backends. `helper` is the path of the program `stockade-init`, or of
    /// `stockade` itself; it is never looked up anywhere.
    pub fn new(helper: impl Into<PathBuf>) -> Self {
        Self {
            helper: helper.into(),
            backends: Backends::built_in(),
        }
    }

    /// The same with these backends to choose from, such as containers.
    #[must_use]
    pub fn with_backends(mut self, backends: Backends) -> Self {
        self.backends = backends;
        self
    }

    /// Whether a command that may write `dir` can be confined here, by doing so.
    ///
    /// # Errors
    /// If it can't, with the reason.
    pub fn available(&self, dir: &Path) -> Result<(), FrontError> {
        let profile = profile(dir, Flags::default())?;
        let tried = self.prepare(&Context::new(), Some(profile), dir, &["true".into()])?;
        match tried.output()?.code {
            0 => Ok(()),
            code => Err(FrontError::Settings(format!("`true` ended with {code}"))),
        }
    }

    /// A command under a profile, or as it is where there is none.
    pub(super) fn prepare(
        &self,
        context: &Context,
        profile: Option<Profile>,
        dir: &Path,
        argv: &[OsString],
    ) -> Result<Prepared, FrontError> {
        context.check()?;
        let (program, arguments) = argv.split_first().ok_or(Error::from(PlanError::Empty))?;
        let Some(profile) = profile else {
            let mut command = std::process::Command::new(program);
            command.args(arguments).current_dir(dir);
            return Ok(Prepared::plain(context, command));
        };
        let sandbox = Sandbox::builder()
            .profile(profile)
            .helper(&self.helper)
            .backends(self.backends.clone())
            .build()?;
        let mut command = sandbox.command(program);
        command.args(arguments);
        // What can't be enforced is known before anything is handed out.
        command.plan()?;
        Ok(Prepared::confined(context, command))
    }
}

/// Why no command was prepared. Nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrontError {
    /// The context was cancelled; what had been started was killed.
    #[error("the task was cancelled")]
    Cancelled,
    /// A word that means nothing.
    #[error("`{word}` is no {what}; known are: {known}")]
    Unknown {
        /// What it should have been.
        what: &'static str,
        /// The word.
        word: String,
        /// What there is.
        known: &'static str,
    },
    /// Settings that contradict one another, or that nothing here can hold.
    #[error("{0}")]
    Settings(String),
    /// The directory can't be one.
    #[error("the directory `{}` can't be used", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: PathError,
    },
    /// There is no current directory to stand for one that was left out.
    #[error("the current directory is not known")]
    CurrentDirectory(#[source] std::io::Error),
    /// The settings make no profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The sandbox could not be built, or the command not be run in it.
    #[error(transparent)]
    Sandbox(#[from] Error),
}

/// The profile that flags alone make: no file of the user or the project is read.
pub(super) fn profile(dir: &Path, flags: Flags) -> Result<Profile, FrontError> {
    let around = Surroundings::from_env(dir).map_err(|source| FrontError::Directory {
        path: dir.to_owned(),
        source,
    })?;
    let sources = Sources {
        flags,
        ..Sources::new(around)
    };
    Ok(Files::load(&sources)?)
}

/// A directory that may have been left out.
pub(super) fn or_current(dir: Option<&Path>) -> Result<PathBuf, FrontError> {
    match dir {
        Some(dir) => Ok(dir.to_owned()),
        None => std::env::current_dir().map_err(FrontError::CurrentDirectory),
    }
}
