//! `run --overlay`: every change goes to a workspace's layers, and the host's tree stays as it is.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use stockade::overlay::ProtectedNames;
use stockade_engine::ExecPlan;
use stockade_policy::profile::Profile;
use stockade_rules::AbsPath;
use stockade_workspace::{CommitOptions, Error, Overlay, Resolve, WorkspaceName};

use crate::args::RunArgs;
use crate::commands::ws;
use crate::commands::ws::kept::{Again, Kept};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::resolve::Place;

/// Has the plan write to the overlay of this name, or to that of the directory.
pub(crate) fn enter(
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
    add_layers(&mut overlay, plan)?;
    Ok(overlay)
}

/// Has the plan write to the layers of the overlay.
pub(super) fn add_layers(overlay: &mut Overlay, plan: &mut ExecPlan) -> Result<(), Failure> {
    replace(plan, |root| overlay.layer(root))
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
    plan.check_overlay()?;
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
        let layer = layer(root.as_path()).map_err(|error| not_set_up(ws::refused(error)))?;
        AbsPath::new(layer).map_err(|error| Failure::new(Exit::NotSetUp, error))
    })
}

/// Notes what the run changed, so that changes of the host can be told from it.
pub(crate) fn leave(overlay: &Overlay) -> Result<(), Failure> {
    overlay.note().map_err(ws::refused)
}

/// Applies what the run changed, all of it or nothing. Everything that ran is dead.
pub(super) fn commit(
    overlay: Overlay,
    args: &RunArgs,
    place: &Place,
    profile: &Profile,
    store: Option<&Path>,
) -> Result<(), Failure> {
    let home = place.around.home.as_ref();
    let home = home.map(|home| home.as_path().to_owned());
    let roots = overlay.roots().map(Path::to_owned).collect();
    let guard = ProtectedNames::new(profile.clone(), home, roots);
    let (name, dir) = (overlay.name().clone(), overlay.dir().to_owned());
    let options = CommitOptions {
        paths: &[],
        resolve: Resolve::Refuse,
        guard: &guard,
        durable: false,
    };
    let committed = overlay.commit(&options).map_err(|error| {
        let is_conflict = matches!(error, Error::HostChanged(_));
        let failure = ws::refused(error);
        if is_conflict {
            return failure.hint(format!(
                "nothing was applied: `stockade ws diff {name}` shows the changes, `stockade ws \
                 commit --theirs {name}` keeps the host's files, `stockade ws commit --ours {name}` \
                 replaces them"
            ));
        }
        failure
    })?;
    let kept = Kept {
        name: &name,
        store,
        dir: &dir,
        again: Again::Commit,
    };
    if !args.quiet {
        kept.tell(&committed.kept_back, Format::of(args.output.json));
    }
    Ok(())
}

/// Says where changes are that `--commit` did not apply.
pub(super) fn tell_uncommitted(overlay: &Overlay, args: &RunArgs) {
    if args.commit.is_some() && !args.quiet {
        let name = overlay.name();
        let text = format!(
            "the command failed, so nothing was applied: `stockade ws diff {name}` shows what it \
             changed, `stockade ws commit {name}` applies it, `stockade ws discard {name}` drops it"
        );
        output::warn(&text, Format::of(args.output.json));
    }
}

/// The command has not run.
fn not_set_up(mut failure: Failure) -> Failure {
    failure.exit = Exit::NotSetUp;
    failure
}
