//! The machine itself: its kernel, its processes, what it starts.

use super::Deed;
use crate::program::api::Dialect;
use crate::program::judge::Judge;
use crate::program::value::{Args, Kind, Value};
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn judge_machine(&mut self, deed: &Deed<'_>) -> Option<Value> {
        let &Deed {
            entry,
            path,
            args,
            arg,
            second: _,
            span,
            ..
        } = deed;
        let result = deed.result.clone();
        Some(match entry.action {
            "low-level" if self.dialect == Dialect::JavaScript => {
                let reason = format!("`{path}` reaches functions without importing them");
                self.findings.add(Rule::ObfuscatedName, span, reason);
                result
            }
            "low-level" => {
                let reason = format!("`{path}` reaches past the language");
                self.findings.warn(Rule::LowLevel, span, reason);
                result
            }
            "raw" => {
                // What tells a thread its own number.
                let asks = [39, 186, 178, 224];
                let number = args.first().and_then(Value::as_int);
                if !number.is_some_and(|number| asks.contains(&number)) {
                    let reason = format!("`{path}` makes a system call by its number");
                    self.findings.excerpt(Rule::LowLevel, span, reason);
                }
                result
            }
            "duplicate" => {
                self.seen.duplicates.get_or_insert(span);
                result
            }
            "privilege" => {
                let root = args.first().and_then(Value::as_int) == Some(0);
                if root {
                    self.findings.add(
                        Rule::PrivilegeChange,
                        span,
                        format!("`{path}` becomes root"),
                    );
                } else {
                    self.findings.warn(
                        Rule::PrivilegeChange,
                        span,
                        format!("`{path}` changes credentials"),
                    );
                }
                result
            }
            "device" => {
                let makes = |value: &Value| {
                    let named = |value: &Value| {
                        let name = value.as_api().unwrap_or_default();
                        name.ends_with("S_IFBLK") || name.ends_with("S_IFCHR")
                    };
                    named(value) || value.as_list().is_some_and(|all| all.iter().any(named))
                };
                if arg.is_some_and(makes) || args.positional.len() > 2 {
                    let reason = format!("`{path}` makes a file that is a device");
                    self.findings.excerpt(Rule::ContainerEscape, span, reason);
                }
                result
            }
            "setup" => {
                self.setup(args, span);
                result
            }
            _ => return None,
        })
    }

    /// `setup(cmdclass={"install": …})`
    fn setup(&mut self, args: &Args, span: Span) {
        let Some(Kind::Dict(pairs)) = args.named("cmdclass").map(|value| &value.kind) else {
            return;
        };
        let install = pairs
            .iter()
            .find(|(key, _)| matches!(key.as_text(), Some("install" | "develop" | "egg_info")));
        if let Some((key, _)) = install {
            let command = key.as_text().unwrap_or_default();
            self.findings.add(
                Rule::PersistenceInstallHook,
                span,
                format!(
                    "replaces the `{command}` command, which runs when the package is installed"
                ),
            );
        }
    }
}
