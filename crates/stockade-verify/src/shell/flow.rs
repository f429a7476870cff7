//! Where gathered data goes before it leaves: variables, files, archives, pieces.

use std::collections::HashMap;

use stockade_shell::{Command, CommandId, HoleKind, RedirectOp, Word};

use super::gather::Gathered;
use super::programs::Group;
use super::{Judge, operands, value_of};
use crate::paths::Root;

/// Files and variables of one script that are followed.
const MAX_FOLLOWED_NAMES: usize = 1_000;

/// Stands for all files of the working directory.
const HERE: &str = "*";

/// What files and variables hold.
#[derive(Debug, Default)]
pub(super) struct Flow {
    files: HashMap<String, Gathered>,
    variables: HashMap<String, Gathered>,
}

impl Flow {
    pub(super) fn variable(&self, name: &str) -> Option<&Gathered> {
        self.variables.get(name)
    }

    /// What is in a file, in the files of a directory, or in those that a pattern fits.
    pub(super) fn file(&self, key: &str) -> Option<&Gathered> {
        if self.files.is_empty() {
            return None;
        }
        if let Some(found) = self.files.get(key) {
            return Some(found);
        }
        if key == HERE {
            let relative = |known: &str| !known.starts_with(['/', '~', '$']);
            let found = self.files.iter().find(|(known, _)| relative(known));
            return found.map(|(_, gathered)| gathered);
        }
        let same = |known: &str| {
            let open = |one: &str, other: &str| {
                let start = one.find('*').map(|at| &one[..at]);
                start.is_some_and(|start| !start.is_empty() && other.starts_with(start))
            };
            let below = |whole: &str, part: &str| {
                let rest = part.strip_prefix(whole);
                !whole.is_empty() && rest.is_some_and(|rest| rest.starts_with('/'))
            };
            open(known, key) || open(key, known) || below(key, known) || below(known, key)
        };
        let found = self.files.iter().find(|(known, _)| same(known));
        found.map(|(_, gathered)| gathered)
    }

    fn keep(map: &mut HashMap<String, Gathered>, key: String, held: Option<Gathered>) {
        match held {
            Some(held) if map.len() < MAX_FOLLOWED_NAMES => {
                map.insert(key, held);
            }
            _ => {
                map.remove(&key);
            }
        }
    }
}

