//! Programs under another name, in an odd place, or given other rights on the way.

use stockade_shell::{Command, CommandId, Word, is_shell};

use super::staging::is_temporary;
use super::{Judge, value_of};
use crate::paths::{Place, Root};
use crate::result::Span;
use crate::rule::Rule;

/// Names that services and the kernel's own threads have.
const SERVICES: &[&str] = &[
    "kworker",
    "sshd",
    "crond",
    "cron",
    "systemd",
    "init",
    "apache",
    "nginx",
    "httpd",
    "rsyslogd",
    "dbus-daemon",
    "kthreadd",
    "ksoftirqd",
    "migration",
];

impl Judge<'_> {
    /// `exec -a '[kworker/0:1]' program`: seen under another name (MITRE ATT&CK T1036).
    pub(super) fn renamed(&mut self, name: &str, command: &Command) {
        if name != "exec" || !self.is_brief() {
            return;
        }
        let Some(shown) = value_of(command.args(), 'a', &[]) else {
            return;
        };
        let service = SERVICES.iter().any(|service| shown.starts_with(service));
        if shown.starts_with('[') || service {
            let reason = format!("runs a program under the name of another, {shown}");
            self.add(Rule::ObfuscatedCommand, command.span, reason);
        }
    }

    /// A copy of a shell where none belongs, or of any program with its owner's rights.
    pub(super) fn copies_program(&mut self, name: &str, command: &Command, sources: &[&Word]) {
        let args = command.args();
        let mode = value_of(args, 'm', &["mode"]).filter(|_| name == "install");
        let special = mode.is_some_and(|mode| {
            mode.contains('s') || mode.len() > 3 && mode.starts_with(['2', '4', '6'])
        });
        if special && self.is_brief() {
            let reason = "installs a program that runs with its owner's rights";
            self.add(Rule::FileMode, command.span, reason);
        }
        let target = args.last().map(|word| self.place(&word.text));
        let Some(target) = target.filter(|_| self.is_brief()) else {
            return;
        };
        let last = target.path.rsplit('/').next().unwrap_or_default();
        let bracketed = last.starts_with('[') && last.ends_with(']') && last.len() > 2;
        if bracketed {
            let reason = format!("gives a program the name of a kernel's thread, {last}");
            return self.add(Rule::ObfuscatedCommand, command.span, reason);
        }
        let dots = |part: &str| part.len() > 2 && part.bytes().all(|b| b == b'.');
        let odd = target.path.split('/').any(dots) || target.path.contains("/.");
        let loose = is_temporary(&target.path) && target.root == Root::Absolute || odd;
        let shell = sources.iter().find(|word| self.is_shell_program(word));
        if let (Some(word), true) = (shell, loose) {
            let reason = format!("puts a copy of the shell {} at {}", word.text, target.path);
            self.add(Rule::ShellEscape, command.span, reason);
        }
    }

    /// A program under the name of one that asks for passwords, found before it (T1036, T1056).
    pub(super) fn stands_in(&mut self, place: &Place, span: Span) {
        const ASKS: &[&str] = &[
            "sudo", "su", "doas", "ssh", "scp", "passwd", "login", "gpg", "pkexec",
        ];
        let mut parts = place.path.rsplit('/');
        let (name, directory) = (parts.next(), parts.next());
        let programs =
            directory.is_some_and(|directory| matches!(directory, "bin" | "sbin" | ".bin"));
        let own = place.root == Root::Home || place.path.starts_with("/usr/local/");
        if let Some(name) = name.filter(|name| programs && own && ASKS.contains(name)) {
            let reason = format!("puts a program in the place of `{name}`");
            self.add(Rule::PersistencePreload, span, reason);
        }
    }

    /// A shell's path, or what `which` says of one.
    fn is_shell_program(&self, word: &Word) -> bool {
        let path = Place::new(&word.text).path;
        let written = self.source.get(word.span.start..word.span.end);
        let looked_up = written.is_some_and(|written| written.contains("which "));
        let name = path.rsplit('/').next().unwrap_or_default();
        let by_path = path.starts_with("/bin/") || path.starts_with("/usr/bin/");
        is_shell(name) && (by_path || looked_up)
    }

    /// Pods and services described in place that are given the host (T1610, T1611).
    pub(super) fn described(&mut self, id: CommandId, name: &str, command: &Command) {
        if !matches!(
            name,
            "kubectl" | "oc" | "docker" | "docker-compose" | "podman"
        ) {
            return;
        }
        let typed = match &self.script.commands[id].stdin {
            stockade_shell::Stdin::Text(text) => Some(text.text.as_str()),
            _ => None,
        };
        let named = |path: &str| command.args().iter().any(|word| word.text.ends_with(path));
        let composed = command.args().iter().any(|word| word.text == "up");
        let files = self
            .script
            .files
            .iter()
            .take(64)
            .filter(|file| named(&file.path) || composed && file.path.ends_with("compose.yml"));
        let mut texts = typed
            .into_iter()
            .chain(files.map(|file| file.text.text.as_str()));
        if texts.any(gives_host) {
            let reason = format!("`{name}` is given a description that gives the host away");
            self.add(Rule::ContainerEscape, command.span, reason);
        }
    }

    /// A recording kept where nobody looks for it.
    pub(super) fn records_aside(&mut self, name: &str, command: &Command, span: Span) {
        if !self.is_brief() || !super::programs::Group::Captures.has(name) {
            return;
        }
        let device = value_of(command.args(), 'i', &["interface"]);
        let sniffs = matches!(name, "tcpdump" | "tshark" | "dumpcap");
        let own =
            |device: &str| matches!(device, "lo" | "lo0" | "any") || device.contains("docker");
        if sniffs && device.is_some_and(|device| !own(device)) {
            let reason = format!("`{name}` records what others send");
            self.add(Rule::Surveillance, span, reason);
        }
        let aside = |word: &Word| is_temporary(&word.text) && word.text.matches('/').count() > 1;
        if command.args().iter().any(aside) {
            let reason = format!("`{name}` records into a temporary place");
            self.add(Rule::Surveillance, span, reason);
        }
    }
}

/// A pod or service with the host's rights, processes or files.
fn gives_host(text: &str) -> bool {
    const MARKS: &[&str] = &[
        "privileged: true",
        "hostpid: true",
        "hostipc: true",
        "\"privileged\": true",
        "\"privileged\":true",
        "\"hostpid\":true",
        "\"hostpid\": true",
        "path: /\n",
        "- /:/",
        "docker.sock",
    ];
    let lower = text.to_ascii_lowercase();
    MARKS.iter().any(|mark| lower.contains(mark))
}
