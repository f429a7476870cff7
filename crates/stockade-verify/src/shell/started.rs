//! Programs in temporary directories, and commands that another program prints for a shell.

use stockade_shell::{Command, CommandId, is_shell};

use super::Judge;
use super::programs::Group;
use crate::program::runs_input;
use crate::rule::Rule;

/// Whether a command runs what it reads from standard input.
pub(super) fn interprets_stdin(name: &str, command: &Command) -> bool {
    let texts: Vec<&str> = command
        .args()
        .iter()
        .map(|word| word.text.as_str())
        .collect();
    runs_input(name, &texts)
}

impl Judge<'_> {
    /// `python3 -c "print('rm -rf /')" | sh`: the texts that a program prints are commands.
    pub(super) fn printed_commands(&mut self, id: CommandId, name: &str, command: &Command) {
        if !is_shell(name) || !interprets_stdin(name, command) {
            return;
        }
        let upstream = self.script.upstream(id);
        for id in upstream.iter().take(4) {
            let other = &self.script.commands[*id];
            let name = other.name().unwrap_or_default();
            let awk = matches!(name, "awk" | "gawk" | "mawk");
            if !awk && !Group::Interpreters.has(super::gather::stem(name)) {
                continue;
            }
            for word in other
                .args()
                .iter()
                .filter(|word| word.text.contains(['"', '\'']))
            {
                for literal in super::foreign::literals(&word.text).take(16) {
                    self.analysis
                        .command_text(literal, command.span, self.findings);
                }
            }
        }
    }

    /// A program where anyone may put one: hidden there, or run with other rights.
    pub(super) fn runs_hidden(&mut self, id: CommandId, command: &Command) {
        let program = command.words[0].text.as_str();
        let Some(file) = ["/tmp/", "/var/tmp/", "/dev/shm/"]
            .iter()
            .find_map(|place| program.strip_prefix(place))
        else {
            return;
        };
        let known = |written: &stockade_shell::WrittenFile| written.path == program;
        if self.script.files.iter().any(known) {
            return;
        }
        let detaches =
            |parent: &Command| matches!(parent.name(), Some("nohup" | "setsid" | "daemonize"));
        let sudo = |parent: &Command| matches!(parent.name(), Some("sudo" | "doas" | "pkexec"));
        if file
            .split('/')
            .any(|part| part.starts_with('.') && part.len() > 1)
        {
            let reason = format!("runs {program}, a hidden file in a temporary directory");
            self.add(Rule::DownloadRun, command.span, reason);
        } else if self.is_brief() && command.background && self.script.ancestors(id).any(detaches) {
            let reason = format!("leaves {program} running behind, from a temporary directory");
            self.add(Rule::DownloadRun, command.span, reason);
        } else if self.script.ancestors(id).any(sudo) {
            let reason =
                format!("runs {program}, which anyone may have put there, with other rights");
            self.add(Rule::PrivilegeChange, command.span, reason);
        }
    }
}
