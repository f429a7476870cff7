//! git: what loses work or rewrites what others have.

use stockade_shell::{Command, Word};

use super::{Judge, has};
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn git(&mut self, command: &Command) {
        let args = command.args();
        let at = verb(args);
        let Some(verb) = args.get(at) else {
            return;
        };
        for word in &args[..at] {
            let text = word.text.to_ascii_lowercase();
            let runs = [
                "core.sshcommand=",
                "core.fsmonitor=",
                "core.editor=",
                "core.pager=",
                "core.hookspath=",
                "alias.",
                "protocol.ext.allow=",
                "diff.external=",
                "credential.helper=!",
            ];
            if runs.iter().any(|key| text.starts_with(key))
                && (text.contains('!') || text.contains('/') || text.contains("sh"))
                && !text.contains("pager=cat")
            {
                self.add(
                    Rule::PersistenceGitHook,
                    command.span,
                    format!("makes git run a command: {}", word.text),
                );
            }
        }
        let rest = &args[at + 1..];
        let span = command.span;
        match verb.text.to_ascii_lowercase().as_str() {
            "push" => {
                let refspec = rest
                    .iter()
                    .any(|word| word.text.starts_with('+') && word.text.len() > 1);
                let deletes = has(rest, "d", &["delete", "mirror", "prune"])
                    || rest
                        .iter()
                        .any(|word| word.text.starts_with(':') && word.text.len() > 1);
                if has(rest, "f", &["force"]) || refspec {
                    self.add(
                        Rule::DestroyHistory,
                        span,
                        "overwrites what was pushed before",
                    );
                } else if deletes {
                    self.add(Rule::DestroyHistory, span, "deletes branches on the server");
                }
            }
            "reset" if has(rest, "", &["hard", "merge"]) => {
                self.add(
                    Rule::DestroyHistory,
                    span,
                    "throws away changes that were not committed",
                );
            }
            "clean" => {
                let dry = has(rest, "n", &["dry-run"]);
                if has(rest, "f", &["force"]) && !dry {
                    self.add(
                        Rule::DestroyHistory,
                        span,
                        "deletes files that git does not know",
                    );
                }
            }
            "checkout" | "switch" => self.checkout(command, rest, &verb.text),
            "restore" => {
                let staged_only = has(rest, "S", &["staged"]) && !has(rest, "W", &["worktree"]);
                if !staged_only && rest.iter().any(|word| !word.text.starts_with('-')) {
                    self.add(
                        Rule::DestroyHistory,
                        span,
                        "throws away changes that were not committed",
                    );
                }
            }
            "stash"
                if rest
                    .first()
                    .is_some_and(|word| matches!(word.text.as_str(), "drop" | "clear")) =>
            {
                self.add(Rule::DestroyHistory, span, "throws away stashed work");
            }
            "branch"
                if has(rest, "D", &[])
                    || (has(rest, "d", &["delete"]) && has(rest, "f", &["force"])) =>
            {
                self.add(
                    Rule::DestroyHistory,
                    span,
                    "deletes a branch whether merged or not",
                );
            }
            "filter-branch" | "filter-repo" => {
                self.add(Rule::DestroyHistory, span, "rewrites history");
            }
            "reflog"
                if rest
                    .first()
                    .is_some_and(|word| matches!(word.text.as_str(), "expire" | "delete")) =>
            {
                self.add(Rule::DestroyHistory, span, "forgets where branches were");
            }
            "gc" if rest
                .iter()
                .any(|word| word.text.starts_with("--prune=now") || word.text == "--prune=all") =>
            {
                self.add(
                    Rule::DestroyHistory,
                    span,
                    "deletes commits that no branch holds",
                );
            }
            "update-ref" if has(rest, "d", &[]) => {
                self.add(Rule::DestroyHistory, span, "deletes a reference");
            }
            "worktree"
                if has(rest, "f", &["force"])
                    && rest.first().is_some_and(|word| word.text == "remove") =>
            {
                self.add(
                    Rule::DestroyHistory,
                    span,
                    "deletes a worktree with its changes",
                );
            }
            "tag" | "rebase" | "commit" => {}
            "config" => {
                let key = rest
                    .iter()
                    .find(|word| word.text.contains('.'))
                    .map(|word| word.text.to_ascii_lowercase());
                let runs = [
                    "core.hookspath",
                    "core.sshcommand",
                    "core.fsmonitor",
                    "core.pager",
                    "core.editor",
                    "credential.helper",
                ];
                let value = rest
                    .last()
                    .map(|word| word.text.clone())
                    .unwrap_or_default();
                let key = key.unwrap_or_default();
                if (runs.contains(&key.as_str())
                    || key.starts_with("alias.") && value.starts_with('!'))
                    && (value.contains('/') || value.starts_with('!'))
                {
                    self.add(
                        Rule::PersistenceGitHook,
                        span,
                        format!("makes git run `{value}`"),
                    );
                }
            }
            "apply" if has(rest, "", &["unsafe-paths"]) => {
                self.add(
                    Rule::FileWrite,
                    span,
                    "applies a patch outside the repository",
                );
            }
            _ => {}
        }
    }

    fn checkout(&mut self, command: &Command, rest: &[Word], verb: &str) {
        let span = command.span;
        if has(rest, "f", &["force", "discard-changes"]) && !has(rest, "bBcC", &[]) {
            return self.add(
                Rule::DestroyHistory,
                span,
                "throws away changes that were not committed",
            );
        }
        if verb == "switch" || has(rest, "bBt", &["orphan", "track", "detach"]) {
            return;
        }
        if let Some(dashes) = rest.iter().position(|word| word.text == "--") {
            let paths = &rest[dashes + 1..];
            let wide = paths
                .iter()
                .any(|word| matches!(word.text.as_str(), "." | "*" | ":/" | "./"));
            if wide {
                self.add(
                    Rule::DestroyHistory,
                    span,
                    "throws away all changes in the working tree",
                );
            } else if !paths.is_empty() {
                self.warn(
                    Rule::DestroyHistory,
                    span,
                    "throws away changes to the named files",
                );
            }
        } else if rest.iter().any(|word| word.text == ".") {
            self.add(
                Rule::DestroyHistory,
                span,
                "throws away all changes in the working tree",
            );
        }
    }
}

/// The position of git's subcommand.
fn verb(args: &[Word]) -> usize {
    let mut at = 0;
    while let Some(word) = args.get(at) {
        match word.text.as_str() {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path"
            | "--config-env" | "--super-prefix" => at += 2,
            text if text.starts_with('-') => at += 1,
            _ => break,
        }
    }
    at
}
