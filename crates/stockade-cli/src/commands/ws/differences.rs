//! Showing what changed, on a terminal in colours and through a pager.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anstyle::Style;
use serde::Serialize;
use stockade_workspace::{Change, ChangeKind, Diff, Error, KeptBack, Overlay, Text};

use super::layers;
use super::progress::Bar;
use super::{Context, name_or_here, refused};
use crate::args::ws::DiffArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, BAD, BOLD, DIM, Format, GOOD, SO_SO};

#[derive(Serialize)]
struct Document<'a> {
    changes: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    #[serde(flatten)]
    change: &'a Change,
    #[serde(skip_serializing_if = "Option::is_none")]
    protected: Option<&'a str>,
    binary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

pub(super) fn diff(context: &Context, args: &DiffArgs) -> Result<Exit, Failure> {
    let name = name_or_here(args.name.as_deref())?;
    if args.id.is_none() {
        let overlay = match context.manager.existing_overlay(&name) {
            Err(Error::OverlayBusy(_)) if context.reads_in_use => {
                context.manager.overlay_in_use(&name).map(Some)
            }
            found => found,
        };
        match overlay {
            Ok(Some(overlay)) => {
                let diff = context.manager.overlay_diff(&overlay).map_err(refused)?;
                super::warn_if_restarted(&overlay, context.format);
                let guard = layers::guard_of(&overlay, false)?;
                let kept = overlay.kept_back(&*guard).map_err(refused)?;
                let protected = Protected::new(&overlay, kept);
                return print(context, args, &diff, &protected);
            }
            Err(Error::NoWorkspace(_)) if args.name.is_none() => {
                return Err(super::no_overlay_here());
            }
            Ok(None) => {}
            Err(error) => return Err(refused(error)),
        }
    }
    let bar = Bar::new(context.format);
    let diff = context
        .manager
        .diff(&name, args.id.as_deref(), &bar)
        .map_err(refused)?;
    drop(bar);
    print(context, args, &diff, &Protected::default())
}

/// Changes that `ws commit` keeps back, by path from the workspace's directory.
#[derive(Default)]
struct Protected(Vec<(PathBuf, String)>);

impl Protected {
    fn new(overlay: &Overlay, kept: Vec<KeptBack>) -> Self {
        let from_dir = |kept: KeptBack| {
            let path = kept.path.strip_prefix(overlay.dir()).unwrap_or(&kept.path);
            (path.to_owned(), kept.reason)
        };
        Self(kept.into_iter().map(from_dir).collect())
    }

    fn reason(&self, change: &Change) -> Option<&str> {
        let mut kept = self.0.iter();
        let found = kept.find(|(path, _)| change.path.starts_with(path));
        found.map(|(_, reason)| &**reason)
    }
}

fn print(
    context: &Context,
    args: &DiffArgs,
    diff: &Diff,
    protected: &Protected,
) -> Result<Exit, Failure> {
    if context.format == Format::Json {
        let changes = diff.changes.iter().map(|change| {
            let protected = protected.reason(change);
            entry(args, diff, change).map(|entry| Entry { protected, ..entry })
        });
        let changes = changes.collect::<Result<Vec<_>, _>>()?;
        output::json(Document { changes })?;
        return Ok(Exit::Success);
    }
    let mut page = Vec::new();
    for change in &diff.changes {
        if let Some(reason) = protected
            .reason(change)
            .filter(|_| !args.summary && !args.stat)
        {
            let reason = output::printable(reason);
            writeln!(
                page,
                "{BAD}protected: {reason}; needs --allow-protected{BAD:#}"
            )?;
        }
        if args.summary {
            let mark = if protected.reason(change).is_some() {
                " (protected)"
            } else {
                ""
            };
            summary(&mut page, change, mark)?;
        } else if args.stat {
            stat(&mut page, change, &diff.text(change).map_err(refused)?)?;
        } else {
            unified(&mut page, change, &diff.text(change).map_err(refused)?)?;
        }
    }
    show(&page)?;
    Ok(Exit::Success)
}

fn entry<'a>(args: &DiffArgs, diff: &Diff, change: &'a Change) -> Result<Entry<'a>, Failure> {
    let text = if args.summary {
        Text::Nothing
    } else {
        diff.text(change).map_err(refused)?
    };
    let binary = text == Text::Binary;
    let (added, removed, hunks) = match text {
        Text::Lines {
            added,
            removed,
            hunks,
        } => (Some(added), Some(removed), Some(hunks)),
        _ => (None, None, None),
    };
    Ok(Entry {
        change,
        protected: None,
        binary,
        added,
        removed,
        diff: hunks.filter(|_| !args.stat),
    })
}

/// The letter of a change, as in git.
fn letter(kind: ChangeKind) -> (char, Style) {
    match kind {
        ChangeKind::Added => ('A', GOOD),
        ChangeKind::Removed => ('D', BAD),
        ChangeKind::Renamed => ('R', SO_SO),
        ChangeKind::Attributes => ('m', SO_SO),
        ChangeKind::Retyped => ('T', SO_SO),
        _ => ('M', SO_SO),
    }
}

