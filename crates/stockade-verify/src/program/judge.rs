//! Judges what a program calls, as the evaluator meets it.

use std::collections::HashSet;

use super::api::{Dialect, Entry};
use super::gadget;
use super::ir::{Expr, ExprKind, Text};
use super::loops::Excess;
use super::payload;
use super::places::is_loose;
use super::seen::Seen;
use super::send::is_sending;
use super::value::{Args, Kind, Taint, Value};
use crate::analysis::{Analysis, Nested};
use crate::files::{Files, Speaker};
use crate::findings::Findings;
use crate::hosts;
use crate::language::Language;
use crate::paths::UNKNOWN;
use crate::result::Span;
use crate::rule::Rule;

/// Bytes of a text below which it is a snippet.
const BRIEF: usize = 1_500;

/// The state of judging one program.
pub(crate) struct Judge<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) analysis: &'a Analysis<'a>,
    pub(crate) findings: &'a mut Findings,
    /// Within how many functions nobody called the evaluator is.
    pub(crate) function_depth: usize,
    /// The text is a few lines, and this is what it is for: no library, no large program.
    pub(super) brief: bool,
    pub(super) library: bool,
    pub(crate) pace: Pace,
    /// The call is `new X(…)`.
    pub(crate) constructs: bool,
    pub(super) seen: Seen,
    /// Files that received what was downloaded.
    pub(super) downloaded: HashSet<Text>,
    pub(super) reported_modules: HashSet<Text>,
    /// Archives that hold files which are not the program's own.
    pub(super) archived: HashSet<Text>,
    /// Files that were made executable.
    pub(super) executable: HashSet<Text>,
}

