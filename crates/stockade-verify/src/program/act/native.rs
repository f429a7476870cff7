//! Native code and memory, below what the language promises.

use super::Deed;
use crate::program::api::Dialect;
use crate::program::judge::Judge;
use crate::program::value::Value;
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn reaches(&mut self, deed: &Deed<'_>) -> Option<Value> {
        let &Deed {
            entry,
            path,
            args,
            span,
            ..
        } = deed;
        let result = deed.result.clone();
        Some(match entry.action {
            "native" => {
                self.findings
                    .warn(Rule::LowLevel, span, format!("`{path}` calls native code"));
                result
            }
            "low-level" => {
                if self.dialect == Dialect::JavaScript {
                    self.findings.add(
                        Rule::LowLevel,
                        span,
                        format!("`{path}` reaches past the language"),
                    );
                    self.findings.add(
                        Rule::ObfuscatedName,
                        span,
                        format!("`{path}` reaches functions without importing them"),
                    );
                } else {
                    self.findings.warn(
                        Rule::LowLevel,
                        span,
                        format!("`{path}` reaches past the language"),
                    );
                }
                result
            }
            "raw" => {
                // What tells a thread its own number.
                let asks = [39, 186, 178, 224];
                let number = args.first().and_then(Value::as_int);
                let certain = self.brief && !number.is_some_and(|number| asks.contains(&number));
                let reason = format!("`{path}` makes a system call by its number");
                self.findings.weigh(certain, Rule::LowLevel, span, reason);
                result
            }
            "inject" => {
                self.findings.add(
                    Rule::ProcessTamper,
                    span,
                    format!("`{path}` puts code into memory and runs it"),
                );
                result
            }
            "mmap" => {
                let executable = |value: &Value| {
                    let named = |value: &Value| {
                        value
                            .as_api()
                            .is_some_and(|name| name.ends_with("PROT_EXEC"))
                    };
                    named(value) || value.as_list().is_some_and(|flags| flags.iter().any(named))
                };
                if args.all().any(executable) {
                    self.findings.add(
                        Rule::ProcessTamper,
                        span,
                        format!("`{path}` makes memory that can be run as code"),
                    );
                }
                result
            }
            "address" => {
                self.calls_address(path, args, span);
                result
            }
            "anonymous" => {
                let reason = format!("`{path}` makes a file that no directory shows");
                self.findings.add(Rule::ProcessTamper, span, reason);
                result
            }
            "duplicate" => {
                self.seen.duplicates.get_or_insert(span);
                result
            }
            _ => return None,
        })
    }
}
