//! Ways around a reader: timing side channels, and commands that only the input or a
//! variable names.

use stockade_shell::{Command, CommandId, Place as Position, Word, is_shell};

use super::staging::is_temporary;
use super::{Judge, has, value_of};
use crate::result::Span;
use crate::rule::Rule;
use crate::words::Words;

/// Commands before a wait that are looked at.
const NEAR: usize = 4;

/// How far before a wait what it depends on stands.
const FAR: usize = 64;

/// Variables whose value is a command, or has some in it.
static RUNS: Words = Words::new("shell/blind runs");

impl Judge<'_> {
    /// `if [ "$(whoami | cut -c1)" = a ]; then sleep 5; fi`: whoever sees how long it takes learns
    /// one character, without any connection.
    pub(super) fn tells_by_waiting(&mut self, id: CommandId, name: &str, command: &Command) {
        let own = |word: &Word| matches!(word.text.as_str(), "127.0.0.1" | "localhost");
        let waits = name == "sleep" || name == "ping" && command.args().iter().any(own);
        if !waits || !self.is_brief() {
            return;
        }
        let between = |from: usize| {
            let text = self.source.get(from..command.span.start)?;
            (text.len() < FAR).then_some(text)
        };
        let before = self.script.commands[..id].iter().rev().take(NEAR);
        let mut before = before.filter(|other| is_one_character(other));
        let printed = before.any(|other| between(other.span.end).is_some_and(guesses));
        let start = command.span.start.saturating_sub(FAR - 1);
        let cut = self.source.get(start..command.span.start);
        let cut = cut.and_then(|text| text.split_once(":1}"));
        let cut = cut.is_some_and(|(variable, rest)| variable.contains("${") && guesses(rest));
        if printed || cut {
            let reason = "tells one character of what is here by how long it waits";
            self.add(Rule::Exfiltration, command.span, reason);
        }
    }

    /// `… | xargs -I{} sh -c '{}'`: each line of the input is a command.
    pub(super) fn runs_lines(&mut self, id: CommandId, name: &str, command: &Command) {
        if !is_shell(name) {
            return;
        }
        let args = command.args();
        if !has(args, "c", &[]) {
            return;
        }
        // With nothing after `-c` the line itself is put there.
        let code = value_of(args, 'c', &[]).unwrap_or("{}");
        let code = code.trim_matches(['"', '\'', ' ']);
        let stands_for_line = |by: &Command| match by.name() {
            Some("parallel") => code == "{}",
            Some("xargs") => {
                let given = value_of(by.args(), 'I', &["replace"]);
                code == given.filter(|mark| !mark.is_empty()).unwrap_or("{}")
            }
            _ => false,
        };
        if self.script.ancestors(id).any(stands_for_line) {
            let reason = format!("`{name}` runs every line of its input as a command");
            self.add(Rule::ShellEscape, command.span, reason);
        }
    }

    /// Variables that say which program another one runs, or where it looks for it.
    pub(super) fn names_program(&mut self, command: &Command, name: &str, value: &str, span: Span) {
        match name {
            "GIT_SSH_COMMAND"
            | "GIT_EXTERNAL_DIFF"
            | "GIT_EDITOR"
            | "GIT_PAGER"
            | "GIT_ASKPASS"
            | "PAGER"
            | "MANPAGER"
            | "SYSTEMD_PAGER"
            | "EDITOR"
            | "VISUAL"
            | "BROWSER"
            | "SUDO_EDITOR"
            | "SUDO_ASKPASS"
            | "SSH_ASKPASS"
            | "LESSOPEN"
            | "RSYNC_RSH"
            | "FACTERLIB"
            | "GIT_SSH"
            | "GIT_PROXY_COMMAND"
            | "GIT_SEQUENCE_EDITOR"
            | "LESSCLOSE"
            | "PERL5DB"
            | "TEXEDIT"
            | "FCEDIT"
            | "HGEDITOR"
            | "SVN_EDITOR"
            | "SVN_SSH"
            | "CVS_RSH"
            | "RUBYSHELL"
            | "BASH_LOADABLES_PATH"
            | "GCONV_PATH"
                if value.contains("/bin/sh")
                    || value.contains("sh -c")
                    || is_temporary(value)
                    || value.contains("system(") =>
            {
                let reason = format!("makes another program run {value}");
                self.add(Rule::ShellEscape, span, reason);
            }
            name if RUNS.contains(&name) || name.starts_with("BASH_FUNC_") => {
                let code = value.trim_start_matches(['|', '-', ' ']);
                let code = code.strip_prefix("() {").unwrap_or(code);
                let code = code.trim_end_matches(['}', ' ', ';']);
                self.analysis.command_text(code, span, self.findings);
            }
            "SSH_AUTH_SOCK" if value.starts_with("/tmp/ssh-") && value.contains("/agent.") => {
                let reason = format!("uses the keys of whoever runs {value}");
                self.add(Rule::CredentialRead, span, reason);
            }
            "PATH" | "GROFF_BIN_PATH" | "GIT_EXEC_PATH" | "COMPILER_PATH"
                if self.is_brief()
                    && command.place == Position::Statement
                    && (!matches!(command.name(), None | Some("export")) || is_shared(value))
                    && finds_anyones(value) =>
            {
                let reason = format!("makes another program run what lies in {value}");
                self.add(Rule::ShellEscape, span, reason);
            }
            _ => {}
        }
    }
}

/// Whether a command in a substitution prints one character.
fn is_one_character(command: &Command) -> bool {
    let args = command.args();
    command.place == Position::Substitution
        && match command.name() {
            Some("cut") => value_of(args, 'c', &["characters"])
                .or_else(|| value_of(args, 'b', &["bytes"]))
                .is_some_and(is_one),
            Some("head" | "tail") => value_of(args, 'c', &["bytes"]) == Some("1"),
            Some("awk" | "gawk" | "mawk" | "expr") => {
                args.iter().any(|word| word.text.contains("substr"))
            }
            _ => false,
        }
}

/// `)" = a ]; then`, `) in a)`: what follows is compared with one character.
fn guesses(text: &str) -> bool {
    let rest = text.trim_start_matches([')', '"', '`', ' ', '}']);
    let rest = ["==", "=", "in ", "-eq "]
        .iter()
        .find_map(|how| rest.strip_prefix(how));
    rest.is_some_and(|rest| {
        let mut rest = rest.trim_start_matches([' ', '"', '\'', '(']).chars();
        let guess = rest.next();
        guess.is_some_and(char::is_alphanumeric) && !rest.next().is_some_and(char::is_alphanumeric)
    })
}

/// A range of one: `1`, `3-3`.
fn is_one(range: &str) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    first == last && first.bytes().all(|b| b.is_ascii_digit()) && !first.is_empty()
}

/// Programs are looked for first in a directory that is everyone's own.
fn is_shared(path: &str) -> bool {
    let first = path.split(':').next().unwrap_or_default();
    matches!(
        first.trim_end_matches('/'),
        "/tmp" | "/var/tmp" | "/dev/shm"
    )
}

/// Whether programs are looked for first where anyone, or whoever wrote the work, puts files.
fn finds_anyones(path: &str) -> bool {
    let first = path.split(':').next().unwrap_or_default();
    matches!(first, "." | "./") || is_temporary(first)
}