/// How what is looked at is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    Calm,
    /// Again and again without a pause, its result not wanted.
    Hurried,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(
        dialect: Dialect,
        analysis: &'a Analysis<'a>,
        findings: &'a mut Findings,
        text: &str,
    ) -> Self {
        Self {
            brief: text.len() < BRIEF && analysis.depth == 0,
            library: dialect == Dialect::Go && is_library(text),
            dialect,
            analysis,
            findings,
            function_depth: 0,
            pace: Pace::Calm,
            constructs: false,
            seen: Seen::default(),
            downloaded: HashSet::new(),
            reported_modules: HashSet::new(),
            executable: HashSet::new(),
            archived: HashSet::new(),
        }
    }

    pub(super) fn files(&self) -> Files<'a> {
        Files {
            allowed: &self.analysis.verifier.allowed_paths,
            speaker: Speaker::Program,
        }
    }

    pub(super) fn language(&self) -> Language {
        match self.dialect {
            Dialect::Go => Language::Go,
            Dialect::JavaScript => Language::JavaScript,
            Dialect::Python => Language::Python,
        }
    }

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
        if self.brief && self.dialect == Dialect::Python && tools.contains(&root) {
            let reason = format!("`{root}` is made for getting into other machines");
            self.findings.add(Rule::SystemSurvey, span, reason);
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
            let certain = !known && (self.brief || hosts::suspicion(path).is_some());
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
        };
        if let Some(low) = low
            && self.reported_modules.insert(path.into())
        {
            let certain = self.brief && self.dialect == Dialect::Go && !self.library;
            self.findings
                .weigh(certain, Rule::LowLevel, span, format!("`{path}` {low}"));
        }
    }

    fn blocked(&mut self, path: &str, span: Span) {
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
        self.findings
            .weigh(self.brief, Rule::ObfuscatedName, span, reason);
    }

    pub(crate) fn hidden_import(&mut self, module: &str, span: Span) {
        let reason = format!("imports `{module}` by a hidden name");
        self.findings.add(Rule::ObfuscatedName, span, reason);
    }

    /// A call of a function of a library; what is known of its result.
    pub(crate) fn call(
        &mut self,
        path: &str,
        callee: &Value,
        args: &Args,
        span: Span,
        endless: bool,
    ) -> Value {
        self.blocked(path, span);
        let entry = self.dialect.entry(path);
        let taint = args.taint().without(Taint::UNBOUND) | callee.taint;
        let result = Value::api(format!("{path}()")).with(taint);
        let Some(entry) = entry else {
            // `client.on("ready", f).connect(…)`: listeners give the object back.
            if let Some((object, "on" | "once" | "addListener")) = path.rsplit_once('.')
                && self.dialect == Dialect::JavaScript
                && object.ends_with(')')
            {
                return Value::api(object).with(callee.taint);
            }
            self.unlisted(path, callee, args, span);
            let named = path.rsplit_once('.').map_or("", |(_, name)| name);
            let secret = self.dialect.method(named);
            if let Some("secrets") = secret.map(|entry| entry.action) {
                let reason = format!("`{named}` reads every secret there is");
                self.findings
                    .weigh(self.brief, Rule::CredentialRead, span, reason);
            }
            return match secret.map(|entry| entry.action) {
                Some("secret" | "secrets") => result.with(Taint::SECRET),
                _ => result,
            };
        };
        if callee.indirect && is_dangerous(entry.action) {
            self.findings.add(
                Rule::ObfuscatedName,
                span,
                format!("reaches `{path}` through a computed name"),
            );
        }
        self.act(path, entry, args, span, endless, result)
    }

    /// A member of a library that the tables don't list: judged by its last name.
    fn unlisted(&mut self, path: &str, callee: &Value, args: &Args, span: Span) {
        let Some((library, name)) = path.rsplit_once('.') else {
            if self.constructs {
                self.takes_file("open", args, span);
            }
            return;
        };
        // `sh.rm("-rf", "/")`: every member is a program.
        if matches!(library, "sh" | "plumbum.local" | "plumbum.cmd")
            && self.dialect == Dialect::Python
        {
            let mut words = vec![Value::text(name)];
            words.extend(args.positional.iter().cloned());
            self.argv(path, Some(&Value::list(words)), args, span);
        }
        self.any_method(callee, name, args, span);
        if library.ends_with(')') && is_sending(name) {
            self.sends(path, args, span);
        }
        let cloud = is_cloud(library);
        let destroys = name == "delete"
            || name == "terminate"
            || name.starts_with("delete_")
            || name.starts_with("terminate_")
            || matches!(
                name,
                "deleteBucket" | "deleteTable" | "deleteObjects" | "terminateInstances"
            )
            || matches!(
                name,
                "DeleteBucket" | "DeleteTable" | "DeleteObjects" | "TerminateInstances"
            )
            || name.starts_with("purge_");
        if cloud && destroys {
            let reason = format!("`{name}` deletes what a service holds");
            let certain = self.brief || self.function_depth == 0;
            self.findings
                .weigh(certain, Rule::DestroyData, span, reason);
        }
    }

    /// A call of something that is not known at all.
    pub(crate) fn unknown_call(&mut self, callee: &Value, args: &Args, span: Span) {
        let computed = callee.indirect && callee.taint.has(Taint::DECODED);
        if computed {
            self.findings.add(
                Rule::ObfuscatedName,
                span,
                "calls something by a decoded name",
            );
        }
        let _ = args;
    }

    pub(crate) fn attribute(&mut self, base: &Expr, attr: &str, span: Span) {
        if self.dialect == Dialect::Python && attr.starts_with('_') && gadget::climbs(base, attr) {
            self.findings.add(
                Rule::SandboxGadget,
                span,
                format!("climbs to `{attr}` through an object's internals"),
            );
        }
    }

    pub(crate) fn indexed(&mut self, base: &Expr, span: Span) {
        if self.dialect == Dialect::Python && gadget::picks_class(base) {
            self.findings.add(
                Rule::SandboxGadget,
                span,
                "picks a class out of all that are loaded",
            );
        }
    }

    /// A text in the source: hosts and commands that no ordinary program names.
    pub(crate) fn literal(&mut self, text: &str, span: Span) {
        if text.len() < 8 || text.len() > 8192 {
            return;
        }
        if let Some(reason) = hosts::collector(text) {
            self.findings
                .add(Rule::NetworkHost, span, format!("names {reason}"));
        }
        if let Some((rule, what)) = payload::recognise(text) {
            self.findings.add(rule, span, format!("holds {what}"));
        }
    }

    /// Text decoded from a code page that serves to hide it.
    pub(crate) fn code_page(&mut self, name: &str, length: usize, span: Span) {
        let odd = [
            "cp037", "cp273", "cp424", "cp500", "cp875", "cp1026", "cp1140",
        ];
        if length > 16 && odd.contains(&name.to_ascii_lowercase().as_str()) {
            self.findings.add(
                Rule::ObfuscatedText,
                span,
                format!("decodes text from {name}"),
            );
        }
    }

    /// `os.environ["LD_PRELOAD"] = …`
    pub(crate) fn item_set(&mut self, base: &Value, index: &Value, value: &Value, span: Span) {
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
        if environment
            && index.exact() == Some("PATH")
            && (is_loose(first) || first.starts_with(".:"))
        {
            let reason = "has programs looked up where anyone may put them";
            self.findings.add(Rule::ProcessTamper, span, reason);
        }
    }

    /// Judges text given to a shell, unknown parts as variables.
    pub(super) fn command_text(&mut self, command: &str, span: Span) -> bool {
        let text = command.replace(UNKNOWN, "${__unknown}");
        self.analysis.nested(
            Nested::Full(Language::Bash),
            &text,
            span,
            None,
            self.findings,
        )
    }

    pub(super) fn nested_code(&mut self, code: &str, span: Span) {
        self.analysis.nested(
            Nested::Full(self.language()),
            code,
            span,
            None,
            self.findings,
        );
    }

    pub(super) fn connects(&mut self, address: Option<&Value>, span: Span) {
        let host = address.and_then(|value| match &value.kind {
            Kind::List(items) => items.first().and_then(Value::as_text).map(str::to_owned),
            Kind::Text(text) => Some(text.to_string()),
            Kind::Dict(pairs) => pairs
                .iter()
                .find(|(key, _)| key.as_text() == Some("host"))
                .and_then(|(_, value)| value.as_text().map(str::to_owned)),
            _ => None,
        });
        let local = host
            .as_deref()
            .and_then(hosts::host_of)
            .is_some_and(hosts::is_local);
        if local {
            return;
        }
        self.seen.connects.get_or_insert(span);
        let dialled = address.filter(|value| value.as_text().is_some());
        if let Some(value) = dialled {
            self.seen.hosts.extend(host.clone());
            let series = value.taint.has(Taint::SERIES);
            let ports = value.as_text().is_some_and(|text| text.ends_with(UNKNOWN));
            let ports = ports && host.as_deref().is_some_and(|host| !host.contains('/'));
            let one_by_one = ports || host.as_deref().is_some_and(is_numbered);
            if series && one_by_one || self.seen.hosts.len() > 10 {
                let reason = "tries one address after the other";
                self.findings.add(Rule::SystemSurvey, span, reason);
            }
        }
        if let Some([_, port, ..]) = address.and_then(Value::as_list) {
            self.seen.ports.extend(port.as_int());
            self.seen.hosts.extend(host.clone());
            let many = self.seen.ports.len() > 10 || self.seen.hosts.len() > 10;
            if port.taint.has(Taint::SERIES) || many {
                let reason = "tries one address after the other";
                self.findings.add(Rule::SystemSurvey, span, reason);
            }
        }
        match host.as_deref().and_then(hosts::suspicion) {
            Some(reason) => {
                self.findings
                    .add(Rule::NetworkHost, span, format!("connects to {reason}"));
            }
            None => self
                .findings
                .warn(Rule::NetworkAccess, span, "opens a network connection"),
        }
    }

    /// A loop that takes more and more of the machine, without end.
    pub(crate) fn exceeds(&mut self, excess: Excess, span: Span) {
        match excess {
            Excess::Grows => {
                let reason = "fills the memory without end";
                self.findings.add(Rule::ForkBomb, span, reason);
            }
            Excess::Multiplies => {
                let reason = "starts one after the other without end";
                self.findings.add(Rule::ForkBomb, span, reason);
            }
            Excess::Repeats => {
                let reason = "writes the same without end or pause";
                self.findings
                    .weigh(self.brief, Rule::ForkBomb, span, reason);
            }
        }
    }
}

