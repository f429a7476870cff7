//! Requests that tell a server to delete what it holds.

use stockade_shell::{Command, Word};

use super::Judge;
use crate::hosts;
use crate::rule::Rule;
use crate::words::Words;

/// Short options of `curl` that take a value; what follows them in a cluster is that value.
pub(super) const TAKES_VALUE: &str = "AbcCdDeEFhHKmoPQrtTuUwxXyYz";

/// Orders to delete in the body or address of a request.
static ORDERS: Words = Words::new("shell/requests orders");

impl Judge<'_> {
    /// `curl -X DELETE` of something on a server, and other requests to the same end.
    pub(super) fn requests_deletion(&mut self, name: &str, command: &Command) {
        let fetches = matches!(name, "curl" | "http" | "https" | "xh" | "wget");
        if !fetches && !matches!(name, "gh" | "glab" | "hasura") {
            return;
        }
        let orders = |word: &Word| {
            let text = word.text.to_ascii_lowercase();
            fetches && ORDERS.iter().any(|order| text.contains(order)) || is_mutation(&word.text)
        };
        if command.args().iter().any(orders) {
            let reason = format!("`{name}` tells a server to delete what it holds");
            self.add(Rule::DestroyData, command.span, reason);
        }
        let address = || command.args().iter().find_map(address);
        if fetches
            && deletes(command.args())
            && let Some(url) = address()
        {
            let reason = format!("deletes {url} through its interface");
            // One thing of a server that someone develops here.
            let local = hosts::host_of(url).is_some_and(hosts::is_local);
            let path = url
                .split("://")
                .last()
                .and_then(|rest| rest.split_once('/'));
            let path = path.map_or("", |(_, path)| path.trim_end_matches('/'));
            let number = path.rsplit_once('/').map(|(_, last)| last);
            let number = number.is_some_and(|last| last.contains(|c: char| c.is_ascii_digit()));
            let one = number && !path.contains(['*', '_', '?']);
            self.findings
                .weigh(!(local && one), Rule::DestroyData, command.span, reason);
        }
    }
}

/// Whether the method of a request is DELETE: `-X DELETE`, `-sXDELETE`, `--request=DELETE`.
fn deletes(args: &[Word]) -> bool {
    let is_delete = |text: &str| text.eq_ignore_ascii_case("delete");
    args.iter().enumerate().any(|(at, word)| {
        let text = word.text.as_str();
        let next = || args.get(at + 1).map_or("", |word| word.text.as_str());
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = long.split_once('=').unwrap_or((long, next()));
            return matches!(name, "request" | "method") && is_delete(value);
        }
        let Some(cluster) = text.strip_prefix('-') else {
            return text == "DELETE" || text == "delete" && at == 0;
        };
        let valued = cluster.find(|c| TAKES_VALUE.contains(c));
        let rest = valued.and_then(|at| cluster[at..].strip_prefix('X'));
        rest.is_some_and(|rest| is_delete(if rest.is_empty() { next() } else { rest }))
    })
}

/// An address among the words of a request, with or without a scheme.
fn address(word: &Word) -> Option<&str> {
    let text = word.text.trim_start_matches("--url=");
    let host = text.split('/').next().unwrap_or_default();
    let port = host.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
    });
    let variable = text.starts_with('$') && text.contains('/');
    let known = hosts::is_url(text) || port || variable || text.starts_with("localhost");
    (known && !text.starts_with('-')).then_some(text)
}

/// A mutation in `GraphQL` whose operation deletes: `mutation { deleteProject(…) {…} }`.
fn is_mutation(text: &str) -> bool {
    let Some(at) = text.find("mutation") else {
        return false;
    };
    let operation = text[at..]
        .split_once('{')
        .map(|(_, rest)| rest.trim_start());
    operation.is_some_and(|operation| {
        ["delete", "destroy", "purge"]
            .iter()
            .any(|verb| operation.starts_with(verb))
    })
}
