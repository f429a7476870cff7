//! What tells of this machine, its people or their secrets: sources of what may leave.

use stockade_shell::{Command, CommandId, RedirectOp, Word};

use super::programs::Group;
use super::search::is_telling_pattern;
use super::{Judge, has};
use crate::paths::{Kind, Place, Root};

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
];

impl Judge<'_> {
    /// The first command of an earlier stage whose output tells something.
    pub(super) fn gathered_upstream(&self, id: CommandId) -> Option<&str> {
        let upstream = self.script.upstream(id);
        self.first_gatherer(upstream.into_iter())
    }

    /// A command inside the words of this one whose output tells something.
    pub(super) fn gathered_inside(&self, words: &[Word]) -> Option<&str> {
        self.first_gatherer(words.iter().flat_map(Word::substitutions).flatten())
    }

    fn first_gatherer(&self, mut ids: impl Iterator<Item = CommandId>) -> Option<&str> {
        let commands = &self.script.commands;
        let found = ids.find(|id| commands.get(*id).is_some_and(gathers))?;
        Some(commands[found].name().unwrap_or_default())
    }
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

/// Commands whose output is about this machine and its people.
fn gathers(command: &Command) -> bool {
    let args = command.args();
    let name = command.name().unwrap_or_default();
    let telling = |text: &str| {
        let place = Place::new(text);
        is_telling(&place) || place.is_home()
    };
    let reads_secret = command.redirects.iter().any(|redirect| {
        redirect.op == RedirectOp::Read && is_telling(&Place::new(&redirect.target.text))
    });
    if reads_secret || args.iter().any(|word| telling(&word.text)) {
        return true;
    }
    let theirs = || {
        let paths = args
            .iter()
            .filter(|word| word.text.starts_with(['/', '~', '$']));
        paths
            .map(|word| Place::new(&word.text))
            .any(|place| is_others(&place))
    };
    let names_secret = || args.iter().any(|word| is_secret_name(&word.text));
    match name {
        "env" | "printenv" => args.is_empty() || names_secret(),
        "set" | "export" | "declare" => args.iter().all(|word| word.text.starts_with('-')),
        "echo" | "printf" => args.iter().flat_map(Word::variables).any(is_secret_name),
        "uname" => has(args, "an", &["all", "nodename"]),
        "kubectl" | "oc" => {
            let secret = |word: &Word| matches!(word.text.as_str(), "secret" | "secrets");
            args.iter().any(secret)
        }
        "grep" | "egrep" | "rg" => {
            theirs() || args.iter().any(|word| is_telling_pattern(&word.text))
        }
        "find" | "ls" | "tree" | "du" => false,
        "tar" | "bsdtar" => {
            let outside = args.iter().any(|word| {
                word.text.len() > 1
                    && word.text.starts_with(['/', '~'])
                    && !word.text.starts_with("/tmp")
            });
            outside && args.iter().any(|word| word.text.contains('c'))
        }
        _ if Group::Tells.has(name) => true,
        _ if Group::Archivers.has(name) || Group::PassesOn.has(name) => theirs(),
        _ => false,
    }
}
