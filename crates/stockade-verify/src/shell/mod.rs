//! Shell scripts: judged command by command, after `stockade-shell` has read them.

mod bare;
mod blind;
mod calls;
mod disguise;
mod disks;
mod doors;
mod editing;
mod files;
mod flow;
mod foreign;
mod gather;
mod git;
mod listed;
mod loops;
mod mentions;
mod misplaced;
mod mistaken;
mod modes;
mod network;
mod obfuscation;
mod options;
mod patterns;
mod programs;
mod removal;
mod requests;
mod search;
mod sent;
mod services;
mod shows;
mod slips;
mod sources;
mod spawn;
mod sql;
mod staging;
mod started;
mod survey;
mod system;
mod upload;

use std::collections::HashSet;

use stockade_shell::{Command, CommandId, Place as Position, ProblemKind, Script, Word};

use crate::analysis::{Analysis, Nested};
use crate::context::Context;
use crate::findings::Findings;
use crate::language::Language;
use crate::paths::Place;
use crate::result::Span;
use crate::rule::Rule;

pub(crate) use foreign::judge as judge_foreign;

use flow::Flow;
use options::{has, operands, value_of};

/// Commands in a script beyond which it is taken for one that administers or builds something.
const LONG: usize = 12;

/// Commands and bytes beyond which nothing is brief, however often it repeats itself: some rules
/// look through all of a brief script for each of its commands.
const MOST_BRIEF: usize = 2_000;
const LONGEST_BRIEF: usize = 1 << 18;

/// Different things that such a script does.
const DIFFERENT: usize = 9;

/// Judges a script; where its comments are, and what kind of script it is.
pub(crate) fn judge(
    source: &str,
    analysis: &Analysis<'_>,
    findings: &mut Findings,
) -> (Vec<Span>, Context) {
    let script = stockade_shell::parse(source);
    let long = is_long(&script);
    let brief = !long && script.commands.len() < MOST_BRIEF && source.len() < LONGEST_BRIEF;
    let mut judge = Judge {
        source,
        brief,
        script: &script,
        analysis,
        findings,
        directory: None,
        inside: None,
        flow: Flow::default(),
        functions: script
            .functions
            .iter()
            .map(|own| own.name.as_str())
            .collect(),
    };
    for id in 0..script.commands.len() {
        judge.command(id);
    }
    judge.functions();
    judge.loops();
    judge.port_loops();
    judge.embedded();
    judge.written_files();
    judge.problems();
    judge.other_language();
    crate::program::judge_script(&script, brief, analysis, findings);
    let whole = analysis.depth == 0;
    let context = Context {
        excerpt: brief,
        long: long && whole,
        script: source.starts_with("#!") && whole,
        library: false,
    };
    (script.comments, context)
}

/// Whether a script does many things. Lines that only print, do nothing or say the same again
/// don't make it long: whoever hides a command among them would write those.
fn is_long(script: &Script) -> bool {
    let mut seen = HashSet::new();
    for command in &script.commands {
        let idle = matches!(
            command.name(),
            Some(
                ":" | "true"
                    | "false"
                    | "echo"
                    | "printf"
                    | "sleep"
                    | "pwd"
                    | "date"
                    | "whoami"
                    | "id"
                    | "clear"
                    | "uname"
                    | "hostname"
                    | "set"
                    | "shopt"
                    | "wait"
                    | "exit"
            )
        );
        if idle || command.words.is_empty() && command.assignments.is_empty() {
            continue;
        }
        let texts = command.words.iter().map(|word| word.text.as_str());
        let set = command.assignments.iter().map(|set| set.name.as_str());
        seen.insert(texts.chain(set).collect::<Vec<_>>());
        if seen.len() >= DIFFERENT {
            return script.commands.len() >= LONG;
        }
    }
    false
}

