//! Documents and objects that come from outside, and what reading them may do.

use super::Deed;
use crate::program::judge::Judge;
use crate::program::run::option;
use crate::program::value::{Kind, Taint, Value};
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn parses(&mut self, deed: &Deed<'_>) -> Option<Value> {
        let &Deed {
            entry,
            path,
            args,
            arg,
            span,
            ..
        } = deed;
        let result = deed.result.clone();
        Some(match entry.action {
            "entities" => {
                let on = |name: &str| {
                    matches!(
                        args.named(name).map(|value| &value.kind),
                        Some(Kind::Bool(true))
                    ) || option(args, name) == Some(true)
                };
                if on("resolve_entities") || on("load_dtd") || on("noent") {
                    let reason = format!("`{path}` lets a document name files to be read into it");
                    self.findings.add(Rule::CredentialRead, span, reason);
                }
                result
            }
            "document" => {
                if arg.is_some_and(|value| value.deep_taint().has(Taint::REQUEST)) {
                    let reason = format!("`{path}` reads what a document of a visitor's names");
                    self.findings.add(Rule::CredentialRead, span, reason);
                }
                result
            }
            "allocate" => {
                self.takes(arg.and_then(Value::as_int).unwrap_or(0), span);
                result
            }
            "assign" => {
                self.assigns(args, span);
                result
            }
            "type" => {
                if let Some(text) = arg.and_then(Value::as_text) {
                    self.command_text(text, span);
                }
                result
            }
            "merge" => {
                if args.taint().has(Taint::REQUEST) {
                    let reason = format!("`{path}` merges what a visitor sends, prototypes too");
                    self.findings.add(Rule::SandboxGadget, span, reason);
                }
                result
            }
            "markup" => {
                if let Some(value) = arg {
                    self.shows_markup(value, span);
                }
                result
            }
            "digest" => {
                if self.brief && args.taint().has(Taint::TRIED) {
                    let reason = format!("`{path}` tries one word after the other");
                    self.findings.add(Rule::SystemSurvey, span, reason);
                }
                result
            }
            _ => return None,
        })
    }
}
