//! Commands about the system that need more than their words: sudo, jobs, processes, times,
//! containers, packages, and variables that other programs obey.

use stockade_shell::{Command, CommandId, Stdin, Word};

use super::programs::Group;
use super::{Judge, has, operands, value_of};
use crate::hosts;
use crate::paths::{Kind, Place};
use crate::rule::Rule;
use crate::words::Words;

impl Judge<'_> {
    fn install(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let verb = |word: &Word| {
            matches!(
                word.text.as_str(),
                "install" | "i" | "add" | "get" | "run" | "exec" | "apply" | "create" | "-i"
            )
        };
        let runs = matches!(name, "npx" | "uvx" | "bunx" | "rpm");
        if !runs && !args.iter().any(verb) {
            return;
        }
        let odd = args.iter().find(|word| {
            let text = word.text.as_str();
            let text = text.strip_prefix("git+").unwrap_or(text);
            let text = text.split_once(" @ ").map_or(text, |(_, url)| url);
            let plain = text.starts_with("http://");
            let at_once = matches!(name, "npx" | "bunx" | "uvx") && hosts::is_url(text);
            (plain || at_once) && !hosts::host_of(text).is_some_and(hosts::is_local)
                || hosts::is_url(text) && hosts::suspicion(text).is_some()
        });
        if let Some(word) = odd {
            let reason = format!("`{name}` installs from {}", word.text);
            self.add(Rule::DownloadRun, command.span, reason);
        }
    }

    pub(super) fn system_command(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        let span = command.span;
        match name {
            "sudo" | "doas" => self.sudo(id, name, command),
            "crontab" => {
                let installs = !args.is_empty() || !matches!(command.stdin, Stdin::Inherited);
                if installs && !has(args, "lr", &[]) {
                    self.add(Rule::PersistenceCron, span, "installs a job table");
                }
            }
            "kill" | "killall" | "killall5" | "pkill" | "skill" => {
                self.kill(name, command);
                self.springs_trap(id, command);
            }
            "touch" => self.touch(command),
            // With BSD's `-j` it only converts.
            "date" if !converts_only(args) && operands(args).any(|word| is_time(&word.text)) => {
                self.add(Rule::TraceRemoval, span, "changes the machine's clock");
            }
            "docker" | "podman" | "nerdctl" => self.container(name, command),
            "mount"
                if args
                    .iter()
                    .any(|word| Place::new(&word.text).is(Kind::Disk)) =>
            {
                self.warn(Rule::ContainerEscape, span, "mounts a disk");
            }
            "useradd" | "adduser" | "usermod" if value_of(args, 'u', &["uid"]) == Some("0") => {
                let reason = "makes an account that is root under another name";
                self.findings.firm(Rule::AccountChange, span, reason);
            }
            "pip" | "pip3" | "npm" | "yarn" | "pnpm" | "gem" | "go" | "cargo" | "uv" | "npx"
            | "pipx" | "uvx" | "bunx" | "bun" | "deno" | "conda" | "brew" | "dpkg" | "rpm"
            | "apt" | "apt-get" | "dnf" | "yum" | "apk" | "helm" | "kubectl" => {
                self.install(name, command);
            }
            _ => {}
        }
    }

    fn sudo(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        let mut inner = self.script.commands.iter().skip(id + 1).take(2);
        let inner = inner.find(|inner| inner.parent == Some(id));
        let becomes_root = inner.is_some_and(|inner| {
            let root = |word: &Word| matches!(word.text.as_str(), "-" | "-l" | "--login" | "root");
            inner.name() == Some("su") && inner.args().iter().all(root)
        });
        let shell = has(args, "is", &["login", "shell"]) && inner.is_none();
        let gives_shell = inner.is_some_and(|inner| {
            let pages = inner.name() == Some("git") && has(inner.args(), "p", &["paginate"]);
            let bare = inner.args().is_empty() && inner.stdin == Stdin::Inherited;
            pages
                || bare
                    && inner
                        .name()
                        .is_some_and(|name| Group::ShellGivers.has(name))
        });
        if gives_shell && self.is_brief() {
            let reason = format!("`{name}` opens a program that gives a shell with all rights");
            self.add(Rule::PrivilegeChange, command.span, reason);
        } else if becomes_root || shell {
            let reason = format!("`{name}` opens a shell with all rights");
            self.add(Rule::PrivilegeChange, command.span, reason);
        } else if has(args, "l", &["list"]) && args.len() == 1 {
            self.add(
                Rule::SystemSurvey,
                command.span,
                "asks what sudo would allow",
            );
        } else {
            let reason = format!("`{name}` runs a command with other rights");
            self.warn(Rule::PrivilegeChange, command.span, reason);
        }
    }

    fn kill(&mut self, name: &str, command: &Command) {
        static GUARDS: Words = Words::new("shell/system guards");
        let args = command.args();
        let target = |text: &str| args.iter().skip(1).any(|word| word.text == text);
        let asks = |word: &Word| {
            let signal = word.text.trim_start_matches(['-', 's']);
            matches!(
                signal.trim_start_matches("SIG"),
                "0" | "HUP" | "USR1" | "USR2" | "ALRM" | "WINCH" | "CONT"
            )
        };
        let fatal = !args.iter().any(asks);
        let itself = |word: &Word| word.text == "$$" && word.variables().any(|name| name == "$");
        let hard = |word: &Word| matches!(word.text.as_str(), "-9" | "-KILL" | "-SIGKILL");
        if args.iter().any(itself) && args.iter().any(hard) {
            let reason = "ends its own shell before that writes its history";
            self.findings
                .only_in_excerpt(Rule::TraceRemoval, command.span, reason);
        }
        let everything = name == "kill" && (target("-1") || target("1") && fatal);
        let by_name = matches!(name, "pkill" | "killall");
        let of_someone =
            has(args, "u", &["euid", "uid", "user"]) || args.iter().any(|word| word.text == "-U");
        let broad = name == "killall5"
            || by_name && of_someone && operands(args).count() <= 1
            || by_name
                && operands(args)
                    .any(|word| matches!(word.text.as_str(), "." | "init" | "systemd"));
        if everything || broad {
            return self.add(Rule::SystemStop, command.span, "stops every process it may");
        }
        let inner: Vec<_> = args
            .iter()
            .flat_map(Word::substitutions)
            .flatten()
            .collect();
        let runs = |program: &str| {
            let mut names = inner.iter().map(|id| self.script.commands[*id].name());
            names.any(|name| name == Some(program))
        };
        if name == "kill" && runs("ps") && !runs("grep") && !runs("pgrep") && !runs("head") {
            let selects = |word: &Word| word.text.starts_with("-C") || word.text.contains('/');
            let chosen = inner
                .iter()
                .flat_map(|id| self.script.commands[*id].args())
                .any(selects);
            if !chosen {
                return self.add(Rule::SystemStop, command.span, "stops every process it may");
            }
        }
        let names = operands(args).map(|word| word.text.trim_matches(['^', '$']).to_owned());
        let inner = args.iter().flat_map(Word::substitutions).flatten();
        let inner = inner.flat_map(|other| self.script.commands[other].args());
        let inner = inner.map(|word| word.text.clone());
        let guards = |target: String| {
            target
                .split(['|', '(', ')', ' '])
                .any(|one| GUARDS.contains(&one))
        };
        if names.chain(inner).any(guards) {
            let reason = "stops a service that guards or records";
            self.add(Rule::ProtectionOff, command.span, reason);
        }
    }

    fn touch(&mut self, command: &Command) {
        let args = command.args();
        let old = value_of(args, 't', &[]).is_some_and(|time| !time.starts_with("202"));
        let like = value_of(args, 'r', &["reference"]).map(Place::new);
        let dated = has(args, "td", &["date"]);
        let system = |word: &Word| {
            let place = self.place(&word.text);
            let inside = ["/usr/", "/bin/", "/sbin/", "/lib/", "/etc/", "/boot/"];
            inside.iter().any(|start| place.path.starts_with(start))
        };
        let system = dated && operands(args).any(system) && self.is_brief();
        if old || system || like.is_some_and(|place| place.is(Kind::Base)) {
            self.add(Rule::TraceRemoval, command.span, "forges a file's times");
        }
    }

    fn container(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let span = command.span;
        for (at, word) in args.iter().enumerate() {
            let text = word.text.as_str();
            let next = args.get(at + 1).map_or("", |word| word.text.as_str());
            let (flag, value) = text.split_once('=').unwrap_or((text, next));
            let given = match flag {
                "--privileged" if value != "false" => "all rights".to_owned(),
                "-v" | "--volume" | "--mount" => {
                    self.volume(name, command, value);
                    continue;
                }
                "--pid" | "--ipc" | "--userns" | "--uts" | "--cgroupns" if value == "host" => {
                    format!("the host's {}", flag.trim_start_matches('-'))
                }
                "--cap-add" if is_strong(value) => value.to_owned(),
                "--security-opt" if value.contains("unconfined") => "no confinement".to_owned(),
                "--device" if Place::new(value).is(Kind::Disk) => "a disk".to_owned(),
                _ => continue,
            };
            let reason = format!("`{name}` gives a container {given}");
            self.add(Rule::ContainerEscape, span, reason);
        }
    }

    fn volume(&mut self, name: &str, command: &Command, value: &str) {
        static DOORS: Words = Words::new("shell/system doors");
        let named = value.split(',').find_map(|part| {
            part.strip_prefix("source=")
                .or_else(|| part.strip_prefix("src="))
        });
        let source = named.unwrap_or_else(|| value.split(':').next().unwrap_or(value));
        let place = Place::new(source);
        if DOORS.contains(&place.path.as_str()) || place.is(Kind::Socket) {
            let reason = format!("`{name}` gives a container the host's {source}");
            self.add(Rule::ContainerEscape, command.span, reason);
        } else if place.is(Kind::Credential) {
            let reason = format!("`{name}` gives a container {source}");
            self.add(Rule::CredentialRead, command.span, reason);
        }
    }

    /// Variables that change what other programs load or run.
    pub(super) fn assignments(&mut self, command: &Command) {
        if matches!(command.name(), Some("sudo" | "doas" | "env")) {
            let given = command
                .args()
                .iter()
                .filter_map(|word| word.text.split_once('='));
            let mut names = given
                .clone()
                .take_while(|(name, _)| !name.contains([' ', '/']));
            let spawns = |name: &str| name == "PATH" || name.starts_with("BASH_FUNC_");
            if let Some((name, value)) = names.find(|(name, _)| spawns(name)) {
                self.names_program(command, name, value, command.span);
            }
            let loaded = given
                .take_while(|(name, _)| !name.contains(' '))
                .find(|(name, value)| {
                    matches!(*name, "LD_PRELOAD" | "LD_AUDIT" | "DYLD_INSERT_LIBRARIES")
                        && value.starts_with('/')
                        && !is_installed(value)
                });
            if let Some((_, library)) = loaded {
                let reason = format!("loads {library} into other programs");
                self.add(Rule::ProcessTamper, command.span, reason);
            }
        }
        for assignment in &command.assignments {
            let value = assignment.value.text.as_str();
            let span = assignment.span;
            match assignment.name.as_str() {
                "LD_PRELOAD" | "LD_AUDIT" | "DYLD_INSERT_LIBRARIES" if !value.is_empty() => {
                    let reason = format!("loads {value} into other programs");
                    let unknown = assignment.value.literal().is_none();
                    if unknown || is_installed(value) {
                        self.warn(Rule::ProcessTamper, span, reason);
                    } else {
                        self.add(Rule::ProcessTamper, span, reason);
                    }
                }
                "HISTFILE" | "HISTSIZE" | "HISTFILESIZE"
                    if matches!(value, "" | "0" | "/dev/null") =>
                {
                    self.add(Rule::TraceRemoval, span, "stops recording history");
                }
                name if name.to_ascii_lowercase().ends_with("_proxy")
                    && hosts::suspicion(value).is_some() =>
                {
                    let reason = format!("sends connections through {value}");
                    self.add(Rule::NetworkHost, span, reason);
                }
                "HISTIGNORE" if value.starts_with('*') => {
                    self.add(Rule::TraceRemoval, span, "stops recording history");
                }
                "HISTCONTROL"
                    if value.starts_with("ignore")
                        && self.is_brief()
                        && command.name() == Some("export") =>
                {
                    self.add(
                        Rule::TraceRemoval,
                        span,
                        "leaves commands out of the history",
                    );
                }
                "PROMPT_COMMAND" if value.contains("logger") || value.contains("tee ") => {
                    let reason = "records every command that the user types";
                    self.add(Rule::Surveillance, span, reason);
                }
                "BASH_ENV" | "PROMPT_COMMAND" | "PYTHONSTARTUP" | "PERL5OPT" | "NODE_OPTIONS"
                | "RUBYOPT" | "PERL5DB" | "JAVA_TOOL_OPTIONS" | "_JAVA_OPTIONS"
                    if value.contains("/tmp/")
                        || value.contains("curl ")
                        || assignment.value.substitutions().next().is_some()
                            && assignment.name == "BASH_ENV" =>
                {
                    let reason = format!("makes other programs run {value}");
                    self.add(Rule::PersistencePreload, span, reason);
                }
                name => self.names_program(command, name, value, span),
            }
        }
    }
}

/// `date -j`, `date -ujf%s`: BSD's option not to set the clock.
fn converts_only(args: &[Word]) -> bool {
    args.iter().any(|word| {
        let short = word.text.strip_prefix('-');
        // What follows `f` is a format.
        let flags = short.and_then(|flags| flags.split(['f', '-']).next());
        flags.is_some_and(|flags| flags.contains('j'))
    })
}

/// `MMDDhhmm[[CC]YY][.ss]`
fn is_time(text: &str) -> bool {
    text.len() >= 8 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// Capabilities that are as good as root.
fn is_strong(capability: &str) -> bool {
    let upper = capability.to_ascii_uppercase();
    let name = upper.trim_start_matches("CAP_");
    matches!(
        name,
        "ALL" | "SYS_ADMIN" | "SYS_PTRACE" | "SYS_MODULE" | "DAC_READ_SEARCH"
    )
}

/// A library of the system's own: whoever puts one there has all rights already.
fn is_installed(library: &str) -> bool {
    ["/lib", "/usr/lib", "/usr/local/lib"]
        .iter()
        .any(|start| library.starts_with(start))
}
