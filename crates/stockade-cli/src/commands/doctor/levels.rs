//! Which backend each level means on this machine, and why.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use stockade_engine::SelectError;
use stockade_policy::profile::{Backend, Level, Profile};
use stockade_policy::{SandboxPolicy, Surroundings};

use crate::commands::backends;
use crate::output::{BAD, BOLD, DIM, GOOD, SO_SO};

/// One level.
#[derive(Debug, Serialize)]
pub(super) struct LevelRow {
    level: Level,
    /// None if nothing reaches it.
    backend: Option<Backend>,
    reason: String,
    gaps: Vec<String>,
}

/// For a command that may write the current directory and nothing else.
pub(super) fn table(helper: &Path) -> Vec<LevelRow> {
    let backends = backends(None);
    let profile = std::env::current_dir()
        .ok()
        .and_then(|here| Surroundings::from_env(&here).ok())
        .and_then(|around| {
            let policy = SandboxPolicy::workspace_write(Vec::new());
            Profile::from_policy(&policy, &around).ok()
        });
    let Some(profile) = profile else {
        return Vec::new();
    };
    let rows = Level::ALL
        .iter()
        .map(|level| match backends.select(*level, &profile, helper) {
            Ok(chosen) => LevelRow {
                level: *level,
                backend: Some(chosen.backend),
                reason: chosen.reason,
                gaps: chosen.gaps,
            },
            Err(error) => LevelRow {
                level: *level,
                backend: None,
                reason: match error {
                    SelectError::Nothing { tried, .. } => tried.join("; "),
                    other => other.to_string(),
                },
                gaps: Vec::new(),
            },
        });
    rows.collect()
}

pub(super) fn print(rows: &[LevelRow], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{BOLD}levels{BOLD:#}")?;
    for row in rows {
        let style = match row.backend {
            None | Some(Backend::None) => BAD,
            Some(_) if row.gaps.is_empty() => GOOD,
            Some(_) => SO_SO,
        };
        let backend = row.backend.map_or("refuses", Backend::as_str);
        writeln!(
            out,
            "  {:<16} {style}{backend:<8}{style:#} {}",
            row.level, row.reason
        )?;
        if row.backend == Some(Backend::None) {
            continue;
        }
        for gap in &row.gaps {
            writeln!(out, "    {DIM}only partly enforced:{DIM:#} {gap}")?;
        }
    }
    Ok(())
}
