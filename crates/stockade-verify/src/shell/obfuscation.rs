//! Commands spelled so that a reader or a pattern would not recognise them.

use stockade_shell::{Command, HoleKind, Problem, ProblemKind, Word};

use super::Judge;
use super::programs::Group;
use crate::rule::Rule;

/// Functions of a script that a name is compared with.
const OWN: usize = 256;

impl Judge<'_> {
    /// Text that was computed and then run, and a command's word that is not written as a word:
    /// errors whatever they say.
    fn hidden(&mut self, command: &Command) -> bool {
        let word = &command.words[0];
        let name = command.name().unwrap_or(&word.text);
        if command.runs_computed {
            let reason = format!("`{name}` runs text that was computed");
            self.add(Rule::CodeHidden, command.span, reason);
        }
        let spelling = word.spelling;
        // A quote that is left open makes one word of many.
        let torn = |problem: &Problem| problem.kind == ProblemKind::Unterminated;
        let torn = self.script.problems.iter().any(torn);
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./+".contains(&b);
        let open = |at: usize| word.holes.iter().any(|hole| hole.range.contains(&at));
        let mut bytes = word.text.bytes().enumerate();
        let named = word.text.len() > 1 && bytes.all(|(at, b)| plain(b) || open(at));
        let disguised = spelling.disguised && named && !torn;
        if disguised || spelling.computed || command.empty_expansions > 1 {
            let reason = format!("`{name}` is not written as a word");
            self.add(Rule::ObfuscatedCommand, command.span, reason);
            return true;
        }
        command.runs_computed
    }

    pub(super) fn spelling(&mut self, command: &Command) {
        if self.hidden(command) {
            return;
        }
        if let Some(parent) = command.parent {
            // Judged where it was written, unless the text was computed.
            let parent = self.script.commands[parent].name().unwrap_or_default();
            if !matches!(parent, "eval" | "sh" | "bash") {
                return;
            }
        }
        let word = &command.words[0];
        let written = self
            .source
            .get(word.span.start..word.span.end)
            .unwrap_or_default();
        let name = command.name().unwrap_or_default();
        if word.literal().is_some() && written != word.text && Group::WorthHiding.has(name) {
            let joined_path = word.text.contains('/') && written.contains('/');
            let looked_up = ["$(which ", "$(command ", "`which ", "`command "]
                .iter()
                .any(|start| written.trim_start_matches('"').starts_with(start));
            let inside = written.find("$(").is_some_and(|at| at > 0);
            let several = written.contains([' ', '|']) && !inside || written.contains('\n');
            let nested = written.len() > 200 || several || command.parent.is_some();
            let substituted = written.contains("$(") || written.contains('`');
            if substituted && !joined_path && !looked_up && !nested && !is_arithmetic(written) {
                let reason = format!("`{name}`, written `{written}`");
                return self.add(Rule::ObfuscatedCommand, command.span, reason);
            }
        }
        if is_chosen(written) && Group::WorthHiding.has(name) {
            let reason = format!("`{name}`, written `{written}`");
            return self.add(Rule::ObfuscatedCommand, command.span, reason);
        }
        if let Some(reason) = is_foreign_spelling(written) {
            return self.add(Rule::ObfuscatedCommand, command.span, reason);
        }
        let braced = written.starts_with('{') && written.contains(',') && written.contains('}');
        let argument = |word: &Word| word.text.starts_with(['-', '/', '~', '+', '.']);
        let listed = braced && command.args().iter().any(argument);
        if listed || braced && Group::WorthHiding.has(name) {
            return self.add(
                Rule::ObfuscatedCommand,
                command.span,
                format!("a command made by brace expansion: `{written}`"),
            );
        }
        let split = command.args().iter().any(|arg| arg.span == word.span);
        if written.contains("${IFS}")
            || written.contains("$IFS")
            || split && written.contains("IFS")
        {
            return self.add(
                Rule::ObfuscatedCommand,
                command.span,
                "uses $IFS in place of spaces",
            );
        }
        let globbed = word
            .holes
            .iter()
            .filter(|hole| hole.kind == HoleKind::Glob)
            .count();
        let path = |b: u8| b.is_ascii_alphanumeric() || b"/?*[]-_.".contains(&b);
        let path = word.text.starts_with('/') && word.text.bytes().all(path);
        if globbed > 0 && path && word.text.contains(['?', '[']) {
            return self.add(
                Rule::ObfuscatedCommand,
                command.span,
                format!("names a program by a pattern: `{written}`"),
            );
        }
        self.encoded_paths(command);
    }

    /// Secret paths written in hexadecimal or broken by continuation lines.
    fn encoded_paths(&mut self, command: &Command) {
        for word in command
            .args()
            .iter()
            .chain(command.redirects.iter().map(|redirect| &redirect.target))
        {
            let Some(written) = self.source.get(word.span.start..word.span.end) else {
                continue;
            };
            if written.len() > 4096 {
                continue;
            }
            let sensitive =
                |text: &str| text.contains("/etc/passwd") || text.contains("/etc/shadow");
            let broken = sensitive(&word.text)
                && !sensitive(written)
                && word.literal().is_some()
                && !is_variable(written);
            let hex = written.contains("\\x2f\\x65\\x74\\x63") || written.contains("2f657463");
            // `cat $(echo L2V0Yw== | base64 -d)`: written in the script, and still not to be read.
            let hows = ["base64 -d", "base64 --decode", "base64 -D", "xxd -r"];
            let decoded = word.literal().is_some()
                && written.starts_with(['$', '`', '"'])
                && hows.iter().any(|how| written.contains(how))
                && self.is_brief();
            if broken || hex || decoded {
                return self.add(
                    Rule::ObfuscatedCommand,
                    command.span,
                    format!("hides a path: `{written}`"),
                );
            }
        }
    }

    /// A command whose name is not known.
    pub(super) fn unknown_program(&mut self, command: &Command) {
        let word = &command.words[0];
        let spliced = spliced(word) && !self.fits_own_function(word);
        if spliced {
            let written = self
                .source
                .get(word.span.start..word.span.end)
                .unwrap_or_default();
            self.add(
                Rule::ObfuscatedCommand,
                command.span,
                format!("a command's name put together: `{written}`"),
            );
        }
    }

    /// `start_$service`, with functions of such names in the script.
    fn fits_own_function(&self, word: &Word) -> bool {
        let [hole] = word.holes.as_slice() else {
            return false;
        };
        let (before, after) = (&word.text[..hole.range.start], &word.text[hole.range.end..]);
        let mut functions = self.script.functions.iter().take(OWN);
        functions.any(|own| own.name.starts_with(before) && own.name.ends_with(after))
    }

    /// `1A=2 command`: not an assignment to every shell, but the command is meant.
    pub(super) fn misnamed_assignment(&mut self, name: &str, command: &Command) {
        let Some((key, _)) = name.split_once('=') else {
            return;
        };
        let named = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        if key.is_empty() || !key.bytes().all(named) || command.words.len() < 2 {
            return;
        }
        let start = command.words[1].span.start;
        if let Some(rest) = self.source.get(start..command.span.end) {
            self.analysis
                .command_text(rest, command.span, self.findings);
        }
    }
}

