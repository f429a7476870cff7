//! What tells of this machine, its people, their secrets or their work: sources of what may leave.

use stockade_shell::{Command, CommandId, RedirectOp, Stdin, Word};

use super::Judge;
use crate::paths::{Kind, Place, Root};
use crate::words::Words;

/// Parts of the names of variables that hold secrets.
const SECRET_NAMES: &[&str] = &["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL"];

/// Directories outside of homes that hold what others keep there.
static KEPT: Words = Words::new("shell/gather kept");

/// Endings of files that hold a database, a recording or someone's mail.
const DUMPS: &[&str] = &[
    "sql", "dump", "sqlite", "sqlite3", "db", "bson", "rdb", "mdb", "pcap", "pcapng", "mbox",
    "pst", "ost", "dmp", "bak",
];

/// What data is about, the lightest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Matter {
    /// The work at hand as a whole: a source tree, an image.
    Work,
    /// What a database holds.
    Dump,
    /// This machine, what runs on it and who uses it.
    Machine,
    /// What people and the system keep: homes, configuration, keys, history.
    Theirs,
}

/// Data that was gathered, and by which program.
#[derive(Clone, Debug)]
pub(super) struct Gathered {
    pub(super) by: String,
    pub(super) matter: Matter,
}

impl Judge<'_> {
    /// What earlier stages of the pipeline gather.
    pub(super) fn gathered_upstream(&self, id: CommandId) -> Option<Gathered> {
        self.gathered_by(self.script.upstream(id).into_iter())
    }

    /// What the words of a command carry: substitutions, and variables that hold what was gathered.
    pub(super) fn gathered_inside<'w>(
        &self,
        words: impl IntoIterator<Item = &'w Word>,
    ) -> Option<Gathered> {
        let mut best = None;
        for word in words {
            let inner = self.gathered_by(word.substitutions().flatten());
            let held = word.variables().find_map(|name| self.flow.variable(name));
            best = heavier(best, heavier(inner, held.cloned()));
        }
        best
    }

    /// What reaches a command's standard input, whichever way.
    pub(super) fn data_on_input(&self, id: CommandId) -> Option<Gathered> {
        let command = &self.script.commands[id];
        let own = std::iter::once(command).chain(self.script.ancestors(id).take(4));
        let around = match command.stdin {
            Stdin::File => self.compound_around(id),
            _ => None,
        };
        let mut best = self.gathered_upstream(id);
        for redirect in own.chain(around).flat_map(|command| &command.redirects) {
            let target = &redirect.target;
            let found = match redirect.op {
                RedirectOp::Read => {
                    let inner = self.gathered_inside(std::iter::once(target));
                    heavier(inner, self.held(target, &target.text))
                }
                RedirectOp::HereString | RedirectOp::HereDocument => {
                    self.gathered_inside(std::iter::once(target))
                }
                _ => None,
            };
            best = heavier(best, found);
        }
        best
    }

    /// The redirections of the loop or group that a command without its own stands in.
    fn compound_around(&self, id: CommandId) -> Option<&Command> {
        let span = self.script.commands[id].span;
        let around = |other: &&Command| {
            other.words.is_empty()
                && other.span.start <= span.start
                && span.end <= other.span.end
                && other
                    .redirects
                    .iter()
                    .any(|redirect| redirect.op == RedirectOp::Read)
        };
        let before = &self.script.commands[id.saturating_sub(64)..id];
        before.iter().rev().find(around)
    }

    fn gathered_by(&self, ids: impl Iterator<Item = CommandId>) -> Option<Gathered> {
        let mut best = None;
        for id in ids.take(64) {
            let Some(command) = self.script.commands.get(id) else {
                continue;
            };
            let found = self.gathers(command).map(|matter| {
                // Who put it there says more than who reads it.
                let first = command
                    .args()
                    .iter()
                    .find_map(|word| self.flow.file(&self.key(word, &word.text)));
                let by = first.map_or(command.name().unwrap_or("<"), |first| &first.by);
                Gathered {
                    by: by.to_owned(),
                    matter,
                }
            });
            best = heavier(best, found);
        }
        best
    }

    /// What a file that is named holds, if it is known to be worth keeping here.
    pub(super) fn held(&self, word: &Word, file: &str) -> Option<Gathered> {
        if let Some(found) = self.flow.file(&self.key(word, file)) {
            return Some(found.clone());
        }
        let place = self.place(file);
        let outside = file.starts_with(['/', '~', '$']) && is_others(&place);
        let theirs = is_telling(&place) || outside && !place.is(Kind::Sink);
        theirs.then(|| Gathered {
            by: file.to_owned(),
            matter: Matter::Theirs,
        })
    }

    /// Secrets, homes and files of gathered data that a command reads, by argument or redirection.
    pub(super) fn reads_held(&self, command: &Command) -> Option<Matter> {
        let mut best = None;
        for redirect in &command.redirects {
            if redirect.op == RedirectOp::Read {
                let found = self.held(&redirect.target, &redirect.target.text);
                best = best.max(found.map(|found| found.matter));
            }
        }
        for word in command.args() {
            let file = word.text.rsplit(['=', '@']).next().unwrap_or(&word.text);
            let place = self.place(file);
            if is_telling(&place) || place.is_home() || place.is(Kind::Disk) {
                return Some(Matter::Theirs);
            }
            let found = self.flow.file(&self.key(word, file));
            best = best.max(found.map(|found| found.matter));
        }
        best
    }
}

