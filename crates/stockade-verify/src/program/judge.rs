//! Judges what a program calls, as the evaluator meets it.

use std::collections::HashSet;

use super::api::{Dialect, Entry};
use super::gadget;
use super::ir::{Expr, ExprKind, Text};
use super::loops::Excess;
use super::payload;
use super::send::is_sending;
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
    pub(super) standing: Standing,
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

/// What a text is, as far as its look tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// A package that others import, not a program.
    Library,
    Piece,
    /// Says whose it is, as files of a project do and pieces of code don't.
    Published,
}

impl Standing {
    fn of_go(text: &str) -> Self {
        if is_library(text) {
            Self::Library
        } else if text.contains("// Copyright ") {
            Self::Published
        } else {
            Self::Piece
        }
    }
}

/// How what is looked at is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    Calm,
    /// Again and again without a pause, its result not wanted.
    Hurried,
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
        text: &str,
    ) -> Self {
        Self {
            brief: text.len() < BRIEF && analysis.depth == 0,
            standing: match dialect {
                Dialect::Go => Standing::of_go(text),
                Dialect::JavaScript | Dialect::Python => Standing::Piece,
            },
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
            let piece = self.standing == Standing::Piece;
            let certain = self.brief && self.dialect == Dialect::Go && piece;
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
            let reason = "changes what all objects inherit";
            self.findings
                .weigh(self.brief, Rule::SandboxGadget, span, reason);
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

    pub(super) fn read(&mut self, place: &Place, span: Span, mut result: Value) -> Value {
        result.taint |= Taint::FILE;
        if is_foreign(place) || self.archived.contains(place.path.as_str()) {
            result.taint |= Taint::FOREIGN;
        }
        if is_loose(&place.path) {
            result.taint |= Taint::LOOSE;
        }
        let secret = self.files().read(place, span, self.findings);
        if secret || place.is(crate::paths::Kind::Private) {
            result.taint |= Taint::SECRET;
        }
        if self.brief && place.is(crate::paths::Kind::Account) {
            let reason = format!("reads {}", place.path);
            self.findings.raise(Rule::AccountRead, span, reason);
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
    pub(super) fn encrypts(&mut self, path: &str, taint: Taint, span: Span) {
        let place = Place::new(path);
        let theirs = self.is_theirs(&place);
        if taint.has(Taint::ENCRYPTED) && theirs && path.contains(UNKNOWN) {
            let reason = "replaces files by encrypted ones";
            self.findings.add(Rule::DestroyFiles, span, reason);
        }
    }

    /// A place of the user or the system, where the program has nothing to write.
    pub(super) fn is_theirs(&self, place: &Place) -> bool {
        matches!(place.root, Root::Home | Root::Absolute)
            && !place.within(&self.analysis.verifier.allowed_paths)
    }

    pub(super) fn delete(&mut self, place: &Place, how: Deletion, span: Span) {
        self.files().delete(place, how, span, self.findings);
    }

    pub(super) fn chmod(&mut self, path: &str, mode: Option<&Value>, span: Span) {
        let Some(bits) = mode.and_then(mode_bits) else {
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
        let dialled = address.filter(|value| value.as_text().is_some());
        if let Some(value) = dialled {
            self.seen.hosts.extend(host.clone());
            let series = value.taint.has(Taint::SERIES);
            if series && host.as_deref().is_some_and(is_numbered) || self.seen.hosts.len() > 10 {
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

/// A mode as a number, or as the names of its bits.
fn mode_bits(mode: &Value) -> Option<i64> {
    match &mode.kind {
        Kind::Int(bits) => Some(*bits),
        Kind::Api(name) => Some(match name.rsplit('.').next()? {
            "S_ISUID" | "ModeSetuid" => 0o4000,
            "S_ISGID" | "ModeSetgid" => 0o2000,
            "S_IRWXU" => 0o700,
            "S_IRWXG" => 0o070,
            "S_IRWXO" => 0o007,
            "S_IWOTH" => 0o002,
            "S_IXUSR" | "S_IEXEC" => 0o100,
            "S_IXGRP" => 0o010,
            "S_IXOTH" => 0o001,
            "ModePerm" => 0o777,
            name if name.starts_with("S_I") || name.starts_with("Mode") => 0,
            _ => return None,
        }),
        Kind::List(parts) => parts
            .iter()
            .try_fold(0, |bits, part| Some(bits | mode_bits(part)?)),
        _ => None,
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
    let system = ["/etc", "/var", "/home"].iter().any(|directory| {
        let below = place.path.strip_prefix(directory);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
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
