//! What tells of this machine, its people, their secrets or their work: sources of what may leave.

use stockade_shell::{Command, CommandId, RedirectOp, Stdin, Word};

use super::programs::Group;
use super::search::is_telling_pattern;
use super::{Judge, has, listed, operands};
use crate::paths::{Kind, Place, Root};
use crate::rule::Rule;

/// Parts of the names of variables that hold secrets.
const SECRET_NAMES: &[&str] = &["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL"];

/// Directories outside of homes that hold what others keep there.
const KEPT: &[&str] = &[
    "/etc",
    "/home",
    "/var/lib",
    "/var/log",
    "/var/www",
    "/var/mail",
    "/var/spool",
    "/var/backups",
    "/srv",
    "/opt",
    "/mnt",
    "/media",
    "/proc",
    "/sys/class/dmi",
    "/run/secrets",
];

/// Endings of files that hold a database, a recording or someone's mail.
const DUMPS: &[&str] = &[
    "sql", "dump", "sqlite", "sqlite3", "db", "bson", "rdb", "mdb", "pcap", "pcapng", "mbox", "pst",
    "ost", "dmp", "bak",
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
    pub(super) fn fed(&self, id: CommandId) -> Option<Gathered> {
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
                && other.redirects.iter().any(|redirect| redirect.op == RedirectOp::Read)
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
            let found = self.gathers(command).map(|matter| Gathered {
                by: command.name().unwrap_or("<").to_owned(),
                matter,
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

    /// What a command's output is about.
    pub(super) fn gathers(&self, command: &Command) -> Option<Matter> {
        let args = command.args();
        let name = command.name().unwrap_or_default();
        if let Some(matter) = self.reads_held(command) {
            return Some(matter);
        }
        let theirs = || {
            let paths = args
                .iter()
                .filter(|word| word.text.starts_with(['/', '~', '$']));
            let mut places = paths.map(|word| self.place(&word.text));
            places.any(|place| is_others(&place)).then_some(Matter::Theirs)
        };
        let any = |choices: &[&str]| {
            let named = |word: &Word| choices.contains(&word.text.as_str());
            args.iter().any(named)
        };
        let when = |matter: Matter, holds: bool| holds.then_some(matter);
        let names_secret = || args.iter().any(|word| is_secret_name(&word.text));
        match name {
            "env" | "printenv" => when(Matter::Theirs, args.is_empty() || names_secret()),
            "set" | "export" | "declare" => {
                let bare = args.iter().all(|word| word.text.starts_with('-'));
                when(Matter::Theirs, bare && command.assignments.is_empty())
            }
            "echo" | "printf" => {
                let secret = args.iter().flat_map(Word::variables).any(is_secret_name);
                let held = args
                    .iter()
                    .flat_map(Word::variables)
                    .find_map(|name| self.flow.variable(name));
                when(Matter::Theirs, secret).or(held.map(|held| held.matter))
            }
            "uname" => when(Matter::Machine, has(args, "an", &["all", "nodename"])),
            "grep" | "egrep" | "rg" => {
                let telling = args.iter().any(|word| is_telling_pattern(&word.text));
                theirs().or(when(Matter::Theirs, telling))
            }
            "find" | "ls" | "tree" | "du" | "stat" => theirs().map(|_| Matter::Machine),
            "tar" | "bsdtar" => {
                let outside = args.iter().any(|word| {
                    word.text.len() > 1
                        && word.text.starts_with(['/', '~'])
                        && !word.text.starts_with("/tmp")
                });
                let packs = args.iter().any(|word| word.text.contains('c'));
                let whole = packs && packs_work(args);
                when(Matter::Theirs, outside && packs).or(when(Matter::Work, whole))
            }
            "kubectl" | "oc" => {
                let secrets = any(&["secret", "secrets", "configmap", "configmaps", "cm", "all"]);
                when(Matter::Theirs, secrets || any(&["config"]) && any(&["view"]))
            }
            "git" => {
                let settings = any(&["config"]) && (any(&["--list", "-l"]));
                let whole = any(&["archive", "bundle", "fast-export"]);
                when(Matter::Theirs, settings).or(when(Matter::Work, whole))
            }
            "docker" | "podman" | "nerdctl" => {
                let keeps = any(&["inspect", "ps", "info", "config"]);
                let whole = any(&["save", "export"]);
                when(Matter::Machine, keeps).or(when(Matter::Work, whole))
            }
            "aws" | "gcloud" | "az" | "vault" | "op" | "pass" | "gh" | "security" | "gpg"
            | "secret-tool" | "keyctl" | "doppler" | "bw" | "heroku" => {
                let secret = listed::has_rule(name, args, Rule::CredentialRead);
                let who = any(&["get-caller-identity", "describe-instances", "list-users"]);
                when(Matter::Theirs, secret)
                    .or(when(Matter::Machine, who))
                    .or_else(|| theirs().filter(|_| name == "gpg"))
            }
            "crontab" | "dpkg" | "iptables" | "ip6tables" | "ufw" => {
                let shows = has(args, "lLS", &["list", "list-rules"]) || any(&["status"]);
                when(Matter::Machine, shows)
            }
            "systemctl" | "rpm" | "sysctl" | "nft" | "loginctl" | "apt" | "pip" | "snap" => {
                let lists = |word: &Word| {
                    let text = word.text.as_str();
                    text.starts_with("list") || matches!(text, "-qa" | "-a" | "--type=service")
                };
                when(Matter::Machine, args.iter().any(lists))
            }
            _ if Group::Dumps.has(name) => when(Matter::Dump, !has(args, "", &["host"])),
            _ if Group::Queries.has(name) => {
                let asks = |word: &Word| {
                    let text = word.text.to_ascii_lowercase();
                    text.contains("select ") || text.starts_with(".dump") || text.contains("copy ")
                };
                when(Matter::Dump, args.iter().any(asks))
            }
            _ if Group::Tells.has(name) || Group::Captures.has(name) => Some(Matter::Machine),
            "zip" | "7z" | "7za" | "rar" if theirs().is_none() => {
                when(Matter::Work, packs_work(args))
            }
            _ if Group::Archivers.has(name) || Group::PassesOn.has(name) => theirs(),
            _ => None,
        }
    }

    /// Secrets, homes and files of gathered data that a command reads, by argument or redirection.
    fn reads_held(&self, command: &Command) -> Option<Matter> {
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
            if is_telling(&place) || place.is_home() {
                return Some(Matter::Theirs);
            }
            let found = self.flow.file(&self.key(word, file));
            best = best.max(found.map(|found| found.matter));
        }
        best
    }
}

/// The one that weighs more; the first if both do.
fn heavier(one: Option<Gathered>, other: Option<Gathered>) -> Option<Gathered> {
    match (one, other) {
        (Some(one), Some(other)) if other.matter > one.matter => Some(other),
        (Some(one), _) => Some(one),
        (None, other) => other,
    }
}

/// An archive of the whole working directory, or of the repository itself.
fn packs_work(args: &[Word]) -> bool {
    operands(args).any(|word| {
        let text = word.text.trim_end_matches('/');
        matches!(
            text,
            "." | ".." | "*" | "./*" | "$PWD" | "${PWD}" | ".git" | "src" | "./src"
        ) || text.ends_with("/.git")
    })
}

/// A file that holds a database, a recording or someone's mail, by its name.
pub(super) fn is_dump(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let mut parts = name.rsplit('.');
    let last = parts.next().unwrap_or_default();
    let packed = matches!(last, "gz" | "bz2" | "xz" | "zst" | "zip" | "gpg" | "enc");
    let ending = if packed { parts.next() } else { Some(last) };
    ending.is_some_and(|ending| DUMPS.contains(&ending)) && name.contains('.')
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
