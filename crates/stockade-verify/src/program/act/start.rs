//! Programs that are started, here and on other machines.

use super::Deed;
use crate::paths::Place;
use crate::program::judge::Judge;
use crate::program::places::{is_foreign, is_loose};
use crate::program::run::option;
use crate::program::value::{Kind, Taint, Value};
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn judge_start(&mut self, deed: &Deed<'_>) -> Option<Value> {
        let &Deed {
            entry,
            path,
            args,
            arg,
            span,
            endless,
            ..
        } = deed;
        let given = deed.given();
        let result = deed.result.clone();
        Some(match entry.action {
            "shell" => {
                self.shell(path, arg, span);
                result.with(Taint::OUTPUT | output_taint(given))
            }
            "title" => {
                self.disguises(given, span);
                result
            }
            "browser" => {
                // A name alone is a browser; with arguments it is a command.
                if given.contains(' ') {
                    self.shell(path, arg, span);
                }
                result
            }
            "argv" => self.starts_words(deed),
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
                result.with(Taint::OUTPUT | output_taint(&line(words)))
            }
            "argv-pip" => {
                let mut words = vec![Value::text("pip")];
                words.extend_from_slice(arg.and_then(Value::as_list).unwrap_or_default());
                self.argv(path, Some(&Value::list(words)), args, span);
                result
            }
            "argv-path" => {
                let own = args.positional.get(entry.at + 1).and_then(Value::as_list);
                let own = own.and_then(<[Value]>::first).and_then(Value::exact);
                self.disguises(own.unwrap_or_default(), span);
                let words = Value::list(after_path(deed));
                self.argv(path, Some(&words), args, span);
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
            "spawn" => self.spawns(deed),
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
            "shell-remote" => {
                self.remote_shell(path, arg, span);
                result.with(Taint::OUTPUT)
            }
            _ => return None,
        })
    }
}

impl Judge<'_> {
    /// A name under which a process is taken for one of the kernel's.
    fn disguises(&mut self, name: &str, span: Span) {
        if name.starts_with('[') && name.ends_with(']') || name.starts_with("kworker") {
            let reason = "gives itself the name of a part of the kernel";
            self.findings.add(Rule::ProcessTamper, span, reason);
        }
    }

    /// A program, and a list of its arguments or options that hold one.
    fn spawns(&mut self, deed: &Deed<'_>) -> Value {
        let &Deed {
            path,
            args,
            arg,
            second,
            span,
            ..
        } = deed;
        let mut words: Vec<Value> = arg.cloned().into_iter().collect();
        let second = match second.map(|value| &value.kind) {
            // `new Deno.Command("sh", {args: […]})`
            Some(Kind::Dict(pairs)) => pairs
                .iter()
                .find(|(key, _)| key.as_text() == Some("args"))
                .map(|(_, words)| words),
            _ => second,
        };
        words.extend(
            second
                .and_then(Value::as_list)
                .unwrap_or_default()
                .iter()
                .cloned(),
        );
        let told = output_taint(&line(&words));
        if option(args, "shell") == Some(true) && words.len() == 1 {
            self.shell(path, arg, span);
        } else {
            self.argv(path, Some(&Value::list(words)), args, span);
        }
        deed.result.clone().with(Taint::OUTPUT | told)
    }

    /// A program and its arguments in a list.
    fn starts_words(&mut self, deed: &Deed<'_>) -> Value {
        let &Deed {
            path,
            args,
            arg,
            span,
            ..
        } = deed;
        // `Deno.run({cmd: […]})`
        let command = arg.and_then(|value| match &value.kind {
            Kind::Dict(pairs) => pairs.iter().find(|(key, _)| key.as_text() == Some("cmd")),
            _ => None,
        });
        let arg = command.map(|(_, words)| words).or(arg);
        self.argv(path, arg, args, span);
        let told = match arg.and_then(Value::as_list) {
            Some(words) => output_taint(&line(words)),
            None => output_taint(arg.and_then(Value::as_text).unwrap_or_default()),
        };
        deed.result.clone().with(Taint::OUTPUT | told)
    }
}

/// A program's path, then its arguments as a list.
fn after_path(deed: &Deed<'_>) -> Vec<Value> {
    let &Deed {
        entry, args, arg, ..
    } = deed;
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
    words
}

/// What the output of a command tells: the environment, who and where it runs, files of others.
pub(in crate::program) fn output_taint(command: &str) -> Taint {
    let mut words = command
        .split_whitespace()
        .map(|word| word.trim_matches(['\'', '"']));
    let program = words.next().unwrap_or_default();
    let program = program.rsplit(['/', '\\']).next().unwrap_or_default();
    match program.trim_end_matches(".exe") {
        "env" | "printenv" => Taint::ENVIRONMENT,
        "xclip" | "xsel" | "pbpaste" | "wl-paste" | "Get-Clipboard" => Taint::SECRET,
        "whoami" | "id" | "hostname" | "ifconfig" | "ipconfig" | "who" | "w" | "last" | "ip"
        | "arp" | "netstat" | "ss" | "ps" | "tasklist" | "systeminfo" | "lsof" | "history"
        | "getent" | "dscl" | "lastlog" | "finger" => Taint::IDENTITY,
        "cat" | "head" | "tail" | "strings" | "xxd" | "base64" | "tar" | "zip" | "type" => {
            let foreign = words.any(|word| word.len() > 1 && is_foreign(&Place::new(word)));
            if foreign { Taint::FOREIGN } else { Taint::NONE }
        }
        _ => Taint::NONE,
    }
}

/// The first words of a command.
fn line(words: &[Value]) -> String {
    let words: Vec<_> = words.iter().take(16).map(Value::piece).collect();
    words.join(" ")
}
