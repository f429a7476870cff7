//! Connections, requests, what is sent and what is served.

use super::Deed;
use crate::files::Writing;
use crate::paths::Place;
use crate::program::api::Dialect;
use crate::program::judge::Judge;
use crate::program::value::{Kind, Taint, Value};
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn judge_network(&mut self, deed: &Deed<'_>) -> Option<Value> {
        let &Deed {
            entry,
            path,
            args,
            arg,
            second,
            span,
            endless,
            ..
        } = deed;
        let result = deed.result.clone();
        Some(match entry.action {
            "print-to" => {
                if args.first().is_some_and(|to| to.taint.has(Taint::SOCKET)) {
                    self.sends(path, args, span);
                }
                result
            }
            "fetch" | "send" | "fetch-or-send" | "request" | "exchange" => {
                self.seen.talks.get_or_insert(span);
                self.floods(path, args, endless && entry.action != "request", span);
                self.tries(path, args, span);
                self.fetch(path, entry, args, span, result)
            }
            "retrieve" => {
                self.url(path, arg, span);
                if let Some(target) = second.and_then(Value::as_text) {
                    let place = Place::new(target);
                    self.write(&place, target, Writing::Replace, Taint::DOWNLOADED, span);
                }
                result.with(Taint::DOWNLOADED)
            }
            "download" => result.with(Taint::DOWNLOADED),
            "login" => {
                self.tries(path, args, span);
                result
            }
            "crafted" => {
                self.crafted(path, args, endless, span);
                result
            }
            "connect" => {
                self.tries(path, args, span);
                self.connects(arg, span);
                if self.dialect == Dialect::JavaScript {
                    self.connects(args.first(), span);
                    self.tries_ports(args, span);
                }
                result.with(Taint::SOCKET)
            }
            "transmit" | "mail" => {
                self.seen.talks.get_or_insert(span);
                self.floods(path, args, endless && entry.action == "transmit", span);
                if entry.action == "mail" && path.contains("mail") {
                    self.mails(path, args, span);
                }
                self.sends(path, args, span);
                result
            }
            "pipe" => {
                if args.taint().has(Taint::OUTPUT) {
                    self.findings.add(
                        Rule::ReverseShell,
                        span,
                        "connects a process to the network",
                    );
                }
                result
            }
            "receive" => Value::unknown(result.taint | Taint::SOCKET),
            "bind" => {
                let address = match arg.map(|value| &value.kind) {
                    Some(Kind::List(items)) => items.first().and_then(Value::as_text),
                    Some(Kind::Text(text)) => Some(text.as_ref()),
                    _ => None,
                };
                self.seen.listens = true;
                let wide = address.is_some_and(|address| {
                    address.is_empty() || address.starts_with("0.0.0.0") || address.starts_with(':')
                });
                let files = second
                    .and_then(Value::as_api)
                    .is_some_and(|handler| handler.contains("SimpleHTTPRequestHandler"));
                if wide && files {
                    let reason = "serves the files of a directory to every network";
                    self.findings.excerpt(Rule::NetworkListen, span, reason);
                } else if wide {
                    let reason = "accepts connections from every network";
                    self.findings.warn(Rule::NetworkListen, span, reason);
                }
                result
            }
            "accept" => result.with(Taint::SOCKET),
            "resolve" | "resolve-txt" => self.resolve(path, arg, span, result),
            _ => return None,
        })
    }
}