/// What only another reader takes for a command: carets, which `cmd.exe` drops from names, and
/// machine code written out.
fn is_foreign_spelling(written: &str) -> Option<&'static str> {
    let start = &written.as_bytes()[..written.len().min(256)];
    let caret =
        |at: &[u8]| at[1] == b'^' && at[0].is_ascii_alphabetic() && at[2].is_ascii_alphabetic();
    if start.windows(3).filter(|at| caret(at)).count() >= 2 {
        return Some("a command's name broken up by carets");
    }
    let code = |at: &[u8]| at.starts_with(b"\\x") && at[2..].iter().all(u8::is_ascii_hexdigit);
    let whole = start.len() >= 64 && start.chunks(4).take(16).all(code);
    whole.then_some("machine code in place of a command")
}

fn is_variable(written: &str) -> bool {
    written.contains('$')
}

/// Letters on both sides of something unknown: `who$(…)ami`.
fn spliced(word: &Word) -> bool {
    let letters = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase());
    let [hole] = word.holes.as_slice() else {
        return false;
    };
    let nothing = match &hole.kind {
        HoleKind::Substitution { .. } => true,
        // Only what is empty can stand inside a name: `c${u}url`, `w$@ho`.
        HoleKind::Variable(name) => {
            matches!(name.as_str(), "@" | "*" | "!") || name.len() == 1 && !name.starts_with('?')
        }
        _ => false,
    };
    nothing && letters(&word.text[..hole.range.start]) && letters(&word.text[hole.range.end..])
}

/// `(( $(ls | wc -l) > 2 ))`, `$(( $(date +%s) / 60 ))`: the command is within a number.
fn is_arithmetic(written: &str) -> bool {
    let text = written.trim_start_matches('"');
    let first = text.find("$(").map(|at| &text[at..]);
    text.starts_with("((") || first.is_some_and(|first| first.starts_with("$(("))
}

/// `${x:-rm}`: the default of a variable that nobody means to set. `${CC:-gcc}` is another matter.
fn is_chosen(written: &str) -> bool {
    let inside = written.strip_prefix("${").unwrap_or_default();
    let name = inside.split(['-', ':']).next().unwrap_or_default();
    let short = (1..=2).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase());
    short
        && inside[name.len()..]
            .trim_start_matches(':')
            .starts_with('-')
}
