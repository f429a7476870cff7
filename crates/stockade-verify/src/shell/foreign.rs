//! Code in languages without a grammar here (Perl, Ruby, PHP, Lua, awk, SQL): strings and calls.
//!
//! Judged by what its string literals hold and which calls stand beside them. Weaker than parsing;
//! reported with the same rules.

use stockade_shell::Language;

use super::calls::{DECODES, DELETES, EVALUATES, FETCHES, READS, RUNS, SENDS, SOCKETS, WRITES};
use super::programs::Group;
use crate::analysis::Analysis;
use crate::files::{Deletion, Files, Speaker, Writing};
use crate::findings::Findings;
use crate::hosts;
use crate::paths::Place;
use crate::result::Span;
use crate::rule::Rule;

/// Words of one text that are looked at.
const MOST_WORDS: usize = 512;

/// Judges a text in a foreign language. Findings have the span of the whole text.
pub(crate) fn judge(
    language: Option<Language>,
    text: &str,
    analysis: &Analysis<'_>,
    findings: &mut Findings,
) {
    let lower = text.to_ascii_lowercase();
    if language == Some(Language::Sql) {
        let span = Span::new(0, text.len());
        return super::sql::judge(&lower, span, findings);
    }
    let mut judge = Judge {
        calls: Calls::new(language, &lower),
        span: Span::new(0, text.len()),
        analysis,
        findings,
    };
    judge.calls_together(&lower);
    judge.sends_secret(text);
    for literal in literals(text).chain(braced(text)) {
        judge.literal(literal, &lower);
    }
    for line in lower.lines().filter(|_| language.is_none()).take(64) {
        let told = line.split_once("spawn ").map(|(_, command)| command);
        let told = told.or_else(|| line.trim_start().strip_prefix("exec "));
        if let Some(command) = told {
            analysis.command_text(command, judge.span, judge.findings);
        }
    }
    if matches!(
        language,
        Some(Language::Perl | Language::Ruby | Language::Php)
    ) {
        let far = lower.contains("http://") || lower.contains("https://");
        let fetches = FETCHES.iter().any(|mark| lower.contains(mark));
        for command in backquoted(text) {
            let program = command.split_ascii_whitespace().next().unwrap_or_default();
            if far && fetches && Group::Tells.has(program) {
                let reason = format!("sends what `{program}` tells to another machine");
                judge.findings.add(Rule::Exfiltration, judge.span, reason);
            }
            analysis.command_text(command, judge.span, judge.findings);
        }
    }
}

/// Which calls a text has, by their usual names.
#[expect(clippy::struct_excessive_bools, reason = "each is there or not")]
struct Calls {
    socket: bool,
    runs: bool,
    evaluates: bool,
    decodes: bool,
    writes: bool,
    deletes: bool,
}

impl Calls {
    fn new(language: Option<Language>, lower: &str) -> Self {
        let any = |marks: &[&str]| marks.iter().any(|mark| lower.contains(mark));
        Self {
            // In awk only that path opens one; other words are what it looks for.
            socket: match language {
                Some(Language::Awk) => lower.contains("/inet"),
                _ => any(&SOCKETS),
            },
            runs: any(&RUNS),
            evaluates: any(EVALUATES),
            decodes: any(&DECODES),
            writes: any(&WRITES),
            deletes: any(&DELETES) || calls_rm(lower),
        }
    }
}

/// `rm("path")`, as some languages call it; not `confirm("…")`.
fn calls_rm(lower: &str) -> bool {
    ["rm(\"", "rm('"].iter().any(|call| {
        lower.match_indices(call).take(64).any(|(at, _)| {
            let before = lower[..at].chars().next_back();
            before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '.')
        })
    })
}

struct Judge<'a> {
    calls: Calls,
    span: Span,
    analysis: &'a Analysis<'a>,
    findings: &'a mut Findings,
}

