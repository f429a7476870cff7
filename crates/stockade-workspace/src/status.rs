//! All workspaces in words.

use std::fmt::Write;

use crate::state::{Status, WorkspaceState, now_ms};

pub(crate) fn format(states: &[WorkspaceState]) -> String {
    let mut text = format!("Sandboxes ({}):\n", states.len());
    text.push_str(&"-".repeat(40));
    text.push('\n');
    for (number, state) in states.iter().enumerate() {
        let dir = state.dir.display().to_string();
        let dir = dir.escape_debug();
        let rest = match state.status {
            Status::Running => format!("created {} ago", ago(state.created_ms)),
            Status::Paused => {
                let since = state.paused_ms.unwrap_or(state.used_ms);
                format!("paused {} ago, resumable", ago(since))
            }
            Status::Terminated => "cleanup eligible".to_owned(),
        };
        let line = format!(
            "{}. {} [{}] {dir}, {rest}",
            number + 1,
            state.name,
            state.status
        );
        let _ = writeln!(text, "{line}");
    }
    text
}

fn ago(millis: u64) -> String {
    let seconds = now_ms().saturating_sub(millis) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        _ => format!("{}h", seconds / 3600),
    }
}
