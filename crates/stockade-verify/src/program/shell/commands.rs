//! The commands of a script, judged by the data that reaches them.

use std::sync::LazyLock;

use super::contents::plain;
use super::{APPEND, FROM_VARIABLES, GROUP, INPUT, PROCESS, READ, WRITE};
use crate::facts::{self, Data, Effect, Flow, Section, Table};
use crate::hosts;
use crate::paths::UNKNOWN;
use crate::program::eval::Eval;
use crate::program::ir::Call;
use crate::program::judge::Judge;
use crate::program::value::{Args, Taint, Value};
use crate::result::Span;
use crate::rule::Rule;

static SOURCES: LazyLock<Table<Data>> =
    LazyLock::new(|| facts::table(include_str!("../../../rules/sources.list")).unwrap_or_default());
static SINKS: LazyLock<Table<Effect>> =
    LazyLock::new(|| facts::table(include_str!("../../../rules/sinks.list")).unwrap_or_default());
static FLOWS: LazyLock<Vec<Flow>> =
    LazyLock::new(|| facts::flows(include_str!("../../../rules/flows.list")).unwrap_or_default());

/// The files that stand for `<(…)`.
const PROCESS_FILE: &str = "/dev/fd/";

/// Bytes of a printed text that are kept.
const MAX_PRINTED_BYTES: usize = 512;

/// A command with what is known of it.
#[derive(Clone, Copy)]
struct Simple<'c> {
    /// Without its directory, in lower case.
    name: &'c str,
    args: &'c Args,
    /// The words after the name.
    texts: &'c [&'c str],
    /// What it reads.
    input: &'c Value,
    span: Span,
}

impl Eval<'_, '_> {
    /// A command of a shell script; its output.
    pub(in crate::program) fn command(&mut self, call: &Call, span: Span) -> Value {
        let callee = self.expr(&call.callee);
        let mut args = Args::default();
        for arg in &call.args {
            let value = self.expr(&arg.value);
            match &arg.name {
                Some(name) => args.named.push((name.clone(), value)),
                None => args.positional.push(value),
            }
        }
        self.judge.command(&callee, &args, span)
    }
}

