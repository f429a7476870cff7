//! What a program puts in the place of something else: names, members, variables of the environment.

use super::api::Dialect;
use super::judge::{Judge, is_dangerous};
use super::value::Value;
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
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
        let certain = self.context.excerpt || action != "import";
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
            self.findings.excerpt(Rule::ObfuscatedName, span, reason);
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
}
