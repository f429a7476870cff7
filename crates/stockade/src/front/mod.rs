//! Front doors for programs that speak the words of other sandboxes: [`hawk`] and [`errata`].
//!
//! Both are thin: they read that program's words into a
//! [`Profile`], and everything behind it is the same engine,
//! the same report and the same exit codes as for everybody else. What those programs do when
//! something is missing or misspelt, which is to run the command bare, is an error here: a word
//! that is not known, a backend that does not work, a limit that can't be held.
//!
//! A command comes out as [`Prepared`]; that it is not confined can be seen in its type.
//! [`Context`] carries what was chosen from a task to its sub-tasks.

mod context;
pub mod errata;
pub mod hawk;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use stockade_policy::profile::{Flags, Profile, ProfileError, Sources};
use stockade_policy::{PathError, Surroundings};

pub use context::Context;

use crate::Files;
use crate::backend::Backends;
use crate::plan::PlanError;
use crate::report::Report;
use crate::sandbox::{Command, RunError, Sandbox, Stdio};

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
        let tried = self.prepare(Some(profile), dir, &["true".into()])?;
        match tried.output()?.code {
            0 => Ok(()),
            code => Err(FrontError::Settings(format!("`true` ended with {code}"))),
        }
    }

    /// A command under a profile, or as it is where there is none.
    fn prepare(
        &self,
        profile: Option<Profile>,
        dir: &Path,
        argv: &[OsString],
    ) -> Result<Prepared, FrontError> {
        let (program, arguments) = argv.split_first().ok_or(PlanError::Empty)?;
        let Some(profile) = profile else {
            let mut command = std::process::Command::new(program);
            command.args(arguments).current_dir(dir);
            return Ok(Prepared::Plain(Box::new(command)));
        };
        let sandbox = Sandbox::new(profile, &self.helper).with_backends(self.backends.clone());
        let command = sandbox.command(program).args(arguments);
        // What can't be enforced is known before anything is handed out.
        command.plan()?;
        Ok(Prepared::Confined(Box::new(command)))
    }
}

/// A command that is ready to be started.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "callers must see which of the two they have"
)]
pub enum Prepared {
    /// In a sandbox.
    Confined(Box<Command>),
    /// As it is, because that is what was asked for.
    Plain(Box<std::process::Command>),
}

/// What became of a command.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ended {
    /// The code that a shell would give.
    pub code: i32,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it complained about.
    pub stderr: Vec<u8>,
    /// What was enforced; none if nothing was asked for.
    pub report: Option<Report>,
}

impl Prepared {
    /// Whether there is a sandbox around it.
    pub fn is_confined(&self) -> bool {
        matches!(self, Self::Confined(_))
    }

    /// Runs it to its end, without input, and collects what it writes.
    ///
    /// # Errors
    /// If it could not be started or waited for.
    pub fn output(self) -> Result<Ended, RunError> {
        match self {
            Self::Confined(command) => {
                let output = command.stdin(Stdio::Null).output()?;
                Ok(Ended {
                    code: output.finished.status_code(),
                    stdout: output.stdout,
                    stderr: output.stderr,
                    report: Some(output.finished.report),
                })
            }
            Self::Plain(mut command) => {
                let output = command.stdin(std::process::Stdio::null()).output();
                let output = output.map_err(|source| RunError::Io {
                    act: "run the command",
                    source,
                })?;
                Ok(Ended {
                    code: crate::sandbox::shell_code(Some(output.status)),
                    stdout: output.stdout,
                    stderr: output.stderr,
                    report: None,
                })
            }
        }
    }
}

/// Why no command was prepared. Nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrontError {
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
    /// The profile can't be enforced here.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The sandbox could not be built.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// The profile that flags alone make: no file of the user or the project is read.
fn profile(dir: &Path, flags: Flags) -> Result<Profile, FrontError> {
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
fn or_current(dir: Option<&Path>) -> Result<PathBuf, FrontError> {
    match dir {
        Some(dir) => Ok(dir.to_owned()),
        None => std::env::current_dir().map_err(FrontError::CurrentDirectory),
    }
}
