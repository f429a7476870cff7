//! Commands whose output is worth something to others: what each of them tells.

use stockade_shell::{Command, Word};

use super::gather::{Matter, is_dump, is_others, is_secret_name, is_telling, stem};
use super::programs::Group;
use super::search::is_telling_pattern;
use super::{Judge, has, listed, operands};
use crate::paths::Place;
use crate::rule::Rule;

impl Judge<'_> {
    /// What a command's output is about.
    pub(super) fn gathers(&self, command: &Command) -> Option<Matter> {
        let args = command.args();
        let name = command.name().unwrap_or_default();
        if let Some(matter) = self.reads_held(command) {
            return Some(matter);
        }
        match name {
            "env" | "printenv" => {
                let secret = args.iter().any(|word| is_secret_name(&word.text));
                when(Matter::Theirs, args.is_empty() || secret)
            }
            "set" | "export" | "declare" => {
                let bare = args.iter().all(|word| word.text.starts_with('-'));
                when(Matter::Theirs, bare && command.assignments.is_empty())
            }
            "echo" | "printf" => {
                let mut variables = args.iter().flat_map(Word::variables);
                let secret = variables.any(is_secret_name);
                let mut variables = args.iter().flat_map(Word::variables);
                let held = variables.find_map(|name| self.flow.variable(name));
                when(Matter::Theirs, secret).or(held.map(|held| held.matter))
            }
            "grep" | "egrep" | "rg" => {
                let telling = args.iter().any(|word| is_telling_pattern(&word.text));
                self.names_theirs(args).or(when(Matter::Theirs, telling))
            }
            "find" | "ls" | "tree" | "du" | "stat" | "locate" | "fd" => {
                let secret = args.iter().any(|word| seeks_secret(&word.text));
                let listed = || self.names_theirs(args).map(|_| Matter::Machine);
                when(Matter::Theirs, secret).or_else(listed)
            }
            "tar" | "bsdtar" => {
                let outside = args.iter().any(|word| {
                    word.text.len() > 1
                        && word.text.starts_with(['/', '~'])
                        && !word.text.starts_with("/tmp")
                });
                let packs = args.iter().any(|word| word.text.contains('c'));
                let whole = packs && (packs_work(args) || self.packs_listed(args));
                when(Matter::Theirs, outside && packs).or(when(Matter::Work, whole))
            }
            "zip" | "7z" | "7za" | "rar" => {
                let whole = when(Matter::Work, packs_work(args));
                self.names_theirs(args).or(whole)
            }
            _ => asked(name, args)
                .or_else(|| copied_out(name, args))
                .or_else(|| self.grouped(name, args)),
        }
    }

    /// Programs that tell by what they are.
    fn grouped(&self, name: &str, args: &[Word]) -> Option<Matter> {
        if Group::Dumps.has(name) {
            return Some(Matter::Dump);
        }
        if Group::Queries.has(name) {
            let asks = |word: &Word| {
                let text = word.text.to_ascii_lowercase();
                text.contains("select ") || text.starts_with(".dump") || text.contains("copy ")
            };
            return when(Matter::Dump, args.iter().any(asks));
        }
        if Group::Tells.has(name) || Group::Captures.has(name) {
            return Some(Matter::Machine);
        }
        if Group::Archivers.has(name) || Group::PassesOn.has(name) {
            let dump = operands(args).any(|word| is_dump(&word.text));
            return self.names_theirs(args).or(when(Matter::Dump, dump));
        }
        if listed::has_rule(name, args, Rule::CredentialRead) {
            return Some(Matter::Theirs);
        }
        let reads = args.iter().any(|word| reads_environment(&word.text));
        when(Matter::Theirs, reads && Group::Interpreters.has(stem(name)))
    }

    /// `tar c $(git ls-files)`: all that is here, by its list.
    fn packs_listed(&self, args: &[Word]) -> bool {
        let mut lists = args.iter().flat_map(Word::substitutions).flatten();
        lists.any(|id| {
            let command = &self.script.commands[id];
            let first = command.args().first().map_or("", |word| word.text.as_str());
            matches!(
                (command.name(), first),
                (Some("git"), "ls-files") | (Some("find"), "." | "") | (Some("ls"), "")
            )
        })
    }

    /// Whether a path among the arguments is one that others keep.
    fn names_theirs(&self, args: &[Word]) -> Option<Matter> {
        let paths = args
            .iter()
            .filter(|word| word.text.starts_with(['/', '~', '$']));
        let mut places = paths.map(|word| self.place(&word.text));
        when(Matter::Theirs, places.any(|place| is_others(&place)))
    }
}

/// Programs that tell when they are asked for it.
fn asked(name: &str, args: &[Word]) -> Option<Matter> {
    let any = |choices: &[&str]| {
        let named = |word: &Word| choices.contains(&word.text.as_str());
        args.iter().any(named)
    };
    match name {
        "uname" => when(Matter::Machine, has(args, "an", &["all", "nodename"])),
        "mount" => when(Matter::Machine, args.is_empty()),
        "redis-cli" => {
            let reads = any(&["keys", "get", "hgetall", "KEYS", "GET", "--scan", "--rdb"]);
            when(Matter::Dump, reads)
        }
        "kubectl" | "oc" => {
            let kinds = ["secret", "secrets", "configmap", "configmaps", "cm", "all"];
            let kept = |word: &Word| {
                word.text
                    .split([',', '/'])
                    .any(|kind| kinds.contains(&kind))
            };
            let secrets = args.iter().any(kept);
            let own = any(&["config"]) && any(&["view"]);
            when(Matter::Theirs, secrets || own)
        }
        "git" => {
            let settings = any(&["config"]) && any(&["--list", "-l"])
                || args.iter().any(|word| is_telling_pattern(&word.text));
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
            when(Matter::Theirs, secret).or(when(Matter::Machine, who))
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
        _ => None,
    }
}

fn when(matter: Matter, holds: bool) -> Option<Matter> {
    holds.then_some(matter)
}

/// A pattern of names that secrets have: `*.pem`, `*.env*`.
fn seeks_secret(pattern: &str) -> bool {
    let name = pattern.trim_matches(['*', '/', '.', '?']);
    let name = name.rsplit('/').next().unwrap_or(name);
    let dotted = |name: &str| is_telling(&Place::new(&format!(".{name}")));
    let ending = |name: &str| is_telling(&Place::new(&format!("x.{name}")));
    let open = pattern.contains('*');
    !name.is_empty()
        && !pattern.starts_with('-')
        && (is_telling(&Place::new(name)) || open && (dotted(name) || ending(name)))
}

/// Code for an interpreter that prints the environment.
fn reads_environment(code: &str) -> bool {
    let marks = [
        "os.environ",
        "process.env",
        "%ENV",
        "ENV.to",
        "getenv()",
        "p ENV",
        "puts ENV",
    ];
    marks.iter().any(|mark| code.contains(mark))
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

/// `docker cp db:/var/lib/data -`: what others keep in a container.
fn copied_out(name: &str, args: &[Word]) -> Option<Matter> {
    let copies = args.first().is_some_and(|word| word.text == "cp");
    let container = matches!(
        name,
        "docker" | "podman" | "nerdctl" | "kubectl" | "oc" | "lxc"
    );
    let mut words = operands(args).filter(|_| copies && container);
    let theirs = words.any(|word| {
        let path = word.text.split_once(':').map(|(_, path)| path);
        path.is_some_and(|path| is_others(&Place::new(path)))
    });
    when(Matter::Theirs, theirs)
}
