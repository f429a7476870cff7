//! Looking at workspaces.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use stockade_policy::profile::format_size;
use stockade_workspace::{SnapshotRecord, Status, WorkspaceState};

use super::{Context, name, refused};
use crate::args::ws::NameArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, BOLD, DIM, Format, GOOD, SO_SO};

/// A workspace that is new.
pub(super) fn made(context: &Context, workspace: WorkspaceState) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        workspace: WorkspaceState,
    }
    match context.format {
        Format::Json => output::json(Document { workspace })?,
        Format::Text => output::text(|out| {
            let dir = workspace.dir.display().to_string();
            writeln!(out, "{} {}", workspace.name, output::printable(&dir))
        })?,
    }
    Ok(Exit::Success)
}

pub(super) fn list(context: &Context) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        workspaces: Vec<WorkspaceState>,
    }
    let (workspaces, damaged) = context.manager.list_readable().map_err(refused)?;
    let is_whole = damaged.is_empty();
    for error in damaged {
        let text = format!("{:#}", anyhow::Error::new(error));
        output::warn(&text, context.format);
    }
    match context.format {
        Format::Json => output::json(Document { workspaces })?,
        Format::Text => {
            output::text(|out| workspaces.iter().try_for_each(|state| row(out, state)))?;
        }
    }
    Ok(if is_whole {
        Exit::Success
    } else {
        Exit::Negative
    })
}

fn row(out: &mut dyn Write, state: &WorkspaceState) -> std::io::Result<()> {
    let style = match state.status {
        Status::Running => GOOD,
        Status::Paused => SO_SO,
        Status::Terminated => DIM,
    };
    let dir = state.dir.display().to_string();
    let status = state.status.to_string();
    let used = ago(state.used_ms);
    writeln!(
        out,
        "{BOLD}{:<20}{BOLD:#} {style}{status:<10}{style:#} {used:>9}  {}",
        state.name.as_str(),
        output::printable(&dir)
    )
}

pub(super) fn show(context: &Context, args: &NameArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        workspace: WorkspaceState,
        snapshots: usize,
        overlay: bool,
    }
    let name = name(&args.name)?;
    let workspace = context.manager.show(&name).map_err(refused)?;
    let snapshots = context.manager.snapshots(&name).map_err(refused)?;
    let overlay = context.manager.has_overlay(&name).map_err(refused)?;
    match context.format {
        Format::Json => output::json(Document {
            workspace,
            snapshots: snapshots.len(),
            overlay,
        })?,
        Format::Text => output::text(|out| {
            row(out, &workspace)?;
            writeln!(out, "created    {}", ago(workspace.created_ms))?;
            writeln!(out, "snapshots  {}", snapshots.len())?;
            if overlay {
                writeln!(
                    out,
                    "overlay    `stockade ws diff {name}` shows what it has"
                )?;
            }
            for (key, value) in &workspace.env {
                writeln!(
                    out,
                    "env        {}",
                    output::printable(&format!("{key}={value}"))
                )?;
            }
            for rule in &workspace.excludes {
                writeln!(out, "exclude    {}", output::printable(rule))?;
            }
            for process in &workspace.processes {
                let command = process.command.join(" ");
                let ended = if process.is_alive() { "" } else { " (ended)" };
                writeln!(
                    out,
                    "process    {} {}{ended}",
                    process.supervisor,
                    output::printable(&command)
                )?;
            }
            Ok(())
        })?,
    }
    Ok(Exit::Success)
}

pub(super) fn snapshots(context: &Context, args: &NameArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        snapshots: Vec<SnapshotRecord>,
    }
    let snapshots = context
        .manager
        .snapshots(&name(&args.name)?)
        .map_err(refused)?;
    match context.format {
        Format::Json => output::json(Document { snapshots })?,
        Format::Text => output::text(|out| {
            for snapshot in &snapshots {
                let message = snapshot.message.as_deref().unwrap_or_default();
                writeln!(
                    out,
                    "{BOLD}{}{BOLD:#} {:>9} {:>8} files {:>8}  {}",
                    snapshot.id,
                    ago(snapshot.created_ms),
                    snapshot.totals.files,
                    format_size(snapshot.totals.bytes),
                    output::printable(message)
                )?;
            }
            Ok(())
        })?,
    }
    Ok(Exit::Success)
}

/// How long ago, in one unit.
fn ago(millis: u64) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = now.as_secs().saturating_sub(millis / 1000);
    match seconds {
        0..60 => format!("{seconds}s ago"),
        60..3600 => format!("{}m ago", seconds / 60),
        3600..86400 => format!("{}h ago", seconds / 3600),
        _ => format!("{}d ago", seconds / 86400),
    }
}
