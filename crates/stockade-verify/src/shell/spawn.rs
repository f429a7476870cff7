//! Shells started through programs that are not shells, and code for interpreters.

use stockade_shell::{Command, CommandId, HoleKind, Stdin, is_shell};

use super::programs::Group;
use super::{Judge, has};
use crate::analysis::Nested;
use crate::rule::Rule;
use crate::words::Words;

/// Programs that edit text.
static EDITORS: Words = Words::new("shell/spawn editors");

/// Files that programs run without being told their names.
const IMPLICIT: &[(&[&str], &str)] = &[
    (&["npm", "yarn", "pnpm", "bun"], "package.json"),
    (&["pip", "pip3", "easy_install"], "setup.py"),
    (&["make", "gmake"], "akefile"),
    (&["rake"], "Rakefile"),
    (&["just"], "justfile"),
    (&["vagrant"], "Vagrantfile"),
    (&["bundle", "gem"], "Gemfile"),
    (&["pytest"], "conftest.py"),
    (&["gulp"], "gulpfile.js"),
    (&["grunt"], "Gruntfile.js"),
    (&["composer"], "composer.json"),
    (&["cmake"], "CMakeLists.txt"),
];

impl Judge<'_> {
    pub(super) fn spawned_shell(&mut self, id: CommandId, name: &str, command: &Command) {
        let span = command.span;
        let first = command.words[0].text.as_str();
        if let Some(escaped) = first.strip_prefix(":!").or_else(|| first.strip_prefix('!'))
            && (names_shell(escaped) || is_shell(escaped))
        {
            return self.add(Rule::ShellEscape, span, "escapes to a shell");
        }
        if is_shell(name) {
            return self.bare_shell(id, name, command);
        }
        if is_editor(name) && command.args().iter().any(|word| leaves_editor(&word.text)) {
            self.add(Rule::ShellEscape, span, format!("`{name}` starts a shell"));
        }
        if is_editor(name) {
            let told = |word: &&stockade_shell::Word| {
                word.text.contains("delete(") || word.text.contains("writefile(")
            };
            for word in command.args().iter().filter(told).take(8) {
                let nested = Nested::Foreign(None);
                self.analysis
                    .nested(nested, &word.text, span, None, self.findings);
            }
        }
        self.configured_shell(name, command);
        let mentions = command.args().iter().any(|word| names_shell(&word.text));
        if mentions && !Group::NameAShell.has(name) {
            self.add(
                Rule::ShellEscape,
                span,
                format!("`{name}` is given a shell to run"),
            );
        }
    }

    /// A program is given a file, written by the script itself, that makes it start a shell.
    fn configured_shell(&mut self, name: &str, command: &Command) {
        let own = IMPLICIT
            .iter()
            .find(|(programs, _)| programs.contains(&name));
        if let Some((_, file)) = own {
            let mut files = self.script.files.iter().take(64);
            let starts = |text: &str| names_shell(text) || text.contains("os.exec");
            if files.any(|written| written.path.ends_with(file) && starts(&written.text.text)) {
                let reason = format!("`{name}` is given a {file} that starts a shell");
                self.add(Rule::ShellEscape, command.span, reason);
            }
            return;
        }
        if Group::NotReaders.has(name) || Group::Showers.has(name) || Group::NameAShell.has(name) {
            return;
        }
        let given = |path: &str| {
            let mut args = command.args().iter().take(32);
            args.any(|word| word.text == path || word.text.ends_with(path) && path.len() > 4)
        };
        let starts = self
            .script
            .files
            .iter()
            .take(64)
            .any(|file| names_shell(&file.text.text) && given(&file.path));
        let piped = |word: &stockade_shell::Word| {
            word.holes.iter().any(|hole| match &hole.kind {
                HoleKind::Process { output, .. } => {
                    output.as_ref().is_some_and(|text| names_shell(&text.text))
                }
                _ => false,
            })
        };
        if starts || command.args().iter().any(piped) {
            let reason = format!("`{name}` is given a file that starts a shell");
            self.add(Rule::ShellEscape, command.span, reason);
        }
    }

    /// A shell with nothing to run but what someone types or sends.
    fn bare_shell(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        let options = args.iter().all(|word| word.text.starts_with(['-', '+']));
        if !options || has(args, "c", &["version", "help"]) {
            return;
        }
        let by_path = command.words[0].text.contains('/');
        let wrapped = self.script.ancestors(id).any(|parent| match parent.name() {
            Some("env" | "xargs") => by_path,
            Some("ssh") => parent.args().iter().any(|word| word.text == "localhost"),
            // Usual ways to come to a shell.
            Some(
                "exec" | "command" | "time" | "tmux" | "screen" | "eval" | "cat" | "echo"
                | "docker" | "podman" | "nerdctl" | "docker-compose" | "kubectl" | "oc" | "lxc"
                | "incus" | "heroku" | "fly" | "flyctl" | "vagrant",
            )
            | None => false,
            Some(wrapper) => !is_shell(wrapper),
        });
        let typed = !matches!(command.stdin, stockade_shell::Stdin::Text(_));
        let alone =
            typed && command.stage == 0 && self.script.pipelines[command.pipeline].stages == 1;
        let to_terminal = command.redirects.iter().all(|redirect| {
            redirect.target.text == "/dev/tty" || self.is_terminal(&redirect.target)
        });
        if wrapped && alone && to_terminal {
            let reason = format!("starts an interactive `{name}` through another program");
            self.add(Rule::ShellEscape, command.span, reason);
        }
    }

    /// `$(tty)`
    fn is_terminal(&self, word: &stockade_shell::Word) -> bool {
        let mut inner = word.substitutions().flatten();
        inner.any(|id| self.script.commands[id].name() == Some("tty"))
    }

    /// Code on the command line of interpreters without a grammar here.
    pub(super) fn foreign_code(&mut self, name: &str, command: &Command) {
        if !Group::Foreign.has(name) {
            return;
        }
        if let (Stdin::Text(text), true) = (&command.stdin, command.args().is_empty()) {
            let nested = Nested::Foreign(None);
            self.analysis
                .nested(nested, &text.text, command.span, None, self.findings);
        }
        for pair in command.args().windows(2) {
            if matches!(
                pair[0].text.as_str(),
                "-e" | "-c" | "--eval" | "-E" | "--exec" | "-eval" | "--expr" | "-x" | "-run"
            ) {
                let code = pair[1].text.as_str();
                self.analysis.nested(
                    Nested::Foreign(None),
                    code,
                    command.span,
                    None,
                    self.findings,
                );
            }
        }
    }
}

fn is_editor(name: &str) -> bool {
    EDITORS.contains(&name)
}

/// An editor's command that runs a program: `:!sh`, `:terminal`.
fn leaves_editor(text: &str) -> bool {
    let text = text.trim_start_matches(['+', ':', '-', 'c']);
    ["!", "shell", "terminal"]
        .iter()
        .any(|start| text.starts_with(start))
        || text.starts_with("py") && text.contains("import")
        || text.contains("(term ")
        || text.contains("system(")
}

/// Whether a text would start a shell: its path as a word of its own.
pub(super) fn names_shell(text: &str) -> bool {
    static PATHS: Words = Words::new("shell/spawn paths");
    // What comes before when it is only named: a first line, a variable.
    const NAMED: &[&str] = &["#!", "SHELL=", "shell="];
    let Some((at, path)) = PATHS
        .iter()
        .find_map(|path| text.find(path).map(|at| (at, *path)))
    else {
        return false;
    };
    let after = text[at + path.len()..].chars().next();
    let ends =
        after.is_none_or(|c| !c.is_ascii_alphanumeric() && !matches!(c, '/' | '.' | '-' | '_'));
    ends && !NAMED.iter().any(|named| text[..at].ends_with(named))
}
