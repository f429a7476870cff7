//! Processes and code that a program starts.

use super::act::output_taint;
use super::api::{Dialect, Entry};
use super::judge::Judge;
use super::tools::{RIGHTS, TOOLS, builds};
use super::value::{Args, Kind, Taint, Value};
use crate::paths::UNKNOWN;
use crate::result::Span;
use crate::rule::Rule;

/// Values that come from outside and must not be run.
const OUTSIDE: Taint = Taint::INPUT;

impl Judge<'_> {
    /// Text for a shell.
    pub(super) fn shell(&mut self, path: &str, arg: Option<&Value>, span: Span) {
        let Some(value) = arg else {
            return;
        };
        let taint = value.deep_taint();
        if value.as_list().is_some() {
            return self.words(path, value, &Args::default(), span);
        }
        match value.as_text() {
            Some(text) if !text.trim_matches(UNKNOWN).is_empty() => {
                self.note_shell(text, span);
                self.note_interpreter(text, &Args::default(), span);
                if taint.has(Taint::DECODED) {
                    self.findings.add(
                        Rule::CodeHidden,
                        span,
                        format!("`{path}` runs a command that was decoded"),
                    );
                }
                let found = self.command_text(text, span);
                self.gives_away_in(path, text, taint, span);
                let words: Vec<&str> = text
                    .split_whitespace()
                    .take(4)
                    .map(|word| word.trim_matches(['\'', '"']))
                    .collect();
                self.runs_downloaded_of(&words, span);
                if found {
                    return;
                }
                let outside = OUTSIDE | Taint::UNBOUND | Taint::DOWNLOADED | Taint::SOCKET;
                if text.contains(UNKNOWN)
                    && !taint.has(outside | Taint::DECODED | Taint::PARAM)
                    && builds(&text.replace(UNKNOWN, "x"))
                {
                    let reason = format!("`{path}` runs a command put together at run time");
                    self.findings.warn(Rule::ExecShell, span, reason);
                } else if text.contains(UNKNOWN) {
                    self.built_command(path, taint, span);
                } else {
                    let reason = format!("`{path}` runs a shell command");
                    let certain = self.context.excerpt && !builds(text);
                    self.findings
                        .weigh(certain, Rule::ExecProcess, span, reason);
                }
            }
            _ => self.built_command(path, taint, span),
        }
    }

    /// A command with unknown parts.
    pub(super) fn built_command(&mut self, path: &str, taint: Taint, span: Span) {
        if taint.has(Taint::SOCKET) {
            self.findings.add(
                Rule::ReverseShell,
                span,
                format!("`{path}` runs what comes from the network"),
            );
        } else if taint.has(Taint::DECODED) {
            self.findings.add(
                Rule::CodeHidden,
                span,
                format!("`{path}` runs a command that was decoded"),
            );
        } else if taint.has(Taint::DOWNLOADED) {
            self.findings.add(
                Rule::DownloadRun,
                span,
                format!("`{path}` runs what was downloaded"),
            );
        } else if taint.has(OUTSIDE) {
            self.findings.add(
                Rule::ExecShell,
                span,
                format!("`{path}` runs what someone types or sends"),
            );
        } else if taint.has(Taint::UNBOUND) && !taint.has(Taint::PARAM) {
            self.findings.add(
                Rule::ExecShell,
                span,
                format!("`{path}` runs a command put together from unknown parts"),
            );
        } else {
            let reason = format!("`{path}` runs a command put together at run time");
            self.findings.excerpt(Rule::ExecShell, span, reason);
        }
    }

    /// A program and its arguments.
    pub(super) fn argv(&mut self, path: &str, arg: Option<&Value>, args: &Args, span: Span) {
        let Some(value) = arg else {
            return;
        };
        let shell = args
            .named("shell")
            .is_some_and(|flag| matches!(flag.kind, Kind::Bool(true) | Kind::Int(1)));
        if shell || option(args, "shell") == Some(true) {
            // Of a list, the shell takes the first word as its text; callers mean all of them.
            if value.as_list().is_some_and(|words| words.len() > 1) {
                return self.words(path, value, args, span);
            }
            let first = value.as_list().and_then(<[Value]>::first);
            return self.shell(path, Some(first.unwrap_or(value)), span);
        }
        self.words(path, value, args, span);
    }

    /// A program and its arguments, without a shell.
    fn words(&mut self, path: &str, value: &Value, args: &Args, span: Span) {
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
        let texts: Vec<&str> = words.iter().take(4).map_while(Value::as_text).collect();
        self.runs_downloaded_of(&texts, span);
        self.note_interpreter(&line, args, span);
        self.gives_away(path, &words, args, span);
        let hidden = words.iter().any(|word| word.taint.has(Taint::DECODED));
        if hidden {
            self.findings.add(
                Rule::CodeHidden,
                span,
                format!("`{path}` runs something that was decoded"),
            );
            return;
        }
        let found = program
            .as_text()
            .is_some_and(|text| !text.starts_with(UNKNOWN))
            && self.command_text(&line, span);
        if found {
            return;
        }
        let program_taint = program.deep_taint();
        let nameless = program.is_unknown()
            && program_taint.has(Taint::UNBOUND)
            && !program_taint.has(Taint::PARAM);
        if nameless {
            return self.findings.add(
                Rule::ExecShell,
                span,
                format!("`{path}` starts a program that the file does not name"),
            );
        }
        if program.exact().is_none()
            && program_taint.has(OUTSIDE | Taint::SOCKET | Taint::DOWNLOADED | Taint::DECODED)
        {
            return self.unknown_program(path, program_taint, span);
        }
        let interpreter = program
            .exact()
            .map(|name| name.rsplit('/').next().unwrap_or(name));
        let given_text = words
            .iter()
            .any(|word| word.exact().is_some_and(is_text_switch));
        let windows = matches!(
            interpreter,
            Some("cmd" | "cmd.exe" | "powershell" | "powershell.exe")
        ) && words.len() > 1;
        let shell = windows || given_text && interpreter.is_some_and(stockade_shell::is_shell);
        let other = given_text
            && interpreter.is_some_and(|name| name.starts_with("python") || name == "node");
        let unknown = words.iter().any(|word| word.exact().is_none());
        if (shell || other)
            && unknown
            && taint.has(Taint::UNBOUND | OUTSIDE | Taint::DOWNLOADED | Taint::SOCKET)
        {
            return self.built_command(path, taint, span);
        }
        let tool = interpreter.is_some_and(|name| TOOLS.contains(&name));
        let named = self.dialect == Dialect::Go && !self.context.library && !tool;
        let foreign = output_taint(&line).has(Taint::FOREIGN);
        let rights = words.len() > 1 && interpreter.is_some_and(|name| RIGHTS.contains(&name));
        let certain = self.context.excerpt && (shell || named || foreign || rights);
        let reason = format!("`{path}` starts another program");
        self.findings
            .weigh(certain, Rule::ExecProcess, span, reason);
    }

    pub(super) fn unknown_program(&mut self, path: &str, taint: Taint, span: Span) {
        if taint.has(OUTSIDE | Taint::SOCKET | Taint::DOWNLOADED | Taint::DECODED) {
            self.built_command(path, taint, span);
        } else {
            self.findings.warn(
                Rule::ExecProcess,
                span,
                format!("`{path}` starts another program"),
            );
        }
    }

    /// Notes that a bare shell is started.
    fn note_shell(&mut self, line: &str, span: Span) {
        let mut words = line
            .split_whitespace()
            .map(|word| word.trim_matches(['\'', '"']));
        let program = words.next().unwrap_or_default();
        let name = program.rsplit('/').next().unwrap_or(program);
        let windows = matches!(name, "cmd.exe" | "cmd" | "powershell" | "powershell.exe");
        if !(stockade_shell::is_shell(name) || windows) {
            return;
        }
        let mut interactive = false;
        let bare = words.all(|word| {
            interactive |= matches!(word, "-i" | "-li" | "-il");
            matches!(
                word,
                "-i" | "-l" | "-li" | "-il" | "--noprofile" | "--norc" | "-p"
            )
        });
        if bare {
            self.seen.shell.get_or_insert(span);
            if interactive || program.contains('/') {
                self.findings
                    .add(Rule::ShellEscape, span, "starts an interactive shell");
            }
        }
    }

    /// The program, or the script that an interpreter is given.
    fn runs_downloaded_of(&mut self, words: &[&str], span: Span) {
        let Some((program, args)) = words.split_first() else {
            return;
        };
        self.runs_downloaded(program, span);
        let name = program.rsplit('/').next().unwrap_or(program);
        let interprets = stockade_shell::is_shell(name)
            || name.starts_with("python")
            || matches!(
                name,
                "node" | "perl" | "ruby" | "php" | "sudo" | "start" | "open"
            );
        if interprets {
            for word in args {
                self.runs_downloaded(word, span);
            }
        }
    }

    fn runs_downloaded(&mut self, program: &str, span: Span) {
        let name = program.trim_start_matches("./");
        let known = self
            .downloaded
            .iter()
            .any(|path| path.trim_start_matches("./") == name);
        let dropped = ["/tmp/", "/var/tmp/", "/dev/shm/"]
            .iter()
            .any(|place| name.starts_with(place))
            && self.executable.contains(name);
        if dropped && !known {
            self.findings.add(
                Rule::DownloadRun,
                span,
                format!("runs {name}, which it made executable itself"),
            );
        }
        if known && !name.is_empty() {
            self.findings.add(
                Rule::DownloadRun,
                span,
                format!("runs {name}, which was downloaded").replace(UNKNOWN, "…"),
            );
        }
    }

    /// Text run as code of the same language.
    pub(super) fn code(&mut self, path: &str, arg: Option<&Value>, span: Span) {
        let Some(value) = arg else {
            return;
        };
        let taint = value.deep_taint();
        let before = self.findings.count();
        if let Some(text) = value.as_text() {
            let known = text.replace(UNKNOWN, "__unknown");
            self.nested_code(&known, span);
        }
        let acts = self.findings.count() > before;
        let exact = value.exact().is_some() && !taint.has(Taint::OPTION);
        if taint.has(Taint::SOCKET) {
            self.findings.add(
                Rule::ReverseShell,
                span,
                format!("`{path}` runs what comes from the network"),
            );
        } else if taint.has(Taint::DOWNLOADED) {
            self.findings.add(
                Rule::DownloadRun,
                span,
                format!("`{path}` runs what was downloaded"),
            );
        } else if taint.has(Taint::DECODED) {
            self.findings.add(
                Rule::CodeHidden,
                span,
                format!("`{path}` runs code that was decoded"),
            );
        } else if exact {
            let looks_encoded = value.exact().is_some_and(encoded);
            if looks_encoded || taint.has(Taint::SPELLED) {
                self.findings
                    .add(Rule::CodeHidden, span, format!("`{path}` of encoded text"));
            } else if acts && !value.exact().is_some_and(is_old_statement) {
                let reason = format!("`{path}` of text that does more than compute");
                self.findings.add(Rule::CodeDynamic, span, reason);
            } else {
                self.findings.warn(
                    Rule::CodeDynamic,
                    span,
                    format!("`{path}` of constant text"),
                );
            }
        } else if taint.has(OUTSIDE) {
            self.findings.add(
                Rule::CodeDynamic,
                span,
                format!("`{path}` runs what someone types or sends"),
            );
        } else if taint.has(Taint::UNBOUND) && !taint.has(Taint::PARAM | Taint::FILE) {
            // In text that is run, names may be those of the code around it.
            self.findings.weigh(
                self.analysis.depth == 0,
                Rule::CodeDynamic,
                span,
                format!("`{path}` runs text that the file does not hold"),
            );
        } else {
            let reason = format!("`{path}` runs text as code");
            let certain =
                self.context.excerpt && !taint.has(Taint::FILE) || taint.has(Taint::LOOSE);
            self.findings
                .weigh(certain, Rule::CodeDynamic, span, reason);
        }
    }

    pub(super) fn computed_import(&mut self, path: &str, arg: Option<&Value>, span: Span) {
        let taint = arg.map_or(Taint::NONE, Value::deep_taint);
        if taint.has(Taint::DECODED | Taint::DOWNLOADED | Taint::SOCKET) {
            self.findings.add(
                Rule::ObfuscatedName,
                span,
                format!("`{path}` imports a module by a hidden name"),
            );
        } else if self.dialect == Dialect::Python || taint.has(Taint::INPUT) {
            self.findings.warn(
                Rule::CodeDynamic,
                span,
                format!("`{path}` imports a module chosen at run time"),
            );
        }
    }

    pub(super) fn deserialize(
        &mut self,
        path: &str,
        entry: Entry,
        arg: Option<&Value>,
        span: Span,
    ) {
        let taint = arg.map_or(Taint::NONE, Value::deep_taint);
        let outside = Taint::INPUT | Taint::DOWNLOADED | Taint::SOCKET | Taint::DECODED;
        let constant = arg.is_some_and(|value| {
            value.as_text().is_some()
                && !path.ends_with("open")
                && !path.ends_with("load")
                && !path.contains("read_")
        });
        if taint.has(outside)
            || constant
            || taint.has(Taint::UNBOUND)
                && !taint.has(Taint::PARAM | Taint::FILE)
                && entry.action == "deserialize"
        {
            self.findings.add(
                Rule::Deserialize,
                span,
                format!("`{path}` of data from outside can run code"),
            );
        } else {
            let reason = format!("`{path}` can run code");
            self.findings.excerpt(Rule::Deserialize, span, reason);
        }
    }
}

