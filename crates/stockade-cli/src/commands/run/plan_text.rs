//! A plan in words, for `run --dry-run`; `--json` has all of it.

use std::io::{self, Write};

use stockade_engine::{Enforcement, ExecPlan};
use stockade_linux::plan::View;
use stockade_policy::profile::format_duration;
use stockade_rules::shell_word;

use crate::output::{BAD, BOLD, DIM, GOOD, SO_SO, printable};

pub(super) fn print(plan: &ExecPlan, out: &mut dyn Write) -> io::Result<()> {
    let linux = &plan.linux;
    let words = linux.command.argv.iter();
    let words: Vec<String> = words
        .map(|word| shell_word(&word.as_os_str().to_string_lossy()).into_owned())
        .collect();
    line(out, "command", &words.join(" "))?;
    line(out, "directory", &linux.command.cwd.to_string())?;
    line(out, "backend", &plan.backend.to_string())?;
    let network = if linux.own_network {
        "a loopback of its own"
    } else {
        "the host's"
    };
    line(out, "network", network)?;
    if let Some(time) = plan.wall_time {
        line(out, "wall time", &format_duration(time))?;
    }
    writeln!(out, "\n{BOLD}enforced{BOLD:#}")?;
    for clause in &plan.enforcement {
        let (style, word) = match clause.enforcement {
            Enforcement::Full => (GOOD, "full"),
            Enforcement::Partial => (SO_SO, "partial"),
            Enforcement::None => (BAD, "none"),
        };
        let name = clause.clause;
        writeln!(
            out,
            "  {name:<12} {style}{word:<8}{style:#} {}",
            clause.mechanism
        )?;
        if let Some(gap) = &clause.gap {
            writeln!(out, "  {:<21} {DIM}but{DIM:#} {gap}", "")?;
        }
    }
    writeln!(out, "\n{BOLD}view{BOLD:#}")?;
    for mount in &linux.mounts {
        let path = mount.path.to_string();
        writeln!(out, "  {:<12} {}", view(&mount.view), printable(&path))?;
    }
    writeln!(out, "\n{BOLD}environment{BOLD:#}")?;
    let names = linux.command.env.iter().map(|entry| {
        let entry = entry.as_os_str().to_string_lossy();
        entry.split('=').next().unwrap_or_default().to_owned()
    });
    let names: Vec<String> = names.collect();
    writeln!(out, "  set: {}", printable(&names.join(" ")))?;
    if !plan.env_removed.is_empty() {
        writeln!(out, "  removed: {}", printable(&plan.env_removed.join(" ")))?;
    }
    Ok(())
}

fn line(out: &mut dyn Write, name: &str, value: &str) -> io::Result<()> {
    writeln!(out, "{BOLD}{name:<10}{BOLD:#} {}", printable(value))
}

fn view(view: &View) -> &'static str {
    match view {
        View::Devices { .. } => "devices",
        View::Empty => "empty",
        View::Hidden => "hidden",
        View::KeptLayer { .. } => "kept copy",
        View::Overlay { .. } => "overlay",
        View::PrivateLayer { .. } => "copy",
        View::Proc => "proc",
        View::ReadOnly => "read-only",
        View::Symlink(_) => "link",
        View::Temporary { .. } => "private",
        View::Writable => "writable",
    }
}
