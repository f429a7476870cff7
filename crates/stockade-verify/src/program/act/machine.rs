//! The machine itself: its kernel, its processes, what it starts.

use super::Deed;
use crate::program::judge::Judge;
use crate::program::options::leaves;
use crate::program::value::{Args, Kind, Value};
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
            "namespace" => {
                let reason = format!("`{path}` changes what it sees of the machine");
                self.findings
                    .weigh(self.brief, Rule::ContainerEscape, span, reason);
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
                    self.findings
                        .weigh(self.brief, Rule::ContainerEscape, span, reason);
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
            "stop" => {
                self.findings
                    .add(Rule::SystemStop, span, "stops the machine");
                result
            }
            "registry" => {
                self.registers(path, args, span);
                if !path.contains("Open") {
                    self.unprotects(args, span);
                }
                result
            }
            "survey" => {
                let reason = format!("`{path}` looks at one machine after the other");
                self.findings
                    .weigh(self.brief, Rule::SystemSurvey, span, reason);
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
        let run = |text: &str| text.contains("CurrentVersion\\Run");
        let run = writes
            && leaves(args)
                .iter()
                .any(|(name, value)| run(name) || value.as_text().is_some_and(run));
        if run {
            self.findings.add(
                Rule::PersistenceStartup,
                span,
                "adds itself to what starts with the session",
            );
        }
    }

    /// Entries that turn off what protects.
    fn unprotects(&mut self, args: &Args, span: Span) {
        let off = |value: &Value| {
            value.as_text().is_some_and(|text| {
                [
                    "Windows Defender",
                    "DisableAntiSpyware",
                    "DisableRealtimeMonitoring",
                    "DisableTaskMgr",
                    "EnableLUA",
                    "DisableRegistryTools",
                ]
                .iter()
                .any(|part| text.contains(part))
            })
        };
        if args.all().any(off) {
            let reason = "changes what protects the machine";
            self.findings.add(Rule::ProtectionOff, span, reason);
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
