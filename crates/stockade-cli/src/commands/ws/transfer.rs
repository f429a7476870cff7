//! Workspaces as one file.

use std::path::PathBuf;

use serde::Serialize;
use stockade_rules::AbsPath;

use super::kept::{Again, Kept, guard_of};
use super::progress::Bar;
use super::{Context, name, refused, show};
use crate::args::ws::{ExportArgs, ImportArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

pub(super) fn export(context: &Context, args: &ExportArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        exported: String,
        left_out: Vec<String>,
    }
    let bar = Bar::new(context.format);
    let left_out = context
        .manager
        .export(
            &name(&args.name)?,
            args.snapshot.as_deref(),
            &args.file,
            &bar,
        )
        .map_err(refused)?;
    drop(bar);
    for path in &left_out {
        let text = format!("`{path}` is a device and was left out");
        output::warn(&text, context.format);
    }
    if context.format == Format::Json {
        let exported = args.file.display().to_string();
        output::json(Document { exported, left_out })?;
    }
    Ok(Exit::Success)
}

pub(super) fn import(context: &Context, args: &ImportArgs) -> Result<Exit, Failure> {
    let name = name(&args.name)?;
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => PathBuf::from(name.as_str()),
    };
    // No link is followed on the way, so that `..` leads where its letters say.
    let absolute = std::path::absolute(&dir).map_err(|error| Failure::text(Exit::Usage, error))?;
    let dir = AbsPath::new(&absolute).map_err(|error| Failure::text(Exit::Usage, error))?;
    let dir = dir.as_path();
    let is_filled = std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    let guard = guard_of(dir, args.allow_protected)?;
    let bar = Bar::new(context.format);
    let (workspace, kept_back) = context
        .manager
        .import_guarded(&args.file, &name, dir, args.danger_links, &*guard, &bar)
        .map_err(refused)?;
    drop(bar);
    let id = workspace.baseline.as_ref().map(ToString::to_string);
    let kept = Kept {
        name: &name,
        store: context.named_store.as_deref(),
        dir: &workspace.dir,
        again: Again::Restore {
            id: id.as_deref().unwrap_or_default(),
            merge: true,
        },
    };
    kept.tell(&kept_back, context.format);
    if is_filled {
        let text = format!("`{}` is not empty and was left as it is", dir.display());
        output::warn(&text, context.format);
    }
    show::made(context, workspace)
}
