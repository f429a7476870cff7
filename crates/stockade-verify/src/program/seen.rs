//! What the program was seen to do, and what only all of it together shows.

use std::collections::{HashMap, HashSet};

use super::judge::Judge;
use crate::result::Span;
use crate::rule::Rule;

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
    /// Threads and the like that were started.
    pub(super) threads: usize,
    /// Something was asked or sent over the network.
    pub(super) talks: Option<Span>,
    pub(super) watches: Option<Span>,
    /// An interpreter was started that reads what to run.
    pub(super) interpreter: Option<Span>,
    /// Commands among options that were judged.
    pub(super) options: usize,
    /// Where the request goes that was opened last.
    pub(super) opened: Option<String>,
    /// A hundred threads or more.
    pub(super) crowd: Option<Span>,
    /// The clipboard is read; it is written.
    pub(super) pastes: Option<Span>,
    pub(super) copies: bool,
}

impl Judge<'_> {
    /// What only the whole program shows.
    pub(crate) fn finish(&mut self) {
        if let Some(span) = self.seen.pastes.filter(|_| self.seen.copies) {
            let reason = "reads the clipboard and replaces what is in it";
            self.findings.add(Rule::Surveillance, span, reason);
        }
        if let Some(span) = self
            .seen
            .watches
            .filter(|_| self.seen.talks.is_some() && self.brief)
        {
            let reason = "records what the user does, and talks to others";
            self.findings.raise(Rule::Surveillance, span, reason);
        }
        if let Some(span) = self.seen.crowd.filter(|_| self.seen.talks.is_some()) {
            let reason = "asks the same of others from a hundred threads at once";
            self.findings.add(Rule::NetworkFlood, span, reason);
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
