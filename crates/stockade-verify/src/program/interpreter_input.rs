//! Interpreters that are started to read what to run, and what they are fed.

use super::judge::Judge;
use super::run::is_text_switch;
use super::value::{Args, Kind, Taint, Value};
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    /// `process.stdin.write(…)`, `process.communicate(…)`
    pub(super) fn feeds_process(&mut self, library: &str, name: &str, args: &Args, span: Span) {
        let process = is_input(library) || library.ends_with("Popen()");
        let writes = matches!(
            name,
            "communicate" | "write" | "end" | "Write" | "WriteString" | "writelines"
        );
        if process && writes {
            self.feeds(args.taint(), span);
        }
    }

    /// Notes an interpreter that will read from its standard input: `bash -s`, `python3 -`.
    pub(super) fn note_interpreter(&mut self, line: &str, args: &Args, span: Span) {
        let mut words = line
            .split_whitespace()
            .map(|word| word.trim_matches(['\'', '"']));
        let program = words.next().unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or(program);
        let interprets = stockade_shell::is_shell(name)
            || name.starts_with("python")
            || matches!(
                name,
                "node" | "perl" | "ruby" | "php" | "powershell" | "pwsh"
            );
        // Anything but switches is a script, and text of its own follows some of them.
        let reads = words.all(|word| {
            word == "-"
                || word.starts_with('-')
                    && !is_text_switch(word)
                    && !matches!(word, "-m" | "-r" | "--eval")
        });
        if !(interprets && reads) {
            return;
        }
        self.seen.interpreter.get_or_insert(span);
        let option = args.positional.iter().find_map(|value| match &value.kind {
            Kind::Dict(pairs) => pairs
                .iter()
                .find(|(key, _)| matches!(key.exact(), Some("input" | "stdin")))
                .map(|(_, value)| value),
            _ => None,
        });
        let given = args.named("input").or_else(|| args.named("stdin"));
        if let Some(value) = given.or(option) {
            self.feeds(value.deep_taint(), span);
        }
    }

    /// Something is written to what was started.
    pub(super) fn feeds(&mut self, taint: Taint, span: Span) {
        if self.seen.interpreter.is_none() {
            return;
        }
        if taint.has(Taint::SOCKET) {
            let reason = "feeds an interpreter what comes from the network";
            self.findings.add(Rule::ReverseShell, span, reason);
        } else if taint.has(Taint::DOWNLOADED) {
            let reason = "feeds an interpreter what was downloaded";
            self.findings.add(Rule::DownloadRun, span, reason);
        } else if taint.has(Taint::DECODED) {
            let reason = "feeds an interpreter what was decoded";
            self.findings.add(Rule::CodeHidden, span, reason);
        }
    }
}

/// Whether a name stands for the standard input of what was started.
pub(super) fn is_input(path: &str) -> bool {
    let started = ["Popen()", "spawn()", "exec()", "execFile()", "Command()"]
        .iter()
        .any(|started| path.contains(started));
    let input = [".stdin", ".Stdin", ".StdinPipe()"]
        .iter()
        .any(|end| path.ends_with(end));
    started && input
}

/// Whether a value is that.
pub(super) fn is_input_value(value: &Value) -> bool {
    value.as_api().is_some_and(is_input)
}
