//! What was downloaded or decoded, and then runs.

use std::collections::HashSet;

use stockade_shell::{Command, CommandId, Place, RedirectOp, is_shell};

use super::mentions::value_after;
use super::programs::Group;
use super::{Judge, has, operands, value_of};
use crate::hosts;
use crate::rule::Rule;

/// Programs that hand on what the network sends, as it comes.
const PIPES: &[&str] = &[
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
pub(super) fn interprets_stdin(name: &str, command: &Command) -> bool {
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
        "source" | "" | "." => operand.is_some_and(|word| word.text == "/dev/stdin"),
        _ => false,
    }
}

/// Whether a program takes a file or text to run.
fn interprets(name: &str) -> bool {
    is_shell(name)
        || matches!(
            name,
            "." | "source" | "exec" | "perl" | "ruby" | "node" | "php"
        )
        || name.starts_with("python")
}

impl Judge<'_> {
    fn fetches(&self, id: CommandId) -> bool {
        let command = &self.script.commands[id];
        let args = command.args();
        let device = |redirect: &stockade_shell::Redirect| {
            redirect.op == RedirectOp::Read && redirect.target.text.starts_with("/dev/tcp/")
        };
        if command.redirects.iter().any(device) {
            return true;
        }
        let name = command.name().map(str::to_ascii_lowercase);
        match name.as_deref() {
            Some(
                "nc" | "ncat" | "netcat" | "telnet" | "socat" | "dig" | "nslookup" | "ssh" | "host"
                | "drill" | "kdig" | "dog" | "doggo" | "whois" | "finger" | "ftpget" | "websocat"
                | "mosquitto_sub" | "redis-cli" | "ipfs",
            ) => true,
            Some("gh") => args.first().is_some_and(|word| word.text == "api"),
            Some(name) => Group::Fetchers.has(name) && !args.is_empty(),
            None => false,
        }
    }

    /// Whether an earlier stage of the pipeline fetches what this one reads.
    pub(super) fn comes_from_network(&self, id: CommandId) -> bool {
        let upstream = self.script.upstream(id);
        upstream.iter().any(|other| self.fetches(*other))
    }

    /// What runs text that came from the network or was decoded.
    pub(super) fn run_download(&mut self, id: CommandId, name: &str, command: &Command) {
        if interprets_stdin(name, command) && self.runs_input(id, name, command) {
            return;
        }
        if (interprets(name) || matches!(name, "eval" | "xargs"))
            && self.runs_output(id, name, command)
        {
            return;
        }
        self.runs_file(name, command);
        self.runs_hidden(id, command);
        if Group::Fetchers.has(name) || name == "ftpget" {
            self.note_download(name, command);
        }
        let letters = matches!(
            name,
            "base64" | "base32" | "gbase64" | "basenc" | "xxd" | "openssl" | "uudecode"
        );
        if letters && decodes(command) {
            let named = match name {
                "openssl" => value_after(command, "-out"),
                _ => value_of(command.args(), 'o', &["output"]),
            };
            let files = named.into_iter().chain(written(command));
            self.decoded.extend(files.filter_map(file_name));
        }
    }

    /// A pipeline that ends in an interpreter.
    fn runs_input(&mut self, id: CommandId, name: &str, command: &Command) -> bool {
        let mut upstream = self.script.upstream(id);
        let here = command.redirects.iter();
        let here = here.filter(|redirect| redirect.op == RedirectOp::HereString);
        let here = here.flat_map(|redirect| redirect.target.substitutions());
        upstream.extend(here.flatten());
        if let Some(source) = upstream.iter().find(|other| self.fetches(**other)) {
            let from = self.script.commands[*source].name().unwrap_or_default();
            if PIPES.contains(&from) {
                let reason = format!("runs what `{from}` receives");
                self.add(Rule::ReverseShell, command.span, reason);
            } else {
                let reason = format!("pipes `{from}` into `{name}`");
                self.add(Rule::DownloadRun, command.span, reason);
            }
            return true;
        }
        let decoded = upstream
            .iter()
            .any(|other| decodes(&self.script.commands[*other]));
        if decoded {
            let reason = format!("pipes decoded text into `{name}`");
            self.add(Rule::CodeHidden, command.span, reason);
        }
        if is_shell(name) && !decoded {
            self.printed_commands(&upstream, command);
        }
        let unread = is_shell(name) && !matches!(command.stdin, stockade_shell::Stdin::Text(_));
        if !decoded && unread && self.rearranges(&upstream) {
            let reason = format!("pipes rearranged text into `{name}`");
            self.add(Rule::CodeHidden, command.span, reason);
            return true;
        }
        decoded || self.runs_variable(name, command, &upstream)
    }

    /// `python3 -c "print('rm -rf /')" | sh`: the texts that a program prints are commands.
    fn printed_commands(&mut self, upstream: &[CommandId], command: &Command) {
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

    /// `echo $x | sh`: what runs stands elsewhere.
    fn runs_variable(&mut self, name: &str, command: &Command, upstream: &[CommandId]) -> bool {
        let [only] = upstream else {
            return false;
        };
        let from = &self.script.commands[*only];
        let prints = matches!(from.name(), Some("echo" | "printf"));
        let last = from.args().last().map(|word| word.span);
        let written = last.and_then(|span| self.source.get(span.start..span.end));
        let whole = written.is_some_and(|written| {
            let name = written.trim_matches('"').strip_prefix('$');
            let name = name.map(|name| name.trim_matches(['{', '}']));
            name.is_some_and(|name| {
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            })
        });
        let escaped = written.is_some_and(is_escaped);
        if is_shell(name) && prints && escaped {
            let reason = format!("pipes text written in numbers into `{name}`");
            self.add(Rule::CodeHidden, command.span, reason);
            return true;
        }
        let runs = is_shell(name) && !has(command.args(), "n", &[]);
        if runs && prints && whole && self.is_brief() {
            let reason = format!("pipes a variable's text into `{name}`");
            self.add(Rule::CodeHidden, command.span, reason);
            return true;
        }
        false
    }

    /// `bash -c "$(curl …)"`, `. <(curl …)`, `eval "$(base64 -d …)"`.
    fn runs_output(&mut self, id: CommandId, name: &str, command: &Command) -> bool {
        let inner: Vec<CommandId> = command
            .args()
            .iter()
            .flat_map(stockade_shell::Word::substitutions)
            .flatten()
            .collect();
        if let Some(source) = inner.iter().find(|other| self.fetches(**other)) {
            let from = self.script.commands[*source].name().unwrap_or_default();
            let reason = format!("`{name}` runs what `{from}` fetches");
            self.add(Rule::DownloadRun, command.span, reason);
            return true;
        }
        // Text that could be worked out leaves no substitution behind, only its commands.
        let within = |other: &Command| {
            other.place == Place::Substitution
                && command.span.start < other.span.start
                && other.span.end < command.span.end
        };
        let near = id.saturating_sub(8)..(id + 8).min(self.script.commands.len());
        let decoded = inner
            .iter()
            .any(|other| decodes(&self.script.commands[*other]))
            || self.script.commands[near]
                .iter()
                .any(|other| within(other) && decodes(other));
        let runs = is_shell(name) || name == "eval";
        if runs && command.args().iter().any(|word| self.is_rearranged(word)) {
            let reason = format!("`{name}` runs rearranged text");
            self.add(Rule::CodeHidden, command.span, reason);
            return true;
        }
        if decoded && name != "xargs" {
            self.add(
                Rule::CodeHidden,
                command.span,
                format!("`{name}` runs decoded text"),
            );
            return true;
        }
        false
    }

    /// Remembers the files that a download makes.
    fn note_download(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let output = match name {
            "curl" => value_of(args, 'o', &["output"]),
            "tftp" => value_of(args, 'l', &[]).or_else(|| value_of(args, 'r', &[])),
            "ftpget" => operands(args).last().map(|word| word.text.as_str()),
            _ => value_of(args, 'O', &["output-document", "out"]),
        };
        let mut paths: Vec<&str> = output.into_iter().collect();
        let named = name != "curl" || has(args, "OJ", &["remote-name", "remote-name-all"]);
        if output.is_none() && named {
            let urls = operands(args).map(|word| word.text.as_str());
            let urls = urls.filter(|text| text.contains('/') || hosts::is_url(text));
            let last = |text: &'_ str| text.rfind('/').map_or(0, |at| at + 1);
            paths.extend(urls.filter_map(|text| text[last(text)..].split('?').next()));
        }
        paths.extend(written(command));
        self.downloaded
            .extend(paths.into_iter().filter_map(file_name));
    }

    /// A file that was downloaded, decoded, or made executable in a temporary place, and is run.
    pub(super) fn runs_file(&mut self, name: &str, command: &Command) {
        if self.downloaded.is_empty() && self.decoded.is_empty() && self.made_executable.is_empty()
        {
            return;
        }
        let program = command.words[0].text.as_str();
        let file = if interprets(name) {
            operands(command.args())
                .next()
                .map(|word| word.text.as_str())
        } else {
            (program.contains('/') || program.starts_with('$')).then_some(program)
        };
        let Some(file) = file.map(|file| file.trim_start_matches("./")) else {
            return;
        };
        let same = |path: &String| path.ends_with(file) || file.ends_with(path.as_str());
        let last = |path: &str| path.rsplit('/').next() == file.rsplit('/').next();
        let is_among = |paths: &HashSet<String>| paths.iter().any(|path| last(path) && same(path));
        if is_among(&self.downloaded) {
            let reason = format!("runs {file}, which was just downloaded");
            return self.add(Rule::DownloadRun, command.span, reason);
        }
        if is_among(&self.decoded) {
            let reason = format!("runs {file}, which was just decoded");
            return self.add(Rule::CodeHidden, command.span, reason);
        }
        let bare = file.trim_start_matches('/');
        let temporary = ["tmp/", "var/tmp/", "dev/shm/"]
            .iter()
            .any(|place| bare.starts_with(place));
        // What the script itself wrote there is judged by its content.
        let known = self
            .script
            .files
            .iter()
            .any(|written| written.path.ends_with(file));
        if temporary && file == program && !known && self.made_executable.contains(file) {
            let reason = format!("runs {file}, which it put there itself");
            self.add(Rule::DownloadRun, command.span, reason);
        }
    }
}

