//! What a program puts in the place of something else: names, members, variables of the environment.

use super::api::Dialect;
use super::judge::{Judge, is_dangerous};
use super::places::is_loose;
use super::value::Value;
use crate::hosts;
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    /// `global[name] = require`: what reaches everything, under a name of its own.
    pub(crate) fn exposes(&mut self, base: &Value, name: Option<&str>, value: &Value, span: Span) {
        let global = matches!(
            base.as_api(),
            Some("global" | "globalThis" | "window" | "root")
        );
        let reached = value.as_api().unwrap_or_default();
        let all = matches!(
            reached,
            "require" | "module" | "eval" | "Function" | "process"
        );
        if global && all && name != Some(reached) && self.dialect == Dialect::JavaScript {
            let reason = format!("makes `{reached}` reachable by another name");
            let certain = self.brief || name.is_none();
            self.findings
                .weigh(certain, Rule::ObfuscatedName, span, reason);
        }
    }

    /// An object that calls something else than a class when it is unpickled.
    pub(crate) fn unpickles(&mut self, path: &str, span: Span) {
        let entry = self.dialect.entry(path);
        // Pickles inside pickles are how libraries carry functions.
        let runs = |action| {
            is_dangerous(action) && action != "deserialize"
                || matches!(action, "console" | "code-weak" | "write")
        };
        let Some(action) = entry
            .map(|entry| entry.action)
            .filter(|action| runs(action))
        else {
            return;
        };
        // Stand-ins for modules import them again.
        let certain = self.brief || action != "import";
        let reason = format!("calls `{path}` when it is unpickled");
        self.findings
            .weigh(certain, Rule::Deserialize, span, reason);
    }

    /// `sys.breakpointhook = os.system`: what a module calls is something else from now on.
    pub(crate) fn hooks_up(&mut self, base: &Value, attr: &str, value: &Value, span: Span) {
        let (Some(module), Some(path)) = (base.as_api(), value.as_api()) else {
            return;
        };
        let entry = self.dialect.entry(path);
        let runs = entry.is_some_and(|entry| matches!(entry.action, "shell" | "code" | "argv"));
        let known = matches!(
            module,
            "sys" | "builtins" | "__builtins__" | "os" | "io" | "json"
        );
        if self.dialect == Dialect::Python && runs && known {
            let reason = format!("has `{module}.{attr}` run `{path}`");
            self.findings
                .weigh(self.brief, Rule::ObfuscatedName, span, reason);
        }
        self.member_runs(attr, value, span);
    }

    /// `__getitem__ = os.system`: what objects do by themselves runs commands or code.
    pub(crate) fn member_runs(&mut self, name: &str, value: &Value, span: Span) {
        let path = value.as_api().unwrap_or_default();
        let entry = self.dialect.entry(path);
        let runs = entry.is_some_and(|entry| matches!(entry.action, "shell" | "code" | "argv"));
        if self.dialect == Dialect::Python && runs && name.starts_with("__") && name.ends_with("__")
        {
            let reason = format!("has `{name}` run `{path}`");
            self.findings.add(Rule::ObfuscatedName, span, reason);
        }
    }

    /// `os.environ["LD_PRELOAD"] = …`
    pub(crate) fn item_set(&mut self, base: &Value, index: &Value, value: &Value, span: Span) {
        self.exposes(base, index.exact(), value, span);
        if self.dialect == Dialect::JavaScript && index.exact() == Some("__proto__") {
            self.pollutes(span);
        }
        let environment = matches!(base.as_api(), Some("os.environ" | "process.env"));
        if let (true, Some("LD_PRELOAD" | "DYLD_INSERT_LIBRARIES" | "LD_AUDIT")) =
            (environment, index.exact())
        {
            self.findings.add(
                Rule::ProcessTamper,
                span,
                "loads a library into every program started",
            );
        }
        let first = value.as_text().unwrap_or_default();
        let proxy = environment
            && index
                .exact()
                .is_some_and(|name| name.to_ascii_lowercase().ends_with("_proxy"));
        if proxy && hosts::suspicion(first).is_some() {
            let reason = "sends all requests through another machine";
            self.findings.add(Rule::NetworkHost, span, reason);
        }
        let runs = matches!(
            index.exact(),
            Some(
                "BROWSER"
                    | "PAGER"
                    | "MANPAGER"
                    | "EDITOR"
                    | "VISUAL"
                    | "GIT_SSH_COMMAND"
                    | "GIT_PAGER"
                    | "GIT_EDITOR"
                    | "PROMPT_COMMAND"
                    | "SUDO_ASKPASS"
            )
        );
        if environment && runs && first.contains(' ') {
            self.shell("os.environ", Some(value), span);
        }
        let loads = matches!(
            index.exact(),
            Some(
                "PYTHONSTARTUP"
                    | "BASH_ENV"
                    | "NODE_OPTIONS"
                    | "PERL5OPT"
                    | "RUBYOPT"
                    | "PYTHONPATH"
                    | "NODE_PATH"
                    | "LD_LIBRARY_PATH"
                    | "PERL5LIB"
                    | "RUBYLIB"
                    | "GCONV_PATH"
            )
        );
        if environment && loads && first.contains("/tmp/") {
            let reason = "has every program of a kind load code that anyone may put there";
            self.findings.add(Rule::ProcessTamper, span, reason);
        }
        if environment
            && index.exact() == Some("PATH")
            && (is_loose(first) || first.starts_with(".:"))
        {
            let reason = "has programs looked up where anyone may put them";
            self.findings.add(Rule::ProcessTamper, span, reason);
        }
    }
}
