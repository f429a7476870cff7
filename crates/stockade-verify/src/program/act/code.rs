//! Text and files that are run as code.

use super::Deed;
use crate::program::judge::Judge;
use crate::program::places::is_loose;
use crate::program::run::option;
use crate::program::value::{Taint, Value};
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn judge_code(&mut self, deed: &Deed<'_>) -> Option<Value> {
        let &Deed {
            entry,
            path,
            args,
            arg,
            span,
            ..
        } = deed;
        let given = deed.given();
        let result = deed.result.clone();
        Some(match entry.action {
            "code" => {
                self.code(path, arg, span);
                result
            }
            "code-weak" | "template" | "deserialize-weak" => {
                self.weakly(path, entry, arg, span);
                result
            }
            "function" => {
                let code = args.positional.last();
                self.code(path, code, span);
                let text = code.and_then(Value::exact).unwrap_or_default();
                let reached = text.trim().trim_end_matches(';').strip_prefix("return ");
                if matches!(
                    reached,
                    Some("process" | "require" | "module" | "global.process")
                ) {
                    let reason =
                        format!("`{path}` reaches `{}` unseen", reached.unwrap_or_default());
                    self.findings.add(Rule::ObfuscatedName, span, reason);
                }
                result
            }
            "timer" => {
                if arg.is_some_and(|value| value.as_text().is_some()) {
                    self.code(path, arg, span);
                }
                result
            }
            "worker" => {
                if option(args, "eval") == Some(true) {
                    self.code(path, arg, span);
                }
                result
            }
            "import" => {
                self.computed_import(path, arg, span);
                result
            }
            "run-file" => {
                let fetched = Taint::DOWNLOADED | Taint::SOCKET;
                if arg.is_some_and(|value| value.deep_taint().has(fetched)) {
                    let reason = format!("`{path}` runs what was downloaded");
                    self.findings.add(Rule::DownloadRun, span, reason);
                }
                if self.downloaded.contains(given) {
                    self.findings.add(
                        Rule::DownloadRun,
                        span,
                        format!("runs {given}, which was downloaded"),
                    );
                }
                if is_loose(given) {
                    self.findings.add(
                        Rule::CodeDynamic,
                        span,
                        format!("`{path}` runs code from {given}, where anyone may put it"),
                    );
                }
                self.findings.warn(
                    Rule::CodeDynamic,
                    span,
                    format!("`{path}` runs code from a file"),
                );
                result
            }
            "search-path" => {
                if is_loose(given) {
                    let reason = format!("takes modules from {given}, where anyone may put them");
                    self.findings.add(Rule::CodeDynamic, span, reason);
                }
                result
            }
            "remote" => {
                // Code in place of an address is that of a worker made of it.
                if given.contains('(') {
                    self.code(path, arg, span);
                } else if !given.is_empty() {
                    self.import(given, span);
                }
                result
            }
            _ => return None,
        })
    }
}