/// Whether a library is one for what a provider holds.
pub(super) fn is_cloud(library: &str) -> bool {
    [
        "boto3.",
        "boto.",
        "google.cloud.",
        "azure.",
        "kubernetes.client.",
        "aws-sdk.",
        "@aws-sdk/",
        "@google-cloud/",
        "@azure/",
        "github.com/aws/",
        "cloud.google.com/",
    ]
    .iter()
    .any(|known| library.starts_with(known))
}

/// A Go file of a package that others import: named so, and described for them.
fn is_library(text: &str) -> bool {
    let package = |line: &str| Some(line.strip_prefix("package ")?.trim() != "main");
    let described = |line: &str| {
        let comment = line
            .strip_prefix("// ")
            .is_some_and(|rest| !rest.starts_with('#'));
        comment || line.starts_with("/* ")
    };
    text.lines().find_map(package) == Some(true) && text.lines().any(described)
}

/// An address whose last numbers are filled in: `10.0.0.…`.
fn is_numbered(host: &str) -> bool {
    host.contains(UNKNOWN)
        && host
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | ':' | UNKNOWN))
}

/// Actions that are worth hiding.
fn is_dangerous(action: &str) -> bool {
    matches!(
        action,
        "shell"
            | "argv"
            | "argv-rest"
            | "argv-path"
            | "spawn"
            | "code"
            | "function"
            | "deserialize"
            | "unmarshal"
            | "delete"
            | "delete-tree"
            | "import"
            | "run-file"
            | "inject"
            | "steal"
            | "identity"
            | "environment"
            | "low-level"
            | "fetch"
            | "send"
            | "connect"
    )
}

/// Where in the table's entry the argument stands.
pub(super) fn argument(args: &Args, entry: Entry) -> Option<&Value> {
    args.get(entry.at, entry.name)
}