impl Judge<'_> {
    fn command(&mut self, callee: &Value, args: &Args, span: Span) -> Value {
        let input = self.input(args);
        let mut texts: Vec<&str> = args.positional.iter().map(text_of).collect();
        let path = text_of(callee);
        let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
        // `tar xf`: its first word may do without the dash.
        let cluster = match (name.as_str(), texts.first()) {
            ("tar" | "bsdtar", Some(first)) => format!("-{}", first.trim_start_matches('-')),
            _ => String::new(),
        };
        if !cluster.is_empty() {
            texts[0] = &cluster;
        }
        let command = Simple {
            name: &name,
            args,
            texts: &texts,
            input: &input,
            span,
        };
        if is_open(path) {
            self.reaches(callee.taint, Effect::RunsOutput, "the command's name", span);
        }
        if path.contains('/') || path.starts_with(UNKNOWN) {
            self.runs_program(path, span);
        }
        if runs_input(&name, &texts) {
            self.reaches(input.taint, Effect::RunsInput, &name, span);
            if input.taint.has(Taint::UNBOUND) && stockade_shell::is_shell(&name) {
                let reason = format!("`{name}` runs the text of a variable");
                self.findings
                    .only_in_excerpt(Rule::CodeHidden, span, reason);
            }
        }
        for effect in facts_of(&SINKS, &name, &texts) {
            self.act_on(effect, &command);
        }
        let output = self.output(&command);
        self.writes(args, output)
    }

    /// What a command reads from its standard input.
    fn input(&self, args: &Args) -> Value {
        let mut input = Value::UNKNOWN;
        for (name, value) in &args.named {
            let taint = match &**name {
                INPUT => {
                    // A text that could be worked out is judged by what it says.
                    let known = value.exact().is_some_and(|text| !text.is_empty());
                    if known {
                        input.taint = input.taint.without(Taint::SPELLED);
                    }
                    input = value.clone().with(input.taint);
                    continue;
                }
                READ if text_of(value).starts_with("/dev/tcp/") => Taint::DOWNLOADED,
                READ => value.taint | self.contents.of(text_of(value)).unwrap_or_default(),
                _ => continue,
            };
            input.taint |= taint;
        }
        input
    }

    /// What a command prints.
    fn output(&mut self, command: &Simple<'_>) -> Value {
        let Simple {
            name,
            args,
            texts,
            input,
            span,
        } = *command;
        let constant = |value: &Value| value.exact().is_some_and(|text| !text.is_empty());
        let mut held = Taint::NONE;
        for value in &args.positional {
            held |= value.taint | self.contents.of(text_of(value)).unwrap_or_default();
        }
        let passed = input.taint | held.without(Taint::UNBOUND);
        let data = facts_of(&SOURCES, name, texts).next();
        match (name, data) {
            (PROCESS, _) => {
                let path = format!("{PROCESS_FILE}{}", span.start);
                self.contents.write(&path, input.taint);
                Value::text(path)
            }
            ("mktemp", _) => Value::text(format!("/tmp/tmp.{}", span.start)),
            ("printf", None) if texts.first().is_some_and(|format| spells(format)) => {
                Value::unknown(passed | Taint::DECODED)
            }
            ("echo" | "printf", None) => printed(args),
            (GROUP | "read" | "mapfile" | "readarray" | "cat" | "tee", _) => {
                for file in texts.iter().filter(|_| name == "tee") {
                    self.contents.write(file, passed);
                }
                input.clone().with(passed)
            }
            (_, Some(Data::Downloaded)) => {
                let taint = Taint::DOWNLOADED | exposed(texts);
                self.keeps_download(name, texts, taint);
                Value::unknown(taint)
            }
            (_, Some(Data::Pasted)) => Value::unknown(Taint::INPUT),
            (_, Some(Data::Received)) => Value::unknown(Taint::SOCKET | passed),
            (_, Some(Data::Decoded)) => {
                let file = after(texts, "-out").or_else(|| option(texts, 'o', "--output"));
                if let Some(file) = file {
                    self.contents.write(file, passed | Taint::DECODED);
                }
                Value::unknown(passed | Taint::DECODED)
            }
            (_, Some(Data::Computed)) if constant(input) => Value::unknown(passed | Taint::SPELLED),
            (_, Some(Data::Digested)) if constant(input) => Value::unknown(Taint::SPELLED),
            (_, Some(Data::Digested)) => Value::unknown(passed.only(Taint::SPELLED)),
            ("cp" | "mv" | "ln" | "install", _) => {
                self.copies(texts);
                Value::UNKNOWN
            }
            _ => Value::unknown(passed),
        }
    }

    /// What is left to print after redirections took the output.
    fn writes(&mut self, args: &Args, output: Value) -> Value {
        let mut left = true;
        for (name, target) in &args.named {
            let file = text_of(target);
            match &**name {
                WRITE => self.contents.write(file, output.taint),
                APPEND => {
                    let before = self.contents.of(file).unwrap_or_default();
                    self.contents.write(file, before | output.taint);
                }
                _ => continue,
            }
            left = false;
        }
        if left { output } else { Value::UNKNOWN }
    }

    /// What a command does with its arguments.
    fn act_on(&mut self, effect: Effect, command: &Simple<'_>) {
        let (name, texts, span) = (command.name, command.texts, command.span);
        let words = &command.args.positional;
        match effect {
            Effect::RunsText => {
                let open = |value: &&Value| {
                    value.is_unknown() || text_of(value).trim_start().starts_with(UNKNOWN)
                };
                let text = words.iter().filter(open);
                let taint = text.fold(Taint::NONE, |taint, value| taint | value.taint);
                self.reaches(taint, effect, name, span);
            }
            Effect::RunsFile => {
                let operand = words.iter().find(|value| is_operand(text_of(value)));
                let file = operand.map(text_of).unwrap_or_default();
                let held = self.contents.of(file).unwrap_or_default();
                // `<(…)` is no file that a script keeps: its text goes straight to the program.
                let piped = file.starts_with(PROCESS_FILE);
                let effect = if piped { Effect::RunsText } else { effect };
                self.reaches(held, effect, name, span);
            }
            Effect::Unpacks => {
                let held = |file: &&str| self.contents.of(file).unwrap_or_default();
                let held = texts
                    .iter()
                    .map(held)
                    .fold(command.input.taint, |all, own| all | own);
                if held.has(Taint::DOWNLOADED) {
                    // Only what must not be looked into has a password.
                    let locked = name == "unzip" && option(texts, 'P', "").is_some();
                    self.contents.unpacked = Some(locked || self.contents.unpacked == Some(true));
                }
            }
            Effect::MakesExecutable => {
                let number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
                let mode = |text: &&str| text.contains('x') || number(text);
                if texts.iter().take(2).any(mode) {
                    let files = texts.iter().filter(|text| is_operand(text)).skip(1);
                    self.executable.extend(files.map(|file| plain(file).into()));
                }
            }
            Effect::RunsInput | Effect::RunsOutput => {}
        }
    }

    /// A program that is named by its path.
    fn runs_program(&mut self, path: &str, span: Span) {
        let held = self.contents.of(path);
        self.reaches(held.unwrap_or_default(), Effect::RunsFile, path, span);
        let marked = self.executable.contains(plain(path));
        if is_temporary(path) && held.is_none() && marked {
            let reason = format!("runs {path}, which it put there itself");
            self.findings.add(Rule::DownloadRun, span, reason);
        }
        if let Some(locked) = self.contents.unpacked
            && (is_temporary(path) || marked || locked)
        {
            let reason = format!("runs {path}, which an archive from the network held");
            self.findings
                .only_in_excerpt(Rule::DownloadRun, span, reason);
        }
    }

    /// Data comes to where it has an effect: what that means is in `rules/flows.list`.
    fn reaches(&mut self, taint: Taint, effect: Effect, what: &str, span: Span) {
        let fits = |flow: &&Flow| {
            taint.has(mark(flow.data)) && flow.effect.is_none_or(|own| own == effect)
        };
        let Some(flow) = FLOWS.iter().find(fits) else {
            return;
        };
        let Some(rule) = Rule::from_id(flow.rule) else {
            return;
        };
        let reason = format!("`{what}` {}", flow.reason);
        // Installers come over TLS from a host with a name.
        if taint.has(Taint::EXPOSED) {
            self.findings.firm(rule, span, reason);
        } else {
            self.findings.add(rule, span, reason);
        }
    }

    /// The files that a download makes.
    fn keeps_download(&mut self, name: &str, texts: &[&str], taint: Taint) {
        let named = match name {
            "curl" | "curlie" => option(texts, 'o', "--output"),
            "tftp" => option(texts, 'l', "").or_else(|| option(texts, 'r', "")),
            "ftpget" => texts.iter().rev().find(|text| is_operand(text)).copied(),
            "wget" | "wget2" => option(texts, 'O', "--output-document"),
            _ => option(texts, 'o', "--out"),
        };
        if let Some(file) = named {
            return self.contents.write(file, taint);
        }
        let remote = name != "curl" || option(texts, 'O', "--remote-name").is_some();
        for url in texts
            .iter()
            .filter(|text| remote && text.contains('/') && is_operand(text))
        {
            let file = url.rsplit('/').next().unwrap_or_default();
            let file = file.split('?').next().unwrap_or_default();
            self.contents.write(file, taint);
        }
    }

    fn copies(&mut self, texts: &[&str]) {
        let mut files: Vec<&str> = texts
            .iter()
            .copied()
            .filter(|text| is_operand(text))
            .collect();
        let Some(target) = files.pop() else {
            return;
        };
        if self.context.excerpt && is_temporary(target) {
            self.executable.insert(plain(target).into());
        }
        for file in files {
            if let Some(held) = self.contents.of(file) {
                let name = file.rsplit('/').next().unwrap_or(file);
                self.contents.write(target, held);
                let inside = format!("{}/{name}", target.trim_end_matches('/'));
                self.contents.write(&inside, held);
            }
        }
    }
}

