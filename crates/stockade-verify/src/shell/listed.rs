//! Commands judged by their words alone, from `rules/commands.list`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use stockade_shell::{Command, CommandId, Word};

use super::gather::stem;
use super::programs::Group;
use super::staging::is_temporary;
use super::{Judge, operands};
use crate::rule::Rule;

/// A line of the list.
struct Entry {
    rule: Rule,
    weight: Weight,
    reason: &'static str,
    /// Alternatives for each argument, in order.
    needs: Vec<Vec<Cow<'static, str>>>,
    absent: Vec<&'static str>,
}

/// How much a line of the list weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Error,
    /// An error by itself, a warning in a long script.
    Brief,
    Warning,
}

impl Judge<'_> {
    pub(super) fn listed(&mut self, id: CommandId, name: &str, command: &Command) {
        // `python3 manage.py flush`, `bash linpeas.sh`: the script is the program.
        let script = operands(command.args())
            .next()
            .filter(|_| stockade_shell::is_shell(name) || Group::Interpreters.has(stem(name)));
        let script = script.map(|word| word.text.rsplit('/').next().unwrap_or(&word.text));
        let script = script.map(str::to_ascii_lowercase);
        let script = script.filter(|script| table().contains_key(script.as_str()));
        let program = script.as_deref().unwrap_or(name);
        let Some(entries) = table().get(program) else {
            return;
        };
        let args: Vec<Arg<'_>> = command
            .args()
            .iter()
            .map(|word| Arg::new(&word.text))
            .collect();
        let own = script.is_some().then(|| table().get(name)).flatten();
        let entries = entries.iter().chain(own.into_iter().flatten());
        for entry in entries.filter(|entry| entry.matches(&args)) {
            let reason = format!("`{name}` {}", entry.reason);
            if entry.rule == Rule::CredentialRead && self.kept_aside(id, command) {
                self.findings.raise(entry.rule, command.span, reason);
                continue;
            }
            match entry.weight {
                Weight::Error if entry.rule == Rule::TraceRemoval => {
                    self.findings.firm(entry.rule, command.span, reason);
                }
                Weight::Brief => self.findings.excerpt(entry.rule, command.span, reason),
                Weight::Error => {
                    self.findings.raise(entry.rule, command.span, reason);
                }
                Weight::Warning => self.warn(entry.rule, command.span, reason),
            }
        }
    }

    /// Secrets one after the other, or put into a file where anyone looks.
    fn kept_aside(&self, id: CommandId, command: &Command) -> bool {
        let mut around = self.script.ancestors(id);
        let each = around.any(|by| matches!(by.name(), Some("xargs" | "parallel")));
        let aside = command.redirects.iter().any(|redirect| {
            let plain = redirect.fd.is_none_or(|fd| fd == 1);
            redirect.op.writes() && plain && is_temporary(&redirect.target.text)
        });
        (each || aside) && self.is_brief()
    }
}

/// Whether the list has a line of a rule for a command.
pub(super) fn has_rule(name: &str, args: &[Word], rule: Rule) -> bool {
    let Some(entries) = table().get(name) else {
        return false;
    };
    let args: Vec<Arg<'_>> = args.iter().map(|word| Arg::new(&word.text)).collect();
    let mut entries = entries.iter().filter(|entry| entry.rule == rule);
    entries.any(|entry| entry.matches(&args))
}

/// An argument as it is and in lower case.
struct Arg<'t> {
    text: &'t str,
    lower: String,
}

