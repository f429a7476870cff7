//! Commands that read, write or delete files.

use stockade_shell::{Command, CommandId, RedirectOp, Word};

use super::flow::archive_of;
use super::gather::is_named_secret;
use super::staging::{is_record, is_temporary};
use super::{Judge, has, operands, value_of};
use crate::files::{Deletion, Files, Speaker, Writing};
use crate::paths::{Kind, Place};
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    /// Judges a read; whether it is of a secret.
    pub(super) fn read_at(&mut self, path: &str, span: Span) -> bool {
        let place = self.place(path);
        let allowed = &self.analysis.verifier.allowed_paths;
        Files {
            allowed,
            speaker: Speaker::Shell,
        }
        .read(&place, span, self.findings)
    }

    pub(super) fn write_at(&mut self, path: &str, how: Writing, span: Span) {
        // Whatever a pattern stands for, it is something in there.
        let mut place = self.place(path);
        if place.all_inside {
            place = self.place(&path.replace('*', "x"));
        }
        if is_account(&place) {
            let reason = format!("changes {}: who may do what", place.path);
            self.findings.firm(Rule::FileWrite, span, reason);
        }
        if how == Writing::Replace && is_record(&place.path) {
            let reason = format!("overwrites {}", place.path);
            self.findings.firm(Rule::TraceRemoval, span, reason);
        }
        let allowed = &self.analysis.verifier.allowed_paths;
        Files {
            allowed,
            speaker: Speaker::Shell,
        }
        .write(&place, how, span, self.findings);
    }

    pub(super) fn delete_at(&mut self, path: &str, how: Deletion, span: Span) {
        let place = self.place(path);
        if is_account(&place) {
            let reason = format!("deletes {}: who may do what", place.path);
            self.findings.firm(Rule::FileDelete, span, reason);
        }
        if is_record(&place.path) {
            let reason = format!("deletes {}", place.path);
            self.findings.firm(Rule::TraceRemoval, span, reason);
        }
        let allowed = &self.analysis.verifier.allowed_paths;
        Files {
            allowed,
            speaker: Speaker::Shell,
        }
        .delete(&place, how, span, self.findings);
    }

    /// Redirections to and from files.
    pub(super) fn redirects(&mut self, id: CommandId, command: &Command) {
        for redirect in &command.redirects {
            let text = redirect.target.text.as_str();
            if text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/") {
                self.network_device(id, text, redirect.op, redirect.span);
                continue;
            }
            let prints = matches!(command.name(), Some("echo" | "printf" | "cat"));
            if redirect.op.writes() && prints && text.rsplit('.').next() == Some("pth") {
                let reason = format!("writes {text}: what every Python program loads");
                self.add(Rule::PersistencePreload, redirect.span, reason);
            }
            if redirect.op.writes() && prints {
                self.starts_later(command, text);
            }
            if redirect.op.writes() && redirect.fd.is_none_or(|fd| fd == 1) {
                self.stages(command, text);
                self.writes_to_sender(id, &redirect.target, redirect.span);
            }
            match redirect.op {
                RedirectOp::Read => {
                    self.read_at(text, redirect.span);
                }
                RedirectOp::Append if completes(command) && self.place(text).is(Kind::ShellRc) => {
                    let reason = format!("writes {text}: completion for a shell");
                    self.warn(Rule::PersistenceShellRc, redirect.span, reason);
                }
                RedirectOp::Append | RedirectOp::AppendBoth => {
                    self.write_at(text, Writing::Append, redirect.span);
                }
                op if op.writes() => self.write_at(text, Writing::Replace, redirect.span),
                _ => {}
            }
        }
    }

    /// What is printed into a file that runs on its own is judged as the commands it is.
    fn starts_later(&mut self, command: &Command, target: &str) {
        let persists = |kind: &Kind| kind.persists().is_some();
        if self.place(target).kinds().iter().any(persists) {
            for word in command.args().iter().filter(|word| word.text.contains(' ')) {
                self.analysis
                    .command_text(&word.text, command.span, self.findings);
            }
        }
    }

    /// The list of accounts, put aside: `cat /etc/passwd > file`.
    fn stages(&mut self, command: &Command, target: &str) {
        let kept = !self.place(target).is(Kind::Sink);
        let listed = |word: &&Word| self.place(&word.text).path == "/etc/passwd";
        let whole = matches!(
            command.name(),
            Some("cat" | "gzip" | "base64" | "xxd" | "openssl")
        );
        if whole && kept && command.args().iter().any(|word| listed(&word)) {
            let reason = format!("keeps a copy of the list of accounts in {target}");
            self.findings
                .only_in_excerpt(Rule::AccountRead, command.span, reason);
        }
    }

    pub(super) fn file_command(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        let span = command.span;
        match name {
            "rm" | "unlink" | "rmdir" | "srm" | "del" | "erase" => {
                self.remove(name, command);
                self.remove_unseen(id, command);
            }
            "shred" | "wipe" | "scrub" => self.shred(command),
            "find" | "gfind" | "fd" | "fdfind" => self.find(id, command),
            "ls" if self.piped_to_removal(id, command) => {
                for word in operands(args) {
                    self.delete_at(&word.text, Deletion::ForcedTree, span);
                }
                let pipeline = &self.script.pipelines[command.pipeline];
                let trees = self.script.commands[pipeline.commands.clone()]
                    .iter()
                    .any(|later| has(later.args(), "rR", &["recursive"]) && later.parent.is_some());
                let all = operands(args).next().is_none() && pipeline.stages == 2;
                if all && trees {
                    let reason = "deletes everything in the working directory";
                    self.findings
                        .only_in_excerpt(Rule::DestroyFiles, span, reason);
                }
            }
            "mv" | "cp" | "install" | "ln" | "rsync" | "ditto" | "gcp" => self.copy(name, command),
            "tee" | "sponge" | "truncate" | "fallocate" => self.writes_named(name, command),
            "dd" => self.dd(command),
            "mkdir" => {
                for word in operands(args) {
                    if hides_directory(&word.text) {
                        let reason =
                            format!("makes a directory that listings hide: `{}`", word.text);
                        self.add(Rule::FileWrite, span, reason);
                    }
                    if self.place(&word.text).hides() {
                        self.write_at(&word.text, Writing::Append, span);
                    }
                }
            }
            "tar" | "bsdtar" | "unzip" | "cpio" => {
                let archive = archive_of(name, args).map(|word| word.text.as_str());
                let archive = archive.filter(|_| name.ends_with("tar"));
                let makes = args
                    .first()
                    .is_some_and(|word| word.text.contains(['c', 'r', 'u']));
                if let Some(archive) = archive.filter(|_| makes)
                    && self.place(archive).is(Kind::Disk)
                {
                    self.write_at(archive, Writing::Replace, span);
                }
            }
            "sed" => self.sed(command),
            "sort" | "shuf" | "pandoc" | "gcc" | "cc" | "tsc" => {
                let output = value_of(args, 'o', &["output", "outFile"]);
                if let Some(output) = output.filter(|output| output.contains('/')) {
                    self.write_at(output, Writing::Append, span);
                }
            }
            "script" => {
                let command = value_of(args, 'c', &["command"]).unwrap_or_default();
                let mut files = operands(args).filter(|word| word.text != command);
                if let Some(word) = files.find(|word| word.text.contains('/')) {
                    self.write_at(&word.text, Writing::Append, span);
                }
            }
            "chmod" => self.chmod(command),
            "chown" | "chgrp" => self.chown(name, command),
            "mke2fs" | "mkswap" | "newfs" | "mkntfs" => self.format_disk(command),
            _ if name.starts_with("mkfs") => self.format_disk(command),
            _ => {}
        }
        self.mentions(name, command);
    }

    /// `tee`, `truncate` and their kin: the files that they are given.
    fn writes_named(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let span = command.span;
        let append = has(args, "a", &["append"]);
        let how = if append {
            Writing::Append
        } else {
            Writing::Replace
        };
        for word in operands(args) {
            self.write_at(&word.text, how, span);
        }
        if name != "truncate" || value_of(args, 's', &["size"]) != Some("0") {
            return;
        }
        for word in operands(args) {
            if word.text.starts_with('*') && !word.holes.is_empty() {
                let reason = format!("empties all files {}", word.text);
                self.add(Rule::DestroyFiles, span, reason);
            }
        }
    }

    fn copy(&mut self, name: &str, command: &Command) {
        let args = command.args();
        if name == "install" && has(args, "d", &["directory"]) {
            return;
        }
        let mut sources: Vec<&Word> = operands(args).collect();
        let directory = value_of(args, 't', &["target-directory"]).filter(|_| name != "rsync");
        let target = match directory {
            Some(directory) => directory,
            None if sources.len() > 1 => match sources.pop() {
                Some(word) => word.text.as_str(),
                None => return,
            },
            None => return,
        };
        let span = command.span;
        if name == "ln" {
            let to_nothing = sources.first().is_some_and(|word| word.text == "/dev/null");
            if to_nothing && self.place(target).is(Kind::Trace) {
                self.add(
                    Rule::TraceRemoval,
                    span,
                    format!("sends {target} to /dev/null"),
                );
            }
            self.links_secret(command, &sources);
            return self.write_at(target, Writing::Append, span);
        }
        let remote = target.contains(':') && !target.starts_with('/');
        if !remote {
            self.copy_target(target, &sources, span);
        }
        self.copies_program(name, command, &sources);
        for word in &sources {
            let place = self.place(&word.text);
            let precious = place.is(Kind::System) || place.is_home();
            let outside = word.text.starts_with(['/', '~', '$']);
            let ransom = [
                "locked",
                "enc",
                "encrypted",
                "crypt",
                "crypted",
                "pwned",
                "ransom",
            ];
            let added = target.strip_prefix(word.text.as_str()).unwrap_or_default();
            let ending = added.strip_prefix('.').unwrap_or_default();
            if name == "mv" && ransom.contains(&ending.to_ascii_lowercase().as_str()) {
                let reason = "renames files as one does who holds them for ransom";
                self.add(Rule::DestroyFiles, span, reason);
            }
            if name == "mv" && place.is(Kind::Trace) {
                let reason = format!("moves {} away to {target}", word.text);
                self.findings
                    .only_in_excerpt(Rule::TraceRemoval, span, reason);
            }
            if name == "mv" && (target == "/dev/null" || precious && outside) {
                let reason = format!("moves {} away to {target}", word.text);
                self.add(Rule::DestroyFiles, span, reason);
            }
            let kept = is_named_secret(&word.text) && outside && !is_temporary(&place.path);
            if kept && is_temporary(target) {
                let reason = format!("copies {} to where everyone may read it", word.text);
                self.findings
                    .only_in_excerpt(Rule::CredentialRead, span, reason);
            }
            if place.path == "/etc/passwd" {
                let reason = format!("copies the list of accounts to {target}");
                self.findings
                    .only_in_excerpt(Rule::AccountRead, span, reason);
            }
            if self.read_at(&word.text, span) || place.is_home() && remote {
                let reason = format!("copies {} to {target}", word.text);
                self.add(Rule::CredentialRead, span, reason);
            }
        }
    }

    /// A copy into a system directory is a write of the file in it.
    fn copy_target(&mut self, target: &str, sources: &[&Word], span: Span) {
        let file = sources
            .first()
            .and_then(|word| word.text.rsplit('/').next());
        let directory = target.ends_with('/') || self.place(target).is(Kind::System);
        if target != "/" && directory {
            let inside = format!("{target}/{}", file.unwrap_or_default());
            self.write_at(&inside, Writing::Append, span);
        } else {
            // A log that is copied over is a log that is gone.
            let how = if self.place(target).is(Kind::Trace) {
                Writing::Replace
            } else {
                Writing::Append
            };
            self.write_at(target, how, span);
        }
    }

    fn sed(&mut self, command: &Command) {
        let args = command.args();
        let page = |word: &Word| {
            let text = word.text.to_ascii_lowercase();
            text.contains("<script") && text.contains("src=") && text.contains("://")
        };
        if has(args, "i", &["in-place"]) && args.iter().any(page) {
            let reason = "puts a script from elsewhere into a page";
            self.add(Rule::DownloadRun, command.span, reason);
        }
        // `1e command`: sed runs it; `s/…/…/e` and a bare `e` run what the lines hold.
        let script = operands(args).next().map_or("", |word| word.text.as_str());
        if runs_lines(script) {
            let reason = "`sed` runs the lines it reads or makes";
            self.add(Rule::ShellEscape, command.span, reason);
        }
        let rest = script.trim_start_matches(|c: char| c.is_ascii_digit() || c == '$');
        if let Some(run) = rest.strip_prefix("e ") {
            let reason = "`sed` is told to run a command";
            self.add(Rule::ShellEscape, command.span, reason);
            self.analysis.command_text(run, command.span, self.findings);
        }
        if has(args, "i", &["in-place"]) && matches!(script, "d" | "1,$d" | "1d;$d" | ":a;N;$!ba;d")
        {
            let reason = "deletes every line of the files it is given";
            self.add(Rule::DestroyFiles, command.span, reason);
        }
        if has(args, "i", &["in-place"]) {
            for word in operands(args).skip(1) {
                // In a log, lines that are edited are lines that are gone.
                let how = if self.place(&word.text).is(Kind::Trace) {
                    Writing::Replace
                } else {
                    Writing::Append
                };
                self.write_at(&word.text, how, command.span);
            }
        } else if let Some((_, file)) = operands(args)
            .next()
            .and_then(|word| word.text.rsplit_once("w /"))
        {
            // The script's own `w file`.
            self.write_at(&format!("/{file}"), Writing::Append, command.span);
        }
    }
}

