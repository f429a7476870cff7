//! `run --overlay`: every change goes to a workspace's layers, and the host's tree stays as it is.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use stockade::ExecPlan;
use stockade_policy::profile::Backend;
use stockade_rules::AbsPath;
use stockade_workspace::{Error, Overlay, WorkspaceName};

use crate::commands::ws;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::resolve::Place;

/// Has the plan write to the overlay of this name, or to that of the directory.
pub(super) fn enter(
    name: Option<&OsStr>,
    place: &Place,
    store: Option<&Path>,
    plan: &mut ExecPlan,
) -> Result<Overlay, Failure> {
    let name = chosen(name, place, plan)?;
    let manager = ws::open(store.map(Path::to_owned)).map_err(not_set_up)?;
    let mut overlay = manager
        .overlay(&name, place.around.cwd.as_path())
        .map_err(|error| not_set_up(ws::refused(error)))?;
    replace(plan, |root| overlay.layer(root))?;
    Ok(overlay)
}

/// Has the plan say what it would write to; nothing is made.
pub(super) fn pretend(
    name: Option<&OsStr>,
    place: &Place,
    store: Option<&Path>,
    plan: &mut ExecPlan,
) -> Result<(), Failure> {
    let name = chosen(name, place, plan)?;
    let manager = ws::planned(store.map(Path::to_owned)).map_err(not_set_up)?;
    replace(plan, |root| manager.planned_layer(&name, root))
}

/// The overlay's name, if the plan can have one.
fn chosen(name: Option<&OsStr>, place: &Place, plan: &ExecPlan) -> Result<WorkspaceName, Failure> {
    if plan.backend != Backend::Native && plan.backend != Backend::Landlock {
        let text = format!("the backend `{}` has no overlays", plan.backend);
        return Err(Failure::text(Exit::NotSetUp, text).hint("`--backend native` has"));
    }
    if !plan.linux.own_namespaces {
        let text = "`--overlay` needs user namespaces, which this machine refuses";
        return Err(Failure::text(Exit::NotSetUp, text)
            .hint("`stockade doctor` says why, and how to allow them"));
    }
    match name {
        Some(name) => name
            .to_string_lossy()
            .parse()
            .map_err(|error: stockade_workspace::NameError| Failure::new(Exit::Usage, error)),
        None => Ok(WorkspaceName::for_directory(place.around.cwd.as_path())),
    }
}

/// Puts a layer over every root that could be written.
fn replace(
    plan: &mut ExecPlan,
    mut layer: impl FnMut(&Path) -> Result<PathBuf, Error>,
) -> Result<(), Failure> {
    plan.overlay(|root| {
        if !root.as_path().is_dir() {
            let text = format!("`{root}` is no directory and can't be seen through an overlay");
            return Err(Failure::text(Exit::NotSetUp, text).hint("grant the directory it is in"));
        }
        let layer = layer(root.as_path()).map_err(|error| not_set_up(ws::refused(error)))?;
        AbsPath::new(layer).map_err(|error| Failure::new(Exit::NotSetUp, error))
    })
}

/// Notes what the run changed, so that changes of the host can be told from it.
pub(super) fn leave(overlay: &Overlay) -> Result<(), Failure> {
    overlay
        .note()
        .map_err(|error| not_set_up(ws::refused(error)))
}

/// The command has not run.
fn not_set_up(mut failure: Failure) -> Failure {
    failure.exit = Exit::NotSetUp;
    failure
}
