//! `stockade policy import` and `export`: policies of other sandboxes.

use serde::Serialize;
use stockade_policy::exchange::{self, ExportFormat, ImportFormat};

use crate::args::{ExportTo, ImportFrom, PolicyExportArgs, PolicyImportArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::resolve::Place;

pub(super) fn import(args: &PolicyImportArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        profile: String,
        notes: Vec<String>,
    }
    let path = Place::enter(None)?.file(&args.file)?;
    let shown = args.file.display();
    let refuse = |error: anyhow::Error| {
        let what = format!("can't import `{shown}`");
        Failure::new(Exit::Negative, error.context(what))
    };
    let text = std::fs::read_to_string(path.as_path()).map_err(|error| refuse(error.into()))?;
    let name = path.as_path().file_name().unwrap_or_default();
    let format = match args.from {
        Some(ImportFrom::Bwrap) => ImportFormat::Bwrap,
        Some(ImportFrom::Claude) => ImportFormat::Claude,
        Some(ImportFrom::Codex) => ImportFormat::Codex,
        Some(ImportFrom::Dockerfile) => ImportFormat::Dockerfile,
        Some(ImportFrom::Srt) => ImportFormat::Srt,
        None => ImportFormat::guess(&name.to_string_lossy(), &text).ok_or_else(|| {
            refuse(anyhow::Error::msg("its format is not recognized"))
                .hint(format!("stockade policy import --from srt '{shown}'"))
        })?,
    };
    let imported = exchange::import(format, &text).map_err(|error| refuse(error.into()))?;
    let profile = imported.draft.to_string();
    match Format::of(args.output.json) {
        Format::Json => output::json(Document {
            profile,
            notes: imported.notes,
        })?,
        Format::Text => {
            output::raw(profile.as_bytes())?;
            for note in &imported.notes {
                output::warn(note, Format::Text);
            }
        }
    }
    Ok(Exit::Success)
}

pub(super) fn export(args: &PolicyExportArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        text: String,
        notes: &'static [&'static str],
    }
    let place = Place::enter(args.policy.cwd.as_deref())?;
    let profile = place.profile(&args.policy)?;
    let format = match args.to {
        ExportTo::Bwrap => ExportFormat::Bwrap,
        ExportTo::Codex => ExportFormat::Codex,
        ExportTo::Srt => ExportFormat::Srt,
    };
    let exported = exchange::export(&profile, format).map_err(|error| {
        let error = anyhow::Error::new(error).context("the other sandbox would allow more");
        Failure::new(Exit::Negative, error)
    })?;
    match Format::of(args.output.json) {
        Format::Json => output::json(Document {
            text: exported.text,
            notes: exported.notes,
        })?,
        Format::Text => {
            output::raw(exported.text.as_bytes())?;
            for note in exported.notes {
                output::warn(note, Format::Text);
            }
        }
    }
    Ok(Exit::Success)
}
