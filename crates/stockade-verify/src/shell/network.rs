//! Connections: shells on the network, listeners, names that carry data.

use stockade_shell::{Command, CommandId, Hole, HoleKind, RedirectOp, Word, is_shell};

use super::gather::Matter;
use super::programs::{Group, Membership};
use super::staging::is_temporary;
use super::started::interprets_stdin;
use super::{Judge, has, operands, value_of};
use crate::hosts;
use crate::paths::Kind;
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn network_command(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        let member = Membership::of(name);
        match name {
            "nc" | "ncat" | "netcat" | "nc.traditional" | "nc.openbsd" | "socat" | "telnet"
            | "cryptcat" | "pwncat" => self.netcat(id, name, command),
            "openssl" => {
                let first = args.first().map(|word| word.text.as_str());
                if matches!(first, Some("s_client" | "s_server")) {
                    self.piped_shell(id, name, command);
                    self.sends_file(id, name, command);
                }
            }
            "logger" if has(args, "n", &["server"]) => self.gives_away(id, name, command),
            _ if member.in_group(Group::Fetchers) => self.fetch(id, name, command),
            "ssh" | "scp" | "sftp" | "rsync" | "sshfs" | "mosh" | "restic" | "lftp"
            | "smbclient" | "ab" | "borg" | "duplicity" | "cadaver" | "ncftpput" | "rclone" => {
                if name == "rclone" {
                    self.bucket(id, name, command);
                }
                self.transfer(id, name, command);
            }
            _ if member.in_group(Group::Clouds) => {
                self.bucket(id, name, command);
                self.tells_others(id, name, command);
            }
            "docker" | "podman" | "nerdctl" => self.through_container(id, name, command),
            "getent" if !args.first().is_some_and(|word| word.text.contains("hosts")) => {}
            _ if member.in_group(Group::Askers) => self.lookup(id, name, command),
            "gh" | "glab"
                if args
                    .first()
                    .is_some_and(|word| word.text == "gist" || word.text == "snippet") =>
            {
                self.gives_away(id, name, command);
            }
            "gh" | "glab" => self.tells_others(id, name, command),
            _ if member.in_group(Group::Mailers) || member.in_group(Group::Senders) => {
                self.gives_away(id, name, command);
            }
            _ if member.in_group(Group::Streams) => self.sends_file(id, name, command),
            _ => self.any_door(id, name, command),
        }
        self.publishes(name, command);
        let module = |pair: &[stockade_shell::Word]| {
            pair[0].text == "-m"
                && matches!(
                    pair[1].text.as_str(),
                    "http.server" | "SimpleHTTPServer" | "pyftpdlib" | "smtpd" | "uploadserver"
                )
        };
        let takes =
            |pair: &[stockade_shell::Word]| pair[0].text == "-m" && pair[1].text == "uploadserver";
        let first = args.first().map_or("", |word| word.text.as_str());
        let serves = args.windows(2).any(module)
            || name == "httpd" && has(args, "fhp", &[])
            || name == "php" && has(args, "S", &[])
            || name == "ruby" && args.iter().any(|word| word.text == "-run")
            || name == "caddy" && first == "file-server"
            || matches!(
                name,
                "http-server" | "darkhttpd" | "webfsd" | "miniserve" | "dufs"
            )
            || name == "npx" && matches!(first, "http-server" | "serve");
        let local = args
            .iter()
            .any(|word| matches!(word.text.as_str(), "127.0.0.1" | "localhost"));
        if serves && !local {
            let given = value_of(args, 'd', &["directory", "root"]);
            let given = given.or_else(|| value_of(args, 't', &[]).filter(|_| name == "php"));
            let given = given.or_else(|| value_of(args, 'h', &[]).filter(|_| name == "httpd"));
            let last = args.last().map(|word| word.text.as_str());
            let given = given.or_else(|| last.filter(|path| path.starts_with(['/', '~'])));
            let place = given.map(|path| self.place(path));
            let place = place.or_else(|| self.directory.clone());
            let wide = place.is_some_and(|place| {
                place.is(Kind::System) || place.is_home() || is_temporary(&place.path)
            });
            // What anyone may send files to, as nobody's own server does.
            let wide = wide || args.windows(2).any(takes);
            let reason = "serves files to the network";
            self.findings
                .weigh(wide, Rule::NetworkListen, command.span, reason);
        }
    }

    /// A redirection to `/dev/tcp/…`.
    pub(super) fn network_device(
        &mut self,
        id: CommandId,
        target: &str,
        op: RedirectOp,
        span: Span,
    ) {
        let script = self.script;
        let command = &script.commands[id];
        let name = command.name().unwrap_or_default();
        let shell = is_shell(name) || name == "exec" || name.starts_with("python");
        let duplicates = |other: &Command| {
            other.redirects.iter().any(|redirect| {
                matches!(
                    redirect.op,
                    RedirectOp::DuplicateIn | RedirectOp::DuplicateOut
                )
            })
        };
        let mut later = script.commands.iter().skip(id + 1).take(16);
        let shell_later =
            later.any(|other| other.name().is_some_and(is_shell) && duplicates(other));
        if shell || shell_later || op == RedirectOp::ReadWrite {
            let reason = "connects a shell to the network";
            return self.add(Rule::ReverseShell, command.span, reason);
        }
        let substituted = |hole: &Hole| matches!(hole.kind, HoleKind::Substitution { .. });
        let computed = command
            .words
            .iter()
            .flat_map(|word| &word.holes)
            .any(substituted);
        let group = command.words.is_empty() && op.writes() && self.group_gathers(id);
        let told = self
            .gathered_inside(&command.words)
            .or_else(|| self.data_on_input(id));
        // Whether a port is open is often asked with nothing to say.
        let speaks = !matches!(name, "" | ":" | "true" | "echo" | "printf" | "exec");
        if computed || group || told.is_some() || speaks && op.writes() {
            let reason = "sends data through the shell's network device";
            return self.add(Rule::Exfiltration, command.span, reason);
        }
        let mut parts = target.split('/').skip(3);
        if parts.next().and_then(hosts::suspicion).is_some() {
            let reason = format!("talks to a host of the wrong kind, {target}");
            return self.add(Rule::NetworkHost, command.span, reason);
        }
        self.warn(
            Rule::NetworkAccess,
            span,
            "opens a connection through the shell's network device",
        );
    }

    fn netcat(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        if gives_shell(name, command) {
            let reason = format!("`{name}` gives a shell to the network");
            return self.add(Rule::ReverseShell, command.span, reason);
        }
        if self.piped_shell(id, name, command) {
            return;
        }
        if self.catches_shell(id, command) {
            let reason = format!("`{name}` waits for a shell from elsewhere");
            return self.add(Rule::ReverseShell, command.span, reason);
        }
        self.sends_file(id, name, command);
        let parts = args
            .iter()
            .flat_map(|word| word.text.split([':', ',', '/']));
        let mut named = parts.filter(|part| !part.contains('='));
        if let Some(host) = named.find(|part| hosts::suspicion(part).is_some()) {
            let reason = format!("`{name}` talks to {host}, a host of the wrong kind");
            return self.add(Rule::NetworkHost, command.span, reason);
        }
        let pipeline = &self.script.pipelines[command.pipeline];
        let netcat = |other: &&Command| matches!(other.name(), Some("nc" | "ncat" | "netcat"));
        let all = self.script.commands[pipeline.commands.clone()].iter();
        if pipeline.stages > 2 && all.filter(netcat).count() > 1 {
            let reason = "relays connections between two ends";
            return self.add(Rule::NetworkHost, command.span, reason);
        }
        let fifo = |other: &Command| match other.name() {
            Some("mkfifo") => true,
            Some("mknod") => other.args().iter().any(|word| word.text == "p"),
            _ => false,
        };
        if self.is_brief() && self.script.commands.iter().any(fifo) {
            let reason = format!("relays what `{name}` receives through a named pipe");
            return self.add(Rule::NetworkHost, command.span, reason);
        }
        let listens = has(args, "l", &["listen"]);
        let rule = if listens {
            Rule::NetworkListen
        } else {
            Rule::NetworkAccess
        };
        let scans = has(args, "z", &[]);
        if !scans {
            self.warn(rule, command.span, format!("`{name}` opens a connection"));
        }
    }

    /// `rlwrap nc …`, `nc -lvnp 4444`, `` socat file:`tty` ``: the other end of a reverse shell.
    fn catches_shell(&self, id: CommandId, command: &Command) -> bool {
        let args = command.args();
        let edited = self
            .script
            .ancestors(id)
            .any(|by| by.name() == Some("rlwrap"));
        let cluster = |word: &stockade_shell::Word| {
            let text = word.text.strip_prefix('-').unwrap_or_default();
            ['l', 'v', 'p'].iter().all(|letter| text.contains(*letter))
        };
        let terminal = |word: &stockade_shell::Word| {
            let text = word.text.to_ascii_lowercase();
            text.starts_with("file:") && text.contains("raw")
        };
        let quiet = command.redirects.is_empty() && command.stage == 0;
        let piped = self.script.pipelines[command.pipeline].stages > 1;
        edited || quiet && !piped && args.iter().any(cluster) || args.iter().any(terminal)
    }

    /// A pipeline that has both a shell and this network command.
    fn piped_shell(&mut self, id: CommandId, name: &str, command: &Command) -> bool {
        let pipeline = &self.script.pipelines[command.pipeline];
        if pipeline.stages < 2 {
            return false;
        }
        let is_bare_shell = |other: &Command| {
            other.name().is_some_and(|shell| {
                let runs = is_shell(shell) || shell.starts_with("python");
                runs && interprets_stdin(shell, other) || matches!(shell, "cmd" | "powershell")
            })
        };
        let others = &self.script.commands[pipeline.commands.clone()];
        let shell = others.iter().enumerate().any(|(at, other)| {
            let itself = pipeline.commands.start + at == id;
            !itself && other.stage != command.stage && is_bare_shell(other)
        });
        if shell {
            let reason = format!("`{name}` and a shell in one pipeline");
            self.add(Rule::ReverseShell, command.span, reason);
        }
        shell
    }

    /// Data put into a name that is looked up.
    fn lookup(&mut self, id: CommandId, name: &str, command: &Command) {
        let takes = self.takes_from_input(id, command) || Group::Streams.has(name);
        let fed = self.data_on_input(id).filter(|_| takes);
        let told = self.gathered_inside(&command.words);
        // `dig -x "$(hostname -I)"`: a name that is looked up, not one that carries.
        let asks = matches!(name, "getent" | "host" | "dig" | "nslookup" | "ping");
        let own = |by: &str| {
            matches!(
                by,
                "hostname" | "ip" | "ifconfig" | "who" | "ss" | "resolvectl" | "route"
            )
        };
        let names_itself = |by: &str| {
            let mut inner = command.words.iter().flat_map(Word::substitutions).flatten();
            let only = inner.next().filter(|_| inner.next().is_none());
            let args = only.map(|id| self.script.commands[id].args());
            by == "uname" && args.is_some_and(|args| matches!(args, [arg] if arg.text == "-n"))
        };
        let own = |by: &str| own(by) || names_itself(by);
        let told = told.filter(|told| !asks || told.matter > Matter::Machine || !own(&told.by));
        let named = || {
            let mut words = command.args().iter();
            words.find_map(|word| self.held(word, &word.text))
        };
        let named = named().filter(|_| !matches!(name, "getent" | "finger"));
        if let Some(found) = fed.or(told).or(named) {
            let reason = format!("`{name}` sends out what `{}` gathers", found.by);
            return self.add(Rule::Exfiltration, command.span, reason);
        }
        if self.is_addressed(command)
            && let Some(file) = self.reads_inside(&command.words)
        {
            let reason = format!("`{name}` sends {file} to a bare address");
            return self.add(Rule::Exfiltration, command.span, reason);
        }
        for word in operands(command.args()).filter(|word| word.text.contains('.')) {
            let collector = hosts::suspicion(&word.text).is_some();
            let carries = word.holes.iter().any(|hole| match &hole.kind {
                HoleKind::Substitution { .. } => hole.range.end < word.text.len(),
                HoleKind::Variable(_) => collector && hole.range.end + 1 < word.text.len(),
                _ => false,
            });
            if carries {
                let reason = format!("`{name}` sends data out in a name it looks up");
                return self.add(Rule::Exfiltration, command.span, reason);
            }
            if collector && (name != "ping" || hosts::is_named_for_attack(&word.text)) {
                let reason = format!("`{name}` talks to {}", word.text);
                return self.add(Rule::NetworkHost, command.span, reason);
            }
        }
    }
}

