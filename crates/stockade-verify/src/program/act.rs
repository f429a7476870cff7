//! What each action of the tables means for the verdict.

use super::api::{Dialect, Entry};
use super::judge::{Judge, argument, is_foreign, is_loose};
use super::run::option;
use super::value::{Args, Kind, Taint, Value};
use crate::files::{Deletion, Writing};
use crate::paths::{Place, UNKNOWN};
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each action of the tables"
    )]
    pub(super) fn act(
        &mut self,
        path: &str,
        entry: Entry,
        args: &Args,
        span: Span,
        endless: bool,
        result: Value,
    ) -> Value {
        let arg = argument(args, entry);
        let second = args.positional.get(entry.second);
        let place = arg.and_then(Value::as_text).map(Place::new);
        let given = arg.and_then(Value::as_text).unwrap_or_default();
        let rule = match entry.action {
            "open" | "js-open" | "go-open" | "read" | "serve" => Some(Rule::CredentialRead),
            "write" => Some(Rule::FileWrite),
            "delete" | "delete-tree" | "js-remove" => Some(Rule::FileDelete),
            _ => None,
        };
        if let Some(rule) = rule {
            self.named_by_visitor(path, rule, arg, span);
        }
        match entry.action {
            "shell" => {
                self.shell(path, arg, span);
                result.with(Taint::OUTPUT | told_by(given))
            }
            "argv" => {
                // `Deno.run({cmd: […]})`
                let command = arg.and_then(|value| match &value.kind {
                    Kind::Dict(pairs) => pairs.iter().find(|(key, _)| key.as_text() == Some("cmd")),
                    _ => None,
                });
                let arg = command.map(|(_, words)| words).or(arg);
                self.argv(path, arg, args, span);
                let program = arg.and_then(Value::as_list).and_then(<[Value]>::first);
                let program = program.or(arg).and_then(Value::as_text);
                result.with(Taint::OUTPUT | told_by(program.unwrap_or_default()))
            }
            "argv-rest" => {
                let words = args.positional.get(entry.at..).unwrap_or_default();
                let mut listed = words.to_vec();
                // What follows the path is the program's own name.
                if (path.contains("execl") || path.contains("spawnl")) && listed.len() > 1 {
                    listed.remove(1);
                }
                let list = Value::list(listed);
                let own = words.first().and_then(Value::exact) == Some("/proc/self/exe");
                if own && endless {
                    self.findings
                        .add(Rule::ForkBomb, span, "starts itself without end");
                }
                self.argv(path, Some(&list), args, span);
                result.with(Taint::OUTPUT)
            }
            "argv-pip" => {
                let mut words = vec![Value::text("pip")];
                words.extend_from_slice(arg.and_then(Value::as_list).unwrap_or_default());
                self.argv(path, Some(&Value::list(words)), args, span);
                result
            }
            "argv-path" => {
                let mut words: Vec<Value> = arg.cloned().into_iter().collect();
                if let Some(rest) = args.positional.get(entry.at + 1) {
                    match rest.as_list() {
                        // The first is the program's own name, unless someone forgot it.
                        Some(rest) => {
                            let own = rest
                                .first()
                                .and_then(Value::exact)
                                .is_none_or(|name| !name.starts_with('-'));
                            words.extend(rest.iter().skip(usize::from(own)).cloned());
                        }
                        None => words.push(Value::unknown(rest.taint)),
                    }
                }
                self.argv(path, Some(&Value::list(words)), args, span);
                result.with(Taint::OUTPUT)
            }
            "spawn-script" => {
                let own = arg.and_then(Value::as_api) == Some("__filename");
                if own && endless {
                    self.findings
                        .add(Rule::ForkBomb, span, "starts itself without end");
                }
                if is_loose(given) {
                    let reason = format!("`{path}` runs {given}, where anyone may put it");
                    self.findings.add(Rule::CodeDynamic, span, reason);
                }
                result
            }
            "spawn" => {
                let mut words: Vec<Value> = arg.cloned().into_iter().collect();
                words.extend(
                    second
                        .and_then(Value::as_list)
                        .unwrap_or_default()
                        .iter()
                        .cloned(),
                );
                if option(args, "shell") == Some(true) && words.len() == 1 {
                    self.shell(path, arg, span);
                } else {
                    self.argv(path, Some(&Value::list(words)), args, span);
                }
                result.with(Taint::OUTPUT)
            }
            "go-cmd" => {
                let mut words: Vec<Value> = args.named("Path").cloned().into_iter().collect();
                let rest = args
                    .named("Args")
                    .and_then(Value::as_list)
                    .unwrap_or_default();
                words.extend(rest.iter().skip(1).cloned());
                if !words.is_empty() {
                    self.argv(path, Some(&Value::list(words)), args, span);
                }
                result
            }
            "code" => {
                self.code(path, arg, span);
                result
            }
            "code-weak" | "template" | "deserialize-weak" => {
                self.weakly(path, entry, arg, span);
                result
            }
            "kernel" => {
                let reason = format!("`{path}` changes what the kernel runs");
                self.findings.add(Rule::KernelChange, span, reason);
                result
            }
            "anonymous" => {
                let reason = format!("`{path}` makes a file that no directory shows");
                self.findings.add(Rule::ProcessTamper, span, reason);
                result
            }
            "function" => {
                let code = args.positional.last();
                self.code(path, code, span);
                let text = code.and_then(Value::exact).unwrap_or_default();
                let reached = text.trim().trim_end_matches(';').strip_prefix("return ");
                if matches!(
                    reached,
                    Some("process" | "require" | "module" | "global.process")
                ) {
                    let reason =
                        format!("`{path}` reaches `{}` unseen", reached.unwrap_or_default());
                    self.findings.add(Rule::ObfuscatedName, span, reason);
                }
                result
            }
            "timer" => {
                if arg.is_some_and(|value| value.as_text().is_some()) {
                    self.code(path, arg, span);
                }
                result
            }
            "worker" => {
                if option(args, "eval") == Some(true) {
                    self.code(path, arg, span);
                }
                result
            }
            "import" => {
                self.computed_import(path, arg, span);
                result
            }
            "run-file" => {
                if self.downloaded.contains(given) {
                    self.findings.add(
                        Rule::DownloadRun,
                        span,
                        format!("runs {given}, which was downloaded"),
                    );
                }
                if is_loose(given) {
                    self.findings.add(
                        Rule::CodeDynamic,
                        span,
                        format!("`{path}` runs code from {given}, where anyone may put it"),
                    );
                }
                self.findings.warn(
                    Rule::CodeDynamic,
                    span,
                    format!("`{path}` runs code from a file"),
                );
                result
            }
            "deserialize" | "unmarshal" => {
                self.deserialize(path, entry, arg, span);
                let taint = if entry.action == "unmarshal" {
                    Taint::DECODED
                } else {
                    Taint::NONE
                };
                result.with(taint)
            }
            "yaml" => {
                let loader = args
                    .get(1, "Loader")
                    .and_then(Value::as_api)
                    .unwrap_or_default();
                if !(loader.contains("Safe") || loader.contains("safe") || loader.contains("Base"))
                {
                    self.deserialize(path, entry, arg, span);
                }
                result
            }
            "open" | "os-open" | "open-self" | "js-open" | "go-open" => {
                self.open(entry, args, span, &result)
            }
            "write" => {
                if let Some(place) = &place {
                    self.write(place, given, Writing::Replace, args.taint(), span);
                    return Value::of(Kind::Handle(given.into()));
                }
                result
            }
            "make" => {
                if let Some(place) = &place {
                    self.write(place, given, Writing::Append, Taint::NONE, span);
                }
                result
            }
            "read" => match &place {
                Some(place) => {
                    let read = self.read(place, span, result);
                    if self.dialect == Dialect::Go && path == "os.Open" {
                        Value::of(Kind::Handle(given.into())).with(read.taint)
                    } else {
                        Value::unknown(read.taint)
                    }
                }
                None => Value::unknown(result.taint | Taint::FILE),
            },
            "list" => {
                if let Some(place) = &place {
                    self.read(place, span, result.clone());
                    if place.path == "/proc" {
                        return result.with(Taint::PROCESSES);
                    }
                    if path.ends_with(".Glob") {
                        let found = given.replace('*', &UNKNOWN.to_string());
                        return Value::text(found).with(result.taint | Taint::WALKED);
                    }
                }
                result
            }
            "clean" => {
                let taint = result.taint.without(Taint::INPUT | Taint::REQUEST);
                Value::unknown(taint)
            }
            "print-to" => {
                if args.first().is_some_and(|to| to.taint.has(Taint::SOCKET)) {
                    self.sends(path, args, span);
                }
                result
            }
            "line" => Value::unknown(result.taint | Taint::TRIED),
            "processes" => result.with(Taint::PROCESSES),
            "move" | "copy" => {
                if let Some(place) = &place {
                    self.read(place, span, result.clone());
                }
                if let Some(place) = place.as_ref().filter(|_| entry.action == "move") {
                    self.delete(place, Deletion::Tree, span);
                }
                if let Some(target) = second.and_then(Value::as_text) {
                    let place = Place::new(target);
                    self.write(&place, target, Writing::Replace, Taint::NONE, span);
                    if self.downloaded.contains(given) {
                        self.downloaded.insert(target.into());
                    }
                }
                result
            }
            "delete" | "delete-tree" | "js-remove" => {
                let tree = entry.action == "delete-tree"
                    || entry.action == "js-remove" && option(args, "recursive") == Some(true);
                let walked = arg.is_some_and(|value| value.deep_taint().has(Taint::WALKED));
                match &place {
                    Some(place) if walked && self.is_theirs(place) => {
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
                result
            }
            "chmod" => {
                self.chmod(given, second, span);
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
            "kill" => {
                let asks = second.and_then(Value::as_int) == Some(0);
                let all = result.taint.has(Taint::PROCESSES) && !asks;
                if all || matches!(arg.and_then(Value::as_int), Some(-1 | 1)) {
                    self.findings
                        .add(Rule::SystemStop, span, "stops every process it may");
                }
                result
            }
            "fork" => {
                if endless {
                    self.findings.add(Rule::ForkBomb, span, "forks without end");
                }
                result
            }
            "duplicate" => {
                self.seen.duplicates.get_or_insert(span);
                result
            }
            "setenv" => {
                self.item_set(
                    &Value::api("os.environ"),
                    arg.unwrap_or(&Value::UNKNOWN),
                    span,
                );
                result
            }
            "archive" => {
                if let Some(source) = second.and_then(Value::as_text)
                    && is_foreign(&Place::new(source))
                {
                    let name = format!("{given}.zip");
                    self.archived.insert(given.into());
                    self.archived.insert(name.into());
                }
                result
            }
            "stop-all" => {
                self.findings
                    .add(Rule::SystemStop, span, "stops every process it may");
                result
            }
            "encrypt" => Value::unknown(result.taint | Taint::ENCRYPTED),
            "shell-remote" => {
                self.remote_shell(path, arg, span);
                result.with(Taint::OUTPUT)
            }
            "search-path" => {
                if is_loose(given) {
                    let reason = format!("takes modules from {given}, where anyone may put them");
                    self.findings.add(Rule::CodeDynamic, span, reason);
                }
                result
            }
            "console" => {
                let reason = format!("`{path}` runs whatever is typed as code");
                self.findings
                    .weigh(self.brief, Rule::CodeDynamic, span, reason);
                result
            }
            "unpack" => {
                if !given.is_empty() {
                    self.unpacks(given, span);
                }
                result
            }
            "pickle-option" => {
                let allowed = args.named("allow_pickle").map(|value| &value.kind);
                if matches!(allowed, Some(Kind::Bool(true))) {
                    self.deserialize(path, entry, arg, span);
                }
                result
            }
            "yaml-option" => {
                if args.get(0, "typ").and_then(Value::as_text) == Some("unsafe") {
                    let reason = format!("`{path}` asks for the loader that can run code");
                    self.findings.add(Rule::Deserialize, span, reason);
                }
                result
            }
            "mmap" => {
                let executable = |value: &Value| {
                    let named = |value: &Value| {
                        value
                            .as_api()
                            .is_some_and(|name| name.ends_with("PROT_EXEC"))
                    };
                    named(value) || value.as_list().is_some_and(|flags| flags.iter().any(named))
                };
                if args.all().any(executable) {
                    self.findings.add(
                        Rule::ProcessTamper,
                        span,
                        format!("`{path}` makes memory that can be run as code"),
                    );
                }
                result
            }
            "clipboard" => {
                self.seen.copies = true;
                result
            }
            "stop" => {
                self.findings
                    .add(Rule::SystemStop, span, "stops the machine");
                result
            }
            "native" => {
                self.findings
                    .warn(Rule::LowLevel, span, format!("`{path}` calls native code"));
                result
            }
            "low-level" => {
                if self.dialect == Dialect::JavaScript {
                    self.findings.add(
                        Rule::LowLevel,
                        span,
                        format!("`{path}` reaches past the language"),
                    );
                    self.findings.add(
                        Rule::ObfuscatedName,
                        span,
                        format!("`{path}` reaches functions without importing them"),
                    );
                } else {
                    self.findings.warn(
                        Rule::LowLevel,
                        span,
                        format!("`{path}` reaches past the language"),
                    );
                }
                result
            }
            "inject" => {
                self.findings.add(
                    Rule::ProcessTamper,
                    span,
                    format!("`{path}` puts code into memory and runs it"),
                );
                result
            }
            "fetch" | "send" | "fetch-or-send" | "request" | "exchange" => {
                self.floods(path, args, endless && entry.action != "request", span);
                self.tries(path, args, span);
                self.fetch(path, entry, args, span, result)
            }
            "retrieve" => {
                self.url(path, arg, span);
                if let Some(target) = second.and_then(Value::as_text) {
                    let place = Place::new(target);
                    self.write(&place, target, Writing::Replace, Taint::DOWNLOADED, span);
                }
                result.with(Taint::DOWNLOADED)
            }
            "download" => result.with(Taint::DOWNLOADED),
            "login" => {
                self.tries(path, args, span);
                result
            }
            "crafted" => {
                self.crafted(path, args, endless, span);
                result
            }
            "connect" => {
                self.tries(path, args, span);
                self.connects(arg, span);
                if self.dialect == Dialect::JavaScript {
                    self.connects(args.first(), span);
                }
                result.with(Taint::SOCKET)
            }
            "transmit" | "mail" => {
                self.floods(path, args, endless && entry.action == "transmit", span);
                if entry.action == "mail" && path.contains("mail") {
                    self.mails(path, args, span);
                }
                self.sends(path, args, span);
                result
            }
            "pipe" => {
                if args.taint().has(Taint::OUTPUT) {
                    self.findings.add(
                        Rule::ReverseShell,
                        span,
                        "connects a process to the network",
                    );
                }
                result
            }
            "receive" => Value::unknown(result.taint | Taint::SOCKET),
            "bind" => {
                let address = match arg.map(|value| &value.kind) {
                    Some(Kind::List(items)) => items.first().and_then(Value::as_text),
                    Some(Kind::Text(text)) => Some(text.as_ref()),
                    _ => None,
                };
                self.seen.listens = true;
                if address.is_some_and(|address| {
                    address.is_empty()
                        || address.starts_with("0.0.0.0")
                        || address.starts_with(':')
                        || address.starts_with("::")
                }) {
                    self.findings.warn(
                        Rule::NetworkListen,
                        span,
                        "accepts connections from every network",
                    );
                }
                result
            }
            "accept" => result.with(Taint::SOCKET),
            "resolve" | "resolve-txt" => self.resolve(path, arg, span, result),
            "input" => Value::unknown(result.taint | Taint::INPUT),
            "environment" => result.with(Taint::ENVIRONMENT),
            "identity" => {
                self.seen.identity = true;
                Value::unknown(result.taint | Taint::IDENTITY)
            }
            "decode" | "buffer" => {
                if entry.action == "decode" {
                    Value::unknown(result.taint | Taint::DECODED)
                } else {
                    Value::unknown(result.taint)
                }
            }
            "go-copy" => {
                if let (Some(Kind::Handle(file)), Some(source)) =
                    (arg.map(|value| &value.kind), second)
                    && source.deep_taint().has(Taint::DOWNLOADED | Taint::SOCKET)
                {
                    self.downloaded.insert(file.clone());
                }
                result
            }
            "serialize" => {
                if args
                    .all()
                    .any(|value| matches!(value.as_api(), Some("process.env" | "os.environ")))
                {
                    self.findings.add(
                        Rule::Exfiltration,
                        span,
                        format!("`{path}` packs the whole environment"),
                    );
                }
                result
            }
            "watch" => {
                self.findings.add(
                    Rule::Surveillance,
                    span,
                    format!("`{path}` records what the user does"),
                );
                result
            }
            "watch-weak" => {
                // A page's script comes back to it by a timer.
                let again = endless || self.brief && self.dialect == Dialect::JavaScript;
                if again && path.contains("lip") {
                    self.seen.pastes.get_or_insert(span);
                }
                self.findings.warn(
                    Rule::Surveillance,
                    span,
                    format!("`{path}` records what the user does"),
                );
                Value::unknown(result.taint | Taint::SECRET)
            }
            "steal" => {
                self.findings.add(
                    Rule::CredentialRead,
                    span,
                    format!("`{path}` reads stored credentials"),
                );
                Value::unknown(result.taint | Taint::SECRET)
            }
            "steal-weak" => {
                self.findings.warn(
                    Rule::CredentialRead,
                    span,
                    format!("`{path}` reads a stored credential"),
                );
                Value::unknown(result.taint | Taint::SECRET)
            }
            "registry" => {
                let opens = path.contains("OpenKey");
                let writes = !opens
                    || args.all().any(|value| {
                        value.as_api().is_some_and(|flag| {
                            ["SET_VALUE", "ALL_ACCESS", "KEY_WRITE"]
                                .iter()
                                .any(|part| flag.contains(part))
                        })
                    });
                let run = writes
                    && args.all().any(|value| {
                        value
                            .as_text()
                            .is_some_and(|text| text.contains("CurrentVersion\\Run"))
                    });
                if run {
                    self.findings.add(
                        Rule::PersistenceStartup,
                        span,
                        "adds itself to what starts with the session",
                    );
                }
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
            _ => result,
        }
    }

    pub(super) fn open(&mut self, entry: Entry, args: &Args, span: Span, result: &Value) -> Value {
        let Some(path) = argument(args, entry)
            .and_then(Value::as_text)
            .map(str::to_owned)
        else {
            return Value::unknown(result.taint.without(Taint::UNBOUND) | Taint::FILE);
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
            self.read(&place, span, result.clone()).taint
        };
        let telling = read.without(Taint::FILE | Taint::LOOSE | Taint::UNBOUND);
        let handle: super::ir::Text = path.into();
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

/// What the output of a command tells: the environment, who and where it runs.
fn told_by(command: &str) -> Taint {
    let program = command.split_whitespace().next().unwrap_or_default();
    match program.rsplit('/').next().unwrap_or_default() {
        "env" | "printenv" => Taint::ENVIRONMENT,
        "whoami" | "id" | "hostname" | "ifconfig" | "who" | "w" | "last" => Taint::IDENTITY,
        _ => Taint::NONE,
    }
}
