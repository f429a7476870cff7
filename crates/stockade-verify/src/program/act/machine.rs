//! The machine itself: its kernel, its processes, what it starts.

use super::Deed;
use crate::program::judge::Judge;
use crate::program::value::{Args, Kind, Taint, Value};
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn settles(&mut self, deed: &Deed<'_>) -> Option<Value> {
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
            "kernel" => {
                let reason = format!("`{path}` changes what the kernel runs");
                self.findings.add(Rule::KernelChange, span, reason);
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
            "setenv" => {
                self.item_set(
                    &Value::api("os.environ"),
                    arg.unwrap_or(&Value::UNKNOWN),
                    second.unwrap_or(&Value::UNKNOWN),
                    span,
                );
                result
            }
            "kill" => {
                let asks = second.and_then(Value::as_int) == Some(0);
                let all = result.taint.has(Taint::PROCESSES) && !asks;
                if all || matches!(arg.and_then(Value::as_int), Some(-1 | 1)) {
                    self.findings
                        .add(Rule::SystemStop, span, "stops every process it may");
                }
                result
            }
            "fork" => {
                let here = self.seen.forks.entry(span.start).or_default();
                *here += 1;
                if endless || *here > 8 {
                    self.findings.add(Rule::ForkBomb, span, "forks without end");
                }
                result
            }
            "thread" => {
                let many = if args.taint().has(Taint::SERIES) {
                    100
                } else {
                    1
                };
                self.seen.threads += many;
                if self.seen.threads >= 100 && self.brief {
                    self.seen.crowd.get_or_insert(span);
                }
                result
            }
            "processes" => result.with(Taint::PROCESSES),
            "stop" => {
                self.findings
                    .add(Rule::SystemStop, span, "stops the machine");
                result
            }
            "stop-all" => {
                self.findings
                    .add(Rule::SystemStop, span, "stops every process it may");
                result
            }
            "registry" => {
                self.registers(path, args, span);
                result
            }
            "schedule" => {
                self.findings
                    .add(Rule::PersistenceCron, span, "edits a job table");
                result
            }
            "setup" => {
                self.setup(args, span);
                result
            }
            _ => return None,
        })
    }

    /// An entry of the Windows registry.
    fn registers(&mut self, path: &str, args: &Args, span: Span) {
        let opens = path.contains("OpenKey");
        let writes = !opens
            || args.all().any(|value| {
                value.as_api().is_some_and(|flag| {
                    ["SET_VALUE", "ALL_ACCESS", "KEY_WRITE"]
                        .iter()
                        .any(|part| flag.contains(part))
                })
            });
        let run = writes
            && args.all().any(|value| {
                value
                    .as_text()
                    .is_some_and(|text| text.contains("CurrentVersion\\Run"))
            });
        if run {
            self.findings.add(
                Rule::PersistenceStartup,
                span,
                "adds itself to what starts with the session",
            );
        }
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
