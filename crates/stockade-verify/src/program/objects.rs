//! Methods of objects: of paths, open files, archives, connections, and of what is not known.

use super::api::{Dialect, Entry};
use super::attack::{guesses, is_login_method};
use super::interpreter_input::is_input_value;
use super::judge::Judge;
use super::places::is_foreign;
use super::send::is_sending;
use super::value::{Args, Kind, Taint, Value};
use crate::files::{Deletion, Writing};
use crate::paths::{Place, UNKNOWN};
use crate::result::Span;
use crate::rule::Rule;
use crate::words::Words;

/// Methods that take a statement for a database.
static QUERY_METHODS: Words = Words::new("program/objects query-methods");

impl Judge<'_> {
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
            return self.handle(&path.clone(), base.taint, name, args, span);
        }
        // `x.constructor("return process")`: of a function it makes functions from text.
        if name == "constructor"
            && self.dialect == Dialect::JavaScript
            && !self.constructs
            && args.first().is_some_and(|code| code.as_text().is_some())
        {
            return self.call("Function", base, args, span, false);
        }
        if let Some(entry) = self.dialect.method(name) {
            match entry.action {
                "write-self" | "read-self" => {
                    if let Some(path) = base.as_text() {
                        let place = Place::new(path);
                        return if entry.action == "write-self" {
                            self.overwrites(Some(base), &place, span);
                            self.write(&place, path, Writing::Replace, args.taint(), span);
                            self.writes_script(path, args.first(), span);
                            result
                        } else {
                            self.read(&place, span, result)
                        };
                    }
                }
                "shell-remote" => self.remote_shell(name, args.first(), span),
                "shell" => self.shell(name, args.positional.get(entry.at), span),
                "code" => self.code(name, args.positional.get(entry.at), span),
                "argv-rest" => {
                    let words = args.positional.get(entry.at..).unwrap_or_default();
                    self.argv(name, Some(&Value::list(words.to_vec())), args, span);
                }
                "input" if name != "Query" || args.positional.is_empty() => {
                    return Value::unknown(result.taint | Taint::INPUT | Taint::REQUEST);
                }
                "secrets" => {
                    let reason = format!("`{name}` reads every secret there is");
                    self.findings.excerpt(Rule::CredentialRead, span, reason);
                    return Value::unknown(result.taint | Taint::SECRET);
                }
                "secret" => return Value::unknown(result.taint | Taint::SECRET),
                "receive" => return Value::unknown(result.taint | Taint::SOCKET),
                "unpack-self" => {
                    self.unpacks_all(base, args, span);
                    return result;
                }
                "push" if args.taint().has(Taint::ENVIRONMENT) => {
                    self.findings
                        .add(Rule::Exfiltration, span, "hands the whole environment over");
                }
                _ => {}
            }
        }
        if let Some(path) = base.as_text() {
            if name == "open" && self.dialect == Dialect::Python && path.contains('/') {
                return self.open_path(base, args, span);
            }
            self.path_method(path, base.taint, name, args, span);
        }
        self.unknown_method(base, name, args, span, indirect);
        result
    }

    /// `Path("…").open("w")`
    fn open_path(&mut self, base: &Value, args: &Args, span: Span) -> Value {
        let mut whole = args.clone();
        whole.positional.insert(0, base.clone());
        let entry = Entry {
            action: "open",
            at: 0,
            second: 1,
            name: "file",
        };
        self.open(entry, &whole, span, &Value::UNKNOWN)
    }

    /// A command for another machine: its text is judged, an unknown one by where it comes from.
    pub(super) fn remote_shell(&mut self, path: &str, command: Option<&Value>, span: Span) {
        if let Some(text) = command.and_then(Value::as_text) {
            self.command_text(text, span);
            return;
        }
        let taint = command.map_or(Taint::NONE, Value::deep_taint);
        if taint.has(Taint::INPUT | Taint::UNBOUND) {
            self.built_command(path, taint, span);
        }
    }

    /// `Path("…").unlink()` and its kin.
    fn path_method(&mut self, path: &str, taint: Taint, name: &str, args: &Args, span: Span) {
        let looks_like_path = path.contains('/') || path.starts_with('~');
        if self.dialect != Dialect::Python || !looks_like_path {
            return;
        }
        let place = Place::new(path);
        match name {
            "unlink" | "rmdir" if taint.has(Taint::WALKED) && self.is_theirs(&place) => {
                let reason = "deletes every file that it finds";
                self.findings.add(Rule::DestroyFiles, span, reason);
            }
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

    /// `response.pipe(file)`
    pub(super) fn pipes(&mut self, base: &Value, name: &str, args: &Args, span: Span) {
        if name == "pipe" && args.first().is_some_and(is_input_value) {
            self.feeds(base.deep_taint(), span);
        }
        if name == "pipe"
            && base.deep_taint().has(Taint::DOWNLOADED | Taint::SOCKET)
            && let Some(Kind::Handle(file)) = args.first().map(|value| &value.kind)
        {
            self.downloaded.insert(file.clone());
        }
    }

    /// A statement for a database.
    pub(super) fn sql(&mut self, base: &Value, name: &str, args: &Args, span: Span) {
        let at = usize::from(name.ends_with("Context"));
        if let (true, Some(statement)) = (is_query(name), args.positional.get(at)) {
            self.injects(name, statement, span);
        }
        if is_query(name)
            && let Some(text) = args.first().and_then(Value::as_text)
        {
            let upper = text.trim_start().to_ascii_uppercase();
            let every = upper.starts_with("DELETE FROM ") && !upper.contains(UNKNOWN);
            let every = every && !upper.contains("WHERE") && !upper.contains("LIMIT");
            if upper.starts_with("DROP ") || upper.starts_with("TRUNCATE ") || every {
                self.empties(base, "drops or empties tables", span);
            }
        }
        let all = |value: &Value| matches!(value.exact(), Some("*" | "_all"));
        if name.starts_with("delete") && args.all().any(all) {
            self.empties(base, "deletes everything that a database holds", span);
        }
        let whole = matches!(
            name,
            "drop_database" | "dropDatabase" | "flushall" | "flushdb" | "FlushAll" | "FlushDB"
        );
        if whole {
            self.empties(base, "empties a whole database", span);
        }
    }

    /// A library that is handed a database may well do so; a program is for it.
    fn empties(&mut self, base: &Value, reason: &str, span: Span) {
        let handed = base.taint.has(Taint::PARAM);
        let certain = self.context.excerpt || !handed && self.function_depth == 0;
        self.findings
            .weigh(certain, Rule::DestroyData, span, reason);
    }

    /// What a method's name and its arguments tell, whatever it belongs to.
    pub(super) fn any_method(&mut self, base: &Value, name: &str, args: &Args, span: Span) {
        self.sql(base, name, args, span);
        self.serves(name, args, span);
        self.hands_file(name, args, span);
        self.system_function(name, span);
        self.looks_up(name, args, span);
        self.maps_code(name, args, span);
        if args.all().any(guesses) || self.context.excerpt && is_login_method(name) {
            self.tries(name, args, span);
        }
        let external = |value: &Value| {
            let named = value.as_api().or(value.as_text());
            named.is_some_and(|name| name.contains("external"))
        };
        let on = args.positional.get(1).map(|value| &value.kind);
        if name == "setFeature"
            && args.first().is_some_and(external)
            && matches!(on, Some(Kind::Bool(true) | Kind::Int(1)))
        {
            let reason = "lets a document name files to be read into it";
            self.findings.add(Rule::CredentialRead, span, reason);
        }
        let first = args.first().and_then(Value::exact);
        if name == "config_set" && matches!(first, Some("dir" | "dbfilename")) {
            let reason = "has a database write its file somewhere else";
            self.findings.add(Rule::FileWrite, span, reason);
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
        self.any_method(base, name, args, span);
        self.pipes(base, name, args, span);
        self.wrapped_git(base, name, args, span);
        if matches!(name, "write" | "Write") && base.taint.has(Taint::WALKED) {
            self.encrypts(&UNKNOWN.to_string(), base.taint, args.taint(), span);
        }
        if matches!(name, "write" | "add") {
            let packed = args.first().and_then(Value::as_text).map(Place::new);
            if packed.is_some_and(|place| is_foreign(&place)) {
                self.seen.packs.get_or_insert(span);
            }
        }
        if is_sending(name) {
            self.sends_unknown(name, args, span);
        }
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
}

/// Methods that give a statement to a database.
pub(super) fn is_query(name: &str) -> bool {
    QUERY_METHODS.contains(&name)
}