/// `nc -e sh`, `socat exec:sh`.
fn gives_shell(name: &str, command: &Command) -> bool {
    let args = command.args();
    match name {
        "telnet" => false,
        "socat" => {
            let addresses = || operands(args).map(|word| word.text.to_ascii_lowercase());
            let runs = |text: &str| {
                let kinds = ["exec:", "system:", "shell:"];
                kinds.iter().any(|kind| text.starts_with(kind))
            };
            // Between a program and the terminal nothing leaves; a shell there is an escape.
            let here = |text: &str| {
                let kind = text.split([',', ':']).next().unwrap_or_default();
                matches!(
                    kind,
                    "-" | "stdio" | "stdin" | "readline" | "/dev/null" | "echo"
                )
            };
            let shell = |text: &str| text.contains("sh");
            // A program that only gives back what it gets, or a text of its own.
            let echoes = |text: &str| {
                let program = text.split([':', ',']).nth(1).unwrap_or_default();
                let name = program.rsplit('/').next().unwrap_or_default();
                let name = name.split(' ').next().unwrap_or_default();
                matches!(name, "echo" | "date" | "true") || matches!(program, "cat" | "/bin/cat")
            };
            let away = addresses().any(|text| !runs(&text) && !here(&text));
            addresses().any(|text| runs(&text) && !echoes(&text) && (away || shell(&text)))
        }
        _ => {
            let shell = |text: &str| ["sh", "cmd", "lua"].iter().any(|part| text.contains(part));
            has(args, "ec", &["exec", "sh-exec", "lua-exec"])
                && args.iter().any(|word| shell(&word.text))
        }
    }
}
