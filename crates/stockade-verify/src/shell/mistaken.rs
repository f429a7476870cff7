//! Text that was called a shell script and is something else: a program in another language, or a
//! transcript with prompts.

use super::{Judge, judge_foreign};
use crate::analysis::Nested;
use crate::language::Language;
use crate::result::Span;
use crate::words::Words;
use stockade_shell::Command;

/// Longest text that is looked at.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// How programs in languages without a grammar here begin.
static BEGINNINGS: Words = Words::new("shell/mistaken beginnings");

impl Judge<'_> {
    /// `user@host$ command`, `$ command`: the prompt of whoever copied it.
    pub(super) fn prompted(&mut self, command: &Command) {
        let Some(first) = command.words.first() else {
            return;
        };
        let prompt = match first.text.as_str() {
            "$" | "#" | ">" | "PS>" => true,
            text => text.contains('@') && text.ends_with(['$', '#', '%']) && text.len() < 64,
        };
        let Some(second) = command.words.get(1).filter(|_| prompt) else {
            return;
        };
        if let Some(rest) = self.source.get(second.span.start..command.span.end) {
            self.analysis
                .command_text(rest, command.span, self.findings);
        }
    }

    pub(super) fn other_language(&mut self) {
        let source = self.source;
        if source.len() >= MAX_TEXT_BYTES {
            return;
        }
        let interpreter = source
            .strip_prefix("#!")
            .and_then(|rest| rest.lines().next())
            .is_some_and(|line| {
                ["perl", "ruby", "php", "lua"]
                    .iter()
                    .any(|name| line.contains(name))
            });
        let connects = source.contains("ocket") || source.contains("/dev/tcp/");
        let runs = [
            "ProcessBuilder",
            "Runtime.getRuntime",
            "Process.Start(",
            "Process.start(",
        ];
        let runs = connects && runs.iter().any(|call| source.contains(call));
        let first = source.lines().map(str::trim).find(|line| !line.is_empty());
        let foreign = first.is_some_and(|line| {
            let begins = BEGINNINGS.iter().any(|begin| line.starts_with(begin));
            begins && self.analysis.depth == 0
        });
        if interpreter || runs || foreign {
            judge_foreign(None, source, self.analysis, self.findings);
        }
        if foreign && let Some((rule, what)) = crate::payload::recognise(source) {
            let whole = Span::new(0, source.len());
            self.add(rule, whole, format!("holds {what}"));
        }
        if let Some(language) = begins_as(source).filter(|_| self.analysis.depth == 0) {
            let whole = Span::new(0, source.len());
            let nested = Nested::Full(language);
            self.analysis
                .nested(nested, source, whole, Some(0), self.findings);
        }
    }
}

/// The language of a program that someone called a shell script, by how it begins.
fn begins_as(source: &str) -> Option<Language> {
    let line = source.lines().find(|line| !line.trim().is_empty())?.trim();
    let python = line.strip_prefix("from ").or(line.strip_prefix("import "));
    let named = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if python.is_some_and(named) && source.len() < MAX_TEXT_BYTES {
        return Some(Language::Python);
    }
    if line.starts_with("package main") {
        return Some(Language::Go);
    }
    let starts = ["(function", "const ", "var ", "let ", "require("];
    let script = starts.iter().any(|start| line.starts_with(start)) && source.contains("require(");
    (script && source.len() < MAX_TEXT_BYTES).then_some(Language::JavaScript)
}
