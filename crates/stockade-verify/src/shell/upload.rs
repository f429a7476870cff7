//! Transfers: what is fetched from where, and what leaves.

use stockade_shell::{Command, CommandId, Word};

use super::gather::{Gathered, Matter, is_dump, is_named_secret, is_others, is_telling};
use super::misplaced::misplaced_secret;
use super::sent::{Sent, sent_data};
use super::{Judge, has, operands, value_of};
use crate::files::Writing;
use crate::hosts;
use crate::rule::Rule;

impl Judge<'_> {
    /// Local data given to a network command on its input.
    pub(super) fn sends_file(&mut self, id: CommandId, name: &str, command: &Command) {
        let strange = command.args().iter().any(|word| {
            let host = hosts::host_of(&word.text).unwrap_or(&word.text);
            hosts::is_public_address(host)
        });
        let raw = super::programs::Group::Streams.has(name) || name == "openssl";
        let strange = strange || raw && self.is_addressed(command);
        // Machines nearby have short names, or private addresses.
        let far = |word: &Word| {
            let host = hosts::host_of(&word.text).unwrap_or_default();
            host.contains('.')
                && host.parse::<std::net::IpAddr>().is_err()
                && !hosts::is_local(host)
        };
        let far = operands(command.args()).any(far);
        let named = (matches!(name, "ssh" | "rsh") || !far) && !strange;
        if let Some(found) = self
            .data_on_input(id)
            .filter(|found| !named || found.matter > Matter::Work)
        {
            let reason = format!("sends what `{}` gathers through `{name}`", found.by);
            return self.leaks(&found, command, reason);
        }
        let own = std::iter::once(command).chain(self.script.ancestors(id).take(4));
        let mut inputs = own
            .flat_map(|command| &command.redirects)
            .filter(|redirect| redirect.op == stockade_shell::RedirectOp::Read);
        if let Some(redirect) = inputs.next() {
            let place = self.place(&redirect.target.text);
            let sent = place.path.starts_with(['/', '~']) || strange || is_dump(&place.path);
            if !place.is(crate::paths::Kind::Sink) && sent {
                let reason = format!("sends {} through `{name}`", place.path);
                return self.add(Rule::Exfiltration, command.span, reason);
            }
        }
        let gives =
            |word: &&Word| word.text.starts_with(['/', '~']) && is_telling(&self.place(&word.text));
        if super::programs::Group::Streams.has(name)
            && let Some(word) = operands(command.args()).find(gives)
        {
            let reason = format!("sends {} through `{name}`", word.text);
            return self.add(Rule::Exfiltration, command.span, reason);
        }
        let packed = |other: &CommandId| {
            let program = self.script.commands[*other].name().unwrap_or_default();
            super::programs::Group::Archivers.has(program)
                || super::programs::Group::PassesOn.has(program)
        };
        if strange && self.script.upstream(id).iter().any(packed) {
            let reason = format!("sends files through `{name}` to a bare address");
            self.add(Rule::Exfiltration, command.span, reason);
        }
    }

    /// Adds what leaves: an error, or a warning in a long script that may well have a reason.
    pub(super) fn leaks(&mut self, found: &Gathered, command: &Command, reason: String) {
        let certain = self.is_brief() || found.matter > Matter::Dump;
        self.findings
            .weigh(certain, Rule::Exfiltration, command.span, reason);
    }

    /// `curl`, `wget` and their kin.
    pub(super) fn fetch(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        let is_address = |word: &&Word| {
            let file = word.text.starts_with(['.', '/', '~', '@']);
            hosts::is_url(&word.text) || word.text.contains('.') && !file
        };
        let urls: Vec<&Word> = operands(args).filter(is_address).collect();
        let local = hosts::only_local(urls.iter().map(|word| word.text.as_str()));
        if matches!(name, "ftp" | "tftp") {
            self.commanded_upload(name, command);
        }
        if matches!(name, "http" | "https" | "httpie" | "xh" | "ftp") && !local {
            self.sends_file(id, name, command);
        }
        if self.uploads(id, name, command, local) || self.odd_host(name, command, &urls) {
            return;
        }
        if let Some(word) = args.iter().find(|word| word.text.starts_with("file://")) {
            self.read_at(&word.text, command.span);
        }
        let output = match name {
            "curl" => value_of(args, 'o', &["output"]),
            _ => value_of(args, 'O', &["output-document"])
                .or_else(|| value_of(args, 'P', &["directory-prefix"])),
        };
        if let Some(output) = output {
            self.write_at(output, Writing::Replace, command.span);
        }
        if !urls.is_empty() && !local {
            let reason = format!("`{name}` opens a network connection");
            self.warn(Rule::NetworkAccess, command.span, reason);
        }
    }

    /// Files and what commands tell of this machine, in an upload.
    fn uploads(&mut self, id: CommandId, name: &str, command: &Command, local: bool) -> bool {
        let mut sent = sent_data(name, command.args());
        if matches!(name, "http" | "https" | "httpie" | "xh" | "xhs") {
            // `name@file`, `name=@file`, `@file`
            let items = command.args().iter().filter_map(|word| {
                let (_, file) = word.text.split_once('@')?;
                let item = !hosts::is_url(&word.text) && !word.text.starts_with('-');
                item.then(|| Sent {
                    file: Some((word, file.to_owned())),
                    body: false,
                })
            });
            sent.extend(items);
        }
        for (word, file) in sent.iter().filter_map(|data| data.file.as_ref()) {
            let place = self.place(file);
            let outside = file.starts_with(['/', '~']) || is_dump(file);
            let held = self.flow.file(&self.key(word, file)).cloned();
            let reason = format!("`{name}` uploads {file}");
            if is_telling(&place) || !local && outside {
                self.add(Rule::Exfiltration, command.span, reason);
                return true;
            }
            if let Some(held) = held.filter(|_| !local) {
                self.leaks(&held, command, reason);
                return true;
            }
            if file.starts_with('$') && !local {
                // Whatever it is: a long script knows.
                self.findings
                    .excerpt(Rule::Exfiltration, command.span, reason);
                return true;
            }
        }
        if local {
            return false;
        }
        if self.uploads_to_address(name, command, &sent) {
            return true;
        }
        if let Some(found) = self.gathered_inside(&command.words) {
            let reason = format!("`{name}` sends what `{}` gathers", found.by);
            self.leaks(&found, command, reason);
            return true;
        }
        let posts = !sent.is_empty() || has(command.args(), "T", &["post_data"]);
        let posts = posts || self.takes_from_input(id, command);
        // `cat secret | curl host`: meant to, even if nothing arrives.
        let meant = |found: &Gathered| found.matter == Matter::Theirs && self.is_brief();
        if let Some(found) = self.data_on_input(id).filter(|found| posts || meant(found)) {
            let reason = format!("`{name}` sends what `{}` gathers", found.by);
            self.leaks(&found, command, reason);
            return true;
        }
        if let Some(secret) = misplaced_secret(command.args()) {
            let reason = format!("`{name}` sends ${secret} to a host that it is not for");
            self.add(Rule::Exfiltration, command.span, reason);
            return true;
        }
        if tells_who(command.args()) {
            let reason = format!("`{name}` tells who and where it is");
            self.add(Rule::Exfiltration, command.span, reason);
            return true;
        }
        false
    }

    /// Whether what a pipeline carries becomes an argument: `… | xargs curl`, `… | while read x`.
    pub(super) fn takes_from_input(&self, id: CommandId, command: &Command) -> bool {
        let mut wrappers = self.script.ancestors(id);
        wrappers.any(|parent| matches!(parent.name(), Some("xargs" | "parallel")))
            || command.stage == 0
                && command
                    .args()
                    .iter()
                    .any(|word| word.variables().next().is_some())
    }

    fn odd_host(&mut self, name: &str, command: &Command, urls: &[&Word]) -> bool {
        for word in urls {
            if hosts::is_metadata(&word.text) {
                let reason = format!("`{name}` asks the cloud for credentials: {}", word.text);
                self.add(Rule::CredentialRead, command.span, reason);
                return true;
            }
            if let Some(why) = hosts::suspicion(&word.text) {
                let reason = format!("`{name}` talks to {why}: {}", word.text);
                self.add(Rule::NetworkHost, command.span, reason);
                return true;
            }
        }
        false
    }

    /// `ssh`, `scp` and other ways to another machine.
    pub(super) fn transfer(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        if name == "ssh" {
            let runs_it = args.last().is_some_and(|word| {
                let mut words = word.text.split(' ');
                let shell = words.next().is_some_and(stockade_shell::is_shell);
                shell && words.all(|word| matches!(word, "-s" | "-" | "--" | "-x" | "-e"))
            });
            if !runs_it {
                self.sends_file(id, name, command);
            }
            let proxy = value_of(args, 'o', &[]).map(str::to_ascii_lowercase);
            if proxy
                .is_some_and(|option| option.starts_with("proxycommand") && names_shell(&option))
            {
                let reason = "runs a shell as ssh's proxy command";
                self.add(Rule::ShellEscape, command.span, reason);
            }
        }
        let piped = args
            .iter()
            .any(|word| word.text.contains("/dev/stdin") || word.text.contains("put -"));
        if piped {
            self.sends_file(id, name, command);
        }
        self.commanded_upload(name, command);
        if !args.iter().any(|word| word.text.contains([':', '@'])) {
            return;
        }
        let key = value_of(args, 'i', &[]);
        for word in operands(args).filter(|word| name != "ssh" && key != Some(word.text.as_str())) {
            // These name the repository first, and keep what others have for a living.
            let backs_up = matches!(name, "restic" | "borg" | "duplicity");
            if is_remote(&word.text) {
                if backs_up {
                    continue;
                }
                break;
            }
            let place = self.place(&word.text);
            let outside = word.text.starts_with(['/', '~', '$']);
            let others = is_others(&place) && outside && !backs_up;
            let held = self.flow.file(&self.key(word, &word.text));
            let held = held.is_some_and(|held| held.matter > Matter::Dump);
            let telling = is_telling(&place) || is_named_secret(&word.text);
            if telling || others || held {
                let reason = format!("`{name}` sends {}", word.text);
                let certain = telling || self.is_brief();
                self.findings
                    .weigh(certain, Rule::Exfiltration, command.span, reason);
                return;
            }
        }
        if let Some(found) = self
            .gathered_inside(&command.words)
            .filter(|found| name != "ssh" || found.matter == Matter::Theirs)
        {
            let reason = format!("`{name}` sends what `{}` gathers", found.by);
            return self.leaks(&found, command, reason);
        }
        for word in args {
            // `user@host:path`, `rest:http://host/path`
            let text = word.text.as_str();
            let url = text.find("http").map(|at| &text[at..]);
            let address = url.unwrap_or_else(|| text.rsplit('@').next().unwrap_or(text));
            let host = address.split(':').next().unwrap_or(address);
            let host = if url.is_some() { address } else { host };
            if let Some(why) = hosts::suspicion(host).filter(|_| host.contains('.')) {
                let reason = format!("`{name}` talks to {why}: {text}");
                return self.add(Rule::NetworkHost, command.span, reason);
            }
        }
        if self.sends_to_address(name, command) {
            return;
        }
        if !self.staged_transfer(name, command) && !matches!(name, "rsync" | "rclone") {
            let reason = format!("`{name}` opens a network connection");
            self.warn(Rule::NetworkAccess, command.span, reason);
        }
    }
}

/// Whether a word of a command line is a shell: not the `sh` in `ssh`.
fn names_shell(line: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(stockade_shell::is_shell)
}

/// `host:path`, `remote:`, a URL.
fn is_remote(text: &str) -> bool {
    text.contains(':') && !text.starts_with(['/', '~', '.', '$'])
}

/// Several variables that say who runs this and where, in one request.
fn tells_who(args: &[Word]) -> bool {
    const WHO: &[&str] = &[
        "USER",
        "LOGNAME",
        "HOSTNAME",
        "HOST",
        "SSH_CLIENT",
        "SSH_CONNECTION",
        "SUDO_USER",
        "HISTFILE",
    ];
    let mut told: Vec<&str> = args
        .iter()
        .flat_map(Word::variables)
        .filter(|name| WHO.contains(name))
        .collect();
    told.sort_unstable();
    told.dedup();
    told.len() > 1
}