impl Judge<'_> {
    /// A name for a file by which it is found again: its path, or which substitution made it.
    pub(super) fn key(&self, word: &Word, file: &str) -> String {
        let made = word.holes.iter().find_map(|hole| match &hole.kind {
            HoleKind::Substitution { commands } => Some(commands.start),
            _ => None,
        });
        if let Some(at) = made.filter(|_| file.contains("$()")) {
            return format!("{file}\0{at}");
        }
        let place = self.place(file);
        if place.root == Root::Inside && place.path.is_empty() {
            HERE.to_owned()
        } else if place.all_inside {
            format!("{}/*", place.path)
        } else {
            place.path
        }
    }

    /// Variables that are set to what was gathered.
    pub(super) fn follow_variables(&mut self, id: CommandId) {
        let script = self.script;
        let command = &script.commands[id];
        for set in &command.assignments {
            let held = self.gathered_inside(std::iter::once(&set.value));
            Flow::keep(&mut self.flow.variables, set.name.clone(), held);
        }
        if matches!(command.name(), Some("read" | "mapfile" | "readarray")) {
            let held = self.data_on_input(id);
            for word in operands(command.args()) {
                Flow::keep(&mut self.flow.variables, word.text.clone(), held.clone());
            }
        }
    }

    /// Files that a command writes what was gathered to.
    pub(super) fn follow_files(&mut self, id: CommandId, command: &Command) {
        let targets = self.outputs(command);
        if targets.is_empty() {
            return;
        }
        let held = self.written_matter(id, command);
        for (key, replaces) in targets {
            if held.is_some() || replaces {
                Flow::keep(&mut self.flow.files, key, held.clone());
            }
        }
    }

    /// Whether the commands of a group or loop print what they gather.
    pub(super) fn group_gathers(&self, id: CommandId) -> bool {
        self.written_matter(id, &self.script.commands[id]).is_some()
    }

    fn written_matter(&self, id: CommandId, command: &Command) -> Option<Gathered> {
        let by = command.name().unwrap_or("{").to_owned();
        if command.words.is_empty() {
            // A group or loop: what the commands in it print.
            let span = command.span;
            let inside = self.script.commands.iter().skip(id + 1).take(64);
            let inside = inside.take_while(|other| other.span.start < span.end);
            let matter = inside.filter_map(|other| self.gathers(other)).max()?;
            return Some(Gathered { by, matter });
        }
        let own = self.gathers(command).map(|matter| Gathered { by, matter });
        let packs = Group::Archivers.has(command.name().unwrap_or_default());
        let packed = || {
            let mut words = operands(command.args()).filter(|_| packs);
            let base = value_of(command.args(), 'C', &["directory"]);
            words.find_map(|word| {
                let below = base.map(|base| format!("{base}/{}", word.text));
                let below = below.and_then(|path| self.held(word, &path));
                below.or_else(|| self.held(word, &word.text))
            })
        };
        own.or_else(packed)
            .or_else(|| self.gathered_inside(&command.words))
            .or_else(|| self.data_on_input(id))
    }

    /// The files that a command writes, and whether they are replaced.
    fn outputs(&self, command: &Command) -> Vec<(String, bool)> {
        let mut out = Vec::new();
        for redirect in &command.redirects {
            let plain = redirect.fd.is_none_or(|fd| fd == 1);
            if redirect.op.writes() && plain && redirect.target.text != "/dev/null" {
                let key = self.key(&redirect.target, &redirect.target.text);
                out.push((key, redirect.op == RedirectOp::Write));
            }
        }
        let args = command.args();
        let Some(name) = command.name() else {
            return out;
        };
        let mut add = |word: &Word, file: &str| out.push((self.key(word, file), true));
        let mut option = |short: char, long: &[&str]| {
            let value = value_of(args, short, long);
            let word = value.and_then(|value| args.iter().find(|word| word.text.ends_with(value)));
            if let (Some(value), Some(word)) = (value, word) {
                add(word, value);
            }
            value.is_some()
        };
        match name {
            "tee" | "sponge" => operands(args).for_each(|word| add(word, &word.text)),
            "dd" => {
                for word in args {
                    if let Some(file) = word.text.strip_prefix("of=") {
                        add(word, file);
                    }
                }
            }
            "cp" | "mv" | "install" | "ditto" | "ln" => {
                if let (Some(word), true) = (operands(args).last(), operands(args).count() > 1) {
                    add(word, &word.text);
                }
            }
            "docker" | "podman" | "nerdctl" | "kubectl" | "oc"
                if args.first().is_some_and(|word| word.text == "cp") =>
            {
                if let Some(word) = operands(args).last().filter(|word| word.text != "-") {
                    add(word, &word.text);
                }
            }
            "split" | "csplit" => {
                let value = |at: usize| {
                    let option = at.checked_sub(1).map_or("", |at| args[at].text.as_str());
                    matches!(
                        option,
                        "-b" | "-l" | "-n" | "-C" | "-a" | "--bytes" | "--lines"
                    )
                };
                let files = args.iter().enumerate().filter(|(at, word)| {
                    (!word.text.starts_with('-') || word.text == "-") && !value(*at)
                });
                match files.map(|(_, word)| word).nth(1) {
                    Some(word) => add(word, &format!("{}*", word.text)),
                    None => out.push(("x*".to_owned(), true)),
                }
            }
            "gzip" | "bzip2" | "xz" | "zstd" | "lz4" | "compress" | "brotli" => {
                for word in operands(args) {
                    add(word, &format!("{}.*", word.text));
                }
            }
            "gpg" | "gpg2" | "age" | "ccrypt" | "ccencrypt" => {
                option('o', &["output"]);
                for word in operands(args) {
                    add(word, &format!("{}.*", word.text));
                }
            }
            "openssl" => {
                let at = args.iter().position(|word| word.text == "-out");
                if let Some(word) = at.and_then(|at| args.get(at + 1)) {
                    add(word, &word.text);
                }
            }
            "tar" | "bsdtar" | "7z" | "7za" | "rar" | "zip" => {
                if let Some(word) = archive_of(name, args).filter(|word| word.text != "-") {
                    add(word, &word.text);
                }
            }
            "git" if args.first().is_some_and(|word| word.text == "bundle") => {
                if let Some(word) = operands(args).nth(2) {
                    add(word, &word.text);
                }
            }
            _ if Group::Captures.has(name) => {
                if let (false, Some(word)) = (option('w', &["output"]), operands(args).last()) {
                    add(word, &word.text);
                }
            }
            _ if Group::Dumps.has(name) || matches!(name, "git" | "docker" | "podman") => {
                let long = ["file", "output", "out", "result-file", "archive"];
                let _ = option('o', &long) || option('f', &[]) || option('r', &[]);
            }
            _ => {}
        }
        out
    }
}

/// The word that names the archive a packing command writes.
pub(super) fn archive_of<'w>(name: &str, args: &'w [Word]) -> Option<&'w Word> {
    match name {
        // `tar czf archive …`: the first word may do without a dash.
        "tar" | "bsdtar" => match args {
            [first, archive, ..] if !first.text.starts_with('-') => {
                Some(archive).filter(|_| first.text.contains('f'))
            }
            _ => {
                let value = value_of(args, 'f', &["file"])?;
                args.iter().find(|word| word.text.ends_with(value))
            }
        },
        "7z" | "7za" | "rar" => operands(args).nth(1),
        _ => operands(args).next(),
    }
}
