//! Programs under another name, in an odd place, or given other rights on the way.

use stockade_shell::{Command, Word, is_shell};

use super::staging::is_temporary;
use super::{Judge, value_of};
use crate::paths::{Place, Root};
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    /// A copy of a shell where none belongs, or of any program with its owner's rights.
    pub(super) fn copies_program(&mut self, name: &str, command: &Command, sources: &[&Word]) {
        let args = command.args();
        let mode = value_of(args, 'm', &["mode"]).filter(|_| name == "install");
        let special = mode.is_some_and(|mode| {
            mode.contains('s') || mode.len() > 3 && mode.starts_with(['2', '4', '6'])
        });
        if special {
            let reason = "installs a program that runs with its owner's rights";
            self.findings
                .only_in_excerpt(Rule::FileMode, command.span, reason);
        }
        let target = args.last().map(|word| self.place(&word.text));
        let Some(target) = target.filter(|_| self.is_brief()) else {
            return;
        };
        let last = target.path.rsplit('/').next().unwrap_or_default();
        let bracketed = last.starts_with('[') && last.ends_with(']') && last.len() > 2;
        if bracketed {
            let reason = format!("gives a program the name of a kernel's thread, {last}");
            return self.add(Rule::ObfuscatedCommand, command.span, reason);
        }
        let dots = |part: &str| part.len() > 2 && part.bytes().all(|b| b == b'.');
        let odd = target.path.split('/').any(dots) || target.path.contains("/.");
        let loose = is_temporary(&target.path) && target.root == Root::Absolute || odd;
        let shell = sources.iter().find(|word| self.is_shell_program(word));
        if let (Some(word), true) = (shell, loose) {
            let reason = format!("puts a copy of the shell {} at {}", word.text, target.path);
            self.add(Rule::ShellEscape, command.span, reason);
        }
    }

    /// A shell's path, or what `which` says of one.
    fn is_shell_program(&self, word: &Word) -> bool {
        let path = Place::new(&word.text).path;
        let written = self.source.get(word.span.start..word.span.end);
        let looked_up = written.is_some_and(|written| written.contains("which "));
        let name = path.rsplit('/').next().unwrap_or_default();
        let by_path = path.starts_with("/bin/") || path.starts_with("/usr/bin/");
        is_shell(name) && (by_path || looked_up)
    }

    /// A recording kept where nobody looks for it.
    pub(super) fn records_aside(&mut self, name: &str, command: &Command, span: Span) {
        if !self.is_brief() || !super::programs::Group::Captures.has(name) {
            return;
        }
        let device = value_of(command.args(), 'i', &["interface"]);
        let sniffs = matches!(name, "tcpdump" | "tshark" | "dumpcap");
        let own =
            |device: &str| matches!(device, "lo" | "lo0" | "any") || device.contains("docker");
        if sniffs && device.is_some_and(|device| !own(device)) {
            let reason = format!("`{name}` records what others send");
            self.add(Rule::Surveillance, span, reason);
        }
        let aside = |word: &Word| is_temporary(&word.text) && word.text.matches('/').count() > 1;
        if command.args().iter().any(aside) {
            let reason = format!("`{name}` records into a temporary place");
            self.add(Rule::Surveillance, span, reason);
        }
    }
}