impl Judge<'_> {
    /// Calls that mean something side by side.
    fn calls_together(&mut self, lower: &str) {
        let shells = ["/bin/sh", "/bin/bash", "cmd.exe", "powershell"];
        let shell = shells.iter().any(|shell| lower.contains(shell));
        let calls = &self.calls;
        if calls.socket && calls.runs {
            let reason = "connects to the network and runs commands";
            self.findings.add(Rule::ReverseShell, self.span, reason);
        } else if calls.runs && shell {
            self.findings
                .add(Rule::ShellEscape, self.span, "starts a shell");
        }
        let any = |marks: &[&str]| marks.iter().any(|mark| lower.contains(mark));
        if calls.socket && any(&SENDS) && any(&READS) {
            let reason = "sends a file over a connection of its own";
            self.findings.add(Rule::Exfiltration, self.span, reason);
        }
        let far = lower.contains("http://") || lower.contains("https://");
        let posts = any(&["\"post\"", "'post'", "http.post", "::post", "post("]);
        if far && posts && reads_local(lower) {
            let reason = "sends a file to another machine";
            self.findings.add(Rule::Exfiltration, self.span, reason);
        }
        let forks = [
            "fork while",
            "fork()while",
            "{fork",
            "{ fork",
            "loop do fork",
        ];
        let endless = ["while", "loop", "for(;;)", "for (;;)", "until"];
        if forks.iter().any(|mark| lower.contains(mark))
            && endless.iter().any(|mark| lower.contains(mark))
        {
            self.findings
                .add(Rule::ForkBomb, self.span, "forks without end");
        }
        let turns = [
            "while(1)",
            "while (1)",
            "while(true)",
            "while (true)",
            "for(;;)",
            "for (;;)",
            "loop {",
            "loop do",
        ];
        let pauses = [
            "sleep", "getline", "<stdin>", "gets", "accept", "last", "break", "exit", "recv",
            "read",
        ];
        let outputs = ["print", "puts", "write", "echo", "push", ".="];
        let has_any = |marks: &[&str]| marks.iter().any(|mark| lower.contains(mark));
        if has_any(&turns) && has_any(&outputs) && !has_any(&pauses) && !calls.socket {
            let reason = "writes without end";
            self.findings.add(Rule::ForkBomb, self.span, reason);
        }
        let environment = ["%env", "env[", "env.to", "getenv()", "environ", "$_env"];
        if has_any(&environment) && has_any(&["http://", "https://", "ftp://"]) && has_any(&FETCHES)
        {
            let reason = "sends the environment to another machine";
            self.findings.add(Rule::Exfiltration, self.span, reason);
        }
        let all = ["glob \"*\"", "glob '*'", "glob(\"*\")", "glob('*')", "<*>"];
        if calls.deletes && all.iter().any(|mark| lower.contains(mark)) {
            let reason = "deletes everything in the working directory";
            self.findings.add(Rule::DestroyFiles, self.span, reason);
        }
        if calls.decodes && (calls.evaluates || calls.runs) {
            self.findings
                .add(Rule::CodeHidden, self.span, "runs decoded text");
        }
    }

    /// A secret's name and another machine's in one piece of code, whatever it calls.
    fn sends_secret(&mut self, text: &str) {
        let url =
            |part: &str| hosts::is_url(part) && !hosts::host_of(part).is_some_and(hosts::is_local);
        let mut words = text.split([' ', '"', '\'', '(', ')', '[', ']', '{', '}', '`', ',', ';']);
        if !words.clone().take(MOST_WORDS).any(url) {
            return;
        }
        let telling = |part: &&str| {
            let path = part.starts_with(['.', '/', '~']) || part.contains("/.");
            path && part.len() > 2 && super::gather::is_telling(&Place::new(part))
        };
        let secret = words.by_ref().take(MOST_WORDS).find(telling);
        if let Some(secret) = secret {
            let reason = format!("sends {secret} to another machine");
            self.findings.add(Rule::Exfiltration, self.span, reason);
        }
    }

    /// A text in quotes: a URL, a path, or a command.
    fn literal(&mut self, literal: &str, lower: &str) {
        if hosts::is_url(literal) {
            return self.url(literal, lower);
        }
        if literal.starts_with(['/', '~']) && literal.len() < 512 {
            self.path(literal);
            let place = Place::new(literal);
            let far = lower.contains("http://") || lower.contains("https://");
            let fetches = FETCHES.iter().any(|mark| lower.contains(mark));
            if far && fetches && super::gather::is_telling(&place) {
                let reason = format!("sends {literal} to another machine");
                self.findings.add(Rule::Exfiltration, self.span, reason);
            }
        }
        let calls_system = lower.contains("system") || lower.contains('`');
        if self.calls.runs && literal.contains(' ') || calls_system {
            self.analysis
                .command_text(literal, self.span, self.findings);
        }
    }

    fn url(&mut self, url: &str, lower: &str) {
        let fetches = FETCHES.iter().any(|mark| lower.contains(mark));
        if let Some(reason) = hosts::suspicion(url) {
            self.findings
                .add(Rule::NetworkHost, self.span, format!("talks to {reason}"));
        } else if self.calls.evaluates && fetches {
            self.findings
                .add(Rule::DownloadRun, self.span, "runs what it downloads");
        }
    }

    fn path(&mut self, path: &str) {
        let files = Files {
            allowed: &self.analysis.verifier.allowed_paths,
            speaker: Speaker::Program,
        };
        let place = Place::new(path);
        let calls = &self.calls;
        if calls.deletes {
            files.delete(&place, Deletion::ForcedTree, self.span, self.findings);
        }
        let persists = place.kinds().iter().any(|kind| kind.persists().is_some());
        let only_writes = !calls.runs && !calls.deletes && !path.contains(' ');
        if calls.writes && (persists || only_writes) {
            files.write(&place, Writing::Append, self.span, self.findings);
        }
        files.read(&place, self.span, self.findings);
    }
}

/// Whether a call reads a file of this machine, named in place.
fn reads_local(lower: &str) -> bool {
    READS.iter().any(|mark| {
        lower.match_indices(mark).take(16).any(|(at, _)| {
            let rest = lower[at + mark.len()..].trim_start_matches([' ', '(']);
            let named = rest.strip_prefix(['"', '\'']);
            named.is_some_and(|name| !name.starts_with("http") && !name.starts_with("php:"))
        })
    })
}

/// The insides of quoted strings.
pub(super) fn literals(text: &str) -> impl Iterator<Item = &str> {
    quoted(text, &['"', '\''])
}

/// The insides of `q{…}`, `qq(…)`, `%q{…}`.
fn braced(text: &str) -> impl Iterator<Item = &str> {
    let marks = [
        ("q{", '}'),
        ("q(", ')'),
        ("q[", ']'),
        ("%w[", ']'),
        ("%w(", ')'),
        ("%w{", '}'),
        ("qx{", '}'),
        ("%x{", '}'),
    ];
    marks.into_iter().flat_map(move |(mark, end)| {
        text.match_indices(mark)
            .take(32)
            .filter_map(move |(at, _)| {
                let inside = &text[at + mark.len()..];
                inside.find(end).map(|end| &inside[..end])
            })
    })
}

fn backquoted(text: &str) -> impl Iterator<Item = &str> {
    quoted(text, &['`'])
}

fn quoted<'t>(text: &'t str, marks: &'static [char]) -> impl Iterator<Item = &'t str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(marks)?;
        let mark = rest[start..].chars().next()?;
        let inside = &rest[start + 1..];
        let end = inside.find(mark)?;
        rest = &inside[end + 1..];
        Some(&inside[..end])
    })
    .take(512)
}
