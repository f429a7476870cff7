//! Why a sandbox could not be built or used.

use std::path::PathBuf;

use stockade_engine::{PlanError, RunError, SelectError};
use stockade_policy::PathError;
use stockade_policy::host::HostPatternError;
use stockade_policy::profile::{LimitError, PinError, ProfileError};

/// Why a sandbox could not be built, or a command could not be run in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program named no helper.
    #[error(
        "no helper: call `stockade::init()` first thing in `main`, or set STOCKADE_HELPER to the \
         absolute path of `stockade-init` or `stockade`, or name it with `SandboxBuilder::helper`"
    )]
    NoHelper,
    /// The helper is not named by an absolute path; a relative one would depend on the directory,
    /// and nothing is searched on `PATH`.
    #[error("the helper `{}` is not an absolute path", .0.display())]
    RelativeHelper(PathBuf),
    /// The workspace can't be a directory of the policy.
    #[error("the workspace `{}` can't be used", .path.display())]
    Workspace {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: PathError,
    },
    /// There is no current directory to take as the workspace.
    #[error("the current directory is not known")]
    CurrentDirectory(#[source] std::io::Error),
    /// A host that is no host.
    #[error("the host `{text}` can't be used")]
    Host {
        /// The host as given.
        text: String,
        /// Why.
        source: HostPatternError,
    },
    /// A pin that is not of the form `NAME=ADDRESS`.
    #[error("the pin `{text}` can't be used")]
    Pin {
        /// The pin as given.
        text: String,
        /// Why.
        source: PinError,
    },
    /// A limit that is no limit.
    #[error("the limit `{text}` can't be used")]
    Limit {
        /// The limit as given.
        text: String,
        /// Why.
        source: LimitError,
    },
    /// A finished profile was given, and grants or limits on top of it.
    #[error("a finished profile can't be changed: `profile` excludes every other grant and limit")]
    FinishedProfile,
    /// The settings make no profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// This build lacks a part of the library.
    #[error("{what} needs the feature `{feature}` of the crate `stockade`")]
    Feature {
        /// What was asked for.
        what: &'static str,
        /// The feature to switch on.
        feature: &'static str,
    },
    /// The command could not be planned, started or waited for.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Nothing here reaches a level.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// A command of the session runs, or its `Child` was not dropped.
    #[error("a command runs in the session; wait for it or kill it first")]
    SessionBusy,
    /// The sandbox was built without an overlay.
    #[error("the sandbox has no overlay: build it with `SandboxBuilder::overlay`")]
    NoOverlay,
    /// There is no place for overlays.
    #[error("there is no place for overlays: set HOME or STOCKADE_HOME, or use `overlay_in`")]
    NoStore,
    /// The overlay can't be used.
    #[cfg(feature = "overlay")]
    #[error(transparent)]
    Overlay(#[from] stockade_workspace::Error),
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        Self::Run(error.into())
    }
}

impl Error {
    /// What the user could do, as a flag of the command line or a sentence.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Run(RunError::Plan(error)) => error.hint(),
            #[cfg(feature = "overlay")]
            Self::Overlay(error) => error.hint().map(Into::into),
            _ => None,
        }
    }
}
