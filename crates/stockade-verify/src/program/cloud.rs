//! What providers and clusters hold, and what their clients are asked to do with it: the table in
//! `rules/services.list`.

use std::sync::OnceLock;

use super::hash::Map;
use super::judge::Judge;
use super::options::leaves;
use super::value::{Args, Value};
use crate::result::Span;
use crate::rule::Rule;

/// What a method does, and the text its arguments must hold.
struct Service {
    rule: Rule,
    holds: &'static str,
}

struct Table {
    named: Map<&'static str, Service>,
    /// Beginnings of names.
    begun: Vec<(&'static str, Service)>,
}

impl Judge<'_> {
    /// A method of a provider's client, known by its name alone.
    pub(super) fn serves(&mut self, name: &str, args: &Args, span: Span) {
        if !begins_known(name) {
            return;
        }
        let words = in_words(name);
        let table = table();
        let begun = |start: &str| words.starts_with(start);
        let found = table.named.get(words.as_str()).or_else(|| {
            let mut begun = table.begun.iter().filter(|(start, _)| begun(start));
            begun.next().map(|(_, service)| service)
        });
        let Some(service) = found else {
            return;
        };
        let mentions = |value: &Value| {
            value
                .as_text()
                .is_some_and(|text| text.contains(service.holds))
        };
        if service.holds.is_empty() || leaves(args).iter().any(|(_, value)| mentions(value)) {
            let reason = format!("`{name}` {}", service.says());
            self.findings.excerpt(service.rule, span, reason);
        }
    }

    /// `client.delete_bucket(…)` of a provider's library.
    pub(super) fn empties_service(&mut self, library: &str, name: &str, span: Span) {
        if is_cloud(library) && destroys(name) {
            let reason = format!("`{name}` deletes what a service holds");
            let certain = self.context.excerpt || self.function_depth == 0;
            self.findings
                .weigh(certain, Rule::DestroyData, span, reason);
        }
    }
}

impl Service {
    fn says(&self) -> &'static str {
        match self.rule {
            Rule::AccountChange => "changes who may do what with an account",
            Rule::Exfiltration => "hands what a service holds to others",
            Rule::ProtectionOff => "takes away what watches or protects an account",
            _ => "deletes what a service holds",
        }
    }
}

/// Whether a library is one for what a provider holds.
pub(super) fn is_cloud(library: &str) -> bool {
    [
        "boto3.",
        "boto.",
        "google.cloud.",
        "azure.",
        "kubernetes.client.",
        "kubernetes_asyncio.",
        "@kubernetes/client-node.",
        "k8s.io/client-go/",
        "digitalocean.",
        "hcloud.",
        "openstack.",
        "linode_api4.",
        "aws-sdk.",
        "@aws-sdk/",
        "@google-cloud/",
        "@azure/",
        "github.com/aws/",
        "cloud.google.com/",
    ]
    .iter()
    .any(|known| library.starts_with(known))
}

/// `delete_bucket`, `deleteBucket`, `DeleteBucket` and their kin.
fn destroys(name: &str) -> bool {
    // Azure's: `begin_delete`, `beginDeleteAndWait`.
    let begun = ["begin_", "begin", "Begin"];
    let name = begun
        .iter()
        .find_map(|begun| name.strip_prefix(begun))
        .unwrap_or(name);
    ["delete", "terminate", "purge", "destroy"]
        .iter()
        .any(|verb| {
            let (Some(head), Some(rest)) = (name.get(..verb.len()), name.get(verb.len()..)) else {
                return false;
            };
            // The next word begins here: `deleted` is none.
            let ends = rest.is_empty() || rest.starts_with(|c: char| c == '_' || c.is_uppercase());
            head.eq_ignore_ascii_case(verb) && ends
        })
}

/// Most methods have nothing to do with services.
fn begins_known(name: &str) -> bool {
    let verbs = [
        "attach",
        "authorize",
        "copy",
        "create",
        "deactivate",
        "delete",
        "disable",
        "modify",
        "put",
        "schedule",
        "stop",
        "terminate",
        "update",
    ];
    name.len() > 8
        && verbs.iter().any(|verb| {
            let head = name.get(..verb.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(verb))
        })
}

/// `StopLoggingCommand`, `StopLoggingInput` as `stop_logging`.
fn in_words(name: &str) -> String {
    let name = name.strip_suffix("Command").unwrap_or(name);
    let name = name.strip_suffix("Input").unwrap_or(name);
    let mut words = String::with_capacity(name.len() + 4);
    let mut upper = true;
    for c in name.chars() {
        if c.is_ascii_uppercase() && !upper {
            words.push('_');
        }
        upper = c.is_ascii_uppercase();
        words.push(c.to_ascii_lowercase());
    }
    words
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = Table {
            named: Map::default(),
            begun: Vec::new(),
        };
        for line in include_str!("../../rules/services.list").lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(name), Some(rule)) = (words.next(), words.next()) else {
                continue;
            };
            let Some(rule) = Rule::from_id(rule).filter(|_| !name.starts_with('#')) else {
                continue;
            };
            let holds = words.next().unwrap_or_default();
            let service = Service { rule, holds };
            match name.strip_suffix('*') {
                Some(start) => table.begun.push((start, service)),
                None => {
                    table.named.insert(name, service);
                }
            }
        }
        table
    })
}
