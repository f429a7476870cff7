//! Looking around: loops over addresses and ports, and questions about what guards the machine.

use super::gather::Matter;
use super::programs::Group;
use super::search::is_telling_pattern;
use super::{Judge, has, operands};
use crate::rule::Rule;
use crate::words::Words;
use stockade_shell::{Command, CommandId, HoleKind, Word};

/// Programs that watch a machine, by parts of their names (MITRE ATT&CK T1518.001).
static GUARDS: Words = Words::new("shell/survey guards");

impl Judge<'_> {
    /// `for p in {1..1024}; do echo > /dev/tcp/host/$p; done`: one port after the other.
    pub(super) fn port_loops(&mut self) {
        let source = self.source;
        if !self.is_brief() {
            return;
        }
        for (at, _) in source.match_indices("/dev/tcp/").take(8) {
            let rest = &source[at..];
            let end = rest
                .find([' ', ')', '"', '\'', ';', '\n', '&'])
                .unwrap_or(rest.len());
            let mut names = rest[..end].split('$').skip(1).map(|name| {
                let name = name.trim_start_matches('{');
                let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
                &name[..end.unwrap_or(name.len())]
            });
            let counted = |name: &str| {
                let counts = [
                    format!("for {name} in {{"),
                    format!("for {name} in $(seq"),
                    format!("for {name} in `seq"),
                    format!("for (({name}="),
                    format!("for (( {name}="),
                ];
                !name.is_empty() && counts.iter().any(|count| source.contains(count))
            };
            if names.any(counted) {
                let span = crate::result::Span::new(at, at + end);
                let reason = "tries one address or port after the other";
                return self.add(Rule::SystemSurvey, span, reason);
            }
        }
    }

    /// Passwords in recorded traffic.
    fn searches_recording(&mut self, id: CommandId, name: &str, command: &Command) {
        if !matches!(name, "grep" | "egrep" | "rg" | "awk") {
            return;
        }
        let telling = |word: &Word| {
            let text = word.text.to_ascii_lowercase();
            is_telling_pattern(&text) || text.contains("pass") || text.contains("login")
        };
        if !command.args().iter().any(telling) {
            return;
        }
        let fed = self
            .data_on_input(id)
            .filter(|found| found.matter == Matter::Machine);
        let named = operands(command.args()).find_map(|word| self.held(word, &word.text));
        let recorded = |by: &str| Group::Captures.has(by);
        if fed.or(named).is_some_and(|found| recorded(&found.by)) {
            let reason = "searches recorded traffic for secrets";
            self.add(Rule::Surveillance, command.span, reason);
        }
    }

    pub(super) fn survey_command(&mut self, id: CommandId, name: &str, command: &Command) {
        self.asks_for_guards(name, command);
        self.sweeps(id, name, command);
        self.searches_recording(id, name, command);
        self.asks_for_rights(id, name, command);
    }

    /// `ps aux | grep falcon-sensor`: what would notice.
    fn asks_for_guards(&mut self, name: &str, command: &Command) {
        if !matches!(name, "grep" | "egrep" | "fgrep" | "pgrep" | "pidof" | "rg")
            || !self.is_brief()
        {
            return;
        }
        let asked = |word: &Word| {
            let text = word.text.to_ascii_lowercase();
            GUARDS.iter().filter(|guard| text.contains(*guard)).count()
        };
        let asked: usize = operands(command.args()).map(asked).sum();
        let pipeline = &self.script.pipelines[command.pipeline];
        let listed = self.script.commands[pipeline.commands.clone()]
            .iter()
            .any(|other| {
                matches!(
                    other.name(),
                    Some("ps" | "systemctl" | "lsmod" | "dpkg" | "rpm")
                )
            });
        if asked > 1 || asked == 1 && (listed || matches!(name, "pgrep" | "pidof")) {
            let reason = "asks which programs watch this machine";
            self.add(Rule::SystemSurvey, command.span, reason);
        }
    }

    /// One address or port after the other: `for i in {1..254}; do ping -c1 10.0.0.$i; done`.
    fn sweeps(&mut self, id: CommandId, name: &str, command: &Command) {
        let knocks = matches!(
            name,
            "ping" | "fping" | "nc" | "ncat" | "netcat" | "nmap" | "arping"
        );
        if !knocks || !self.is_brief() {
            return;
        }
        let many = operands(command.args())
            .filter(|word| is_inside_network(&word.text))
            .take(9)
            .count();
        let counted = operands(command.args()).any(|word| {
            let counts = |kind: &HoleKind| match kind {
                HoleKind::Variable(_) | HoleKind::Arithmetic => true,
                HoleKind::Substitution { commands } => self.script.commands[commands.clone()]
                    .iter()
                    .any(|inner| inner.name() == Some("seq")),
                _ => false,
            };
            let last = word.holes.last();
            let ends =
                last.is_some_and(|hole| hole.range.end == word.text.len() && counts(&hole.kind));
            ends && is_inside_network(&word.text[..last.map_or(0, |hole| hole.range.start)])
        });
        let scans = has(command.args(), "z", &[])
            && command.args().iter().any(|word| is_port_range(&word.text));
        let fed = matches!(name, "ping" | "fping" | "nc") && {
            let mut parents = self.script.ancestors(id);
            parents.any(|parent| matches!(parent.name(), Some("xargs" | "parallel")))
                && self
                    .script
                    .upstream(id)
                    .iter()
                    .any(|other| self.script.commands[*other].name() == Some("seq"))
        };
        if many > 8 || counted || scans || fed {
            let reason = format!("`{name}` tries one address or port after the other");
            self.add(Rule::SystemSurvey, command.span, reason);
        }
    }

    /// `ls -alR /etc | awk '$1 ~ /^.....w/'`: what anyone may write.
    fn asks_for_rights(&mut self, id: CommandId, name: &str, command: &Command) {
        let asks = |word: &Word| {
            let mode = word.text.split('^').nth(1).unwrap_or_default();
            let mode = mode.split(['/', ' ', '\'']).next().unwrap_or_default();
            mode.starts_with("..") && mode.ends_with(['w', 's', 't'])
        };
        if !matches!(name, "awk" | "gawk" | "grep" | "egrep") || !command.args().iter().any(asks) {
            return;
        }
        let lists = self.script.upstream(id).into_iter().any(|other| {
            let other = &self.script.commands[other];
            other.name() == Some("ls") && has(other.args(), "R", &["recursive"])
        });
        if lists {
            let reason = "searches for places with special rights";
            self.add(Rule::SystemSurvey, command.span, reason);
        }
    }
}

/// The beginning of a private or any dotted address: `10.0.0.`, `192.168.1.7`.
fn is_inside_network(text: &str) -> bool {
    let mut parts = text.trim_end_matches('.').split('.');
    let numbers = parts.by_ref().take(3).filter(|part| {
        !part.is_empty() && part.len() < 4 && part.bytes().all(|b| b.is_ascii_digit())
    });
    numbers.count() == 3
}

/// `1-1024`
fn is_port_range(text: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    text.split_once('-')
        .is_some_and(|(from, to)| number(from) && number(to) && to.len() >= from.len())
}