/// Files that say who there is and who may do what.
fn is_account(place: &Place) -> bool {
    let path = place.path.as_str();
    matches!(
        path,
        "/etc/passwd" | "/etc/group" | "/etc/shadow" | "/etc/gshadow" | "/etc/sudoers"
    ) || path.starts_with("/etc/sudoers.d/")
        || path.starts_with("/etc/pam.d/")
}

/// `...`, `. `, a name of blanks: what the eye skips.
fn hides_directory(path: &str) -> bool {
    let last = path
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let dots = last.len() > 2 && last.bytes().all(|b| b == b'.');
    dots || last.ends_with(' ') && last.trim_end_matches([' ', '.']).is_empty()
}

/// A script for `sed` whose last word is to run: `e`, `s/a/b/e`.
fn runs_lines(script: &str) -> bool {
    let Some(rest) = script.strip_prefix('s') else {
        return script == "e" || script == "1e";
    };
    let Some(mark) = rest.chars().next().filter(char::is_ascii_punctuation) else {
        return false;
    };
    let flags = rest.rsplit(mark).next().unwrap_or_default();
    let plain = flags.bytes().all(|b| b.is_ascii_alphanumeric());
    rest.matches(mark).count() >= 3 && plain && flags.contains('e')
}

/// `gh completion -s bash >> ~/.bashrc`, as manuals tell people to.
fn completes(command: &Command) -> bool {
    let first = command.args().first().map(|word| word.text.as_str());
    let prints = matches!(
        command.name(),
        Some("echo" | "printf" | "cat" | "curl" | "wget")
    );
    !prints && matches!(first, Some("completion" | "completions"))
}
