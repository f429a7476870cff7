//! Downloads that run, shells on the network, data that leaves.

use stockade_shell::{Command, CommandId, HoleKind, RedirectOp, Stdin, Word, is_shell};

use super::programs::Group;
use super::{Judge, has, operands, value_of};
use crate::hosts;
use crate::paths::{Kind, Place};
use crate::result::Span;
use crate::rule::Rule;

const PIPES_TO_NETWORK: &[&str] = &[
    "nc",
    "ncat",
    "netcat",
    "nc.traditional",
    "nc.openbsd",
    "telnet",
    "socat",
    "openssl",
];

/// Interpreters that run what they read from standard input.
fn interprets_stdin(name: &str, command: &Command) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let args = command.args();
    let operand = args
        .iter()
        .find(|word| !word.text.starts_with('-') || word.text == "-");
    let bare = operand.is_none_or(|word| matches!(word.text.as_str(), "-" | "/dev/stdin"));
    if is_shell(name) {
        return bare || has(args, "s", &[]);
    }
    match stem {
        "python" | "perl" | "ruby" | "node" | "php" | "lua" | "pypy" | "tclsh" | "osascript"
        | "deno" | "bun" => bare && !has(args, "cemVvh", &["version", "eval", "help", "print"]),
        "source" | "" => operand.is_some_and(|word| word.text == "/dev/stdin"),
        "psql" | "mysql" => false,
        "xargs" | "parallel" => false,
        "at" | "batch" | "crontab" => false,
        _ => false,
    }
}

