//! Taking over or dropping what runs changed over a directory.

use std::path::{Path, PathBuf};

use serde::Serialize;
use stockade::overlay::{AllowProtected, ProtectedNames};
use stockade_workspace::{
    CommitGuard, CommitOptions, CommitReport, Error, Overlay, Resolve, Status, WorkspaceName,
};

use super::kept::{Again, Kept};
use super::{Context, name_or_here, refused};
use crate::args::PolicyArgs;
use crate::args::ws::{CommitArgs, OverlayArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::resolve::Place;

fn open(context: &Context, typed: Option<&str>) -> Result<Overlay, Failure> {
    let name = name_or_here(typed)?;
    match context.manager.existing_overlay(&name) {
        Ok(None) | Err(Error::NoWorkspace(_)) if typed.is_none() => Err(super::no_overlay_here()),
        Ok(None) => Err(refused(Error::NoOverlay(name))),
        Ok(Some(overlay)) => Ok(overlay),
        Err(error) => Err(refused(error)),
    }
}

/// Decides what of an overlay may reach the host.
pub(super) fn guard_of(overlay: &Overlay, allow: bool) -> Result<Box<dyn CommitGuard>, Failure> {
    let roots = overlay.roots().map(Path::to_owned).collect();
    let guard = protected_names(overlay.dir(), roots)?;
    if allow {
        return Ok(Box::new(AllowProtected(guard)));
    }
    Ok(Box::new(guard))
}

/// Judges for a workspace's directory and the roots of its overlay, by the user's and the project's
/// own policy.
pub(super) fn protected_names(dir: &Path, roots: Vec<PathBuf>) -> Result<ProtectedNames, Failure> {
    let place = Place::about(dir)?;
    let args = PolicyArgs {
        write: roots
            .iter()
            .map(|root| root.clone().into_os_string())
            .collect(),
        ..PolicyArgs::default()
    };
    let profile = place.profile(&args)?;
    let home = place.around.home.map(|home| home.as_path().to_owned());
    Ok(ProtectedNames::new(profile, home, roots))
}

/// Has what runs in a workspace wait until this is dropped.
pub(super) fn pause_if_asked<'c>(
    context: &'c Context,
    name: &'c WorkspaceName,
    asked: bool,
) -> Result<Option<Paused<'c>>, Failure> {
    if !asked {
        return Ok(None);
    }
    let state = context.manager.show(name).map_err(refused)?;
    if state.status != Status::Running || !state.is_alive() {
        return Ok(None);
    }
    context.manager.pause(name).map_err(refused)?;
    Ok(Some(Paused { context, name }))
}

/// Resumes a workspace when it is dropped.
pub(super) struct Paused<'c> {
    context: &'c Context,
    name: &'c WorkspaceName,
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.context.manager.resume(self.name) {
            output::warn(
                &format!("`{}` is still paused: {error}", self.name),
                self.context.format,
            );
        }
    }
}

pub(super) fn commit(context: &Context, args: &CommitArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        committed: CommitReport,
    }
    let resolve = match (args.ours, args.theirs) {
        (true, _) => Resolve::Ours,
        (_, true) => Resolve::Theirs,
        _ => Resolve::Refuse,
    };
    let name = name_or_here(args.name.as_deref())?;
    let _paused = pause_if_asked(context, &name, args.pause)?;
    let mut overlay = open(context, args.name.as_deref())?;
    if args.after_restart {
        overlay.take_as_complete();
    }
    let dir = overlay.dir().to_owned();
    let paths: Vec<PathBuf> = args.paths.iter().map(|path| dir.join(path)).collect();
    let guard = guard_of(&overlay, args.allow_protected)?;
    let committed = overlay
        .commit(&CommitOptions {
            paths: &paths,
            resolve,
            guard: &*guard,
            durable: true,
        })
        .map_err(refused)?;
    let kept = Kept {
        name: &name,
        store: context.named_store.as_deref(),
        dir: &dir,
        again: Again::Commit,
    };
    kept.tell(&committed.kept_back, context.format);
    for path in &committed.kept {
        let text = format!("`{}` stays as the host has it", path.display());
        output::warn(&text, context.format);
    }
    match context.format {
        Format::Json => output::json(Document { committed })?,
        Format::Text => output::text(|out| {
            let CommitReport {
                written,
                removed,
                adjusted,
                ..
            } = committed;
            writeln!(
                out,
                "{written} written, {removed} removed, {adjusted} adjusted"
            )
        })?,
    }
    Ok(Exit::Success)
}

pub(super) fn discard(context: &Context, args: &OverlayArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        discarded: bool,
    }
    let typed = args.name.as_deref();
    match context.manager.discard_overlay(&name_or_here(typed)?) {
        Err(Error::NoOverlay(_) | Error::NoWorkspace(_)) if typed.is_none() => {
            return Err(super::no_overlay_here());
        }
        discarded => discarded.map_err(refused)?,
    }
    if context.format == Format::Json {
        output::json(Document { discarded: true })?;
    }
    Ok(Exit::Success)
}
