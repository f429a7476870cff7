//! Programs that came in an archive from the network, and what names itself for what it is.

use stockade_shell::{Command, CommandId, Word};

use super::programs::Group;
use super::staging::is_temporary;
use super::{Judge, has, operands};
use crate::hosts;
use crate::rule::Rule;

/// Parts of names that only stand for one thing.
const NAMED: &[&str] = &[
    "backdoor",
    "cryptominer",
    "exploit",
    "keylogger",
    "malware",
    "miner",
    "minerd",
    "payload",
    "ransomware",
    "revshell",
    "rootkit",
    "stealer",
    "xmrig",
];

impl Judge<'_> {
    /// Remembers that an archive from the network was unpacked.
    pub(super) fn unpacks_download(&mut self, id: CommandId, name: &str, command: &Command) {
        let unpacks = match name {
            "unzip" | "7z" | "7za" | "unrar" | "cpio" => true,
            "tar" | "bsdtar" => {
                let first = command.args().first().map_or("", |word| word.text.as_str());
                has(command.args(), "x", &["extract", "get"]) || first.contains('x')
            }
            _ => false,
        };
        if !unpacks {
            return;
        }
        let upstream = self.script.upstream(id);
        let piped = upstream.iter().any(|other| {
            let other = self.script.commands[*other].name().unwrap_or_default();
            Group::Fetchers.has(other)
        });
        let came = |word: &Word| {
            let file = word.text.trim_start_matches("./");
            self.downloaded.contains(file)
        };
        if piped || command.args().iter().any(came) {
            self.unpacked = true;
            // Only what must not be looked into has a password.
            self.unpacked_locked |= name == "unzip" && has(command.args(), "P", &[]);
        }
    }

    /// `curl … | tar xz -C /tmp && /tmp/t/run`: what was just unpacked there is run.
    pub(super) fn runs_unpacked(&mut self, command: &Command) {
        if !self.unpacked || !self.is_brief() {
            return;
        }
        let program = command.words[0].text.as_str();
        let marked =
            |path: &String| path.trim_start_matches("./") == program.trim_start_matches("./");
        let loose = is_temporary(program) || self.made_executable.iter().any(marked);
        if program.contains('/') && (loose || self.unpacked_locked) {
            let reason = format!("runs {program}, which an archive from the network held");
            self.add(Rule::DownloadRun, command.span, reason);
        }
    }

    /// `./exploit`, `python3 keylogger.py`, `systemctl enable backdoor`.
    pub(super) fn runs_named(&mut self, name: &str, command: &Command) {
        if !self.is_brief() {
            return;
        }
        let program = command.words[0].text.as_str();
        let interprets =
            stockade_shell::is_shell(name) || Group::Interpreters.has(super::gather::stem(name));
        let starts = matches!(name, "systemctl" | "service" | "insmod" | "start");
        let run = if interprets || starts {
            operands(command.args()).last()
        } else {
            command.words.first().filter(|_| program.contains('/'))
        };
        let Some(file) = run
            .map(|word| word.text.as_str())
            .filter(|file| !file.contains(' '))
        else {
            return;
        };
        let last = file.rsplit('/').next().unwrap_or(file).to_ascii_lowercase();
        let mut parts = last.split(|c: char| !c.is_ascii_alphabetic());
        let code = command
            .args()
            .iter()
            .any(|word| matches!(word.text.as_str(), "-c" | "-e" | "-m"));
        if !(interprets && code) && parts.any(|part| NAMED.contains(&part)) {
            let reason = format!("runs {file}, whose name says what it is");
            self.add(Rule::DownloadRun, command.span, reason);
        }
    }

    /// Any other program that is sent to a host of the wrong kind: `kubectl --server=https://…`.
    pub(super) fn sent_to_odd_host(&mut self, name: &str, command: &Command) {
        let quiet = Group::Showers.has(name)
            || Group::PassesOn.has(name)
            || Group::Fetchers.has(name)
            || matches!(
                name,
                "git" | "alias" | "local" | "declare" | "readonly" | "return"
            );
        let talks = Group::Services.has(name)
            || Group::Clouds.has(name)
            || matches!(
                name,
                "kubectl" | "oc" | "helm" | "docker" | "podman" | "ssh" | "mysql" | "psql"
            );
        if quiet && !talks || !self.is_brief() || self.is_own_function(command) {
            return;
        }
        let odd = command.args().iter().find_map(|word| {
            let text = word.text.as_str();
            let url = text.rsplit_once('=').map_or(text, |(_, value)| value);
            let url = [url, text].into_iter().find(|url| hosts::is_url(url))?;
            let named = hosts::is_named_for_attack(url) || hosts::collector(url).is_some();
            named.then_some(url)
        });
        if let Some(url) = odd {
            let reason = format!("`{name}` talks to a host whose name says what it is for: {url}");
            self.add(Rule::NetworkHost, command.span, reason);
        }
    }
}