/// A program's name without its version.
pub(super) fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// The one that weighs more; the first if both do.
fn heavier(one: Option<Gathered>, other: Option<Gathered>) -> Option<Gathered> {
    match (one, other) {
        (Some(one), Some(other)) if other.matter > one.matter => Some(other),
        (Some(one), _) => Some(one),
        (None, other) => other,
    }
}

/// A file that holds a database, a recording, records of people or their mail, by its name.
pub(super) fn is_dump(file: &str) -> bool {
    const PEOPLE: &[&str] = &[
        "customer", "client", "employee", "patient", "payroll", "salar", "users", "accounts",
        "payment", "invoice", "credit", "members", "contacts", "leads", "orders",
    ];
    if is_named_secret(file) {
        return true;
    }
    let name = file.rsplit('/').next().unwrap_or(file);
    let table = ["csv", "tsv", "xls", "xlsx", "json", "parquet"];
    let table = name
        .rsplit_once('.')
        .is_some_and(|(_, ending)| table.contains(&ending));
    let lower = name.to_ascii_lowercase();
    if table && PEOPLE.iter().any(|people| lower.starts_with(people)) {
        return true;
    }
    let mut parts = name.rsplit('.');
    let last = parts.next().unwrap_or_default();
    let packed = matches!(last, "gz" | "bz2" | "xz" | "zst" | "zip" | "gpg" | "enc");
    let ending = if packed { parts.next() } else { Some(last) };
    ending.is_some_and(|ending| DUMPS.contains(&ending)) && name.contains('.')
}

/// A file whose name says that it holds secrets, or what was taken: `secrets.tar`, `loot.zip`.
pub(super) fn is_named_secret(file: &str) -> bool {
    static NAMES: Words = Words::new("shell/gather names");
    // Programs and pages are about these things and don't hold them.
    const SOURCES: &[&str] = &[
        "c", "cpp", "css", "go", "h", "html", "java", "js", "jsx", "md", "php", "py", "rb", "rs",
        "sh", "svg", "ts", "tsx", "vue",
    ];
    let name = file.rsplit('/').next().unwrap_or(file);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    !SOURCES.contains(&ending) && parts.any(|part| NAMES.contains(&part))
}

/// A place whose content tells of secrets or people.
pub(super) fn is_telling(place: &Place) -> bool {
    let telling = |kind: &Kind| matches!(kind, Kind::Credential | Kind::Account | Kind::Private);
    place.kinds().iter().any(telling)
}

/// A place that belongs to people or the system, not to the work at hand.
pub(super) fn is_others(place: &Place) -> bool {
    let below = |kept: &str| {
        let rest = place.path.strip_prefix(kept);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match place.root {
        Root::Home => !place.path.starts_with("~/.cache"),
        Root::Absolute => place.path == "/" || KEPT.iter().any(|kept| below(kept)),
        Root::Inside | Root::Above | Root::Unknown => false,
    }
}

/// Whether a variable is named like one that holds a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    SECRET_NAMES.iter().any(|part| name.contains(part)) && !name.contains("PATH")
}
