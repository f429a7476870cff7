//! What options say, whatever takes them: commands to run, files to attach.

use super::judge::Judge;
use super::places::is_foreign;
use super::value::{Args, Kind, Value};
use crate::paths::{self, Place};
use crate::result::Span;
use crate::rule::Rule;

/// Options inside options that are looked at, and how many in all.
const DEPTH: usize = 4;
const MOST: usize = 128;
/// Commands among options that are judged, over the whole text.
const COMMANDS: usize = 64;

impl Judge<'_> {
    /// `run(module="shell", module_args="…")`, `BashOperator(bash_command="…")`
    pub(super) fn commands_in(&mut self, args: &Args, span: Span) {
        for (name, value) in leaves(args) {
            if !is_command(name) || self.seen.options >= COMMANDS {
                continue;
            }
            match &value.kind {
                Kind::Text(text) if text.contains(' ') => {
                    self.seen.options += 1;
                    self.command_text(text, span);
                }
                Kind::List(items) => {
                    let words = items.iter().take(32).filter_map(Value::as_text);
                    let words: Vec<&str> = words.collect();
                    // One command in words; commands one by one are leaves of their own.
                    if words.len() > 1 && !words.iter().any(|word| word.contains(' ')) {
                        self.seen.options += 1;
                        self.command_text(&words.join(" "), span);
                    }
                }
                _ => {}
            }
        }
    }

    /// `attachments: [{path: "/etc/shadow"}]`: a file that is sent by its name.
    pub(super) fn attaches(&mut self, path: &str, args: &Args, span: Span) {
        let names = ["path", "file", "filePath", "filepath", "attachment"];
        let signs = ["cert", "key", "pem", "verify", "identity", "config"];
        let attached = leaves(args).into_iter().find_map(|(name, value)| {
            let file = value.as_text()?;
            let place = Place::new(file);
            let theirs = if names.contains(&name) {
                place.is(paths::Kind::Credential) || is_foreign(&place)
            } else {
                // Whoever logs in with a key names it too.
                let name = name.to_ascii_lowercase();
                place.is(paths::Kind::Credential) && !signs.iter().any(|sign| name.contains(sign))
            };
            (file.starts_with(['/', '~']) && theirs).then_some(file)
        });
        if let Some(file) = attached {
            let reason = format!("`{path}` sends {file}");
            self.findings.add(Rule::Exfiltration, span, reason);
        }
    }
}

/// Options that hold a command line.
fn is_command(name: &str) -> bool {
    matches!(
        name,
        "bash_command"
            | "cmd"
            | "cmds"
            | "command"
            | "commands"
            | "Command"
            | "Cmd"
            | "module_args"
            | "startup_script"
            | "startup-script"
    )
}

/// Values in the objects and lists of arguments, each with the name that it stands under; lists
/// too. Not all, where there are very many.
pub(super) fn leaves(args: &Args) -> Vec<(&str, &Value)> {
    let mut out = Vec::new();
    for (name, value) in &args.named {
        gather(name, value, DEPTH, &mut out);
    }
    for value in &args.positional {
        gather("", value, DEPTH, &mut out);
    }
    out
}

fn gather<'v>(name: &'v str, value: &'v Value, depth: usize, out: &mut Vec<(&'v str, &'v Value)>) {
    if out.len() >= MOST {
        return;
    }
    match &value.kind {
        Kind::Dict(pairs) if depth > 0 => {
            for (key, value) in pairs.iter().take(MOST) {
                gather(key.exact().unwrap_or_default(), value, depth - 1, out);
            }
        }
        Kind::List(items) if depth > 0 => {
            out.push((name, value));
            for item in items.iter().take(MOST) {
                gather(name, item, depth - 1, out);
            }
        }
        Kind::Text(_) => out.push((name, value)),
        _ => {}
    }
}
