//! Formats that can run code when they are loaded.

use super::Deed;
use crate::program::judge::Judge;
use crate::program::value::{Kind, Taint, Value};
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn judge_loading(&mut self, deed: &Deed<'_>) -> Option<Value> {
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
            "deserialize" | "unmarshal" => {
                self.deserialize(path, entry, arg, span);
                let taint = if entry.action == "unmarshal" {
                    Taint::DECODED
                } else {
                    Taint::NONE
                };
                result.with(taint)
            }
            "yaml" => {
                let loader = args
                    .get(1, "Loader")
                    .and_then(Value::as_api)
                    .unwrap_or_default();
                let loader = loader.rsplit('.').next().unwrap_or_default();
                let safe = loader.contains("Safe") || loader.starts_with("safe");
                if !(safe || loader.contains("Base")) {
                    self.deserialize(path, entry, arg, span);
                }
                result
            }
            "weights" => {
                let only = args.named("weights_only").map(|value| &value.kind);
                if !matches!(only, Some(Kind::Bool(true))) {
                    self.deserialize(path, entry, arg, span);
                }
                result
            }
            "pickle-option" => {
                let allowed = args.named("allow_pickle").map(|value| &value.kind);
                if matches!(allowed, Some(Kind::Bool(true))) {
                    self.deserialize(path, entry, arg, span);
                }
                result
            }
            "yaml-option" => {
                if args.get(0, "typ").and_then(Value::as_text) == Some("unsafe") {
                    let reason = format!("`{path}` asks for the loader that can run code");
                    self.findings.add(Rule::Deserialize, span, reason);
                }
                result
            }
            _ => return None,
        })
    }
}
