//! Workspaces as one file.

use std::path::PathBuf;

use serde::Serialize;

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
    let dir = std::path::absolute(&dir).unwrap_or(dir);
    let is_filled = std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some());
    let bar = Bar::new(context.format);
    let workspace = context
        .manager
        .import(&args.file, &name, &dir, args.danger_links, &bar)
        .map_err(refused)?;
    drop(bar);
    if is_filled {
        let text = format!("`{}` is not empty and was left as it is", dir.display());
        output::warn(&text, context.format);
    }
    show::made(context, workspace)
}