fn names(change: &Change) -> String {
    let path = change.path.display().to_string();
    let name = match &change.from {
        Some(from) => format!("{} -> {path}", from.display()),
        None => path,
    };
    let is_directory = |info: &Option<stockade_workspace::FileInfo>| {
        info.as_ref().is_some_and(|info| info.kind == "directory")
    };
    let slash = if is_directory(&change.new) || is_directory(&change.old) && change.new.is_none() {
        "/"
    } else {
        ""
    };
    format!("{}{slash}", output::printable(&name))
}

fn summary(out: &mut Vec<u8>, change: &Change, mark: &str) -> std::io::Result<()> {
    let (letter, style) = letter(change.kind);
    writeln!(out, "{style}{letter}{style:#} {}{mark}", names(change))
}

fn stat(out: &mut Vec<u8>, change: &Change, text: &Text) -> std::io::Result<()> {
    let (letter, style) = letter(change.kind);
    write!(out, "{style}{letter}{style:#} {}", names(change))?;
    match text {
        Text::Lines { added, removed, .. } => {
            writeln!(out, " {GOOD}+{added}{GOOD:#} {BAD}-{removed}{BAD:#}")
        }
        Text::Binary => writeln!(out, " {DIM}binary, {}{DIM:#}", sizes(change)),
        _ => writeln!(out),
    }
}

fn sizes(change: &Change) -> String {
    let size =
        |info: &Option<stockade_workspace::FileInfo>| info.as_ref().map_or(0, |info| info.size);
    format!("{} -> {} bytes", size(&change.old), size(&change.new))
}

fn unified(out: &mut Vec<u8>, change: &Change, text: &Text) -> std::io::Result<()> {
    let path = change.path.display().to_string();
    let old_path = change
        .from
        .as_ref()
        .map_or_else(|| path.clone(), |from| from.display().to_string());
    let (old_path, path) = (output::printable(&old_path), output::printable(&path));
    writeln!(out, "{BOLD}diff a/{old_path} b/{path}{BOLD:#}")?;
    let info = |info: &stockade_workspace::FileInfo| format!("{} {:04o}", info.kind, info.mode);
    match (&change.old, &change.new) {
        (None, Some(new)) => writeln!(out, "new {}", info(new))?,
        (Some(old), None) => writeln!(out, "removed {}", info(old))?,
        (Some(old), Some(new)) if (old.kind, old.mode) != (new.kind, new.mode) => {
            writeln!(out, "was {}", info(old))?;
            writeln!(out, "is {}", info(new))?;
        }
        _ => {}
    }
    if change.from.is_some() {
        writeln!(out, "renamed from {old_path}")?;
        writeln!(out, "renamed to {path}")?;
    }
    match text {
        Text::Binary => writeln!(out, "binary files differ, {}", sizes(change)),
        Text::Lines { hunks, .. } => {
            let side =
                |there: bool, name: String| if there { name } else { "/dev/null".to_owned() };
            writeln!(
                out,
                "--- {}",
                side(change.old.is_some(), format!("a/{old_path}"))
            )?;
            writeln!(
                out,
                "+++ {}",
                side(change.new.is_some(), format!("b/{path}"))
            )?;
            for line in hunks.split_inclusive('\n') {
                hunk_line(out, line.trim_end_matches('\n'))?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn hunk_line(out: &mut Vec<u8>, line: &str) -> std::io::Result<()> {
    let style = match line.as_bytes().first() {
        Some(b'+') => GOOD,
        Some(b'-') => BAD,
        Some(b'@') => SO_SO,
        _ => Style::new(),
    };
    // Tabs are what programs are written with; all else that drives a terminal is written out.
    let safe = line.split('\t').map(output::printable).collect::<Vec<_>>();
    writeln!(out, "{style}{}{style:#}", safe.join("\t"))
}

/// Through a pager if there is a terminal; it ends by itself if all fits on the screen.
fn show(page: &[u8]) -> Result<(), Failure> {
    if std::io::stdout().is_terminal() && !page.is_empty() && page_through(page) {
        return Ok(());
    }
    output::text(|out| out.write_all(page))
}

fn page_through(page: &[u8]) -> bool {
    let chosen = std::env::var_os("PAGER").unwrap_or_else(|| OsString::from("less"));
    if chosen.is_empty() || chosen == "cat" {
        return false;
    }
    let mut shown = Vec::new();
    let wanted = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    let written = if wanted {
        shown.write_all(page)
    } else {
        anstream::StripStream::new(&mut shown).write_all(page)
    };
    let pager = Command::new(chosen)
        .env("LESS", "FRX")
        .stdin(Stdio::piped())
        .spawn();
    let (Ok(()), Ok(mut pager)) = (written, pager) else {
        return false;
    };
    if let Some(mut input) = pager.stdin.take() {
        // Whoever leaves the pager early has seen enough.
        let _ = input.write_all(&shown);
    }
    pager.wait().is_ok()
}
