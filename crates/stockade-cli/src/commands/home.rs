//! `stockade home`: the layers over the home directory that `run --home keep` keeps.

use std::path::Path;

use serde::Serialize;
use stockade_workspace::{HomeLayerInfo, WorkspaceManager};

use super::ws;
use crate::args::{HomeCommand, HomeDropArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, DIM, Format, printable};

pub(crate) fn run(command: &HomeCommand) -> Result<Exit, Failure> {
    let manager = ws::open(None)?;
    let format = Format::of(command.output().json);
    match command {
        HomeCommand::List(_) => list(&manager, format),
        HomeCommand::Drop(args) => drop_layers(&manager, args, format),
    }
}

#[derive(Serialize)]
struct List {
    homes: Vec<KeptHome>,
}

#[derive(Serialize)]
struct KeptHome {
    dir: String,
    home: String,
    bytes: u64,
    used_ms: u64,
    in_use: bool,
}

fn list(manager: &WorkspaceManager, format: Format) -> Result<Exit, Failure> {
    let found = manager.home_layers().map_err(ws::refused)?;
    let homes: Vec<KeptHome> = found.iter().map(KeptHome::of).collect();
    match format {
        Format::Json => output::json(List { homes })?,
        Format::Text => output::text(|out| {
            if homes.is_empty() {
                return writeln!(out, "no home directory is kept");
            }
            homes.iter().try_for_each(|home| {
                let kilobytes = home.bytes.div_ceil(1000);
                let state = if home.in_use { "in use" } else { "" };
                let dir = printable(&home.dir);
                writeln!(out, "{kilobytes:>9} kB  {dir}  {DIM}{state}{DIM:#}")
            })
        })?,
    }
    Ok(Exit::Success)
}

impl KeptHome {
    fn of(info: &HomeLayerInfo) -> Self {
        Self {
            dir: info.dir.to_string_lossy().into_owned(),
            home: info.home.to_string_lossy().into_owned(),
            bytes: info.bytes,
            used_ms: info.used_ms,
            in_use: info.in_use,
        }
    }
}

#[derive(Serialize)]
struct Dropped {
    dropped: Vec<String>,
}

fn drop_layers(
    manager: &WorkspaceManager,
    args: &HomeDropArgs,
    format: Format,
) -> Result<Exit, Failure> {
    let named = args.dir.clone().map_or_else(std::env::current_dir, Ok)?;
    // A directory that is gone may have a layer still.
    let named = std::path::absolute(&named)?;
    let real = named.canonicalize().unwrap_or_else(|_| named.clone());
    let known = manager.home_layers().map_err(ws::refused)?;
    let is_meant = |info: &&HomeLayerInfo| {
        if args.all {
            !info.in_use
        } else {
            info.dir == named || info.dir == real
        }
    };
    let mut dropped = Vec::new();
    for info in known.iter().filter(is_meant) {
        if remove(manager, &info.dir, &info.home)? {
            dropped.push(info.dir.to_string_lossy().into_owned());
        }
    }
    if dropped.is_empty() && !args.all {
        return Err(nothing_kept(&named));
    }
    match format {
        Format::Json => output::json(Dropped { dropped })?,
        Format::Text => output::text(|out| {
            dropped.iter().try_for_each(|dir| {
                writeln!(out, "dropped the home directory of {}", printable(dir))
            })
        })?,
    }
    Ok(Exit::Success)
}

fn remove(manager: &WorkspaceManager, dir: &Path, home: &Path) -> Result<bool, Failure> {
    manager.discard_home_layer(dir, home).map_err(ws::refused)
}

fn nothing_kept(dir: &Path) -> Failure {
    let text = format!("no home directory is kept for `{}`", dir.display());
    Failure::text(Exit::Negative, text).hint("`stockade home list` shows those that are")
}