/// The state of judging one script.
pub(crate) struct Judge<'a> {
    source: &'a str,
    brief: bool,
    script: &'a Script,
    analysis: &'a Analysis<'a>,
    findings: &'a mut Findings,
    /// Where `cd` went, if anywhere known.
    directory: Option<Place>,
    /// Where `cd` went within the substitution that is being judged.
    inside: Option<Place>,
    /// What files and variables hold of what was gathered.
    flow: Flow,
    /// Names of the script's own functions.
    functions: HashSet<&'a str>,
}

impl Judge<'_> {
    fn place(&self, text: &str) -> Place {
        Place::under(text, self.inside.as_ref().or(self.directory.as_ref()))
    }

    /// A command or a few, not a script that administers or builds something.
    fn is_brief(&self) -> bool {
        self.brief
    }

    /// Whether a command is one of the script's own functions, whose names have a case.
    fn is_own_function(&self, command: &Command) -> bool {
        let name = command.name();
        name.is_some_and(|name| self.functions.contains(name))
    }

    fn add(&mut self, rule: Rule, span: Span, reason: impl Into<String>) {
        self.findings.add(rule, span, reason);
    }

    fn warn(&mut self, rule: Rule, span: Span, reason: impl Into<String>) {
        self.findings.warn(rule, span, reason);
    }

    fn command(&mut self, id: CommandId) {
        let script = self.script;
        let command = &script.commands[id];
        if command.place == Position::Statement {
            self.inside = None;
        }
        self.redirects(id, command);
        self.assignments(command);
        self.follow_variables(id);
        if command.words.is_empty() {
            return self.follow_files(id, command);
        }
        self.spelling(command);
        let Some(name) = command.name().map(str::to_ascii_lowercase) else {
            self.prompted(command);
            self.unknown_program(command);
            return;
        };
        let name = name.as_str();
        self.misnamed_assignment(name, command);
        self.prompted(command);
        self.blocked(name, command);
        if asks_for_help(command) {
            return;
        }
        self.printed_commands(id, name, command);
        self.runs_hidden(id, command);
        match name {
            "cd" | "pushd" | "chdir" => self.change_directory(command),
            "git" => self.git(command),
            _ => {}
        }
        self.file_command(id, name, command);
        self.edits(name, command);
        self.collects(name, command);
        self.shows_secret(id, name, command);
        self.network_command(id, name, command);
        self.system_command(id, name, command);
        self.spawned_shell(id, name, command);
        self.counted_flood(id, name, command);
        self.sets_too_late(name, command);
        self.runs_lines(id, name, command);
        self.tells_by_waiting(id, name, command);
        self.records_aside(name, command, command.span);
        self.listed(id, name, command);
        self.service_deletes(name, command);
        self.survey_command(id, name, command);
        self.requests_deletion(name, command);
        self.foreign_code(name, command);
        self.follow_files(id, command);
    }

    fn change_directory(&mut self, command: &Command) {
        let target = command
            .args()
            .iter()
            .find(|word| !word.text.starts_with('-'));
        let place = target.map_or_else(|| Place::new("~"), |word| self.place(&word.text));
        match command.place {
            Position::Statement => self.directory = Some(place),
            Position::Substitution | Position::Process => self.inside = Some(place),
            _ => {}
        }
    }

    fn blocked(&mut self, name: &str, command: &Command) {
        let verifier = self.analysis.verifier;
        if verifier
            .blocked_functions
            .iter()
            .any(|blocked| blocked == name)
        {
            let reason = format!("runs `{name}`, which is blocked");
            self.add(Rule::BlockedFunction, command.span, reason);
        }
        if verifier
            .blocked_modules
            .iter()
            .any(|blocked| blocked == name)
        {
            let reason = format!("uses `{name}`, which is blocked");
            self.add(Rule::BlockedModule, command.span, reason);
        }
    }

    /// Functions that call themselves into a pipe or the background.
    fn functions(&mut self) {
        let script = self.script;
        let itself = |command: &Command| {
            // With an argument after it, it does something else the second time.
            let last = command.words.last().filter(|_| command.words.len() <= 3);
            let own =
                last.is_some_and(|word| word.variables().next() == Some("0") && word.text == "$0");
            let starts = command.name().is_none_or(stockade_shell::is_shell);
            own && starts && command.background
        };
        if let Some(command) = script.commands.iter().find(|command| itself(command)) {
            let reason = "starts itself again in the background";
            self.add(Rule::ForkBomb, command.span, reason);
        }
        for function in &script.functions {
            let own = function.name.as_str();
            let body = &script.commands[function.commands.clone()];
            let calls = body.iter().filter(|command| command.name() == Some(own));
            let multiplies = calls
                .clone()
                .any(|command| command.background || script.pipelines[command.pipeline].stages > 1);
            if multiplies && calls.count() > 1 {
                let reason = format!("`{own}` starts itself more than once, without end");
                self.add(Rule::ForkBomb, function.span, reason);
            }
        }
    }

    fn embedded(&mut self) {
        let script = self.script;
        for embedded in &script.embedded {
            let span = embedded.code.span;
            let base = exact_base(self.source, &embedded.code);
            self.given_to_another(&embedded.code);
            let language = match embedded.language {
                stockade_shell::Language::Python => Nested::Full(Language::Python),
                stockade_shell::Language::JavaScript => Nested::Full(Language::JavaScript),
                other => Nested::Foreign(Some(other)),
            };
            self.analysis
                .nested(language, &embedded.code.text, span, base, self.findings);
        }
    }

    /// Programs that the script writes to files: judged as what they are.
    fn written_files(&mut self) {
        let script = self.script;
        for file in &script.files {
            let name = file.path.rsplit('/').next().unwrap_or(&file.path);
            let language = match name {
                ".envrc" => Some(Language::Bash),
                "Makefile" | "makefile" | "GNUmakefile" => {
                    self.recipes(file);
                    None
                }
                _ => Language::from_file_name(name),
            };
            if let Some(language) = language {
                let base = exact_base(self.source, &file.text);
                self.analysis.nested(
                    Nested::Full(language),
                    &file.text.text,
                    file.text.span,
                    base,
                    self.findings,
                );
            }
        }
    }

    /// The commands of a file for `make`.
    fn recipes(&mut self, file: &stockade_shell::WrittenFile) {
        let lines = file.text.text.lines();
        let lines: Vec<&str> = lines.filter_map(|line| line.strip_prefix('\t')).collect();
        let text = lines.join("\n");
        self.analysis
            .command_text(&text, file.text.span, self.findings);
    }

    fn problems(&mut self) {
        let mut broken = false;
        for problem in &self.script.problems {
            match problem.kind {
                ProblemKind::TooDeep => {
                    let reason = "nested too deep to be read";
                    self.findings
                        .add(Rule::ObfuscatedCommand, problem.span, reason);
                }
                ProblemKind::TooLarge => {
                    self.findings
                        .notes
                        .push("the script is too large: analysed in part".to_owned());
                }
                _ if self.analysis.depth == 0 && !broken => {
                    broken = true;
                    let reason = "not valid from here: analysed as far as it could be read";
                    self.findings.add(Rule::Unreadable, problem.span, reason);
                }
                _ => {}
            }
        }
    }
}

/// Whether a command only shows its help or version. What others run is judged on its own.
fn asks_for_help(command: &Command) -> bool {
    let args = command.args();
    let Some(last) = args.last() else {
        return false;
    };
    match last.text.as_str() {
        "--help" => !command.name().is_some_and(stockade_shell::is_shell),
        "--version" | "-help" => args.len() <= 2,
        _ => false,
    }
}

/// Where a word's text stands unchanged in the source.
fn exact_base(source: &str, word: &Word) -> Option<usize> {
    let written = source.get(word.span.start..word.span.end)?;
    if written == word.text {
        return Some(word.span.start);
    }
    let inside = written.get(1..written.len().checked_sub(1)?)?;
    (inside == word.text).then_some(word.span.start + 1)
}
