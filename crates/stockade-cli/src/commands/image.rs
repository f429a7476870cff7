//! `stockade image`: images for containers, with or without a registry.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use stockade_container::{DevEnvManager, Engine, EngineError, Images};

use crate::args::{ImageBuildArgs, ImageCommand};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, DIM, Format, printable};

pub(crate) fn run(command: &ImageCommand) -> Result<Exit, Failure> {
    let engine = Engine::connect().map_err(engine_failure)?;
    let images = Images::new(&engine);
    let format = Format::of(command.output().json);
    match command {
        ImageCommand::Build(args) => build(&engine, args, format),
        ImageCommand::FromHost(args) => {
            let id = images
                .from_host(&args.programs, &args.name)
                .map_err(engine_failure)?;
            tell(&args.name, &id, format)
        }
        ImageCommand::FromRootfs(args) => {
            let path = Path::new(&args.rootfs);
            let made = if path.is_dir() {
                images.from_directory(path, &args.name)
            } else {
                let mut file = File::open(path).map_err(|error| {
                    let what = format!("can't read `{}`", path.display());
                    Failure::new(Exit::NotSetUp, anyhow::Error::new(error).context(what))
                })?;
                images.from_tar(&mut file, &args.name)
            };
            tell(&args.name, &made.map_err(engine_failure)?, format)
        }
        ImageCommand::List(_) => {
            let found = images.list().map_err(engine_failure)?;
            match format {
                Format::Json => output::json(List { images: found })?,
                Format::Text => output::text(|out| {
                    for image in &found {
                        let size = image.size / 1_000_000;
                        let name = printable(&image.name);
                        writeln!(out, "{name:<56} {size:>6} MB  {DIM}{}{DIM:#}", image.id)?;
                    }
                    Ok(())
                })?,
            }
            Ok(Exit::Success)
        }
        ImageCommand::Prune(_) => {
            let mut removed = Vec::new();
            engine.sweep().map_err(engine_failure)?;
            for image in images.list().map_err(engine_failure)? {
                // One that a container uses stays.
                if images.remove(&image.name).unwrap_or(false) {
                    removed.push(image.name);
                }
            }
            if let Ok(state) = state_directory() {
                let forgotten = DevEnvManager::forget_missing(&engine, &state);
                forgotten.map_err(|error| Failure::new(Exit::NotSetUp, error))?;
            }
            match format {
                Format::Json => output::json(Removed { removed })?,
                Format::Text => output::text(|out| {
                    removed
                        .iter()
                        .try_for_each(|name| writeln!(out, "removed {}", printable(name)))
                })?,
            }
            Ok(Exit::Success)
        }
        ImageCommand::Rm(args) => {
            if images.remove(&args.name).map_err(engine_failure)? {
                let removed = vec![args.name.clone()];
                match format {
                    Format::Json => output::json(Removed { removed })?,
                    Format::Text => {
                        output::text(|out| writeln!(out, "removed {}", printable(&args.name)))?;
                    }
                }
                return Ok(Exit::Success);
            }
            let text = format!("there is no image `{}`", args.name);
            Err(Failure::text(Exit::Negative, text))
        }
    }
}

#[derive(Serialize)]
struct List {
    images: Vec<stockade_container::ImageInfo>,
}

#[derive(Serialize)]
struct Removed {
    removed: Vec<String>,
}

#[derive(Serialize)]
struct Made<'a> {
    name: &'a str,
    id: &'a str,
}

fn tell(name: &str, id: &str, format: Format) -> Result<Exit, Failure> {
    match format {
        Format::Json => output::json(Made { name, id })?,
        Format::Text => output::text(|out| writeln!(out, "{}", printable(name)))?,
    }
    Ok(Exit::Success)
}

fn build(engine: &Engine, args: &ImageBuildArgs, format: Format) -> Result<Exit, Failure> {
    let failed = |error| {
        let failure = anyhow::Error::new(error);
        Failure::new(Exit::NotSetUp, failure)
    };
    let arguments = args.build_arg.iter().map(|word| {
        let (name, value) = word.split_once('=').ok_or_else(|| {
            let text = format!("`{word}` is no build argument: write NAME=VALUE");
            Failure::text(Exit::Usage, text)
        })?;
        Ok((name.to_owned(), value.to_owned()))
    });
    let arguments = arguments.collect::<Result<Vec<_>, Failure>>()?;
    let mut manager = DevEnvManager::new(engine, &args.project, state_directory()?)
        .map_err(failed)?
        .with_arguments(arguments);
    if std::io::stderr().is_terminal() && format == Format::Text {
        manager.on_progress = Some(Box::new(|line| {
            // Nowhere to report that standard error is closed.
            let _ = writeln!(std::io::stderr(), "{}", printable(line));
        }));
    }
    let file = args
        .file
        .clone()
        .unwrap_or_else(|| args.project.join("Dockerfile"));
    let tag = if args.force {
        manager.rebuild_and_force_swap(&file)
    } else {
        manager.get_or_build(&file)
    };
    let tag = tag.map_err(failed)?;
    drop(manager);
    let id = Images::new(engine).id(&tag).map_err(engine_failure)?;
    tell(&tag, &id.unwrap_or_default(), format)
}

/// Where the index is: what is kept between runs and is nobody's project.
fn state_directory() -> Result<PathBuf, Failure> {
    let stated = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let stated = stated.filter(|path| path.is_absolute());
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let base = stated.or(home).ok_or_else(|| {
        Failure::text(
            Exit::NotSetUp,
            "there is no home directory to keep the index in",
        )
    })?;
    Ok(base.join("stockade"))
}

fn engine_failure(error: EngineError) -> Failure {
    let hint = error.hint();
    let failure = Failure::new(Exit::NotSetUp, error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
