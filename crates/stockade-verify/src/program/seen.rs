//! What the program was seen to do, and what only all of it together shows.

use std::collections::{HashMap, HashSet};

use super::api::Dialect;
use super::gadget::WAYS_OUT;
use super::judge::Judge;
use crate::result::Span;
use crate::rule::Rule;
use crate::words::Words;

/// What the program was seen to do, for judging the whole.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) connects: Option<Span>,
    pub(super) duplicates: Option<Span>,
    pub(super) shell: Option<Span>,
    pub(super) identity: bool,
    pub(super) listens: bool,
    /// Ports that were tried.
    pub(super) ports: HashSet<i64>,
    pub(super) hosts: HashSet<String>,
    /// Processes that were forked, by where.
    pub(super) forks: HashMap<usize, usize>,
    /// Connections that were opened, by where.
    pub(super) dials: HashMap<usize, usize>,
    /// The environment was gone through, variable by variable.
    pub(super) environment: Option<Span>,
    /// Words of the source that names of secrets are made of.
    pub(super) secret_words: HashSet<&'static str>,
    /// Rungs of objects' internals among the texts of the source.
    pub(super) rungs: HashSet<&'static str>,
    pub(super) climbs: Option<Span>,
    /// The bit that has a program run as its owner was named.
    pub(super) owner_bit: Option<Span>,
    /// The whole machine was walked through.
    pub(super) everywhere: Option<Span>,
    /// Files of others went into an archive that no file of its own holds.
    pub(super) packs: Option<Span>,
    /// Something was asked or sent over the network.
    pub(super) talks: Option<Span>,
    pub(super) watches: Option<Span>,
    /// An interpreter was started that reads what to run.
    pub(super) interpreter: Option<Span>,
    /// Where the request goes that was opened last.
    pub(super) opened: Option<String>,
    /// The clipboard is read; it is written.
    pub(super) pastes: Option<Span>,
    pub(super) copies: bool,
}

/// What names of secrets are made of.
static SECRETS: Words = Words::new("program/seen secrets");

impl Judge<'_> {
    /// A text that may be what the names of variables are searched for.
    pub(super) fn note_words(&mut self, text: &str) {
        if !self.context.excerpt || text.len() < 3 || text.len() > 128 || text.contains(' ') {
            return;
        }
        let lower = text.to_ascii_lowercase();
        let words = lower.split(|c: char| !(c.is_ascii_alphabetic() || c == '_'));
        for word in words {
            let word = word.trim_matches('_');
            let found = SECRETS.iter().find(|secret| {
                word == **secret || word.strip_suffix('s').is_some_and(|one| one == **secret)
            });
            self.seen.secret_words.extend(found);
        }
    }

    /// A text that may be the name of an object's internal member.
    pub(super) fn note_rung(&mut self, text: &str, span: Span) {
        if !self.context.excerpt || self.dialect != Dialect::Python {
            return;
        }
        let found = WAYS_OUT.iter().find(|rung| **rung == text);
        self.seen.rungs.extend(found);
        if matches!(text, "__subclasses__" | "__globals__" | "__builtins__") {
            self.seen.climbs.get_or_insert(span);
        }
    }

    /// `os.walk("/")`
    pub(crate) fn walks_from(&mut self, root: &str, span: Span) {
        if matches!(
            root.trim_end_matches('/'),
            "" | "/usr" | "/bin" | "/usr/bin"
        ) {
            self.seen.everywhere.get_or_insert(span);
        }
    }

    /// `stat.S_ISUID`
    pub(crate) fn names_owner_bit(&mut self, path: &str, span: Span) {
        if path == "stat.S_ISUID" {
            self.seen.owner_bit.get_or_insert(span);
        }
    }

    /// The environment is gone through, variable by variable.
    pub(crate) fn walks_environment(&mut self, span: Span) {
        if self.context.excerpt {
            self.seen.environment.get_or_insert(span);
        }
    }

    /// What only the whole program shows.
    pub(crate) fn finish(&mut self) {
        if let Some(span) = self.seen.climbs.filter(|_| self.seen.rungs.len() > 1) {
            let reason = "names members of objects' internals one after the other";
            self.findings.add(Rule::SandboxGadget, span, reason);
        }
        if let Some(span) = self.seen.owner_bit.and(self.seen.everywhere) {
            let reason = "looks for programs that run as their owner";
            self.findings.excerpt(Rule::SystemSurvey, span, reason);
        }
        let hunted = self.seen.secret_words.len() > 1;
        if let Some(span) = self.seen.environment.filter(|_| hunted) {
            let reason = "looks for secrets among all variables of the environment";
            self.findings.add(Rule::CredentialRead, span, reason);
        }
        if let Some(span) = self.seen.pastes.filter(|_| self.seen.copies) {
            let reason = "reads the clipboard and replaces what is in it";
            self.findings.add(Rule::Surveillance, span, reason);
        }
        if let Some(span) = self
            .seen
            .watches
            .filter(|_| self.seen.talks.is_some() && self.context.excerpt)
        {
            let reason = "records what the user does, and talks to others";
            self.findings.raise(Rule::Surveillance, span, reason);
        }
        let seen = &self.seen;
        let reverse = match (seen.connects, seen.duplicates, seen.shell) {
            (Some(_), Some(span), _) | (Some(_), None, Some(span)) => Some(span),
            (None, Some(span), Some(_)) if seen.listens => Some(span),
            _ => None,
        };
        if let Some(span) = reverse {
            self.findings
                .add(Rule::ReverseShell, span, "connects a shell to the network");
        }
    }
}