impl Judge<'_> {
    /// A program where anyone may put one: hidden there, or run with other rights.
    fn runs_hidden(&mut self, id: CommandId, command: &Command) {
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

/// Where a command's output is redirected to.
fn written(command: &Command) -> impl Iterator<Item = &str> {
    let out = command.redirects.iter();
    let out = out.filter(|redirect| redirect.op.writes() && redirect.fd.is_none_or(|fd| fd == 1));
    out.map(|redirect| redirect.target.text.as_str())
}

/// How a file that can be run later is remembered.
fn file_name(path: &str) -> Option<String> {
    let nowhere = matches!(path, "" | "-" | "/" | "/dev/null");
    (!nowhere).then(|| path.trim_start_matches("./").to_owned())
}

/// Commands that turn encoded text back.
fn decodes(command: &Command) -> bool {
    let args = command.args();
    match command.name().unwrap_or_default() {
        "base64" | "base32" | "gbase64" | "basenc" => has(args, "dD", &["decode"]),
        "xxd" => has(args, "r", &["revert"]),
        "tr" => {
            let turned = |word: &stockade_shell::Word| {
                let lower = word.text.to_ascii_lowercase();
                lower.contains("n-za-m") || lower.contains("nopqrstuvwxyzabc")
            };
            args.iter().any(turned)
        }
        "openssl" => args.iter().any(|word| word.text == "-d"),
        "gpg" | "gpg2" => has(args, "d", &["decrypt"]),
        // Letters from their numbers.
        "printf" => args.first().is_some_and(|word| {
            let format = word.text.as_str();
            matches!(
                format,
                "%o" | "%03o" | "%x" | "%02x" | "\\x%x" | "\\%o" | "\\%03o" | "\\x%02x"
            ) || format.starts_with('\\') && word.literal().is_none()
        }),
        "awk" | "gawk" | "mawk" => args.iter().any(|word| word.text.contains("%c")),
        "perl" | "ruby" | "python" | "python3" => {
            let turns = [
                "pack(",
                "pack \"",
                "pack '",
                "chr(",
                ".chr",
                "chr ",
                "b64decode",
                "decode_base64",
                "fromhex",
            ];
            args.iter()
                .any(|word| turns.iter().any(|turn| word.text.contains(turn)))
        }
        "rev" | "b64decode" | "uudecode" | "zcat" | "bzcat" | "xzcat" | "zstdcat" => true,
        "gzip" | "bzip2" | "xz" | "zstd" | "lz4" => has(args, "d", &["decompress"]),
        "gunzip" | "bunzip2" | "unxz" | "unzip" => has(args, "cp", &["stdout"]),
        _ => false,
    }
}

/// Letters written as numbers: `\\x69\\x64`, `\\151\\144`.
pub(super) fn is_escaped(written: &str) -> bool {
    let numbers = written.split('\\').skip(1).filter(|part| {
        let digits = part.strip_prefix('x').unwrap_or(part);
        let hex = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
        hex >= 2
    });
    numbers.count() >= 2
}
