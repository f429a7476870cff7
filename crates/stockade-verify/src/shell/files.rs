//! Commands that read, write, delete or change files.

use stockade_shell::{Command, CommandId, RedirectOp, Stdin, Word};

use super::programs::Group;
use super::{Judge, has, operands, value_of};
use crate::files::{Deletion, Writing};
use crate::paths::{Kind, Place};
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    /// Redirections to and from files.
    pub(super) fn redirects(&mut self, id: CommandId, command: &Command) {
        for redirect in &command.redirects {
            let text = redirect.target.text.as_str();
            if text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/") {
                self.network_device(id, command, redirect.op, redirect.span);
                continue;
            }
            match redirect.op {
                RedirectOp::Read => {
                    let place = self.place(text);
                    let (files, span) = (self.files().allowed.to_vec(), redirect.span);
                    self.read_place(&place, span, &files);
                }
                op if op.writes() => {
                    let how = match op {
                        RedirectOp::Append | RedirectOp::AppendBoth => Writing::Append,
                        _ => Writing::Replace,
                    };
                    self.write_text(text, how, redirect.span);
                }
                _ => {}
            }
        }
    }

    fn read_place(&mut self, place: &Place, span: Span, allowed: &[String]) -> bool {
        let files = crate::files::Files {
            allowed,
            speaker: crate::files::Speaker::Shell,
        };
        files.read(place, span, self.findings)
    }

    fn write_text(&mut self, text: &str, how: Writing, span: Span) {
        let place = self.place(text);
        let allowed = self.analysis.verifier.allowed_paths.as_slice();
        let files = crate::files::Files {
            allowed,
            speaker: crate::files::Speaker::Shell,
        };
        files.write(&place, how, span, self.findings);
    }

    fn delete_text(&mut self, text: &str, how: Deletion, span: Span) {
        let place = self.place(text);
        let allowed = self.analysis.verifier.allowed_paths.as_slice();
        let files = crate::files::Files {
            allowed,
            speaker: crate::files::Speaker::Shell,
        };
        files.delete(&place, how, span, self.findings);
    }

    pub(super) fn file_command(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        match name {
            "rm" | "unlink" | "rmdir" | "srm" | "del" | "erase" => self.remove(name, command),
            "shred" | "wipe" | "scrub" => {
                let targets: Vec<&Word> = operands(args).collect();
                for word in targets {
                    let place = self.place(&word.text);
                    if place.is(Kind::Disk) {
                        self.add(
                            Rule::DestroyDisk,
                            command.span,
                            format!("overwrites the device {}", place.path),
                        );
                    } else if !place.within(&self.analysis.verifier.allowed_paths) {
                        self.add(
                            Rule::TraceRemoval,
                            command.span,
                            format!("overwrites {} beyond recovery", word.text),
                        );
                    }
                }
            }
            "find" | "gfind" => self.find(id, command),
            "mv" | "cp" | "install" | "ln" | "rsync" | "ditto" | "gcp" => self.copy(name, command),
            "tee" | "sponge" | "truncate" | "fallocate" => {
                let how = if has(args, "a", &["append"]) {
                    Writing::Append
                } else {
                    Writing::Replace
                };
                for word in operands(args).cloned().collect::<Vec<_>>() {
                    self.write_text(&word.text, how, command.span);
                }
            }
            "dd" => self.dd(command),
            "sed" if has(args, "i", &["in-place"]) => {
                for word in operands(args).skip(1).cloned().collect::<Vec<_>>() {
                    self.write_text(&word.text, Writing::Append, command.span);
                }
            }
            "sed" => {
                // The script's own `w file`.
                let script = operands(args)
                    .next()
                    .map(|word| word.text.clone())
                    .unwrap_or_default();
                if let Some((_, file)) = script.rsplit_once("w /") {
                    self.write_text(&format!("/{file}"), Writing::Append, command.span);
                }
            }
            "sort" | "shuf" | "pandoc" | "gcc" | "cc" | "tsc" | "script" => {
                let output = value_of(args, 'o', &["output", "outFile"]).map(str::to_owned);
                let output = output.or_else(|| {
                    (name == "script")
                        .then(|| operands(args).last().map(|word| word.text.clone()))
                        .flatten()
                });
                if let Some(output) = output.filter(|output| output.contains('/')) {
                    self.write_text(&output, Writing::Append, command.span);
                }
            }
            "chmod" => self.chmod(command),
            "chown" | "chgrp" => self.chown(name, command),
            "mkfifo" | "mknod" => {}
            _ if (name.starts_with("mkfs")
                || matches!(name, "mke2fs" | "mkswap" | "newfs" | "mkntfs"))
                && operands(args).next().is_some() =>
            {
                self.add(Rule::DestroyDisk, command.span, "formats a file system");
            }
            "fdisk" | "sfdisk" | "parted" | "sgdisk" | "gdisk" | "cfdisk" | "wipefs"
            | "blkdiscard" | "hdparm" => {
                let changes = !has(args, "l", &["list", "print", "dump"]) && name != "hdparm"
                    || has(args, "", &["security-erase", "trim-sector-ranges"]);
                let disk = operands(args).any(|word| Place::new(&word.text).is(Kind::Disk));
                if changes
                    && disk
                    && !args.iter().any(|word| {
                        matches!(
                            word.text.as_str(),
                            "print" | "-n" | "--no-act" | "--no-action"
                        )
                    })
                {
                    self.warn(
                        Rule::DestroyDisk,
                        command.span,
                        format!("`{name}` changes how a disk is divided"),
                    );
                }
            }
            _ => {}
        }
        self.mentions(name, command);
    }

    fn remove(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let recursive =
            has(args, "rR", &["recursive"]) || (name != "rm" && has(args, "", &["parents"]));
        let force = has(args, "f", &["force"]);
        let how = match (recursive, force) {
            (true, true) => Deletion::ForcedTree,
            (true, false) => Deletion::Tree,
            _ => Deletion::File,
        };
        if has(args, "", &["no-preserve-root"]) {
            self.add(
                Rule::DestroyFiles,
                command.span,
                "asks for the root itself with --no-preserve-root",
            );
        }
        for word in operands(args).cloned().collect::<Vec<_>>() {
            let text = word.text.as_str();
            // `rm -f /`: not a tree, yet nobody writes it by accident of meaning.
            let how = if force && text == "/" {
                Deletion::ForcedTree
            } else {
                how
            };
            self.delete_text(text, how, command.span);
        }
    }

    fn find(&mut self, id: CommandId, command: &Command) {
        let args = command.args();
        let starts: Vec<&Word> = args
            .iter()
            .take_while(|word| !word.text.starts_with(['-', '(', '!']))
            .collect();
        let deletes = args.iter().any(|word| word.text == "-delete");
        let removes = self
            .script
            .commands
            .iter()
            .skip(id + 1)
            .take(8)
            .any(|inner| {
                inner.parent == Some(id) && matches!(inner.name(), Some("rm" | "shred" | "unlink"))
            });
        if deletes || removes {
            let filtered = args.iter().any(|word| {
                matches!(
                    word.text.as_str(),
                    "-name"
                        | "-iname"
                        | "-path"
                        | "-regex"
                        | "-mtime"
                        | "-mmin"
                        | "-empty"
                        | "-newer"
                        | "-size"
                        | "-atime"
                        | "-user"
                        | "-perm"
                        | "-xtype"
                        | "-inum"
                )
            });
            let how = if filtered {
                Deletion::File
            } else {
                Deletion::ForcedTree
            };
            for start in starts
                .iter()
                .map(|word| word.text.clone())
                .collect::<Vec<_>>()
            {
                let place = self.place(&start);
                if filtered
                    && (place.is(Kind::System) || place.is_home())
                    && place.path != "/var/log"
                {
                    self.warn(
                        Rule::FileDelete,
                        command.span,
                        format!("deletes files all over {start}"),
                    );
                } else {
                    self.delete_text(&start, how, command.span);
                }
            }
        }
        self.survey(command, &starts);
    }

    /// Looks over the whole system for set-uid programs, writable places or keys.
    fn survey(&mut self, command: &Command, starts: &[&Word]) {
        let args = command.args();
        let wide = starts.iter().any(|word| {
            let place = Place::new(&word.text);
            place.is(Kind::System)
                || place.is_home()
                || word.literal().is_none() && !word.text.starts_with('.')
        }) || starts.is_empty();
        let after = |flag: &'static str| {
            args.iter()
                .zip(args.iter().skip(1))
                .filter(move |(word, _)| word.text == flag)
                .map(|(_, value)| value.text.as_str())
        };
        let rights = after("-perm").any(|mode| {
            let mode = mode.trim_start_matches(['-', '/', '+']);
            mode.len() >= 4 && mode.starts_with(['2', '4', '6', '1'])
                || mode.contains('s')
                || mode == "o"
                || mode.starts_with("o=")
                || mode.starts_with("o+w")
                || mode == "0002"
                || mode == "002"
        });
        let writable = args
            .iter()
            .any(|word| matches!(word.text.as_str(), "-writable" | "-readable"))
            && !starts.iter().all(|w| w.text.starts_with('.'));
        let secret = ["-name", "-iname", "-path", "-wholename"]
            .iter()
            .flat_map(|flag| after(flag))
            .any(|pattern| {
                let name = pattern
                    .trim_matches('*')
                    .rsplit('/')
                    .next()
                    .unwrap_or_default();
                let place = Place::new(name);
                place.is(Kind::Credential)
                    || [
                        "id_rsa",
                        "id_dsa",
                        "id_ed25519",
                        "credentials",
                        ".git-credentials",
                        ".rhosts",
                        ".netrc",
                        ".pgpass",
                        ".htpasswd",
                        "shadow",
                        "authorized_keys",
                        ".gnupg",
                        ".ssh",
                        ".kube",
                        ".sudo_as_admin_successful",
                        ".aws",
                        "wallet",
                    ]
                    .iter()
                    .any(|secret| {
                        name == *secret
                            || name.trim_end_matches('*').ends_with(secret)
                                && name.starts_with(['.', 'i'])
                    })
            });
        if wide && (rights || writable || secret) {
            let what = if secret {
                "keys and credentials"
            } else {
                "programs and places with special rights"
            };
            self.add(
                Rule::SystemSurvey,
                command.span,
                format!("searches the system for {what}"),
            );
        }
    }

    fn copy(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let mut words: Vec<Word> = operands(args).cloned().collect();
        if name == "install" && has(args, "d", &["directory"]) {
            return;
        }
        let target = value_of(args, 't', &["target-directory"])
            .filter(|_| name != "rsync")
            .map(str::to_owned);
        let target = target.or_else(|| {
            if words.len() > 1 {
                words.pop().map(|word| word.text)
            } else {
                None
            }
        });
        let Some(target) = target else {
            return;
        };
        if name == "ln" {
            if words.first().is_some_and(|word| word.text == "/dev/null")
                && self.place(&target).is(Kind::Trace)
            {
                self.add(
                    Rule::TraceRemoval,
                    command.span,
                    format!("sends {target} to /dev/null"),
                );
            }
            return self.write_text(&target, Writing::Append, command.span);
        }
        let remote = target.contains(':') && !target.starts_with('/');
        if !remote {
            let directory = words
                .first()
                .map(|word| word.text.rsplit('/').next().unwrap_or_default().to_owned());
            let place = self.place(&target);
            if place.is(Kind::System) && target != "/" {
                let inside = format!("{target}/{}", directory.unwrap_or_default());
                self.write_text(&inside, Writing::Append, command.span);
            } else {
                self.write_text(&target, Writing::Append, command.span);
            }
        }
        if name == "mv" {
            for word in &words {
                let place = self.place(&word.text);
                let gone = target == "/dev/null" || place.is(Kind::System) || place.is_home();
                if gone && (target == "/dev/null" || word.text.starts_with(['/', '~', '$'])) {
                    self.add(
                        Rule::DestroyFiles,
                        command.span,
                        format!("moves {} away to {target}", word.text),
                    );
                }
            }
        }
        let allowed = self.analysis.verifier.allowed_paths.clone();
        for word in &words {
            let place = self.place(&word.text);
            let whole_home = place.is_home() && remote;
            if self.read_place(&place, command.span, &allowed) || whole_home {
                self.add(
                    Rule::CredentialRead,
                    command.span,
                    format!("copies {} to {target}", word.text),
                );
            }
        }
    }

    fn dd(&mut self, command: &Command) {
        let mut from = None;
        for word in command.args() {
            if let Some(target) = word.text.strip_prefix("of=") {
                self.write_text(target, Writing::Replace, command.span);
            }
            if let Some(source) = word.text.strip_prefix("if=") {
                from = Some(self.place(source));
            }
        }
        if let Some(from) = from {
            let allowed = self.analysis.verifier.allowed_paths.clone();
            self.read_place(&from, command.span, &allowed);
        }
    }

    fn chmod(&mut self, command: &Command) {
        let args = command.args();
        let recursive = has(args, "R", &["recursive"]);
        let mut words = args.iter().filter(|word| {
            !(word.text.starts_with("--")
                || matches!(
                    word.text.as_str(),
                    "-R" | "-v" | "-f" | "-c" | "-Rf" | "-fR" | "-Rv" | "-vR"
                ))
        });
        let Some(mode) = words.next().map(|word| word.text.clone()) else {
            return;
        };
        let targets: Vec<String> = words.map(|word| word.text.clone()).collect();
        let octal = u32::from_str_radix(&mode, 8)
            .ok()
            .filter(|_| mode.len() >= 3);
        let symbolic = |what: char, who: &[char]| {
            mode.split(',').any(|part| {
                part.split_once(['+', '='])
                    .is_some_and(|(whose, bits)| bits.contains(what) && whose.contains(who))
            })
        };
        let places: Vec<Place> = targets.iter().map(|target| self.place(target)).collect();
        let shown = targets.join(" ");
        // Set-group-id on a directory only passes the group on.
        let set_id = octal.is_some_and(|bits| {
            bits & 0o4000 != 0 || bits & 0o2010 == 0o2010 && bits & 0o777 != 0o775
        }) || octal.is_none()
            && (symbolic('s', &['u', 'a']) || symbolic('s', &['g']) && symbolic('x', &['g']));
        if set_id {
            self.add(
                Rule::FileMode,
                command.span,
                format!("makes {shown} run with its owner's rights ({mode})"),
            );
        }
        let everyone = octal.is_some_and(|bits| bits & 0o1002 == 0o2)
            || octal.is_none() && symbolic('w', &['o', 'a']);
        if everyone {
            let inside = !places.is_empty()
                && places
                    .iter()
                    .all(|place| place.within(&self.analysis.verifier.allowed_paths));
            if !inside || recursive || octal == Some(0o777) {
                self.add(
                    Rule::FileMode,
                    command.span,
                    format!("lets everyone write {shown} ({mode})"),
                );
            }
        }
        let wide = |place: &Place| place.is(Kind::System) || place.is_home();
        if recursive && places.iter().any(wide) {
            self.add(
                Rule::FileMode,
                command.span,
                format!("changes the mode of everything in {shown}"),
            );
        }
        for place in &places {
            if place
                .kinds()
                .iter()
                .any(|kind| matches!(kind, Kind::Disk | Kind::Socket))
                || place.path == "/etc/shadow"
            {
                self.add(
                    Rule::FileMode,
                    command.span,
                    format!("changes the mode of {}", place.path),
                );
            }
        }
        if mode.contains('x') || octal.is_some() {
            for target in targets {
                self.made_executable
                    .insert(target.trim_start_matches("./").to_owned());
            }
        }
    }

    fn chown(&mut self, name: &str, command: &Command) {
        let args = command.args();
        if !has(args, "R", &["recursive"]) {
            return;
        }
        for word in operands(args).skip(1).cloned().collect::<Vec<_>>() {
            let place = self.place(&word.text);
            if (place.is(Kind::System) || place.is_home()) && word.text != "/home"
                || place.path == "/"
            {
                self.add(
                    Rule::FileMode,
                    command.span,
                    format!("`{name}` of everything in {}", word.text),
                );
            }
        }
    }

    /// Secrets and start-up files among the arguments of any command.
    fn mentions(&mut self, name: &str, command: &Command) {
        let allowed = self.analysis.verifier.allowed_paths.clone();
        let reader = !Group::NotReaders.has(name);
        let shower = Group::Showers.has(name);
        let stdin = match &command.stdin {
            Stdin::Text(text) if matches!(name, "xargs" | "cpio" | "tar" | "pax") => {
                Some(text.text.clone())
            }
            _ => None,
        };
        let stdin_words = stdin.as_deref().into_iter().flat_map(str::split_whitespace);
        let texts = command
            .args()
            .iter()
            .map(|word| word.text.as_str())
            .chain(stdin_words);
        for text in texts.take(256).map(str::to_owned).collect::<Vec<_>>() {
            for candidate in candidates(&text) {
                let place = self.place(candidate);
                if reader && self.read_place(&place, command.span, &allowed) {
                    return;
                }
                if !reader && name == "scp" {
                    self.read_place(&place, command.span, &allowed);
                }
                let persists = place.kinds().iter().any(|kind| kind.persists().is_some());
                if persists && !shower {
                    return self.write_text(candidate, Writing::Append, command.span);
                }
                if place.is(Kind::Socket)
                    && !matches!(name, "chmod" | "chown" | "ls" | "test" | "[" | "stat")
                {
                    self.add(
                        Rule::ContainerEscape,
                        command.span,
                        format!("uses the container runtime's socket {candidate}"),
                    );
                }
            }
        }
    }
}

/// The paths that an argument may hold: itself, and every word in it that begins like one.
fn candidates(text: &str) -> impl Iterator<Item = &str> {
    let url = crate::hosts::is_url(text);
    let option = text.strip_prefix('-').and_then(|rest| rest.get(1..));
    let whole = [Some(text), option].into_iter().flatten();
    let plain =
        |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~' | '*' | '$' | '?');
    let parts = text.split(move |c| !plain(c)).take(64);
    whole
        .chain(parts)
        .filter(move |part| !url && part.len() > 2 && part.len() < 4096)
        .filter(|part| part.starts_with(['/', '~', '$', '.']) || part.contains('/'))
}
