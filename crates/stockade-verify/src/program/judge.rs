//! Judges what a program calls, as the evaluator meets it.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::api::{Dialect, Entry};
use super::gadget;
use super::ir::{Call, Expr, Text};
use super::places::is_foreign;
use super::seen::Seen;
use super::send::is_sending;
use super::shell::Contents;
use super::value::{Args, Taint, Value};
use crate::analysis::{Analysis, Nested};
use crate::context::Context;
use crate::files::{Files, Speaker};
use crate::findings::Findings;
use crate::hosts;
use crate::language::Language;
use crate::paths::{Place, UNKNOWN};
use crate::payload;
use crate::result::Span;
use crate::rule::Rule;

/// Bytes of a text below which it is a snippet.
const BRIEF: usize = 1_500;

/// Bytes of texts inside a program that are judged, besides some for each of its own.
const NESTED: usize = 1 << 19;
/// What one costs besides its bytes.
const EACH: usize = 1 << 10;

/// The state of judging one program.
pub(crate) struct Judge<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) analysis: &'a Analysis<'a>,
    pub(crate) findings: &'a mut Findings,
    /// Within how many functions nobody called the evaluator is.
    pub(crate) function_depth: usize,
    pub(super) context: Context,
    pub(crate) pace: Pace,
    /// The call is `new X(…)`.
    pub(crate) constructs: bool,
    pub(super) seen: Seen,
    /// Files that received what was downloaded.
    pub(super) downloaded: HashSet<Text>,
    pub(super) reported_modules: HashSet<Text>,
    /// Archives that hold files which are not the program's own.
    pub(super) archived: HashSet<Text>,
    /// Links that were made, and where they lead.
    pub(super) links: HashMap<Text, Text>,
    /// Files that were made executable.
    pub(super) executable: HashSet<Text>,
    /// What the files hold that a shell script writes.
    pub(super) contents: Contents,
    /// Texts inside the program that were judged, and whether they have errors.
    judged: HashMap<u64, bool>,
    /// How much of such text may still be judged.
    spare: usize,
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
            context: Context {
                excerpt: text.len() < BRIEF && analysis.depth == 0,
                library: dialect == Dialect::Go && is_library(text),
                ..Context::default()
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
            links: HashMap::new(),
            executable: HashSet::new(),
            archived: HashSet::new(),
            contents: Contents::default(),
            judged: HashMap::new(),
            spare: match analysis.depth {
                0 => NESTED + text.len().saturating_mul(4),
                // All of what is inside texts together is not longer than they are.
                _ => text.len() + EACH,
            },
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
            Dialect::Shell => Language::Bash,
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
            // `client.on("ready", f).connect(…)`: listeners give the object back.
            if let Some((object, "on" | "once" | "addListener")) = path.rsplit_once('.')
                && self.dialect == Dialect::JavaScript
                && object.ends_with(')')
            {
                return Value::api(object).with(callee.taint);
            }
            self.unlisted(path, callee, args, span);
            let named = path.rsplit_once('.').map_or("", |(_, name)| name);
            let known = self.dialect.method(named);
            match known.map(|entry| (entry.action, entry.at)) {
                Some(("secrets", _)) => {
                    let reason = format!("`{named}` reads every secret there is");
                    self.findings.excerpt(Rule::CredentialRead, span, reason);
                }
                Some(("code", at)) => self.code(path, args.positional.get(at), span),
                Some(("shell-remote", at)) if path.contains(").") => {
                    self.remote_shell(path, args.positional.get(at), span);
                }
                Some(("shell", at)) if path.contains(").") => {
                    self.shell(path, args.positional.get(at), span);
                }
                _ => {}
            }
            return match known.map(|entry| entry.action) {
                Some("secret" | "secrets") => result.with(Taint::SECRET),
                _ => result.with(wrapped_file(path, args)),
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
            return;
        };
        self.wrapped(library, name, args, span);
        self.feeds_process(library, name, args, span);
        self.pipes(callee, name, args, span);
        self.any_method(callee, name, args, span);
        if library.ends_with(')') && is_sending(name) {
            self.sends(path, args, span);
        }
        self.empties_service(library, name, span);
    }

    /// A call of something that is not known at all.
    pub(crate) fn unknown_call(&mut self, callee: &Value, span: Span) {
        let computed = callee.indirect && callee.taint.has(Taint::DECODED);
        if computed {
            self.findings.add(
                Rule::ObfuscatedName,
                span,
                "calls something by a decoded name",
            );
        }
    }

    pub(crate) fn attribute(&mut self, base: &Expr, attr: &str, span: Span) {
        if self.dialect == Dialect::Python && attr == "f_builtins" {
            let reason = "takes the built-in functions out of a frame";
            self.findings
                .only_in_excerpt(Rule::SandboxGadget, span, reason);
        }
        let rung = attr.starts_with('_') || attr == "f_builtins";
        if self.dialect == Dialect::Python && rung && gadget::climbs(base, attr) {
            self.findings.add(
                Rule::SandboxGadget,
                span,
                format!("climbs to `{attr}` through an object's internals"),
            );
        }
    }

    /// `x.__getattribute__("__class__")`, `frame.f_builtins`
    pub(crate) fn fetches(&mut self, call: &Call, span: Span) {
        if self.dialect == Dialect::Python && gadget::fetches_rung(call) {
            let reason = "climbs an object's internals by the names of its members";
            self.findings
                .only_in_excerpt(Rule::SandboxGadget, span, reason);
        }
    }

    pub(crate) fn indexed(&mut self, base: &Expr, index: &Value, span: Span) {
        let reached = matches!(
            index.exact(),
            Some("__builtins__" | "__import__" | "os" | "sys" | "subprocess")
        );
        if reached && gadget::is_globals(base) {
            let reason = "takes functions and modules out of someone else's globals";
            self.findings.excerpt(Rule::SandboxGadget, span, reason);
        }
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
        self.note_words(text);
        self.note_rung(text, span);
        if text == "org.freedesktop.secrets" {
            let reason = "asks the desktop for the secrets that it keeps";
            self.findings
                .only_in_excerpt(Rule::CredentialRead, span, reason);
        }
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
        if payload::imports(text) {
            let reason = "holds an expression that imports what runs commands";
            self.findings
                .only_in_excerpt(Rule::SandboxGadget, span, reason);
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

    /// Judges text given to a shell, unknown parts as variables.
    pub(super) fn command_text(&mut self, command: &str, span: Span) -> bool {
        if let Some((rule, what)) = payload::recognise(command) {
            self.findings.add(rule, span, format!("runs {what}"));
        }
        let text = command.replace(UNKNOWN, "${__unknown}");
        self.nested_text(Language::Bash, &text, span)
    }

    pub(super) fn nested_code(&mut self, code: &str, span: Span) {
        self.nested_text(self.language(), code, span);
    }

    /// Judges a text inside the program: at each place each text once, as long as they are not
    /// longer in all than the program can be. A loop makes any number of them.
    fn nested_text(&mut self, language: Language, text: &str, span: Span) -> bool {
        let mut hasher = DefaultHasher::new();
        (span.start, language.as_str(), text).hash(&mut hasher);
        let key = hasher.finish();
        if let Some(known) = self.judged.get(&key) {
            return *known;
        }
        let Some(spare) = self.spare.checked_sub(text.len() + EACH) else {
            return false;
        };
        self.spare = spare;
        let language = Nested::Full(language);
        let errors = self
            .analysis
            .nested(language, text, span, None, self.findings);
        self.judged.insert(key, errors);
        errors
    }

    /// A parameter nobody has given; what opens a wallet is not to be sent anywhere.
    pub(super) fn handed_key(&self, name: &str) -> Value {
        let name = name.to_ascii_lowercase().replace('_', "");
        let keys = [
            "privatekey",
            "secretkey",
            "mnemonic",
            "seedphrase",
            "walletseed",
        ];
        if self.context.excerpt && keys.iter().any(|key| name.contains(key)) {
            return Value::unknown(Taint::PARAM | Taint::SECRET);
        }
        Value::unknown(Taint::PARAM)
    }

    /// A script that a few lines put somewhere is what they are for.
    pub(super) fn writes_script(&mut self, path: &str, text: Option<&Value>, span: Span) {
        let Some(text) = text.and_then(Value::exact).filter(|_| self.context.excerpt) else {
            return;
        };
        let language = match path.rsplit_once('.').map(|(_, ending)| ending) {
            Some("py" | "pyw" | "pth") => Language::Python,
            Some("js" | "mjs" | "cjs") => Language::JavaScript,
            Some("sh" | "bash" | "zsh" | "command") => Language::Bash,
            _ => return,
        };
        self.nested_text(language, text, span);
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

/// `FSInputFile(path)`, `Attachment(path)`: a file made ready to be handed on, and whose it is.
fn wrapped_file(path: &str, args: &Args) -> Taint {
    let name = path.rsplit('.').next().unwrap_or(path);
    let wraps = ["File", "Attachment", "Upload", "Document", "Media"];
    let wraps = name.starts_with(|c: char| c.is_ascii_uppercase())
        && wraps.iter().any(|part| name.contains(part));
    let file = args.first().and_then(Value::as_text).filter(|_| wraps);
    let place = file.map(Place::new).filter(is_foreign);
    place.map_or(Taint::NONE, |_| Taint::FOREIGN)
}

/// Actions that are worth hiding.
pub(super) fn is_dangerous(action: &str) -> bool {
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