impl<'t> Arg<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            lower: text.to_ascii_lowercase(),
        }
    }

    /// `--dry-run=false`: the option is named to say that it is not meant.
    fn is_denied(&self) -> bool {
        let value = self.lower.split_once('=').map(|(_, value)| value);
        matches!(value, Some("false" | "none" | "no" | "0" | "off"))
    }

    fn fits(&self, choice: &str) -> bool {
        let letter = choice.strip_prefix('-').filter(|rest| rest.len() == 1);
        if let Some(letter) = letter.filter(|rest| !matches!(*rest, "-" | "*")) {
            let cluster = self
                .text
                .strip_prefix('-')
                .filter(|rest| !rest.starts_with('-'));
            return cluster.is_some_and(|cluster| cluster.contains(letter));
        }
        let text = if choice.starts_with('-') {
            self.text
        } else {
            self.lower.as_str()
        };
        let mut rest = text;
        let mut parts = choice.split('*').peekable();
        let first = parts.next().unwrap_or_default();
        let Some(after) = rest.strip_prefix(first) else {
            return false;
        };
        rest = after;
        if parts.peek().is_none() {
            return rest.is_empty() || choice.starts_with("--") && rest.starts_with('=');
        }
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return rest.ends_with(part);
            }
            let Some(at) = rest.find(part) else {
                return false;
            };
            rest = &rest[at + part.len()..];
        }
        true
    }
}

impl Entry {
    fn matches(&self, args: &[Arg<'_>]) -> bool {
        if args.iter().any(|arg| {
            self.absent
                .iter()
                .any(|choice| arg.fits(choice) && !arg.is_denied())
        }) {
            return false;
        }
        let mut rest = args.iter();
        self.needs.iter().all(|choices| {
            let fits = |arg: &Arg<'_>| choices.iter().any(|choice| arg.fits(choice));
            let option = choices.iter().all(|choice| choice.starts_with('-'));
            if option {
                args.iter().any(fits)
            } else {
                rest.any(fits)
            }
        })
    }
}

type Table = HashMap<&'static str, Vec<Entry>>;

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = Table::new();
        let mut section = None;
        for line in include_str!("../../rules/commands.list").lines() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(header) = line.strip_prefix('[') {
                section = header_of(header);
                continue;
            }
            let Some((rule, weight, reason)) = section else {
                continue;
            };
            let mut words = line.split(' ');
            let programs = words.next().unwrap_or_default();
            let (absent, needs): (Vec<&str>, Vec<&str>) =
                words.partition(|word| word.starts_with('!'));
            for program in programs.split('|') {
                let choices = |word: &&'static str| word.split('|').map(spaced).collect();
                let needs = needs.iter().map(choices).collect();
                let absent = absent.iter().map(|word| &word[1..]).collect();
                let entry = Entry {
                    rule,
                    weight,
                    reason,
                    needs,
                    absent,
                };
                table.entry(program).or_default().push(entry);
            }
        }
        table
    })
}

/// A pattern with its blanks.
fn spaced(choice: &'static str) -> Cow<'static, str> {
    if choice.contains('?') {
        choice.replace('?', " ").into()
    } else {
        choice.into()
    }
}

fn header_of(header: &'static str) -> Option<(Rule, Weight, &'static str)> {
    let (inside, reason) = header.split_once("] ")?;
    let (rule, weight) = inside.split_once(' ')?;
    let weight = match weight {
        "error" => Weight::Error,
        "brief" => Weight::Brief,
        "warning" => Weight::Warning,
        _ => return None,
    };
    Some((Rule::from_id(rule)?, weight, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_names_a_rule() {
        let headers = include_str!("../../rules/commands.list")
            .lines()
            .filter_map(|line| line.strip_prefix('['));
        let mut count = 0;
        for header in headers {
            assert!(header_of(header).is_some(), "{header}");
            count += 1;
        }
        assert!(count > 20);
    }

    #[test]
    fn patterns_fit() {
        let fits = |choice: &str, text: &str| Arg::new(text).fits(choice);
        assert!(fits("delete", "DELETE") && !fits("delete", "deleted"));
        assert!(fits("-R", "-vR") && !fits("-R", "-r") && !fits("-R", "--R"));
        assert!(
            fits("--method", "--method=x")
                && fits("x*", "xyz")
                && fits("*y*", "xyz")
                && !fits("*q*", "xyz")
        );
        assert!(fits("*", "") && fits("*.*=*", "a.b=1") && !fits("*.*=*", "ab=1"));
        assert!(fits("*sam", "hklm\\sam") && !fits("*sam", "sample"));
    }
}
