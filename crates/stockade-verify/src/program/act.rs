//! What each action of the tables means for the verdict.

use super::api::{Dialect, Entry};
use super::judge::{Judge, argument};
use super::value::{Args, Kind, Taint, Value};
use crate::files::{Deletion, Writing};
use crate::hosts;
use crate::paths::{Place, UNKNOWN};
use crate::result::Span;
use crate::rule::Rule;

/// Values that come from outside and must not be run.
const OUTSIDE: Taint = Taint::INPUT;

impl Judge<'_> {
    #[expect(clippy::too_many_lines, reason = "one arm for each action of the tables")]
    pub(super) fn act(&mut self, path: &str, entry: Entry, args: &Args, span: Span, endless: bool, result: Value) -> Value {
        let arg = argument(args, entry);
        let second = args.positional.get(entry.second);
        let place = arg.and_then(Value::as_text).map(Place::new);
        let given = arg.and_then(Value::as_text).unwrap_or_default();
        match entry.action {
            "shell" => {
                self.shell(path, arg, args, span);
                result.with(Taint::OUTPUT)
            }
            "argv" => {
                self.argv(path, arg, args, span);
                result.with(Taint::OUTPUT)
            }
            "argv-rest" => {
                let words = args.positional.get(entry.at..).unwrap_or_default();
                let list = Value::list(words.to_vec());
                self.argv(path, Some(&list), args, span);
                result.with(Taint::OUTPUT)
            }
            "argv-path" => {
                let mut words: Vec<Value> = arg.cloned().into_iter().collect();
                match args.positional.get(entry.at + 1) {
                    Some(rest) => match rest.as_list() {
                        Some(rest) => words.extend(rest.iter().skip(1).cloned()),
                        None => words.push(Value::unknown(rest.taint)),
                    },
                    None => {}
                }
                self.argv(path, Some(&Value::list(words)), args, span);
                result.with(Taint::OUTPUT)
            }
            "spawn" => {
                let mut words: Vec<Value> = arg.cloned().into_iter().collect();
                words.extend(second.and_then(Value::as_list).unwrap_or_default().iter().cloned());
                if option(args, "shell") == Some(true) && words.len() == 1 {
                    self.shell(path, arg, args, span);
                } else {
                    self.argv(path, Some(&Value::list(words)), args, span);
                }
                result.with(Taint::OUTPUT)
            }
            "go-cmd" => {
                let mut words: Vec<Value> = args.named("Path").cloned().into_iter().collect();
                let rest = args.named("Args").and_then(Value::as_list).unwrap_or_default();
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
            "function" => {
                self.code(path, args.positional.last(), span);
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
                    self.findings.add(Rule::DownloadRun, span, format!("runs {given}, which was downloaded"));
                }
                self.findings.warn(Rule::CodeDynamic, span, format!("`{path}` runs code from a file"));
                result
            }
            "deserialize" | "unmarshal" => {
                self.deserialize(path, entry, arg, span);
                let taint = if entry.action == "unmarshal" { Taint::DECODED } else { Taint::NONE };
                result.with(taint)
            }
            "yaml" => {
                let loader = args.get(1, "Loader").and_then(Value::as_api).unwrap_or_default();
                if !(loader.contains("Safe") || loader.contains("safe") || loader.contains("Base")) {
                    self.deserialize(path, entry, arg, span);
                }
                result
            }
            "open" | "os-open" | "open-self" | "js-open" | "go-open" => self.open(entry, args, span, result),
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
                    if self.dialect == Dialect::Go && path == "os.Open" { Value { kind: Kind::Handle(given.into()), ..read } } else { Value::unknown(read.taint) }
                }
                None => Value::unknown(result.taint | Taint::FILE),
            },
            "list" => {
                if let Some(place) = &place {
                    self.read(place, span, result.clone());
                }
                result
            }
            "move" | "copy" => {
                if let Some(place) = &place {
                    self.read(place, span, result.clone());
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
                let tree = entry.action == "delete-tree" || entry.action == "js-remove" && option(args, "recursive") == Some(true);
                match &place {
                    Some(place) => self.delete(place, if tree { Deletion::ForcedTree } else { Deletion::File }, span),
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
                if root || path.ends_with("chroot") && false {
                    self.findings.add(Rule::PrivilegeChange, span, format!("`{path}` becomes root"));
                } else {
                    self.findings.warn(Rule::PrivilegeChange, span, format!("`{path}` changes credentials"));
                }
                result
            }
            "kill" => {
                if matches!(arg.and_then(Value::as_int), Some(-1 | 1)) {
                    self.findings.add(Rule::SystemStop, span, "stops every process it may");
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
            "stop" => {
                self.findings.add(Rule::SystemStop, span, "stops the machine");
                result
            }
            "native" => {
                self.findings.warn(Rule::LowLevel, span, format!("`{path}` calls native code"));
                result
            }
            "low-level" => {
                if self.dialect == Dialect::JavaScript {
                    self.findings.add(Rule::LowLevel, span, format!("`{path}` reaches past the language"));
                    self.findings.add(Rule::ObfuscatedName, span, format!("`{path}` reaches functions without importing them"));
                } else {
                    self.findings.warn(Rule::LowLevel, span, format!("`{path}` reaches past the language"));
                }
                result
            }
            "inject" => {
                self.findings.add(Rule::ProcessTamper, span, format!("`{path}` puts code into memory and runs it"));
                result
            }
            "fetch" | "send" | "fetch-or-send" | "request" | "exchange" => self.fetch(path, entry, args, span, result),
            "retrieve" => {
                self.url(path, arg, span);
                if let Some(target) = second.and_then(Value::as_text) {
                    let place = Place::new(target);
                    self.write(&place, target, Writing::Replace, Taint::DOWNLOADED, span);
                }
                result.with(Taint::DOWNLOADED)
            }
            "download" => result.with(Taint::DOWNLOADED),
            "connect" => {
                self.connects(arg, span);
                if self.dialect == Dialect::JavaScript {
                    self.connects(args.first(), span);
                }
                result.with(Taint::SOCKET)
            }
            "transmit" | "mail" => {
                self.sends(path, args, span);
                result
            }
            "pipe" => {
                if args.taint().has(Taint::OUTPUT) {
                    self.findings.add(Rule::ReverseShell, span, "connects a process to the network");
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
                if address.is_some_and(|address| address.is_empty() || address.starts_with("0.0.0.0") || address.starts_with(':') || address.starts_with("::")) {
                    self.findings.warn(Rule::NetworkListen, span, "accepts connections from every network");
                }
                result
            }
            "accept" => result.with(Taint::SOCKET),
            "resolve" | "resolve-txt" => self.resolve(path, arg, span, result),
            "input" => Value { taint: result.taint | Taint::INPUT, ..Value::UNKNOWN },
            "environment" => result.with(Taint::ENVIRONMENT),
            "identity" => {
                self.seen.identity = true;
                Value::unknown(result.taint | Taint::IDENTITY)
            }
            "decode" | "buffer" => {
                if entry.action == "decode" { Value::unknown(result.taint | Taint::DECODED) } else { Value::unknown(result.taint) }
            }
            "go-copy" => {
                if let (Some(Kind::Handle(file)), Some(source)) = (arg.map(|value| &value.kind), second) {
                    if source.deep_taint().has(Taint::DOWNLOADED | Taint::SOCKET) {
                        self.downloaded.insert(file.clone());
                    }
                }
                result
            }
            "serialize" => {
                if args.all().any(|value| matches!(value.as_api(), Some("process.env" | "os.environ"))) {
                    self.findings.add(Rule::Exfiltration, span, format!("`{path}` packs the whole environment"));
                }
                result
            }
            "watch" => {
                self.findings.add(Rule::Surveillance, span, format!("`{path}` records what the user does"));
                result
            }
            "watch-weak" => {
                self.findings.warn(Rule::Surveillance, span, format!("`{path}` records what the user does"));
                Value::unknown(result.taint | Taint::SECRET)
            }
            "steal" => {
                self.findings.add(Rule::CredentialRead, span, format!("`{path}` reads stored credentials"));
                Value::unknown(result.taint | Taint::SECRET)
            }
            "steal-weak" => {
                self.findings.warn(Rule::CredentialRead, span, format!("`{path}` reads a stored credential"));
                Value::unknown(result.taint | Taint::SECRET)
            }
            "registry" => {
                let run = args.all().any(|value| value.as_text().is_some_and(|text| text.contains("CurrentVersion\\Run")));
                if run {
                    self.findings.add(Rule::PersistenceStartup, span, "adds itself to what starts with the session");
                }
                result
            }
            "schedule" => {
                self.findings.add(Rule::PersistenceCron, span, "edits a job table");
                result
            }
            "setup" => {
                self.setup(args, span);
                result
            }
            _ => result,
        }
    }

    /// Text for a shell.
    pub(super) fn shell(&mut self, path: &str, arg: Option<&Value>, args: &Args, span: Span) {
        let Some(value) = arg else {
            return;
        };
        let taint = value.deep_taint() | args.named("env").map_or(Taint::NONE, |_| Taint::NONE);
        if let Some(list) = value.as_list() {
            return self.argv(path, Some(&Value::list(list.to_vec())), args, span);
        }
        match value.as_text() {
            Some(text) if !text.trim_matches(UNKNOWN).is_empty() => {
                self.note_shell(text, span);
                if taint.has(Taint::DECODED) {
                    self.findings.add(Rule::CodeHidden, span, format!("`{path}` runs a command that was decoded"));
                }
                let found = self.command_text(text, span);
                self.runs_downloaded(text.split_whitespace().next().unwrap_or_default(), span);
                if found {
                    return;
                }
                if text.contains(UNKNOWN) {
                    self.built_command(path, taint, span);
                } else {
                    self.findings.warn(Rule::ExecProcess, span, format!("`{path}` runs a command"));
                }
            }
            _ => self.built_command(path, taint, span),
        }
    }

    /// A command with unknown parts.
    fn built_command(&mut self, path: &str, taint: Taint, span: Span) {
        if taint.has(Taint::SOCKET) {
            self.findings.add(Rule::ReverseShell, span, format!("`{path}` runs what comes from the network"));
        } else if taint.has(Taint::DECODED) {
            self.findings.add(Rule::CodeHidden, span, format!("`{path}` runs a command that was decoded"));
        } else if taint.has(Taint::DOWNLOADED) {
            self.findings.add(Rule::DownloadRun, span, format!("`{path}` runs what was downloaded"));
        } else if taint.has(OUTSIDE) {
            self.findings.add(Rule::ExecShell, span, format!("`{path}` runs what someone types or sends"));
        } else if taint.has(Taint::UNBOUND) && !taint.has(Taint::PARAM) {
            self.findings.add(Rule::ExecShell, span, format!("`{path}` runs a command put together from unknown parts"));
        } else {
            self.findings.warn(Rule::ExecShell, span, format!("`{path}` runs a command put together at run time"));
        }
    }

    /// A program and its arguments.
    pub(super) fn argv(&mut self, path: &str, arg: Option<&Value>, args: &Args, span: Span) {
        let Some(value) = arg else {
            return;
        };
        let shell = args.named("shell").is_some_and(|flag| matches!(flag.kind, Kind::Bool(true) | Kind::Int(1)));
        if shell || option(args, "shell") == Some(true) {
            if let Some([Value { kind: Kind::Text(text), taint, .. }, ..]) = value.as_list() {
                let only = Value { kind: Kind::Text(text.clone()), taint: *taint, indirect: false };
                return self.shell(path, Some(&only), args, span);
            }
            return self.shell(path, Some(value), args, span);
        }
        let taint = value.deep_taint();
        let words: Vec<Value> = match &value.kind {
            Kind::List(items) => items.as_ref().clone(),
            Kind::Text(text) => text.split_whitespace().map(Value::text).collect(),
            _ => Vec::new(),
        };
        let Some(program) = words.first() else {
            return self.unknown_program(path, taint, span);
        };
        let line: Vec<String> = words.iter().map(quoted).collect();
        let line = line.join(" ");
        self.note_shell(&line, span);
        if let Some(text) = program.as_text() {
            self.runs_downloaded(text, span);
        }
        let hidden = words.iter().any(|word| word.taint.has(Taint::DECODED));
        if hidden {
            self.findings.add(Rule::CodeHidden, span, format!("`{path}` runs something that was decoded"));
            return;
        }
        let found = program.as_text().is_some_and(|text| !text.starts_with(UNKNOWN)) && self.command_text(&line, span);
        if found {
            return;
        }
        let program_taint = program.deep_taint();
        let nameless = program.is_unknown() && program_taint.has(Taint::UNBOUND) && !program_taint.has(Taint::PARAM);
        if nameless {
            return self.findings.add(Rule::ExecProcess, span, format!("`{path}` starts a program that the file does not name"));
        }
        if program.exact().is_none() && program_taint.has(OUTSIDE | Taint::SOCKET | Taint::DOWNLOADED | Taint::DECODED) {
            return self.unknown_program(path, program_taint, span);
        }
        let interpreter = program.exact().map(|name| name.rsplit('/').next().unwrap_or(name));
        let runs_text = interpreter.is_some_and(|name| stockade_shell::is_shell(name) || name.starts_with("python") || name == "node")
            && words.iter().any(|word| matches!(word.exact(), Some("-c" | "-e")))
            && words.iter().any(Value::is_unknown);
        if runs_text && taint.has(Taint::UNBOUND | OUTSIDE | Taint::DOWNLOADED | Taint::SOCKET) {
            return self.built_command(path, taint, span);
        }
        self.findings.warn(Rule::ExecProcess, span, format!("`{path}` starts another program"));
    }

    fn unknown_program(&mut self, path: &str, taint: Taint, span: Span) {
        if taint.has(OUTSIDE | Taint::SOCKET | Taint::DOWNLOADED | Taint::DECODED) {
            self.built_command(path, taint, span);
        } else {
            self.findings.warn(Rule::ExecProcess, span, format!("`{path}` starts another program"));
        }
    }

    /// Notes that a bare shell is started.
    fn note_shell(&mut self, line: &str, span: Span) {
        let mut words = line.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
        let program = words.next().unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or(program);
        let windows = matches!(name, "cmd.exe" | "cmd" | "powershell" | "powershell.exe");
        if !(stockade_shell::is_shell(name) || windows) {
            return;
        }
        let bare = words.all(|word| matches!(word, "-i" | "-l" | "-li" | "-il" | "--noprofile" | "--norc" | "-p"));
        if bare {
            self.seen.shell.get_or_insert(span);
            if program.contains('/') {
                self.findings.add(Rule::ShellEscape, span, "starts an interactive shell");
            }
        }
    }

    fn runs_downloaded(&mut self, program: &str, span: Span) {
        let name = program.trim_start_matches("./");
        let known = self.downloaded.iter().any(|path| path.trim_start_matches("./") == name);
        let dropped = ["/tmp/", "/var/tmp/", "/dev/shm/"].iter().any(|place| name.starts_with(place)) && self.executable.contains(name);
        if dropped && !known {
            self.findings.add(Rule::DownloadRun, span, format!("runs {name}, which it made executable itself"));
        }
        if known && !name.is_empty() {
            self.findings.add(Rule::DownloadRun, span, format!("runs {name}, which was downloaded").replace(UNKNOWN, "…"));
        }
    }

    /// Text run as code of the same language.
    fn code(&mut self, path: &str, arg: Option<&Value>, span: Span) {
        let Some(value) = arg else {
            return;
        };
        let taint = value.deep_taint();
        if let Some(text) = value.as_text() {
            let known = text.replace(UNKNOWN, "__unknown");
            self.nested_code(&known, span);
        }
        let exact = value.exact().is_some();
        if taint.has(Taint::SOCKET) {
            self.findings.add(Rule::ReverseShell, span, format!("`{path}` runs what comes from the network"));
        } else if taint.has(Taint::DOWNLOADED) {
            self.findings.add(Rule::DownloadRun, span, format!("`{path}` runs what was downloaded"));
        } else if taint.has(Taint::DECODED) {
            self.findings.add(Rule::CodeHidden, span, format!("`{path}` runs code that was decoded"));
        } else if exact {
            let looks_encoded = value.exact().is_some_and(encoded);
            if looks_encoded {
                self.findings.add(Rule::CodeHidden, span, format!("`{path}` of encoded text"));
            } else {
                self.findings.warn(Rule::CodeDynamic, span, format!("`{path}` of constant text"));
            }
        } else if taint.has(OUTSIDE) {
            self.findings.add(Rule::CodeDynamic, span, format!("`{path}` runs what someone types or sends"));
        } else if taint.has(Taint::UNBOUND) && !taint.has(Taint::PARAM | Taint::FILE) {
            self.findings.add(Rule::CodeDynamic, span, format!("`{path}` runs text that the file does not hold"));
        } else {
            self.findings.warn(Rule::CodeDynamic, span, format!("`{path}` runs text as code"));
        }
    }

    fn computed_import(&mut self, path: &str, arg: Option<&Value>, span: Span) {
        let taint = arg.map_or(Taint::NONE, Value::deep_taint);
        if taint.has(Taint::DECODED | Taint::DOWNLOADED | Taint::SOCKET) {
            self.findings.add(Rule::ObfuscatedName, span, format!("`{path}` imports a module by a hidden name"));
        } else if self.dialect == Dialect::Python || taint.has(Taint::INPUT) {
            self.findings.warn(Rule::CodeDynamic, span, format!("`{path}` imports a module chosen at run time"));
        }
    }

    fn deserialize(&mut self, path: &str, entry: Entry, arg: Option<&Value>, span: Span) {
        let taint = arg.map_or(Taint::NONE, Value::deep_taint);
        let outside = Taint::INPUT | Taint::DOWNLOADED | Taint::SOCKET | Taint::DECODED;
        let constant = arg.is_some_and(|value| value.as_text().is_some() && !path.ends_with("open") && !path.ends_with("load") && !path.contains("read_"));
        if taint.has(outside) || constant || taint.has(Taint::UNBOUND) && !taint.has(Taint::PARAM | Taint::FILE) && entry.action == "deserialize" {
            self.findings.add(Rule::Deserialize, span, format!("`{path}` of data from outside can run code"));
        } else {
            self.findings.warn(Rule::Deserialize, span, format!("`{path}` can run code"));
        }
    }

    fn open(&mut self, entry: Entry, args: &Args, span: Span, result: Value) -> Value {
        let Some(path) = argument(args, entry).and_then(Value::as_text).map(str::to_owned) else {
            return Value::unknown(result.taint.without(Taint::UNBOUND) | Taint::FILE);
        };
        let place = Place::new(&path);
        let mode = args.get(1, "mode").or_else(|| args.named("flags"));
        let writes = match mode.map(|mode| &mode.kind) {
            Some(Kind::Text(mode)) => mode.contains(['w', 'a', 'x', '+']),
            Some(Kind::Api(flags)) => flags.contains("O_WRONLY") || flags.contains("O_RDWR") || flags.contains("O_CREAT") || flags.contains("O_APPEND"),
            Some(Kind::Unknown) => matches!(entry.action, "go-open" | "os-open"),
            _ => false,
        };
        if writes {
            let how = if mode.and_then(Value::as_text).is_some_and(|mode| mode.contains('a')) { Writing::Append } else { Writing::Replace };
            self.write(&place, &path, how, Taint::NONE, span);
        } else {
            self.read(&place, span, result.clone());
        }
        let handle: super::ir::Text = path.into();
        Value { kind: Kind::Handle(handle), taint: result.taint.without(Taint::UNBOUND), indirect: false }
    }

    fn unknown_delete(&mut self, path: &str, arg: Option<&Value>, tree: bool, span: Span) {
        let taint = arg.map_or(Taint::NONE, Value::deep_taint);
        if tree && taint.has(Taint::INPUT) {
            self.findings.warn(Rule::FileDelete, span, format!("`{path}` deletes a tree chosen from outside"));
        } else {
            self.findings.warn(Rule::FileDelete, span, format!("`{path}` deletes something chosen at run time"));
        }
    }

    fn url(&mut self, path: &str, value: Option<&Value>, span: Span) -> bool {
        let text = match value.map(|value| &value.kind) {
            Some(Kind::Text(text)) => Some(text.to_string()),
            Some(Kind::Dict(pairs)) => {
                let member = |name: &str| pairs.iter().find(|(key, _)| key.as_text() == Some(name)).and_then(|(_, value)| value.as_text().map(str::to_owned));
                member("url").or_else(|| member("uri")).or_else(|| member("hostname")).or_else(|| member("host"))
            }
            _ => None,
        };
        let Some(text) = text else {
            self.findings.warn(Rule::NetworkAccess, span, format!("`{path}` opens a network connection"));
            return false;
        };
        if hosts::host_of(&text).is_some_and(hosts::is_local) {
            return true;
        }
        let dressed = text.split("://").nth(1).is_some_and(|rest| rest.split('/').next().is_some_and(|authority| authority.contains('@')));
        match hosts::suspicion(&text) {
            Some(reason) => self.findings.add(Rule::NetworkHost, span, format!("`{path}` talks to {reason}")),
            None if dressed => self.findings.add(Rule::NetworkHost, span, format!("`{path}` sends credentials in a URL")),
            None => self.findings.warn(Rule::NetworkAccess, span, format!("`{path}` opens a network connection")),
        }
        false
    }

    fn fetch(&mut self, path: &str, entry: Entry, args: &Args, span: Span, result: Value) -> Value {
        let arg = argument(args, entry).or_else(|| args.first());
        let local = self.url(path, arg, span);
        if !local {
            self.sends(path, args, span);
        }
        Value { taint: (result.taint | Taint::DOWNLOADED).without(Taint::SECRET | Taint::ENVIRONMENT | Taint::IDENTITY), ..result }
    }

    /// Data given to something that sends it.
    fn sends(&mut self, path: &str, args: &Args, span: Span) {
        let taint = args.taint();
        if taint.has(Taint::SECRET) && !auth_only(args) {
            self.findings.add(Rule::Exfiltration, span, format!("`{path}` sends credentials out"));
        } else if taint.has(Taint::ENVIRONMENT) && whole_environment(args) {
            self.findings.add(Rule::Exfiltration, span, format!("`{path}` sends the environment out"));
        } else if taint.has(Taint::IDENTITY) && !auth_only(args) {
            self.findings.add(Rule::Exfiltration, span, format!("`{path}` sends names of this machine and its users out"));
        } else if taint.has(Taint::OUTPUT) && taint.has(Taint::SOCKET) {
            self.findings.add(Rule::ReverseShell, span, format!("`{path}` sends the output of commands from the network"));
        } else if taint.has(Taint::FILE | Taint::OUTPUT) {
            self.findings.warn(Rule::Exfiltration, span, format!("`{path}` sends the content of files or the output of commands"));
        }
    }

    fn resolve(&mut self, path: &str, arg: Option<&Value>, span: Span, result: Value) -> Value {
        if let Some(value) = arg {
            let text = value.as_text().unwrap_or_default();
            let carries = text.starts_with(UNKNOWN) && text.trim_start_matches(UNKNOWN).starts_with('.') && text.matches('.').count() >= 2;
            let data = value.deep_taint().has(Taint::IDENTITY | Taint::SECRET | Taint::ENVIRONMENT | Taint::OUTPUT | Taint::FILE | Taint::UNBOUND);
            if carries && data {
                self.findings.add(Rule::Exfiltration, span, format!("`{path}` sends data out in a name it looks up"));
            } else if hosts::suspicion(text).is_some() {
                self.findings.add(Rule::NetworkHost, span, format!("`{path}` talks to a host that collects data"));
            }
        }
        result.with(if path.contains("xt") { Taint::DOWNLOADED } else { Taint::NONE })
    }

    /// `setup(cmdclass={"install": …})`
    fn setup(&mut self, args: &Args, span: Span) {
        let Some(Kind::Dict(pairs)) = args.named("cmdclass").map(|value| &value.kind) else {
            return;
        };
        let install = pairs.iter().find(|(key, _)| matches!(key.as_text(), Some("install" | "develop" | "egg_info")));
        if let Some((key, _)) = install {
            let command = key.as_text().unwrap_or_default();
            self.findings.add(Rule::PersistenceInstallHook, span, format!("replaces the `{command}` command, which runs when the package is installed"));
        }
    }
}

/// Whether only headers and the like carry a secret.
fn auth_only(args: &Args) -> bool {
    let body = args.positional.iter().skip(1).chain(args.named.iter().filter(|(name, _)| !matches!(name.as_ref(), "headers" | "auth" | "cookies" | "cert" | "verify" | "proxies" | "timeout")).map(|(_, value)| value));
    let secret = Taint::SECRET | Taint::IDENTITY;
    !body.clone().any(|value| value.deep_taint().has(secret)) && !args.positional.first().is_some_and(|value| value.deep_taint().has(secret) && value.as_text().is_some())
        && !args.positional.first().is_some_and(|value| value.as_text().is_none() && value.deep_taint().has(secret))
}

/// Whether the environment itself, not one variable of it, is among the arguments.
fn whole_environment(args: &Args) -> bool {
    args.all().any(|value| value.deep_taint().has(Taint::ENVIRONMENT))
}

/// A word as shell text.
fn quoted(word: &Value) -> String {
    let piece = word.piece();
    let known = piece.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&b));
    if known && !piece.is_empty() {
        return piece.to_string();
    }
    let inner = piece.replace('\'', "'\\''");
    // The unknown must stay outside the quotes to be read as a variable.
    format!("'{}'", inner.replace(UNKNOWN, &format!("'\"{UNKNOWN}\"'")))
}

/// An option in the last argument, an object: `{shell: true}`.
fn option(args: &Args, name: &str) -> Option<bool> {
    args.positional.iter().rev().find_map(|value| match &value.kind {
        Kind::Dict(pairs) => pairs.iter().find(|(key, _)| key.as_text() == Some(name)).and_then(|(_, value)| match value.kind {
            Kind::Bool(flag) => Some(flag),
            Kind::Text(_) => Some(true),
            _ => None,
        }),
        _ => None,
    })
}

/// Text that is code only after decoding.
fn encoded(text: &str) -> bool {
    text.len() >= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=\n".contains(&b)) && stockade_shell::base64(text).is_some()
}
