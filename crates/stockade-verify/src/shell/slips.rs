//! Commands that do something else than whoever wrote them believes.

use stockade_shell::{Command, Word};

use super::programs::Group;
use super::{Judge, has, operands};
use crate::hosts::is_url;
use crate::rule::Rule;

impl Judge<'_> {
    /// `DIR=build rm -rf $DIR/old`: the shell puts in the value from before the assignment, which may
    /// be none, and `/old` is deleted (`ShellCheck` SC2097, SC2098).
    pub(super) fn sets_too_late(&mut self, name: &str, command: &Command) {
        if name != "rm" || !has(command.args(), "rR", &["recursive"]) {
            return;
        }
        let set_here = |name: &str| command.assignments.iter().any(|set| set.name == name);
        let late = |word: &&Word| {
            let below = word.text.starts_with('$') && word.text.contains('/');
            below && word.variables().next().is_some_and(set_here)
        };
        if let Some(word) = operands(command.args()).find(late) {
            let reason = format!(
                "deletes {}, a variable this command sets too late",
                word.text
            );
            self.add(Rule::DestroyFiles, command.span, reason);
        }
    }

    /// `node -e "rm -rf /"`: a shell command given to another interpreter.
    pub(super) fn given_to_another(&mut self, code: &Word) {
        let mut words = code.text.split_whitespace();
        let program = words
            .next()
            .is_some_and(|word| Group::WorthHiding.has(word));
        let argument = words.next().is_some_and(|word| {
            word.len() > 1 && word.starts_with(['-', '/', '~']) || is_url(word)
        });
        if program && argument && !code.text.contains('\n') {
            self.analysis
                .command_text(&code.text, code.span, self.findings);
        }
    }
}
