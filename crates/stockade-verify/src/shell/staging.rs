//! Data on its way out before it is sent: packed, encrypted, moved between temporary places.

use stockade_shell::{Command, CommandId, Place as Position, Word};

use super::programs::Group;
use super::{Judge, has, operands};
use crate::hosts;
use crate::paths::Root;
use crate::rule::Rule;
use crate::words::Words;

/// Where anyone may put files for a while.
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// Who was here and what they did.
static RECORDS: Words = Words::new("shell/staging records");

/// Directories with keys and password hashes among the rest.
const WHOLE: &[&str] = &["/", "/etc", "/root", "/home"];

/// Whether a path is a record of who was here or what they typed.
pub(super) fn is_record(path: &str) -> bool {
    RECORDS.contains(&path)
        || path.starts_with("$HISTFILE")
        || path.starts_with("~/.") && path.ends_with("_history")
}

/// Whether a path is in a directory for temporary files.
pub(super) fn is_temporary(path: &str) -> bool {
    let below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    TEMPORARY
        .iter()
        .any(|place| path.strip_prefix(place).is_some_and(below))
}

/// Whether a word names such a directory on another machine: `host:/tmp`.
pub(super) fn is_far_temporary(word: &Word) -> bool {
    let path = word.text.split_once(':').map(|(_, path)| path);
    !word.text.starts_with('/') && path.is_some_and(is_temporary)
}

impl Judge<'_> {
    /// `scp /tmp/x host:/tmp/`: from one machine's temporary directory to another's, which is how
    /// tools come in and loot goes out (MITRE ATT&CK T1570, T1105).
    pub(super) fn staged_transfer(&mut self, name: &str, command: &Command) -> bool {
        if !matches!(name, "scp" | "rsync" | "sftp") || !self.is_brief() {
            return false;
        }
        let near = operands(command.args()).any(|word| is_temporary(&word.text));
        let staged = near && operands(command.args()).any(is_far_temporary);
        if staged {
            let reason = format!("`{name}` moves files between temporary places of two machines");
            self.add(Rule::Exfiltration, command.span, reason);
        }
        staged
    }

    /// `scp file user@203.0.113.9:`: people name the machines they know.
    pub(super) fn sends_to_address(&mut self, name: &str, command: &Command) -> bool {
        let target = operands(command.args()).last();
        let host = target.and_then(|word| word.text.split_once(':'));
        let host = host.map(|(host, _)| host.rsplit('@').next().unwrap_or(host));
        let sends = matches!(name, "scp" | "rsync")
            && operands(command.args()).count() > 1
            && host.is_some_and(hosts::is_public_address)
            && self.is_brief();
        if sends {
            let reason = format!("`{name}` sends files to a bare address");
            self.add(Rule::Exfiltration, command.span, reason);
        }
        sends
    }

    /// Packs or encrypts what tells of accounts and people.
    pub(super) fn collects(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let packs = Group::Archivers.has(name) && makes_archive(name, args);
        let encodes = matches!(
            name,
            "gzip" | "bzip2" | "xz" | "zstd" | "gpg" | "gpg2" | "openssl" | "ccrypt" | "age"
        );
        if !self.is_brief() || !packs && !encodes {
            return;
        }
        // An archive on standard output goes elsewhere.
        let prints = args.iter().any(|word| word.text == "-");
        for word in operands(args) {
            let place = self.place(&word.text);
            let path = place.path.as_str();
            if path == "/etc/passwd" {
                let reason = format!("`{name}` makes a copy of the list of accounts");
                return self.findings.raise(Rule::AccountRead, command.span, reason);
            }
            if packs && RECORDS.contains(&path) {
                let reason = format!("`{name}` packs up {path}, the record of who was here");
                return self.add(Rule::Exfiltration, command.span, reason);
            }
            // `$HOME/*.txt`, `$HOME/$USER`: whatever is there.
            let open = word.text.contains('*') && path.matches('/').count() <= 1;
            let open = open || word.text.matches('$').count() > 1;
            if packs && place.root == Root::Home && open {
                let reason = format!("`{name}` packs up {}, a home", word.text);
                return self.add(Rule::Exfiltration, command.span, reason);
            }
            let there = WHOLE.contains(&path) && place.root == Root::Absolute;
            if packs && prints && there {
                let reason = format!("`{name}` packs up all of {path}");
                return self.add(Rule::Exfiltration, command.span, reason);
            }
        }
    }

    /// `trap 'command' INT; kill -INT $$`: a way to run it that does not look like one (T1546.005).
    pub(super) fn springs_trap(&mut self, id: CommandId, command: &Command) {
        let script = self.script;
        let itself = |word: &Word| word.variables().any(|name| name == "$");
        if !self.is_brief() || !command.args().iter().any(itself) {
            return;
        }
        let sets = |other: &Command| {
            other.name() == Some("trap")
                && other.place != Position::Deferred
                && other.args().len() > 1
                && !has(other.args(), "lp", &[])
                && !matches!(other.args()[0].text.as_str(), "-" | "")
        };
        if script.commands[..id].iter().any(sets) {
            let reason = "runs a command by a signal to itself";
            self.add(Rule::ObfuscatedCommand, command.span, reason);
        }
    }
}

fn makes_archive(name: &str, args: &[Word]) -> bool {
    let first = args.first().map_or("", |word| word.text.as_str());
    match name {
        "tar" | "bsdtar" => {
            let cluster = !first.starts_with("--") && first.contains(['c', 'r', 'u']);
            cluster || has(args, "cru", &["create", "append", "update"])
        }
        "7z" | "7za" | "rar" => matches!(first, "a" | "u"),
        _ => true,
    }
}
