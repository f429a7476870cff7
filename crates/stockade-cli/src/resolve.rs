//! What the flags mean here: the working directory, the home, the files, the merged profile.
//!
//! All that is read before a plan is made is read in this module.

use std::borrow::Cow;
use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use stockade_policy::Surroundings;
use stockade_policy::profile::{
    Loader, MAX_FILE_BYTES, PROJECT_FILE, Profile, ProfileError, Sources, user_file,
};
use stockade_rules::AbsPath;

use crate::args::PolicyArgs;
use crate::exit::Exit;
use crate::failure::Failure;

/// Where the program was started and where the policy is about.
#[derive(Debug)]
pub(crate) struct Place {
    /// Files that Stockade itself reads or writes are relative to this one.
    started_in: AbsPath,
    /// What the policy is about and the command starts in.
    pub(crate) around: Surroundings,
}

/// The real file system.
pub(crate) struct Files {
    /// The project's own file, which whoever wrote the project made.
    pub(crate) project: Option<AbsPath>,
}

impl Place {
    /// Enters the directory that the policy is about. It is entered, not just named: its path is
    /// then the one that the kernel knows, and it stays the same directory if it is renamed.
    pub(crate) fn enter(cwd: Option<&Path>) -> Result<Self, Failure> {
        let started_in = current()?;
        if let Some(dir) = cwd {
            env::set_current_dir(dir).map_err(|error| {
                let error =
                    anyhow::Error::new(error).context(format!("can't enter `{}`", dir.display()));
                Failure::new(Exit::NotSetUp, error).hint("name a directory that exists with --cwd")
            })?;
        }
        let around = Surroundings::from_env(current()?.as_path())
            .map_err(|error| Failure::new(Exit::NotSetUp, error))?;
        Ok(Self { started_in, around })
    }

    /// A file that the user named for Stockade itself.
    pub(crate) fn file(&self, name: &Path) -> Result<AbsPath, Failure> {
        AbsPath::resolve(
            name.as_os_str(),
            &self.started_in,
            self.around.home.as_ref(),
        )
        .map_err(|error| Failure::new(Exit::Usage, error))
    }

    /// The merged profile.
    pub(crate) fn profile(&self, args: &PolicyArgs) -> Result<Profile, Failure> {
        let around = self.around.clone();
        let xdg = env::var_os("XDG_CONFIG_HOME");
        let sources = Sources {
            user: user_file(around.home.as_ref(), xdg.as_deref()),
            policy: args
                .policy
                .as_deref()
                .map(|file| self.file(file))
                .transpose()?,
            project: around.cwd.join(PROJECT_FILE).ok(),
            flags: args.flags(),
            around,
        };
        let files = Files {
            project: sources.project.clone(),
        };
        Profile::resolve(&sources, &files).map_err(refused)
    }
}

/// A flag that makes no sense is usage; a file that makes none keeps the sandbox from being set up.
pub(crate) fn refused(error: ProfileError) -> Failure {
    let exit = match error {
        ProfileError::Flag { .. } => Exit::Usage,
        _ => Exit::NotSetUp,
    };
    let hint = error.hint().map(Cow::into_owned);
    let failure = Failure::new(exit, error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn current() -> Result<AbsPath, Failure> {
    let refuse = |error: anyhow::Error| {
        Failure::new(
            Exit::NotSetUp,
            error.context("the current directory is not known"),
        )
        .hint("it may have been removed; enter another one, or name one with --cwd")
    };
    let path: PathBuf = env::current_dir().map_err(|error| refuse(error.into()))?;
    AbsPath::new(path).map_err(|error| refuse(error.into()))
}

impl Loader for Files {
    fn read(&self, path: &AbsPath) -> io::Result<Vec<u8>> {
        if self.project.as_ref() == Some(path) {
            // Not a link, whose target a complaint would quote; not a pipe, which would hang.
            let data = path.as_path().symlink_metadata()?;
            if !data.is_file() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a project's profile must be an ordinary file",
                ));
            }
        }
        let mut bytes = Vec::new();
        // One byte more than is allowed tells a large file from a good one.
        let limit = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX);
        File::open(path)?
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn exists(&self, path: &AbsPath) -> bool {
        path.as_path().symlink_metadata().is_ok()
    }
}
