//! What is typed into a program that is not a shell: the lines after it, or its input.

use stockade_shell::{Command, HoleKind, Place as Position, Stdin, is_shell};

use super::programs::Group;
use super::spawn::names_shell;
use super::{Judge, value_of};
use crate::analysis::Nested;
use crate::rule::Rule;

/// Bytes after a program that are taken for what is typed into it.
const MOST: usize = 4096;

impl Judge<'_> {
    /// `irb`, and on the next line `exec "/bin/sh"`.
    pub(super) fn typed_after(&mut self, name: &str, command: &Command) {
        let opens = command.args().len() <= 3
            && command.place == Position::Statement
            && command.parent.is_none()
            && !command.background
            && command.redirects.is_empty()
            && self.is_brief();
        let speaks = Group::Foreign.has(name) || Group::ShellGivers.has(name);
        if !opens || is_shell(name) || name == "exec" {
            return;
        }
        let rest = self.source.get(command.span.end..).unwrap_or_default();
        let rest = rest.trim_start_matches([' ', '\t']);
        let Some(typed) = rest.strip_prefix('\n') else {
            return;
        };
        let end = (0..=MOST.min(typed.len())).rev();
        let end = end.into_iter().find(|at| typed.is_char_boundary(*at));
        let typed = &typed[..end.unwrap_or_default()];
        let first = typed.trim_start().lines().next().unwrap_or_default();
        let escapes = |line: &str| {
            let line = line.trim_start();
            let told = line.strip_prefix(":!").or_else(|| line.strip_prefix('!'));
            told.is_some_and(|told| {
                let told = told.trim_start();
                let program = told.split([' ', ';']).next().unwrap_or_default();
                is_shell(program) || names_shell(told)
            })
        };
        if escapes(first) || speaks && typed.lines().take(8).any(escapes) {
            let reason = format!("`{name}` is left for a shell");
            return self.add(Rule::ShellEscape, command.span, reason);
        }
        let bare = command.args().is_empty() && Group::Foreign.has(name) || name == "pdb";
        if bare {
            let nested = Nested::Foreign(None);
            self.analysis
                .nested(nested, typed, command.span, None, self.findings);
        } else if speaks
            && ["exec ", "exec(", "system("]
                .iter()
                .any(|call| first.contains(call))
            && names_shell(first)
        {
            let reason = format!("`{name}` is told to start a shell");
            self.add(Rule::ShellEscape, command.span, reason);
        }
    }

    /// Text on standard input that makes the program run commands.
    pub(super) fn told_by_input(&mut self, name: &str, command: &Command) {
        let makes = matches!(name, "make" | "gmake");
        let piped = command.args().iter().flat_map(|word| &word.holes);
        let mut piped = piped.filter(|_| makes).filter_map(|hole| match &hole.kind {
            HoleKind::Process { output, .. } => output.as_deref(),
            _ => None,
        });
        if let Some(file) = piped.next() {
            return self.makes(&file.text, command);
        }
        let Stdin::Text(text) = &command.stdin else {
            return;
        };
        match name {
            "m4" if text.text.contains("syscmd(") => {
                let reason = "`m4` is told to run a command";
                self.add(Rule::ShellEscape, command.span, reason);
            }
            "make" | "gmake"
                if value_of(command.args(), 'f', &["file", "makefile"])
                    .is_some_and(|file| matches!(file, "-" | "/dev/stdin")) =>
            {
                self.makes(&text.text, command);
            }
            "nc" | "ncat" | "netcat" | "telnet" | "socat" => {
                let lower = text.text.to_ascii_lowercase();
                let word = lower.split_ascii_whitespace().next().unwrap_or_default();
                let orders = [
                    "disable server",
                    "shutdown sessions",
                    "shutdown frontend",
                    "disable frontend",
                    "del server",
                ];
                if orders.iter().any(|order| lower.starts_with(order)) {
                    let reason = "tells a load balancer to drop what it serves";
                    return self.add(Rule::SystemStop, command.span, reason);
                }
                if matches!(word, "flush_all" | "flushall" | "flushdb") {
                    let reason = format!("empties a store through `{name}`");
                    self.add(Rule::DestroyData, command.span, reason);
                }
            }
            _ => {}
        }
    }

    /// The commands of a text for `make`.
    fn makes(&mut self, text: &str, command: &Command) {
        let lines = text.lines();
        let lines: Vec<&str> = lines.filter_map(|line| line.strip_prefix('\t')).collect();
        self.analysis
            .command_text(&lines.join("\n"), command.span, self.findings);
    }
}
