//! Loops without end that wait for nothing.

use stockade_shell::{Command, CommandId, RedirectOp};

use super::programs::Group;
use super::{Judge, value_of};
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
const MAX_LOOPS: usize = 64;

impl Judge<'_> {
    pub(super) fn loops(&mut self) {
        let source = self.source;
        for begin in ENDLESS {
            for (start, _) in source.match_indices(begin).take(MAX_LOOPS) {
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

    /// `seq 100000 | xargs -P500 curl …`, `for i in {1..100000}; do curl … & done`
    pub(super) fn counted_flood(&mut self, id: CommandId, name: &str, command: &Command) {
        let sender = Group::Fetchers.has(name) || matches!(name, "nc" | "ncat");
        let local = hosts::only_local(command.args().iter().map(|word| word.text.as_str()));
        // A page for each number is many pages, not one page many times.
        let each = command.args().iter().any(|word| word.text.contains("{}"));
        if !sender || each || !self.is_brief() || local {
            return;
        }
        let workers = |by: &Command| {
            let many = value_of(by.args(), 'P', &["max-procs"])
                .or_else(|| value_of(by.args(), 'j', &["jobs"]));
            let many = many.and_then(|many| many.parse::<u32>().ok());
            matches!(by.name(), Some("xargs" | "parallel")) && many.is_some_and(|many| many >= 50)
        };
        let counts = |text: &str| {
            let last = text.rsplit(['.', ' ']).next().unwrap_or_default();
            last.trim_matches(['}', ')', '`'])
                .parse::<u64>()
                .is_ok_and(|last| last >= 1000)
        };
        let counted = |other: &Command| {
            other.name() == Some("seq")
                && other.args().last().is_some_and(|word| counts(&word.text))
        };
        let upstream = self.script.upstream(id);
        let fed = upstream
            .iter()
            .any(|other| counted(&self.script.commands[*other]))
            || upstream
                .iter()
                .any(|other| self.script.commands[*other].name() == Some("yes"));
        let looped = || {
            let before = self.source.get(..command.span.start).unwrap_or_default();
            let begin = before.rfind("for ").map(|at| &before[at..]);
            let list = begin.and_then(|begin| {
                begin
                    .split(["; do", "\ndo", ";do"][usize::from(begin.contains("\ndo"))])
                    .next()
            });
            list.is_some_and(|list| list.contains("seq ") || list.contains(".."))
                && list.is_some_and(counts)
        };
        let floods =
            fed && self.script.ancestors(id).any(workers) || command.background && looped();
        if floods {
            let reason = "asks someone thousands of times at once";
            self.add(Rule::NetworkFlood, command.span, reason);
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
                .any(|redirect| redirect.op.writes() && redirect.target.text != "/dev/null")
        };
        let grows = |command: &&Command| {
            let keeps = |redirect: &stockade_shell::Redirect| {
                matches!(redirect.op, RedirectOp::Append | RedirectOp::AppendBoth)
                    && !redirect.target.text.starts_with("/dev/")
            };
            matches!(command.name(), Some("echo" | "printf" | "cat"))
                && command.redirects.iter().any(keeps)
        };
        if body.iter().all(grows) {
            return self.add(Rule::DestroyDisk, span, "fills the disk, without end");
        }
        if body.iter().all(idle) && self.is_brief() {
            let reason = "does nothing but keep the machine busy, without end";
            return self.add(Rule::ForkBomb, span, reason);
        }
        let sends = |command: &&Command| {
            let name = command.name().unwrap_or_default();
            let sender = Group::Fetchers.has(name) || matches!(name, "nc" | "ncat" | "hping3");
            let texts = command.args().iter().map(|word| word.text.as_str());
            sender && !hosts::only_local(texts)
        };
        if body.iter().any(sends) {
            let reason = "asks someone again and again, without end or pause";
            self.add(Rule::NetworkFlood, span, reason);
        }
    }
}