/// A word as shell text.
fn quoted(word: &Value) -> String {
    let piece = word.piece();
    let known = piece
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&b));
    if known && !piece.is_empty() {
        return piece.to_string();
    }
    let inner = piece.replace('\'', "'\\''");
    // The unknown must stay outside the quotes to be read as a variable.
    format!("'{}'", inner.replace(UNKNOWN, &format!("'\"{UNKNOWN}\"'")))
}

/// Whether the text to run follows a switch: `-c`, `-e`, `-lc`.
pub(super) fn is_text_switch(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    letters.len() <= 4
        && letters.ends_with(['c', 'e'])
        && letters.bytes().all(|b| b.is_ascii_lowercase())
}

/// An option in the last argument, an object: `{shell: true}`.
pub(super) fn option(args: &Args, name: &str) -> Option<bool> {
    args.positional
        .iter()
        .rev()
        .find_map(|value| match &value.kind {
            Kind::Dict(pairs) => pairs
                .iter()
                .find(|(key, _)| key.as_text() == Some(name))
                .and_then(|(_, value)| match value.kind {
                    Kind::Bool(flag) => Some(flag),
                    Kind::Text(_) => Some(true),
                    _ => None,
                }),
            _ => None,
        })
}

/// `exec code in globals, locals`: Python 2's statement, which Python 3 can only read as text.
fn is_old_statement(text: &str) -> bool {
    let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ' | ',' | '\n');
    text.trim_start().starts_with("exec ") && text.contains(" in ") && text.chars().all(name)
}

/// Text that is code only after decoding.
fn encoded(text: &str) -> bool {
    text.len() >= 64
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+/=\n".contains(&b))
        && stockade_shell::base64(text).is_some()
}
