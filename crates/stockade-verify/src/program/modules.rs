//! Modules that come into use, and what the configuration blocks.

use super::api::Dialect;
use super::ir::{Expr, ExprKind};
use super::judge::Judge;
use super::value::{Args, Kind, Taint, Value};
use crate::hosts;
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    /// A module comes into use.
    pub(crate) fn import(&mut self, path: &str, span: Span) {
        let below = |module: &String| {
            path == module
                || path
                    .strip_prefix(module.as_str())
                    .is_some_and(|rest| rest.starts_with(['.', '/']))
        };
        if let Some(module) = self
            .analysis
            .verifier
            .blocked_modules
            .iter()
            .find(|module| below(module))
        {
            self.findings.add(
                Rule::BlockedModule,
                span,
                format!("uses `{module}`, which is blocked"),
            );
        }
        let root = path.split(['.', '/']).next().unwrap_or(path);
        let tools = ["impacket", "pypykatz", "lsassy", "pymetasploit3", "pwn"];
        if self.dialect == Dialect::Python && tools.contains(&root) {
            let reason = format!("`{root}` is made for getting into other machines");
            self.findings
                .only_in_excerpt(Rule::SystemSurvey, span, reason);
        }
        let packed = ["pyarmor_runtime", "pytransform", "pyarmor"];
        if packed.iter().any(|name| root.starts_with(name)) && self.dialect == Dialect::Python {
            let reason = format!("`{root}` unpacks code that nobody can read");
            self.findings.add(Rule::ObfuscatedText, span, reason);
        }
        if path.starts_with("data:") {
            let reason = "imports code that is written in the address itself";
            self.findings.add(Rule::CodeHidden, span, reason);
        }
        if self.dialect == Dialect::JavaScript && hosts::is_url(path) {
            let known = [
                "deno.land",
                "esm.sh",
                "jsr.io",
                "unpkg.com",
                "cdn.jsdelivr.net",
            ];
            let known = hosts::host_of(path).is_some_and(|host| known.contains(&host));
            let certain = !known && (self.context.excerpt || hosts::suspicion(path).is_some());
            let reason = format!("imports code from {path}");
            self.findings
                .weigh(certain, Rule::DownloadRun, span, reason);
        }
        let low = match self.dialect {
            Dialect::Go => match path {
                "unsafe" => Some("reaches past the type system"),
                "C" => Some("calls C"),
                "syscall" | "golang.org/x/sys/unix" => Some("makes raw system calls"),
                "plugin" => Some("loads native code"),
                "//go:linkname" => Some("reaches another package's private names"),
                _ => None,
            },
            Dialect::Python => match path {
                "ctypes" | "cffi" => Some("calls native code"),
                _ => None,
            },
            Dialect::JavaScript => match path {
                "ffi-napi" | "ffi" | "ref-napi" => Some("calls native code"),
                _ => None,
            },
            Dialect::Shell => None,
        };
        if let Some(low) = low
            && self.reported_modules.insert(path.into())
        {
            let certain =
                self.context.excerpt && self.dialect == Dialect::Go && !self.context.library;
            self.findings
                .weigh(certain, Rule::LowLevel, span, format!("`{path}` {low}"));
        }
    }

    pub(super) fn blocked(&mut self, path: &str, span: Span) {
        let last = path.rsplit(['.', '/']).next().unwrap_or(path);
        let verifier = self.analysis.verifier;
        if verifier
            .blocked_functions
            .iter()
            .any(|blocked| blocked == path || blocked == last)
        {
            self.findings.add(
                Rule::BlockedFunction,
                span,
                format!("calls `{path}`, which is blocked"),
            );
        }
        let within = |module: &String| {
            path.strip_prefix(module.as_str())
                .is_some_and(|rest| rest.starts_with('.') || rest.is_empty())
        };
        if let Some(module) = verifier
            .blocked_modules
            .iter()
            .find(|module| within(module))
        {
            self.findings.add(
                Rule::BlockedModule,
                span,
                format!("uses `{module}`, which is blocked"),
            );
        }
    }

    /// A call by a name that belongs to no library: of the file's own, or of some object.
    pub(crate) fn blocked_call(&mut self, callee: &Expr, span: Span) {
        let blocked = &self.analysis.verifier.blocked_functions;
        if blocked.is_empty() {
            return;
        }
        let found = match &callee.kind {
            ExprKind::Name(name) => blocked.iter().find(|blocked| ***blocked == **name),
            // A method that has a built-in function's name is not that function: `model.eval()`.
            ExprKind::Attr(base, name) => blocked.iter().find(|blocked| {
                ***blocked == **name && !self.dialect.knows(name)
                    || matches!(&base.kind, ExprKind::Name(base) if **blocked == format!("{base}.{name}"))
            }),
            _ => None,
        };
        if let Some(name) = found {
            let reason = format!("calls `{name}`, which is blocked");
            self.findings.add(Rule::BlockedFunction, span, reason);
        }
    }

    /// A call that was worked out.
    pub(crate) fn folded(
        &mut self,
        path: &str,
        args: &Args,
        value: &Value,
        span: Span,
        indirect: bool,
    ) {
        self.blocked(path, span);
        if let Kind::Api(module) = &value.kind {
            let entry = self.dialect.entry(path);
            if entry.is_some_and(|entry| entry.action == "import") {
                self.import(&module.clone(), span);
                let hidden = args
                    .first()
                    .is_some_and(|name| name.taint.has(Taint::DECODED | Taint::SPELLED));
                if hidden || indirect {
                    self.hidden_import(&module.clone(), span);
                }
            }
        }
    }

    pub(crate) fn hidden_global(&mut self, span: Span) {
        let reason = "calls a global function by a name that is made up as it runs";
        self.findings.excerpt(Rule::ObfuscatedName, span, reason);
    }

    /// A name written so that only the interpreter reads it as that.
    pub(crate) fn disguised(&mut self, name: &str, span: Span) {
        let reason = format!("writes `{name}` in letters that are not its own");
        self.findings.add(Rule::ObfuscatedName, span, reason);
    }

    pub(crate) fn hidden_import(&mut self, module: &str, span: Span) {
        let reason = format!("imports `{module}` by a hidden name");
        self.findings.add(Rule::ObfuscatedName, span, reason);
    }
}
