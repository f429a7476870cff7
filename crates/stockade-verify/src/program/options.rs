//! What options say, whatever takes them: commands to run, files to attach.

use super::judge::Judge;
use super::places::is_foreign;
use super::value::{Args, Kind, Value};
use crate::paths::{self, Place};
use crate::result::Span;
use crate::rule::Rule;

/// Options inside options that are looked at.
const DEPTH: usize = 3;

impl Judge<'_> {
    /// `run(module="shell", module_args="…")`, `BashOperator(bash_command="…")`
    pub(super) fn commands_in(&mut self, args: &Args, span: Span) {
        for (name, value) in &args.named {
            self.command_option(name, value, DEPTH, span);
        }
        for value in &args.positional {
            self.command_option("", value, DEPTH, span);
        }
    }

    fn command_option(&mut self, name: &str, value: &Value, depth: usize, span: Span) {
        match &value.kind {
            Kind::Dict(pairs) if depth > 0 && pairs.len() <= 16 => {
                for (key, value) in pairs.iter() {
                    let key = key.exact().unwrap_or_default();
                    self.command_option(key, value, depth - 1, span);
                }
            }
            Kind::Text(text) if is_command(name) && text.contains(' ') => {
                self.command_text(text, span);
            }
            Kind::List(items) if is_command(name) => {
                let texts: Vec<&str> = items.iter().take(32).filter_map(Value::as_text).collect();
                // One command in words, or commands one by one.
                if texts.iter().any(|text| text.contains(' ')) {
                    for text in texts {
                        self.command_text(text, span);
                    }
                } else if texts.len() > 1 {
                    self.command_text(&texts.join(" "), span);
                }
            }
            _ => {}
        }
    }

    /// `attachments: [{path: "/etc/shadow"}]`: a file that is sent by its name.
    pub(super) fn attaches(&mut self, path: &str, args: &Args, span: Span) {
        let attached = args
            .all()
            .find_map(|value| attachment("", value, DEPTH + 1))
            .filter(|file| {
                let place = Place::new(file);
                place.is(paths::Kind::Credential) || is_foreign(&place)
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

/// The first file that options name.
fn attachment<'v>(name: &str, value: &'v Value, depth: usize) -> Option<&'v str> {
    match &value.kind {
        Kind::Dict(pairs) if depth > 0 && pairs.len() <= 16 => pairs
            .iter()
            .find_map(|(key, value)| attachment(key.exact().unwrap_or_default(), value, depth - 1)),
        Kind::List(items) if depth > 0 => {
            let mut items = items.iter().take(16);
            items.find_map(|value| attachment(name, value, depth - 1))
        }
        Kind::Text(text)
            if matches!(
                name,
                "path" | "file" | "filePath" | "filepath" | "attachment"
            ) =>
        {
            text.starts_with(['/', '~']).then_some(text)
        }
        _ => None,
    }
}
