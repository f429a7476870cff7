//! git: what loses work, and what makes it run commands. The plain cases are in the list.

use stockade_shell::{Command, Word};

use super::gather::{Matter, is_telling};
use super::{Judge, has, operands};
use crate::hosts;
use crate::rule::Rule;
use crate::words::Words;

/// Settings that make git run a command.
static RUNS: Words = Words::new("shell/git runs");

impl Judge<'_> {
    pub(super) fn git(&mut self, command: &Command) {
        let args = command.args();
        let at = verb(args);
        for word in &args[..at.min(args.len())] {
            if let Some((key, value)) = word.text.split_once('=') {
                self.git_setting(command, key, value);
            }
        }
        let Some(verb) = args.get(at) else {
            return;
        };
        let rest = &args[at + 1..];
        if matches!(
            verb.text.as_str(),
            "clone" | "remote" | "pull" | "fetch" | "submodule" | "push" | "ls-remote"
        ) {
            if let Some(found) = self.gathered_inside(rest) {
                let reason = format!("`git` sends what `{}` gathers in an address", found.by);
                self.leaks(&found, command, reason);
            }
            let odd = rest.iter().find_map(|word| {
                // `user@host:path`, as git writes what ssh reaches.
                let short = word
                    .text
                    .split_once('@')
                    .and_then(|(_, at)| at.split_once(':'));
                let url = match short {
                    Some((host, _)) => host,
                    None => hosts::is_url(&word.text).then_some(word.text.as_str())?,
                };
                hosts::suspicion(url).map(|why| (why, &word.text))
            });
            if let Some((why, url)) = odd {
                let reason = format!("`git` talks to {why}: {url}");
                self.add(Rule::NetworkHost, command.span, reason);
            }
        }
        match verb.text.as_str() {
            "commit" | "tag" | "notes" => {
                let found = self.gathered_inside(rest);
                if let Some(found) = found.filter(|found| found.matter == Matter::Theirs) {
                    let reason = format!("`git` keeps what `{}` gathers for all to read", found.by);
                    self.leaks(&found, command, reason);
                }
            }
            "push" => {
                let marked = |mark: char| {
                    rest.iter()
                        .any(|word| word.text.len() > 1 && word.text.starts_with(mark))
                };
                self.git_pushes_away(command, rest);
                if has(rest, "n", &["dry-run"]) {
                    return;
                }
                if marked('+') {
                    let reason = "overwrites what was pushed before";
                    self.add(Rule::DestroyHistory, command.span, reason);
                } else if marked(':') {
                    let reason = "deletes branches on the server";
                    self.add(Rule::DestroyHistory, command.span, reason);
                }
            }
            "checkout" | "switch" => self.git_checkout(command, rest, &verb.text),
            "diff" | "grep" | "hash-object" | "cat-file" => {
                let base = super::value_of(&args[..at], 'C', &[]);
                for word in operands(rest) {
                    if word.text.starts_with(['/', '~', '$']) {
                        self.read_at(&word.text, command.span);
                    } else if let Some(base) = base {
                        self.read_at(&format!("{base}/{}", word.text), command.span);
                    }
                }
            }
            "restore" => {
                let index_only = has(rest, "S", &["staged"]) && !has(rest, "W", &["worktree"]);
                if !index_only && rest.iter().any(|word| !word.text.starts_with('-')) {
                    let reason = "throws away changes that were not committed";
                    self.add(Rule::DestroyHistory, command.span, reason);
                }
            }
            "config" => {
                let key = rest.iter().find(|word| word.text.contains('.'));
                if let (Some(key), Some(value)) = (key, rest.last()) {
                    self.git_setting(command, &key.text, &value.text);
                }
            }
            _ => {}
        }
    }

    /// A push to where the script itself says, not to where the repository is from.
    fn git_pushes_away(&mut self, command: &Command, rest: &[Word]) {
        if !self.is_brief() {
            return;
        }
        let adds = |other: &Command| {
            let adds = other.args().first().is_some_and(|word| word.text == "add");
            other.name() == Some("git") && adds
        };
        let mut added = self.script.commands.iter().filter(|other| adds(other));
        let secret = added.find_map(|other| {
            let mut files = operands(other.args()).skip(1);
            files.find(|word| is_telling(&self.place(&word.text)))
        });
        if let Some(word) = secret {
            let reason = format!("`git` publishes {}", word.text);
            self.add(Rule::Exfiltration, command.span, reason);
        }
        let target = operands(rest).next().map_or("", |word| word.text.as_str());
        // A push of everything goes to `origin` if nothing else is said.
        let all = has(rest, "", &["all", "mirror"]);
        let target = if target.is_empty() && all {
            "origin"
        } else {
            target
        };
        let set = self.script.commands.iter().filter(|other| {
            let named = |text: &str| other.args().iter().any(|word| word.text == text);
            let sets = named("add") || named("set-url");
            other.name() == Some("git") && named("remote") && sets && named(target)
        });
        let url = set
            .filter_map(|other| other.args().last())
            .map(|word| word.text.as_str())
            .next();
        let away = match url {
            Some(url) => target != "origin" || all && !is_forge(url),
            None => (hosts::is_url(target) || target.contains('@')) && !is_forge(target),
        };
        if away && !target.is_empty() {
            let shown = url.unwrap_or(target);
            let reason = format!("`git` pushes the repository to {shown}");
            // A machine nearby, by its number: how people deploy at home and at work.
            let host = hosts::host_of(shown);
            let near = host.is_some_and(|host| {
                hosts::is_bare_address(host) && !hosts::is_public_address(host)
            });
            let certain = !is_forge(shown) && !near || all;
            self.findings
                .weigh(certain, Rule::Exfiltration, command.span, reason);
        }
    }

    fn git_setting(&mut self, command: &Command, key: &str, value: &str) {
        let key = key.to_ascii_lowercase();
        let alias = key.starts_with("alias.") && value.starts_with('!');
        let known = RUNS.contains(&key.as_str()) && value.contains(['/', '!', ' ']);
        let instead = key.ends_with(".insteadof") || key.ends_with(".pushinsteadof");
        if key.starts_with("url.") && instead && !is_forge(&key) {
            let reason = format!("makes git go to another server: {key}");
            self.add(Rule::PersistenceGitHook, command.span, reason);
        }
        if alias || known || key == "protocol.ext.allow" {
            let reason = format!("makes git run `{value}`");
            self.add(Rule::PersistenceGitHook, command.span, reason);
        }
    }

    fn git_checkout(&mut self, command: &Command, rest: &[Word], verb: &str) {
        let span = command.span;
        if has(rest, "f", &["force", "discard-changes"]) && !has(rest, "bBcC", &[]) {
            let reason = "throws away changes that were not committed";
            return self.add(Rule::DestroyHistory, span, reason);
        }
        if verb == "switch" || has(rest, "bBt", &["orphan", "track", "detach"]) {
            return;
        }
        let everything = |word: &Word| matches!(word.text.as_str(), "." | "*" | ":/" | "./");
        let dashes = rest.iter().position(|word| word.text == "--");
        let paths = dashes.map_or(rest, |at| &rest[at + 1..]);
        if paths.iter().any(everything) {
            let reason = "throws away all changes in the working tree";
            self.add(Rule::DestroyHistory, span, reason);
        } else if dashes.is_none() && operands(rest).count() > 1 {
            let reason = "replaces files by those of another commit, with what was changed in them";
            self.add(Rule::DestroyHistory, span, reason);
        } else if dashes.is_some() && !paths.is_empty() {
            let reason = "throws away changes to the named files";
            self.warn(Rule::DestroyHistory, span, reason);
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

/// Where people keep repositories, by address.
fn is_forge(url: &str) -> bool {
    static FORGES: Words = Words::new("shell/git forges");
    FORGES.iter().any(|forge| url.contains(forge))
}