impl Judge<'_> {
    fn fetches(&self, id: CommandId) -> bool {
        let command = &self.script.commands[id];
        let Some(name) = command.name() else {
            return false;
        };
        Group::Fetchers.has(name) && !asks_nothing(command)
            || matches!(
                name,
                "nc" | "ncat" | "netcat" | "telnet" | "socat" | "ssh" | "dig" | "nslookup"
            ) && name != "ssh"
            || name == "gh"
                && command
                    .args()
                    .first()
                    .is_some_and(|word| word.text == "api")
    }

    /// What runs text that came from the network.
    pub(super) fn run_download(&mut self, id: CommandId, name: &str, command: &Command) {
        let upstream = self.script.upstream(id);
        let reads = interprets_stdin(name, command) && !matches!(command.stdin, Stdin::Text(_));
        if reads {
            let fetched = upstream.iter().find(|other| self.fetches(**other));
            if let Some(source) = fetched {
                let from = self.script.commands[*source]
                    .name()
                    .unwrap_or_default()
                    .to_owned();
                if PIPES_TO_NETWORK.contains(&from.as_str()) {
                    return self.add(
                        Rule::ReverseShell,
                        command.span,
                        format!("runs what `{from}` receives"),
                    );
                }
                return self.add(
                    Rule::DownloadRun,
                    command.span,
                    format!("pipes `{from}` into `{name}`"),
                );
            }
            let decoded = upstream
                .iter()
                .any(|other| decodes(&self.script.commands[*other]));
            if decoded {
                return self.add(
                    Rule::CodeHidden,
                    command.span,
                    format!("pipes decoded text into `{name}`"),
                );
            }
        }
        let takes_code = is_shell(name)
            || matches!(name, "eval" | "source" | "." | "exec" | "xargs")
            || name.starts_with("python")
            || matches!(name, "perl" | "ruby" | "node" | "php");
        if takes_code {
            for word in command.args() {
                let fetched = word
                    .substitutions()
                    .flatten()
                    .find(|other| self.fetches(*other));
                if let Some(source) = fetched {
                    let from = self.script.commands[source].name().unwrap_or_default();
                    let reason = format!("`{name}` runs what `{from}` fetches");
                    return self.add(Rule::DownloadRun, command.span, reason);
                }
                let decoded = word
                    .substitutions()
                    .flatten()
                    .any(|other| decodes(&self.script.commands[other]));
                if decoded && name != "xargs" {
                    return self.add(
                        Rule::CodeHidden,
                        command.span,
                        format!("`{name}` runs decoded text"),
                    );
                }
            }
        }
        self.run_downloaded_file(name, command);
        if Group::Fetchers.has(name) {
            self.note_download(name, command);
        }
    }

    fn note_download(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let output = if name == "curl" {
            value_of(args, 'o', &["output"])
        } else {
            value_of(args, 'O', &["output-document", "out"])
        };
        let mut paths: Vec<String> = output.map(str::to_owned).into_iter().collect();
        let named = name != "curl" || has(args, "OJ", &["remote-name", "remote-name-all"]);
        if output.is_none() && named {
            let urls =
                operands(args).filter(|word| word.text.contains('/') || hosts::is_url(&word.text));
            paths.extend(urls.filter_map(|word| {
                word.text
                    .rsplit('/')
                    .next()
                    .map(|last| last.split('?').next().unwrap_or(last).to_owned())
            }));
        }
        let redirected = command
            .redirects
            .iter()
            .filter(|redirect| redirect.op.writes() && redirect.fd.is_none_or(|fd| fd == 1));
        paths.extend(redirected.map(|redirect| redirect.target.text.clone()));
        self.downloaded.extend(
            paths
                .into_iter()
                .filter(|path| path.len() > 1 && path != "/dev/null")
                .map(|path| path.trim_start_matches("./").to_owned()),
        );
    }

    fn run_downloaded_file(&mut self, name: &str, command: &Command) {
        if self.downloaded.is_empty() && self.made_executable.is_empty() {
            return;
        }
        let interpreter = is_shell(name)
            || matches!(
                name,
                "." | "source" | "perl" | "ruby" | "node" | "php" | "exec"
            )
            || name.starts_with("python");
        let program = command.words[0].text.as_str();
        let file = if interpreter {
            operands(command.args())
                .next()
                .map(|word| word.text.as_str())
        } else {
            (program.contains('/') || program.starts_with('$')).then_some(program)
        };
        let Some(file) = file.map(|file| file.trim_start_matches("./")) else {
            return;
        };
        let same = |path: &String| {
            path == file
                || path.rsplit('/').next() == file.rsplit('/').next()
                    && (path.ends_with(file) || file.ends_with(path.as_str()))
        };
        let temporary = ["tmp/", "var/tmp/", "dev/shm/"]
            .iter()
            .any(|place| file.trim_start_matches('/').starts_with(place));
        let known = self
            .script
            .files
            .iter()
            .any(|written| written.path.ends_with(file));
        if temporary && !interpreter && !known && self.made_executable.contains(file) {
            self.add(
                Rule::DownloadRun,
                command.span,
                format!("runs {file}, which it made executable itself"),
            );
        }
        if self.downloaded.iter().any(same) {
            self.add(
                Rule::DownloadRun,
                command.span,
                format!("runs {file}, which was just downloaded"),
            );
        }
    }

    /// A redirection to `/dev/tcp/…`.
    pub(super) fn network_device(
        &mut self,
        id: CommandId,
        command: &Command,
        op: RedirectOp,
        span: Span,
    ) {
        let name = command.name().unwrap_or_default();
        let shell = is_shell(name) || name == "exec" || name.starts_with("python");
        let within_shell = self
            .script
            .commands
            .iter()
            .enumerate()
            .skip(id + 1)
            .take(16)
            .any(|(_, other)| {
                other.name().is_some_and(is_shell)
                    && other.redirects.iter().any(|redirect| {
                        matches!(
                            redirect.op,
                            RedirectOp::DuplicateIn | RedirectOp::DuplicateOut
                        )
                    })
            });
        if shell || within_shell || op == RedirectOp::ReadWrite {
            return self.add(
                Rule::ReverseShell,
                command.span,
                "connects a shell to the network",
            );
        }
        let secret = command
            .words
            .iter()
            .any(|word| word.substitutions().next().is_some());
        if secret || matches!(name, "cat" | "tar" | "env" | "history") && op.writes() {
            return self.add(
                Rule::Exfiltration,
                command.span,
                "sends data through the shell's network device",
            );
        }
        self.warn(
            Rule::NetworkAccess,
            span,
            "opens a connection through the shell's network device",
        );
    }

    pub(super) fn network_command(&mut self, id: CommandId, name: &str, command: &Command) {
        match name {
            "nc" | "ncat" | "netcat" | "nc.traditional" | "nc.openbsd" | "socat" | "telnet"
            | "cryptcat" | "pwncat" => self.netcat(id, name, command),
            "openssl"
                if command
                    .args()
                    .first()
                    .is_some_and(|word| matches!(word.text.as_str(), "s_client" | "s_server")) =>
            {
                self.piped_shell(id, name, command);
                self.sends_file(id, name, command);
            }
            _ if Group::Fetchers.has(name) => self.fetch(id, name, command),
            "ssh" | "scp" | "sftp" | "rsync" | "sshfs" | "ftp" | "tftp" | "rclone" | "mosh"
            | "croc" | "restic" | "smbclient" | "ab" | "hping3" | "cancel" | "finger" => {
                self.transfer(id, name, command);
            }
            "nslookup" | "dig" | "host" | "ping" | "drill" | "getent" | "whois" => {
                self.lookup(id, name, command);
            }
            "ngrok" | "localtunnel" | "lt" | "cloudflared" | "bore" | "chisel" | "frpc"
            | "ligolo" | "tailscale"
                if command.args().iter().any(|word| {
                    matches!(
                        word.text.as_str(),
                        "http"
                            | "tcp"
                            | "tunnel"
                            | "client"
                            | "server"
                            | "funnel"
                            | "serve"
                            | "local"
                            | "--port"
                            | "tls"
                    )
                }) =>
            {
                self.add(
                    Rule::NetworkHost,
                    command.span,
                    format!("`{name}` opens this machine to the internet"),
                );
            }
            "tcpdump" | "tshark" | "dumpcap" | "ettercap" | "dsniff" | "arpspoof" | "bettercap" => {
                let reads_file = has(command.args(), "rDh", &["list-interfaces"]);
                if !reads_file {
                    self.warn(
                        Rule::Surveillance,
                        command.span,
                        format!("`{name}` records network traffic"),
                    );
                }
            }
            "code"
                if command
                    .args()
                    .first()
                    .is_some_and(|word| word.text == "tunnel") =>
            {
                self.add(
                    Rule::NetworkHost,
                    command.span,
                    "opens this machine to the internet",
                );
            }
            _ => {}
        }
        let serves = command
            .args()
            .iter()
            .zip(command.args().iter().skip(1))
            .any(|(flag, module)| {
                flag.text == "-m"
                    && matches!(
                        module.text.as_str(),
                        "http.server" | "SimpleHTTPServer" | "pyftpdlib" | "smtpd" | "uploadserver"
                    )
            });
        if serves || name == "httpd" && has(command.args(), "fhp", &[]) {
            let local = command
                .args()
                .iter()
                .any(|word| word.text == "127.0.0.1" || word.text == "localhost");
            if !local {
                self.warn(
                    Rule::NetworkListen,
                    command.span,
                    "serves files to the network",
                );
            }
        }
    }

    fn netcat(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        let executes = match name {
            "socat" => args.iter().any(|word| {
                let text = word.text.to_ascii_lowercase();
                ["exec:", "system:", "shell:"]
                    .iter()
                    .any(|kind| text.starts_with(kind))
                    && !text.starts_with("exec:echo")
            }),
            "telnet" => false,
            _ => {
                has(args, "ec", &["exec", "sh-exec", "lua-exec"])
                    && args.iter().any(|word| {
                        word.text.contains("sh")
                            || word.text.contains("cmd")
                            || word.text.contains("lua")
                    })
            }
        };
        if executes {
            return self.add(
                Rule::ReverseShell,
                command.span,
                format!("`{name}` gives a shell to the network"),
            );
        }
        if self.piped_shell(id, name, command) {
            return;
        }
        if name == "socat" {
            for word in args {
                if let Some((_, path)) = word.text.split_once(':') {
                    let path = path.split(',').next().unwrap_or(path).to_owned();
                    let kind = word.text.to_ascii_lowercase();
                    let place = self.place(&path);
                    if kind.starts_with("open:")
                        || kind.starts_with("create:")
                        || kind.starts_with("file:")
                    {
                        let files = crate::files::Files {
                            allowed: &self.analysis.verifier.allowed_paths,
                            speaker: crate::files::Speaker::Shell,
                        };
                        files.read(&place, command.span, self.findings);
                        files.write(
                            &place,
                            crate::files::Writing::Append,
                            command.span,
                            self.findings,
                        );
                    }
                }
            }
        }
        self.sends_file(id, name, command);
        let relay = self.script.pipelines[command.pipeline].stages > 2
            && self.script.commands[self.script.pipelines[command.pipeline].commands.clone()]
                .iter()
                .filter(|other| matches!(other.name(), Some("nc" | "ncat" | "netcat")))
                .count()
                > 1;
        if relay {
            return self.add(
                Rule::NetworkHost,
                command.span,
                "relays connections between two ends",
            );
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

    /// A pipeline that has both a shell and this network command.
    fn piped_shell(&mut self, id: CommandId, name: &str, command: &Command) -> bool {
        let pipeline = &self.script.pipelines[command.pipeline];
        if pipeline.stages < 2 {
            return false;
        }
        let others = &self.script.commands[pipeline.commands.clone()];
        let shell = others.iter().enumerate().any(|(at, other)| {
            pipeline.commands.start + at != id
                && other.stage != command.stage
                && other.name().is_some_and(|shell| {
                    is_shell(shell) && interprets_stdin(shell, other)
                        || matches!(shell, "python" | "python3" | "cmd" | "powershell")
                })
        });
        if shell {
            self.add(
                Rule::ReverseShell,
                command.span,
                format!("`{name}` and a shell in one pipeline"),
            );
        }
        shell
    }

    /// Local data given to a network command: a file on its input, or what earlier stages read.
    fn sends_file(&mut self, id: CommandId, name: &str, command: &Command) {
        let from_file = command
            .redirects
            .iter()
            .find(|redirect| redirect.op == RedirectOp::Read);
        if let Some(redirect) = from_file {
            let place = self.place(&redirect.target.text);
            if !place.is(Kind::Sink)
                && (place
                    .kinds()
                    .iter()
                    .any(|kind| matches!(kind, Kind::Credential | Kind::Account))
                    || place.path.starts_with('/'))
            {
                return self.add(
                    Rule::Exfiltration,
                    command.span,
                    format!("sends {} through `{name}`", place.path),
                );
            }
        }
        let upstream = self.script.upstream(id);
        let source = upstream
            .iter()
            .map(|other| &self.script.commands[*other])
            .find(|other| gathers(other));
        if let Some(source) = source {
            let what = source.name().unwrap_or_default();
            self.add(
                Rule::Exfiltration,
                command.span,
                format!("sends what `{what}` gathers through `{name}`"),
            );
        }
    }

    fn fetch(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        let urls: Vec<&Word> = operands(args)
            .filter(|word| hosts::is_url(&word.text) || word.text.contains('.'))
            .collect();
        let local = urls
            .iter()
            .any(|word| hosts::host_of(&word.text).is_some_and(hosts::is_local));
        let mut sent: Vec<String> = Vec::new();
        let mut posts = false;
        for (at, word) in args.iter().enumerate() {
            let text = word.text.as_str();
            let next = || {
                args.get(at + 1)
                    .map(|word| word.text.clone())
                    .unwrap_or_default()
            };
            match text {
                "-d" | "--data" | "--data-binary" | "--data-raw" | "--data-urlencode"
                | "--data-ascii" | "--json" | "-F" | "--form" | "-T" | "--upload-file"
                | "--post-data" | "--post-file" | "--body-data" | "--body-file" => {
                    posts = true;
                    sent.push(
                        if matches!(text, "-T" | "--upload-file" | "--post-file" | "--body-file") {
                            format!("@{}", next())
                        } else {
                            next()
                        },
                    );
                }
                _ => {
                    let inline = ["--post-file=", "--body-file=", "--upload-file="]
                        .iter()
                        .find_map(|flag| text.strip_prefix(flag));
                    if let Some(file) = inline {
                        posts = true;
                        sent.push(format!("@{file}"));
                    }
                    let data = ["--post-data=", "--data=", "--data-binary=", "--body-data="]
                        .iter()
                        .find_map(|flag| text.strip_prefix(flag));
                    if let Some(data) = data {
                        posts = true;
                        sent.push(data.to_owned());
                    }
                }
            }
        }
        for data in &sent {
            if let Some(file) = data
                .split_once('@')
                .map(|(_, file)| file.split(';').next().unwrap_or(file))
            {
                let place = self.place(file);
                if place
                    .kinds()
                    .iter()
                    .any(|kind| matches!(kind, Kind::Credential | Kind::Account))
                {
                    return self.add(
                        Rule::Exfiltration,
                        command.span,
                        format!("`{name}` uploads {file}"),
                    );
                }
                if !local && file.starts_with(['/', '~', '$']) {
                    return self.add(
                        Rule::Exfiltration,
                        command.span,
                        format!("`{name}` uploads {file}"),
                    );
                }
            }
        }
        let gathers_inside = command
            .words
            .iter()
            .flat_map(Word::substitutions)
            .flatten()
            .find(|other| gathers(&self.script.commands[*other]));
        if let (false, Some(inner)) = (local, gathers_inside) {
            let what = self.script.commands[inner].name().unwrap_or_default();
            return self.add(
                Rule::Exfiltration,
                command.span,
                format!("`{name}` sends what `{what}` gathers"),
            );
        }
        if !local && (posts || has(args, "T", &[])) {
            let piped = self
                .script
                .upstream(id)
                .iter()
                .map(|other| &self.script.commands[*other])
                .any(gathers);
            if piped {
                return self.add(
                    Rule::Exfiltration,
                    command.span,
                    format!("`{name}` sends what the pipeline gathers"),
                );
            }
        }
        if let Some(word) = urls.iter().find(|word| hosts::is_metadata(&word.text)) {
            let reason = format!("`{name}` asks the cloud for credentials: {}", word.text);
            return self.add(Rule::CredentialRead, command.span, reason);
        }
        for word in &urls {
            if let Some(reason) = hosts::suspicion(&word.text) {
                return self.add(
                    Rule::NetworkHost,
                    command.span,
                    format!("`{name}` talks to {reason}: {}", word.text),
                );
            }
        }
        if let Some(word) = args.iter().find(|word| word.text.starts_with("file://")) {
            let place = Place::new(&word.text);
            let files = crate::files::Files {
                allowed: &[],
                speaker: crate::files::Speaker::Shell,
            };
            files.read(&place, command.span, self.findings);
        }
        let output = if name == "curl" {
            value_of(args, 'o', &["output"])
        } else {
            value_of(args, 'O', &["output-document"])
                .or_else(|| value_of(args, 'P', &["directory-prefix"]))
        };
        if let Some(output) = output.map(str::to_owned) {
            let place = self.place(&output);
            let files = crate::files::Files {
                allowed: &self.analysis.verifier.allowed_paths,
                speaker: crate::files::Speaker::Shell,
            };
            files.write(
                &place,
                crate::files::Writing::Replace,
                command.span,
                self.findings,
            );
        }
        if !urls.is_empty() && !local {
            self.warn(
                Rule::NetworkAccess,
                command.span,
                format!("`{name}` opens a network connection"),
            );
        }
    }

    fn transfer(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        if name == "ssh" {
            self.sends_file(id, name, command);
            if has(args, "R", &[]) {
                self.add(
                    Rule::NetworkHost,
                    command.span,
                    "opens a way back into this machine",
                );
            }
            if value_of(args, 'o', &[]).is_some_and(|option| {
                option.to_ascii_lowercase().starts_with("proxycommand") && option.contains("sh")
            }) {
                self.add(
                    Rule::ShellEscape,
                    command.span,
                    "runs a shell as ssh's proxy command",
                );
            }
        }
        let remote = args
            .iter()
            .any(|word| word.text.contains(':') || word.text.contains('@'));
        if remote {
            for word in operands(args) {
                let place = self.place(&word.text);
                let secret = place
                    .kinds()
                    .iter()
                    .any(|kind| matches!(kind, Kind::Credential | Kind::Account));
                let key_option = matches!(value_of(args, 'i', &[]), Some(key) if key == word.text);
                if secret && !key_option && name != "ssh" && !word.text.ends_with(".pub") {
                    return self.add(
                        Rule::Exfiltration,
                        command.span,
                        format!("`{name}` sends {}", word.text),
                    );
                }
            }
        }
        if remote && !matches!(name, "rsync" | "rclone") {
            self.warn(
                Rule::NetworkAccess,
                command.span,
                format!("`{name}` opens a network connection"),
            );
        }
    }

    /// Data put into a name that is looked up.
    fn lookup(&mut self, _id: CommandId, name: &str, command: &Command) {
        for word in operands(command.args()) {
            let carries = word.holes.iter().any(|hole| match &hole.kind {
                HoleKind::Substitution { .. } => hole.range.end < word.text.len(),
                HoleKind::Variable(_) => {
                    hole.range.end + 1 < word.text.len() && hosts::suspicion(&word.text).is_some()
                }
                _ => false,
            });
            if carries && word.text.contains('.') {
                return self.add(
                    Rule::Exfiltration,
                    command.span,
                    format!("`{name}` sends data out in a name it looks up"),
                );
            }
            if hosts::suspicion(&word.text).is_some() && word.text.contains('.') && name != "ping" {
                return self.add(
                    Rule::NetworkHost,
                    command.span,
                    format!("`{name}` talks to {}", word.text),
                );
            }
        }
    }
}

fn asks_nothing(command: &Command) -> bool {
    command.args().is_empty()
}

/// Commands that turn encoded text back.
fn decodes(command: &Command) -> bool {
    let args = command.args();
    match command.name().unwrap_or_default() {
        "base64" | "base32" | "gbase64" | "basenc" | "b64decode" | "uudecode" => {
            has(args, "dD", &["decode"]) || command.name() == Some("b64decode")
        }
        "xxd" => has(args, "r", &["revert"]),
        "openssl" => {
            args.iter()
                .any(|word| matches!(word.text.as_str(), "-d" | "-base64"))
                && args.iter().any(|word| word.text == "-d")
        }
        "gpg" | "gpg2" => has(args, "d", &["decrypt"]),
        "rev" => true,
        _ => false,
    }
}

/// Commands whose output is about this machine and its people.
fn gathers(command: &Command) -> bool {
    let args = command.args();
    let secret = args.iter().any(|word| {
        let place = Place::new(&word.text);
        place
            .kinds()
            .iter()
            .any(|kind| matches!(kind, Kind::Credential | Kind::Account))
            || place.is_home()
    }) || command.redirects.iter().any(|redirect| {
        redirect.op == RedirectOp::Read && Place::new(&redirect.target.text).is(Kind::Credential)
    });
    if secret {
        return true;
    }
    match command.name().unwrap_or_default() {
        "env" | "printenv" => {
            args.is_empty()
                || args.iter().any(|word| {
                    word.text.contains("KEY")
                        || word.text.contains("TOKEN")
                        || word.text.contains("SECRET")
                        || word.text.contains("PASS")
                })
        }
        "set" | "export" => args.is_empty(),
        "whoami" | "id" | "hostname" | "history" | "ifconfig" => true,
        "uname" => has(args, "an", &["all", "nodename"]),
        "tar" => {
            args.iter().any(|word| {
                word.text.starts_with(['/', '~'])
                    && word.text.len() > 1
                    && !word.text.starts_with("/tmp")
            }) && args.iter().any(|word| word.text.contains('c'))
        }
        "cat" => args.iter().any(|word| {
            word.text.starts_with("/etc/")
                || word.text.starts_with("~/.")
                || word.text.starts_with("$HOME/.")
        }),
        _ => false,
    }
}
