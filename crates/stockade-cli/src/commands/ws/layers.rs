//! Taking over or dropping what runs changed over a directory.

use std::path::PathBuf;

use serde::Serialize;
use stockade_workspace::{CommitReport, Error, Overlay, Resolve};

use super::{Context, name_or_here, refused};
use crate::args::ws::{CommitArgs, OverlayArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

fn open(context: &Context, typed: Option<&str>) -> Result<Overlay, Failure> {
    let name = name_or_here(typed)?;
    match context.manager.existing_overlay(&name) {
        Ok(None) | Err(Error::NoWorkspace(_)) if typed.is_none() => Err(super::no_overlay_here()),
        Ok(None) => Err(refused(Error::NoOverlay(name))),
        Ok(Some(overlay)) => Ok(overlay),
        Err(error) => Err(refused(error)),
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
    let mut overlay = open(context, args.name.as_deref())?;
    if args.after_restart {
        overlay.take_as_complete();
    }
    let dir = overlay.dir().to_owned();
    let paths: Vec<PathBuf> = args.paths.iter().map(|path| dir.join(path)).collect();
    let committed = overlay.commit(&paths, resolve).map_err(refused)?;
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
