//! Ways around a reader: data told by waiting, and commands that only the input or a
//! variable names.

use stockade_shell::{Assignment, Command, CommandId, Place as Position, Word, is_shell};

use super::staging::is_temporary;
use super::{Judge, value_of};
use crate::rule::Rule;

/// Commands after a test among which the wait is looked for.
const NEAR: usize = 4;

impl Judge<'_> {
    /// `if [ "$(whoami | cut -c1)" = a ]; then sleep 5; fi`: whoever sees how long it takes learns
    /// one character, without any connection.
    pub(super) fn tells_by_waiting(&mut self, id: CommandId, name: &str, command: &Command) {
        if !matches!(name, "[" | "[[" | "test") {
            return;
        }
        let script = self.script;
        let guessed = |word: &Word| word.literal().is_some_and(|text| text.chars().count() == 1);
        let compares = |words: &[Word]| {
            let [left, operator, right] = words else {
                return false;
            };
            let equal = matches!(operator.text.as_str(), "=" | "==" | "-eq");
            equal
                && (guessed(right) && self.is_one_character(left)
                    || guessed(left) && self.is_one_character(right))
        };
        if !command.args().windows(3).any(compares) {
            return;
        }
        let after = script.commands.iter().skip(id + 1).take(NEAR);
        let mut after = after.filter(|other| other.span.start >= command.span.end);
        if after.next().and_then(Command::name) == Some("sleep") {
            let reason = "tells one character of a command's output by how long it waits";
            self.add(Rule::Exfiltration, command.span, reason);
        }
    }

    /// Whether a word is one character of what commands print.
    fn is_one_character(&self, word: &Word) -> bool {
        let mut inner = word.substitutions().flatten();
        inner.any(|id| {
            let inner = &self.script.commands[id];
            let args = inner.args();
            match inner.name() {
                Some("cut") => value_of(args, 'c', &["characters"])
                    .or_else(|| value_of(args, 'b', &["bytes"]))
                    .is_some_and(is_one),
                Some("head" | "tail") => value_of(args, 'c', &["bytes"]) == Some("1"),
                Some("awk" | "gawk" | "mawk" | "expr") => {
                    args.iter().any(|word| word.text.contains("substr"))
                }
                _ => false,
            }
        })
    }

    /// `… | xargs -I{} sh -c '{}'`: each line of the input is a command.
    pub(super) fn runs_lines(&mut self, id: CommandId, name: &str, command: &Command) {
        if !is_shell(name) {
            return;
        }
        let Some(code) = value_of(command.args(), 'c', &[]) else {
            return;
        };
        let code = code.trim_matches(['"', '\'', ' ']);
        let stands_for_line = |by: &Command| match by.name() {
            Some("parallel") => code == "{}",
            Some("xargs") => {
                let given = value_of(by.args(), 'I', &["replace"]);
                given.is_some_and(|mark| !mark.is_empty() && code == mark)
            }
            _ => false,
        };
        if self.script.ancestors(id).any(stands_for_line) {
            let reason = format!("`{name}` runs every line of its input as a command");
            self.add(Rule::ShellEscape, command.span, reason);
        }
    }

    /// Variables that say which program another one runs, or where it looks for it.
    pub(super) fn names_program(&mut self, command: &Command, assignment: &Assignment) {
        let value = assignment.value.text.as_str();
        let span = assignment.span;
        match assignment.name.as_str() {
            "GIT_SSH_COMMAND" | "GIT_EXTERNAL_DIFF" | "GIT_EDITOR" | "GIT_PAGER"
            | "GIT_ASKPASS" | "PAGER" | "MANPAGER" | "SYSTEMD_PAGER" | "EDITOR" | "VISUAL"
            | "BROWSER" | "SUDO_EDITOR" | "SUDO_ASKPASS" | "SSH_ASKPASS" | "LESSOPEN"
            | "RSYNC_RSH"
                if value.contains("/bin/sh") || value.contains("sh -c") =>
            {
                let reason = format!("makes another program run {value}");
                self.add(Rule::ShellEscape, span, reason);
            }
            "PATH" | "GROFF_BIN_PATH" | "GIT_EXEC_PATH" | "COMPILER_PATH"
                if self.is_brief()
                    && command.place == Position::Statement
                    && command.name().is_some_and(|name| name != "export")
                    && finds_anyones(value) =>
            {
                let reason = format!("makes another program run what lies in {value}");
                self.add(Rule::ShellEscape, span, reason);
            }
            _ => {}
        }
    }
}

/// A range of one: `1`, `3-3`.
fn is_one(range: &str) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    first == last && first.bytes().all(|b| b.is_ascii_digit()) && !first.is_empty()
}

/// Whether programs are looked for first where anyone, or whoever wrote the work, puts files.
fn finds_anyones(path: &str) -> bool {
    let first = path.split(':').next().unwrap_or_default();
    matches!(first, "." | "./") || is_temporary(first)
}
