//! Files opened, read, written, moved, packed and deleted.

use super::Deed;
use crate::files::{Deletion, Writing};
use crate::paths::{Place, UNKNOWN};
use crate::program::api::{Dialect, Entry};
use crate::program::interpreter_input::is_input_value;
use crate::program::judge::{Judge, argument};
use crate::program::places::{is_foreign, is_own};
use crate::program::run::option;
use crate::program::value::{Args, Kind, Taint, Value};
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn judge_file_access(&mut self, deed: &Deed<'_>) -> Option<Value> {
        let &Deed {
            entry,
            args,
            arg,
            second,
            span,
            ..
        } = deed;
        let given = deed.given();
        let place = arg.and_then(Value::as_text).map(Place::new);
        let result = deed.result.clone();
        Some(match entry.action {
            "open" | "os-open" | "open-self" | "js-open" | "go-open" => {
                self.open(entry, args, span, &result)
            }
            "write" => {
                if let Some(place) = &place {
                    self.overwrites(arg, place, span);
                    self.write(place, given, Writing::Replace, args.taint(), span);
                    self.writes_script(given, second, span);
                    return Some(Value::of(Kind::Handle(given.into())));
                }
                result
            }
            "make" => {
                if let Some(place) = &place {
                    self.write(place, given, Writing::Append, Taint::NONE, span);
                }
                result
            }
            "read" => self.reads(deed),
            "list" => self.lists(deed),
            "move" | "copy" => {
                self.moves(deed);
                result
            }
            "delete" | "delete-tree" | "js-remove" => {
                self.removes(deed);
                result
            }
            "chmod" => {
                self.chmod(given, second, span);
                result
            }
            "chown" => {
                let system = [crate::paths::Kind::System, crate::paths::Kind::Base];
                let theirs = place
                    .as_ref()
                    .is_some_and(|place| system.into_iter().any(|kind| place.is(kind)));
                if theirs {
                    let reason = format!("gives {given} to someone else");
                    self.findings.excerpt(Rule::FileMode, span, reason);
                }
                result
            }
            "archive" => {
                if let Some(source) = second.and_then(Value::as_text)
                    && is_foreign(&Place::new(source))
                {
                    self.peeks(source, span);
                    self.read(&Place::new(source), span, Value::UNKNOWN);
                    let name = format!("{given}.zip");
                    self.archived.insert(given.into());
                    self.archived.insert(name.into());
                }
                result
            }
            "unpack" => {
                if !given.is_empty() {
                    self.unpacks(given, span);
                }
                result
            }
            "go-copy" => {
                if arg.is_some_and(is_input_value) {
                    self.feeds(args.taint(), span);
                }
                if let (Some(Kind::Handle(file)), Some(source)) =
                    (arg.map(|value| &value.kind), second)
                    && source.deep_taint().has(Taint::DOWNLOADED | Taint::SOCKET)
                {
                    self.downloaded.insert(file.clone());
                }
                result
            }
            _ => return None,
        })
    }

    /// The content of a file.
    fn reads(&mut self, deed: &Deed<'_>) -> Value {
        let &Deed {
            path, arg, span, ..
        } = deed;
        let given = deed.given();
        let result = deed.result.clone();
        let Some(place) = arg.and_then(Value::as_text).map(Place::new) else {
            let own = arg.is_some_and(is_own);
            let own = if own { Taint::OWN } else { Taint::NONE };
            return Value::unknown(result.taint | Taint::FILE | own);
        };
        self.peeks(given, span);
        let read = self.read(&place, span, result);
        if self.dialect == Dialect::Go && path == "os.Open" {
            Value::of(Kind::Handle(given.into())).with(read.taint)
        } else {
            Value::unknown(read.taint)
        }
    }

    /// A file goes elsewhere, or another is made of it.
    fn moves(&mut self, deed: &Deed<'_>) {
        let &Deed {
            entry,
            path,
            arg,
            second,
            span,
            ..
        } = deed;
        let given = deed.given();
        let place = arg.and_then(Value::as_text).map(Place::new);
        let result = deed.result.clone();
        if entry.action == "copy" && arg.is_some_and(is_own) {
            let reason = format!("`{path}` makes a copy of the program itself");
            self.findings
                .excerpt(Rule::PersistenceStartup, span, reason);
        }
        if let Some(place) = &place {
            self.read(place, span, result.clone());
        }
        if let Some(place) = place.as_ref().filter(|_| entry.action == "move") {
            self.delete(place, Deletion::Tree, span);
        }
        if let Some(target) = second.and_then(Value::as_text) {
            let place = Place::new(target);
            self.write(&place, target, Writing::Replace, Taint::NONE, span);
            if path.to_ascii_lowercase().contains("link") && given.starts_with('/') {
                self.peeks(given, span);
                self.links.insert(target.into(), given.into());
            }
            if self.downloaded.contains(given) {
                self.downloaded.insert(target.into());
            }
        }
    }

    /// What a directory or a pattern holds.
    fn lists(&mut self, deed: &Deed<'_>) -> Value {
        let &Deed {
            path, arg, span, ..
        } = deed;
        let given = deed.given();
        let place = arg.and_then(Value::as_text).map(Place::new);
        let result = deed.result.clone();
        if let Some(place) = &place {
            self.peeks(given, span);
            self.read(place, span, result.clone());
            if place.path == "/proc" {
                return result.with(Taint::PROCESSES);
            }
            if path.ends_with(".Glob") {
                let found = given.replace('*', &UNKNOWN.to_string());
                return Value::text(found).with(result.taint | Taint::WALKED);
            }
        }
        result.with(Taint::WALKED)
    }

    /// The files that a walk found, each written over.
    pub(in crate::program) fn overwrites(
        &mut self,
        file: Option<&Value>,
        place: &Place,
        span: Span,
    ) {
        let found = file.is_some_and(|file| {
            let itself = file.as_text().is_some_and(|path| path.ends_with(UNKNOWN));
            itself && file.taint.has(Taint::WALKED)
        });
        if found && self.is_theirs(place) {
            let reason = "writes over every file that it finds";
            self.findings.add(Rule::DestroyFiles, span, reason);
        }
    }

    /// A file or a whole tree goes.
    fn removes(&mut self, deed: &Deed<'_>) {
        let each = deed.arg.and_then(Value::as_list).unwrap_or_default();
        if each.is_empty() {
            return self.removes_one(deed, deed.arg);
        }
        for one in each.iter().take(64) {
            self.removes_one(deed, Some(one));
        }
    }

    fn removes_one(&mut self, deed: &Deed<'_>, arg: Option<&Value>) {
        let &Deed {
            path,
            entry,
            args,
            span,
            ..
        } = deed;
        let place = arg.and_then(Value::as_text).map(Place::new);
        let tree = entry.action == "delete-tree"
            || entry.action == "js-remove" && option(args, "recursive") == Some(true);
        let walked = arg.is_some_and(|value| value.deep_taint().has(Taint::WALKED));
        match &place {
            // What begins with a dot at home belongs to programs.
            Some(place) if walked && self.is_theirs(place) && !place.path.starts_with("~/.") => {
                let reason = "deletes every file that it finds";
                self.findings.add(Rule::DestroyFiles, span, reason);
            }
            Some(place) => self.delete(
                place,
                if tree {
                    Deletion::ForcedTree
                } else {
                    Deletion::File
                },
                span,
            ),
            None => self.unknown_delete(path, arg, tree, span),
        }
    }

    pub(in crate::program) fn open(
        &mut self,
        entry: Entry,
        args: &Args,
        span: Span,
        result: &Value,
    ) -> Value {
        let Some(path) = argument(args, entry)
            .and_then(Value::as_text)
            .map(str::to_owned)
        else {
            let own = argument(args, entry).is_some_and(is_own);
            let own = if own { Taint::OWN } else { Taint::NONE };
            return Value::unknown(result.taint.without(Taint::UNBOUND) | Taint::FILE | own);
        };
        let place = Place::new(&path);
        let mode = args.get(1, "mode").or_else(|| args.named("flags"));
        let flag = |value: &Value| {
            let name = value.as_api().unwrap_or_default();
            ["O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"]
                .iter()
                .any(|flag| name.contains(flag))
        };
        let writes = match mode.map(|mode| &mode.kind) {
            Some(Kind::Text(mode)) => mode.contains(['w', 'a', 'x', '+']),
            Some(Kind::Api(_)) => mode.is_some_and(flag),
            Some(Kind::List(flags)) => flags.iter().any(flag),
            _ => false,
        };
        if writes {
            self.overwrites(argument(args, entry), &place, span);
            let how = if mode
                .and_then(Value::as_text)
                .is_some_and(|mode| mode.contains('a'))
            {
                Writing::Append
            } else {
                Writing::Replace
            };
            self.write(&place, &path, how, Taint::NONE, span);
        }
        let read = if writes {
            Taint::NONE
        } else {
            self.peeks(&path, span);
            self.read(&place, span, result.clone()).taint
        };
        let telling = read.without(Taint::FILE | Taint::LOOSE | Taint::UNBOUND);
        let handle: crate::program::ir::Text = path.into();
        Value::of(Kind::Handle(handle)).with(result.taint.without(Taint::UNBOUND) | telling)
    }

    fn unknown_delete(&mut self, path: &str, arg: Option<&Value>, tree: bool, span: Span) {
        let taint = arg.map_or(Taint::NONE, Value::deep_taint);
        if tree && taint.has(Taint::INPUT) {
            self.findings.warn(
                Rule::FileDelete,
                span,
                format!("`{path}` deletes a tree chosen from outside"),
            );
        } else {
            self.findings.warn(
                Rule::FileDelete,
                span,
                format!("`{path}` deletes something chosen at run time"),
            );
        }
    }
}
