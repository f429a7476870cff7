//! Loops without end that wait for nothing.

use stockade_shell::Command;

use super::Judge;
use super::programs::Group;
use crate::hosts;
use crate::result::Span;
use crate::rule::Rule;

/// How such loops begin, `do` left out.
const ENDLESS: &[&str] = &[
    "while true",
    "while :",
    "while [ 1 ]",
    "while [[ 1 ]]",
    "while ((1))",
    "while (( 1 ))",
    "while 1",
    "until false",
    "for ((;;))",
    "for (( ; ; ))",
    "for((;;))",
];

/// What lets others breathe, or ends the loop.
const PAUSES: &[&str] = &[
    "sleep",
    "wait",
    "read",
    "break",
    "exit",
    "return",
    "exec",
    "inotifywait",
    "select",
    "timeout",
    "flock",
    "kill",
];

/// Loops of one script that are looked at.
const MOST: usize = 64;

impl Judge<'_> {
    pub(super) fn loops(&mut self) {
        let source = self.source;
        for begin in ENDLESS {
            for (start, _) in source.match_indices(begin).take(MOST) {
                let rest = &source[start + begin.len()..];
                let head = rest.trim_start_matches([';', ' ', '\t', '\n']);
                let Some(body) = head.strip_prefix("do") else {
                    continue;
                };
                let from = source.len() - body.len();
                if let Some(end) = body.find("done") {
                    self.endless(Span::new(start, from + end), from);
                }
            }
        }
    }

    fn endless(&mut self, span: Span, from: usize) {
        let script = self.script;
        let within = |command: &&Command| {
            command.span.start >= from && command.span.end <= span.end && command.parent.is_none()
        };
        let body: Vec<&Command> = script.commands.iter().filter(within).collect();
        let pauses = |command: &&Command| {
            command.name().is_some_and(|name| PAUSES.contains(&name))
                || command.name().is_none() && !command.words.is_empty()
        };
        if body.is_empty() || body.iter().any(pauses) {
            return;
        }
        if body.iter().any(|command| command.background) {
            let reason = "starts one more in the background, without end";
            return self.add(Rule::ForkBomb, span, reason);
        }
        let doubles = |command: &&Command| {
            command.words.is_empty()
                && command.assignments.iter().any(|set| {
                    let written = self.source.get(set.span.start..set.span.end);
                    let own = [format!("${}", set.name), format!("${{{}}}", set.name)];
                    written.is_some_and(|text| own.iter().any(|own| text.contains(own)))
                })
        };
        if body.iter().all(|command| command.words.is_empty()) && body.iter().any(doubles) {
            return self.add(Rule::ForkBomb, span, "fills the memory without end");
        }
        let idle = |command: &&Command| {
            matches!(
                command.name(),
                Some(":" | "true" | "echo" | "printf" | "yes")
            ) && !command
                .redirects
                .iter()
                .any(|redirect| redirect.op.writes())
        };
        if body.iter().all(idle) && self.is_brief() {
            let reason = "does nothing but keep the machine busy, without end";
            return self.add(Rule::ForkBomb, span, reason);
        }
        let sends = |command: &&Command| {
            let name = command.name().unwrap_or_default();
            let sender = Group::Fetchers.has(name) || matches!(name, "nc" | "ncat" | "hping3");
            let local = |text: &str| hosts::host_of(text).is_some_and(hosts::is_local);
            sender && !command.args().iter().any(|word| local(&word.text))
        };
        if body.iter().any(sends) {
            let reason = "asks someone again and again, without end or pause";
            self.add(Rule::NetworkFlood, span, reason);
        }
    }
}