/// The mark that a kind of data leaves on values.
const fn mark(data: Data) -> Taint {
    match data {
        Data::Computed => Taint::SPELLED,
        Data::Decoded => Taint::DECODED,
        Data::Digested => Taint::NONE,
        Data::Downloaded => Taint::DOWNLOADED,
        Data::Pasted => Taint::INPUT,
        Data::Received => Taint::SOCKET,
    }
}

/// What a list knows of a program with these arguments.
fn facts_of<'t, S: Section>(
    table: &'t Table<S>,
    name: &str,
    texts: &'t [&'t str],
) -> impl Iterator<Item = S> + use<'t, S> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let stem = if stem.is_empty() { name } else { stem };
    let entries = table.get(name).or_else(|| table.get(stem));
    let entries = entries.into_iter().flatten();
    entries
        .filter(|(shape, _)| shape.fits(texts))
        .map(|(_, section)| *section)
}

/// What `echo` and `printf` print of their arguments.
fn printed(args: &Args) -> Value {
    let taint = args.positional.iter();
    let taint = taint.fold(Taint::NONE, |taint, value| taint | value.taint);
    match args.positional.last() {
        // The whole text stands elsewhere.
        Some(last) if is_open(text_of(last)) || args.named(FROM_VARIABLES).is_some() => {
            last.clone().with(taint | Taint::UNBOUND)
        }
        Some(last) if text_of(last).len() > MAX_PRINTED_BYTES => {
            Value::unknown(taint.without(Taint::UNBOUND))
        }
        Some(last) => {
            let mut value = last.clone().with(taint);
            value.taint = value.taint.without(Taint::UNBOUND);
            value
        }
        None => Value::UNKNOWN,
    }
}

