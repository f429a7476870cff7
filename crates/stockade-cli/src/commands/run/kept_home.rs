//! `run --home keep`: the layer over the home directory that is there again in the next run.

use std::path::{Path, PathBuf};

use stockade_policy::profile::{HomeMode, Profile};
use stockade_rules::AbsPath;
use stockade_workspace::HomeLayer;

use crate::args::RunArgs;
use crate::commands::ws;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

/// The kept layer of a run, if the policy keeps one.
pub(super) struct KeptHome {
    /// Where it is, as a plan takes it.
    pub(super) path: Option<AbsPath>,
    /// This run's alone as long as it lives; none if the run is only planned.
    layer: Option<HomeLayer>,
}

impl KeptHome {
    pub(super) fn enter(
        args: &RunArgs,
        profile: &Profile,
        store: Option<&Path>,
    ) -> Result<Self, Failure> {
        let (store, cwd) = (store.map(Path::to_owned), profile.cwd.as_path());
        let Some(home) = kept(profile) else {
            return Ok(Self {
                path: None,
                layer: None,
            });
        };
        let (path, layer) = if args.dry_run {
            let manager = ws::planned(store).map_err(not_set_up)?;
            (manager.planned_home_layer(cwd, &home), None)
        } else {
            let layer = ws::open(store)
                .and_then(|manager| manager.home_layer(cwd, &home).map_err(ws::refused))
                .map_err(not_set_up)?;
            (layer.path().to_owned(), Some(layer))
        };
        let path = AbsPath::new(path).map_err(|error| Failure::new(Exit::NotSetUp, error))?;
        Ok(Self {
            path: Some(path),
            layer,
        })
    }

    pub(super) fn warn_if_restarted(&self, args: &RunArgs) {
        if self.layer.as_ref().is_some_and(HomeLayer::was_restarted) && !args.quiet {
            let text = "the machine rebooted since the kept home directory was written; unless it \
                        was shut down in order, files in it may be missing or empty";
            output::warn(text, Format::of(args.output.json));
        }
    }

    /// To be called after the run.
    pub(super) fn leave(&self) -> Result<(), Failure> {
        self.layer
            .as_ref()
            .map_or(Ok(()), |layer| layer.leave().map_err(ws::refused))
    }
}

/// The home directory that is to be kept, at its real path.
fn kept(profile: &Profile) -> Option<PathBuf> {
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
