//! `run --home keep`: the layer over the home directory that is there again in the next run.

use std::path::Path;

use stockade_policy::profile::{HomeMode, Profile};
use stockade_rules::AbsPath;
use stockade_workspace::HomeLayer;

use crate::commands::ws;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

/// The layer of this run, if the policy keeps one. It is this run's alone as long as it lives.
pub(super) fn enter(profile: &Profile, store: Option<&Path>) -> Result<Option<HomeLayer>, Failure> {
    let Some(home) = kept(profile) else {
        return Ok(None);
    };
    let manager = ws::open(store.map(Path::to_owned)).map_err(not_set_up)?;
    let layer = manager
        .home_layer(profile.cwd.as_path(), &home)
        .map_err(|error| not_set_up(ws::refused(error)))?;
    Ok(Some(layer))
}

/// Where the layer would be; nothing is made.
pub(super) fn planned(profile: &Profile, store: Option<&Path>) -> Result<Option<AbsPath>, Failure> {
    let Some(home) = kept(profile) else {
        return Ok(None);
    };
    let manager = ws::planned(store.map(Path::to_owned)).map_err(not_set_up)?;
    path(&manager.planned_home_layer(profile.cwd.as_path(), &home)).map(Some)
}

/// The path as a plan takes it.
pub(super) fn path(layer: &Path) -> Result<AbsPath, Failure> {
    AbsPath::new(layer).map_err(|error| Failure::new(Exit::NotSetUp, error))
}

pub(super) fn warn_if_restarted(layer: &HomeLayer, format: Format) {
    if layer.was_restarted() {
        let text = "the machine rebooted since the kept home directory was written; unless it was \
                    shut down in order, files in it may be missing or empty";
        output::warn(text, format);
    }
}

/// The home directory that is to be kept, at its real path.
fn kept(profile: &Profile) -> Option<std::path::PathBuf> {
    let home = profile.home_directory.as_ref()?;
    let is_kept = profile.home.value == HomeMode::Keep;
    is_kept
        .then(|| home.as_path().canonicalize().ok())
        .flatten()
}

/// The command has not run.
fn not_set_up(mut failure: Failure) -> Failure {
    failure.exit = Exit::NotSetUp;
    failure
}
