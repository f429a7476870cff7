//! Judges what a program calls, as the evaluator meets it.

use std::collections::HashSet;

use super::api::{Dialect, Entry};
use super::gadget;
use super::ir::{Expr, ExprKind, Text};
use super::payload;
use super::value::{Args, Kind, Taint, Value};
use crate::analysis::{Analysis, Nested};
use crate::files::{Deletion, Files, Speaker, Writing};
use crate::findings::Findings;
use crate::hosts;
use crate::language::Language;
use crate::paths::{Place, Root, UNKNOWN};
use crate::result::Span;
use crate::rule::Rule;

/// Bytes of a text below which it is a snippet.
const BRIEF: usize = 800;

/// The state of judging one program.
pub(crate) struct Judge<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) analysis: &'a Analysis<'a>,
    pub(crate) findings: &'a mut Findings,
    /// Within how many functions nobody called the evaluator is.
    pub(crate) function_depth: usize,
    /// The text is a few lines, and this is what it is for: no library, no large program.
    pub(super) brief: bool,
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

/// What the program was seen to do, for judging the whole.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) connects: Option<Span>,
    pub(super) duplicates: Option<Span>,
    pub(super) shell: Option<Span>,
    pub(super) identity: bool,
    pub(super) listens: bool,
    /// Ports that were tried.
    pub(super) ports: HashSet<i64>,
    pub(super) hosts: HashSet<String>,
    /// The clipboard is read; it is written.
    pub(super) pastes: Option<Span>,
    pub(super) copies: bool,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(
        dialect: Dialect,
        analysis: &'a Analysis<'a>,
        findings: &'a mut Findings,
        size: usize,
    ) -> Self {
        Self {
            brief: size < BRIEF && analysis.depth == 0,
            dialect,
            analysis,
            findings,
            function_depth: 0,
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
            let certain = self.brief && self.dialect == Dialect::Go;
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
                    .is_some_and(|name| name.taint.has(Taint::DECODED));
                if hidden || indirect {
                    self.findings.add(
                        Rule::ObfuscatedName,
                        span,
                        format!("imports `{module}` by a hidden name"),
                    );
                }
            }
        }
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
            self.unlisted(path, callee, args, span);
            return result;
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
            return;
        };
        if library.ends_with(')') {
            self.sql(callee, name, args, span);
            let sends = ["send", "upload", "post", "put_", "publish"];
            if sends.iter().any(|verb| name.starts_with(verb)) {
                self.sends(path, args, span);
            }
        }
        let cloud = [
            "boto3.",
            "boto.",
            "google.cloud.",
            "azure.",
            "kubernetes.client.",
        ]
        .iter()
        .any(|known| library.starts_with(known));
        let destroys = name == "delete"
            || name.starts_with("delete_")
            || name.starts_with("terminate_")
            || name.starts_with("purge_");
        if cloud && destroys {
            let reason = format!("`{name}` deletes what a service holds");
            if self.function_depth > 0 {
                self.findings.warn(Rule::DestroyData, span, reason);
            } else {
                self.findings.add(Rule::DestroyData, span, reason);
            }
        }
    }

    /// A method of an object whose class is not known.
    pub(crate) fn method(
        &mut self,
        base: &Value,
        name: &str,
        args: &Args,
        span: Span,
        indirect: bool,
    ) -> Value {
        let taint = base.deep_taint() | args.taint().without(Taint::UNBOUND);
        let result = Value::unknown(taint);
        if let Kind::Handle(path) = &base.kind {
            return self.handle(&path.clone(), name, args, span);
        }
        if let Some(entry) = self.dialect.entry(&format!(".{name}")) {
            match entry.action {
                "write-self" | "read-self" => {
                    if let Some(path) = base.as_text() {
                        let place = Place::new(path);
                        return if entry.action == "write-self" {
                            self.write(&place, path, Writing::Replace, args.taint(), span);
                            result
                        } else {
                            self.read(&place, span, result)
                        };
                    }
                }
                "shell-remote" => {
                    if let Some(command) = args.first().and_then(Value::as_text) {
                        self.command_text(command, span);
                    }
                }
                "push" if args.taint().has(Taint::ENVIRONMENT) => {
                    self.findings
                        .add(Rule::Exfiltration, span, "hands the whole environment over");
                }
                _ => {}
            }
        }
        if let Some(path) = base.as_text() {
            self.path_method(path, name, args, span);
        }
        self.unknown_method(base, name, args, span, indirect);
        result
    }

    /// `Path("…").unlink()` and its kin.
    fn path_method(&mut self, path: &str, name: &str, args: &Args, span: Span) {
        let place = Place::new(path);
        let looks_like_path = path.contains('/') || path.starts_with('~');
        if self.dialect != Dialect::Python || !looks_like_path {
            return;
        }
        match name {
            "unlink" | "rmdir" => self.delete(&place, Deletion::File, span),
            "mkdir" | "touch" | "symlink_to" | "hardlink_to" => {
                self.write(&place, path, Writing::Append, Taint::NONE, span);
            }
            "chmod" => self.chmod(path, args.first(), span),
            // Of two arguments it is a text's.
            "rename" | "replace" if args.positional.len() == 1 => {
                if let Some(target) = args.first().and_then(Value::as_text) {
                    let place = Place::new(target);
                    self.write(&place, target, Writing::Replace, Taint::NONE, span);
                }
            }
            _ => {}
        }
    }

    /// A statement for a database.
    fn sql(&mut self, base: &Value, name: &str, args: &Args, span: Span) {
        if matches!(
            name,
            "execute"
                | "executescript"
                | "query"
                | "raw"
                | "executemany"
                | "exec"
                | "Exec"
                | "Query"
                | "$executeRawUnsafe"
        ) && let Some(text) = args.first().and_then(Value::as_text)
        {
            let upper = text.trim_start().to_ascii_uppercase();
            if upper.starts_with("DROP ") || upper.starts_with("TRUNCATE ") {
                let base_known = base.taint.has(Taint::PARAM);
                let reason = "drops or empties tables";
                if base_known || self.function_depth > 0 && !self.brief {
                    self.findings.warn(Rule::DestroyData, span, reason);
                } else {
                    self.findings.add(Rule::DestroyData, span, reason);
                }
            }
        }
    }

    fn unknown_method(
        &mut self,
        base: &Value,
        name: &str,
        args: &Args,
        span: Span,
        indirect: bool,
    ) {
        self.sql(base, name, args, span);
        let connection = matches!(name, "connect" | "Connect")
            && args
                .first()
                .is_some_and(|value| value.as_list().is_some_and(|items| items.len() >= 2));
        if connection && base.taint.has(Taint::UNBOUND) {
            self.connects(args.first(), span);
        }
        if indirect
            && base.taint.has(Taint::UNBOUND)
            && matches!(name, "eval" | "exec" | "system" | "spawn" | "execSync")
        {
            self.findings.add(
                Rule::ObfuscatedName,
                span,
                format!("reaches `{name}` through a computed name"),
            );
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

    /// Methods of an open file.
    fn handle(&mut self, path: &Text, name: &str, args: &Args, span: Span) -> Value {
        match name {
            "write" | "writelines" | "Write" | "WriteString" | "end" | "add" => {
                let taint = args.taint();
                self.encrypts(path, taint, span);
                let source = args.first().and_then(Value::as_text).map(Place::new);
                if source.is_some_and(|place| is_foreign(&place)) {
                    self.archived.insert(path.clone());
                }
                if taint.has(Taint::DOWNLOADED | Taint::SOCKET) {
                    self.downloaded.insert(path.clone());
                }
                Value::UNKNOWN
            }
            "read" | "readlines" | "readline" | "Read" => {
                let place = Place::new(path);
                let secret = place.is(crate::paths::Kind::Credential) && !path.ends_with(".pub");
                let mut own = if secret { Taint::SECRET } else { Taint::NONE };
                if is_foreign(&place) || self.archived.contains(path) {
                    own |= Taint::FOREIGN;
                }
                if is_loose(path) {
                    own |= Taint::LOOSE;
                }
                Value::unknown(Taint::FILE | own)
            }
            _ => Value::of(Kind::Handle(path.clone())),
        }
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
    pub(crate) fn item_set(&mut self, base: &Value, index: &Value, span: Span) {
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

    pub(super) fn read(&mut self, place: &Place, span: Span, mut result: Value) -> Value {
        result.taint |= Taint::FILE;
        if is_foreign(place) || self.archived.contains(place.path.as_str()) {
            result.taint |= Taint::FOREIGN;
        }
        if is_loose(&place.path) {
            result.taint |= Taint::LOOSE;
        }
        if self.files().read(place, span, self.findings) {
            result.taint |= Taint::SECRET;
        }
        result
    }

    pub(super) fn write(
        &mut self,
        place: &Place,
        path: &str,
        how: Writing,
        taint: Taint,
        span: Span,
    ) {
        self.files().write(place, how, span, self.findings);
        self.encrypts(path, taint, span);
        if taint.has(Taint::DOWNLOADED | Taint::SOCKET) {
            self.downloaded.insert(path.into());
        }
    }

    /// Encrypted content written over files of the user or the system, many or one.
    fn encrypts(&mut self, path: &str, taint: Taint, span: Span) {
        let place = Place::new(path);
        let theirs = matches!(place.root, Root::Home | Root::Absolute)
            && !place.within(&self.analysis.verifier.allowed_paths);
        if taint.has(Taint::ENCRYPTED) && theirs && path.contains(UNKNOWN) {
            let reason = "replaces files by encrypted ones";
            self.findings.add(Rule::DestroyFiles, span, reason);
        }
    }

    pub(super) fn delete(&mut self, place: &Place, how: Deletion, span: Span) {
        self.files().delete(place, how, span, self.findings);
    }

    pub(super) fn chmod(&mut self, path: &str, mode: Option<&Value>, span: Span) {
        let Some(bits) = mode.and_then(Value::as_int) else {
            self.executable.insert(path.into());
            return;
        };
        if bits & 0o111 != 0 {
            self.executable.insert(path.into());
        }
        if bits & 0o4000 != 0 {
            self.findings.add(
                Rule::FileMode,
                span,
                format!("makes {path} run with its owner's rights"),
            );
        } else if bits & 0o1002 == 0o2 {
            let place = Place::new(path);
            if bits & 0o777 == 0o777 || !place.within(&self.analysis.verifier.allowed_paths) {
                self.findings.add(
                    Rule::FileMode,
                    span,
                    format!("lets everyone write {path}").replace(UNKNOWN, "…"),
                );
            }
        }
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

    /// What only the whole program shows.
    pub(crate) fn finish(&mut self) {
        if let Some(span) = self.seen.pastes.filter(|_| self.seen.copies) {
            let reason = "reads the clipboard and replaces what is in it";
            self.findings.add(Rule::Surveillance, span, reason);
        }
        let seen = &self.seen;
        let reverse = match (seen.connects, seen.duplicates, seen.shell) {
            (Some(_), Some(span), _) | (Some(_), None, Some(span)) => Some(span),
            (None, Some(span), Some(_)) if seen.listens => Some(span),
            _ => None,
        };
        if let Some(span) = reverse {
            self.findings
                .add(Rule::ReverseShell, span, "connects a shell to the network");
        }
    }
}

/// A place where anyone may put a file.
pub(super) fn is_loose(path: &str) -> bool {
    ["/tmp/", "/var/tmp/", "/dev/shm/"]
        .iter()
        .any(|place| path.starts_with(place))
}

/// A file of the system or the user, not the program's own.
pub(super) fn is_foreign(place: &Place) -> bool {
    let system = ["/etc/", "/var/", "/home/"]
        .iter()
        .any(|directory| place.path.starts_with(directory));
    (system && !place.path.starts_with("/var/tmp/"))
        || place.root == Root::Home && !place.path.starts_with("~/.cache/")
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