/// Marks downloads without TLS, from a bare address or from a host with a bad name.
fn exposed(texts: &[&str]) -> Taint {
    let installer = |text: &&str| {
        let host = hosts::host_of(text).unwrap_or_default();
        let named = !hosts::is_bare_address(host) && hosts::suspicion(text).is_none();
        text.starts_with("https://") && named || text.starts_with(UNKNOWN)
    };
    if texts.iter().any(installer) {
        Taint::NONE
    } else {
        Taint::EXPOSED
    }
}

/// Whether a program takes what it runs from standard input.
pub(crate) fn runs_input(name: &str, texts: &[&str]) -> bool {
    if matches!(name, "source" | ".") {
        return texts.first() == Some(&"/dev/stdin");
    }
    let mut effects = facts_of(&SINKS, name, texts);
    if !effects.any(|effect| effect == Effect::RunsInput) {
        return false;
    }
    let operand = texts
        .iter()
        .find(|text| !text.starts_with('-') || **text == "-");
    let bare = operand.is_none_or(|text| matches!(*text, "-" | "/dev/stdin"));
    let letters = |letters: &str| {
        let clusters = texts.iter().filter_map(|text| text.strip_prefix('-'));
        let mut clusters = clusters.filter(|text| !text.starts_with('-'));
        clusters.any(|cluster| cluster.contains(|c| letters.contains(c)))
    };
    if stockade_shell::is_shell(name) {
        return (bare || letters("s")) && !letters("n");
    }
    let long = ["--version", "--eval", "--help", "--print"];
    bare && !letters("cemVvh") && !texts.iter().any(|text| long.contains(text))
}

/// Whether a format of `printf` makes a letter of its number: `\x72`, `\162`, `\x$number`.
fn spells(format: &str) -> bool {
    let number = format.strip_prefix('\\').unwrap_or_default();
    number.starts_with(|c: char| c.is_ascii_digit() || matches!(c, 'x' | UNKNOWN))
}

fn text_of(value: &Value) -> &str {
    value.as_text().unwrap_or_default()
}

/// Whether all of a text is the value of something unknown, which may have a name.
fn is_open(text: &str) -> bool {
    let name = text.strip_prefix(UNKNOWN);
    name.is_some_and(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

fn is_operand(text: &str) -> bool {
    !text.starts_with('-') && !text.is_empty()
}

fn is_temporary(path: &str) -> bool {
    let places = ["/tmp/", "/var/tmp/", "/dev/shm/"];
    places.iter().any(|place| path.starts_with(place))
}

/// The value of an option: the rest of its word, or the next one.
fn option<'t>(texts: &[&'t str], short: char, long: &str) -> Option<&'t str> {
    for (at, text) in texts.iter().enumerate() {
        let next = || texts.get(at + 1).copied().unwrap_or_default();
        if !long.is_empty() && text.starts_with("--") {
            match text.strip_prefix(long) {
                Some("") => return Some(next()),
                Some(rest) if rest.starts_with('=') => return Some(&rest[1..]),
                _ => continue,
            }
        }
        let cluster = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        if let Some((_, rest)) = cluster.and_then(|cluster| cluster.split_once(short)) {
            return Some(if rest.is_empty() { next() } else { rest });
        }
    }
    None
}

/// The word after another.
fn after<'t>(texts: &[&'t str], word: &str) -> Option<&'t str> {
    let at = texts.iter().position(|text| *text == word)?;
    texts.get(at + 1).copied()
}
