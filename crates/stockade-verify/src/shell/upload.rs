//! Transfers: what is fetched from where, and what leaves.

use stockade_shell::{Command, CommandId, RedirectOp, Word};

use super::{Judge, has, operands, value_of};
use crate::files::Writing;
use crate::hosts;
use crate::paths::{Kind, Place};
use crate::rule::Rule;

/// Options whose value is a file to send.
const FILE_OPTIONS: &[&str] = &["-T", "--upload-file", "--post-file", "--body-file"];
/// Options whose value is data, or `@` and a file.
const DATA_OPTIONS: &[&str] = &[
    "-d",
    "--data",
    "--data-binary",
    "--data-raw",
    "--data-urlencode",
    "--data-ascii",
    "--json",
    "-F",
    "--form",
    "--post-data",
    "--body-data",
];

impl Judge<'_> {
    /// Local data given to a network command: a file on its input, or what earlier stages read.
    pub(super) fn sends_file(&mut self, id: CommandId, name: &str, command: &Command) {
        let mut inputs = command
            .redirects
            .iter()
            .filter(|redirect| redirect.op == RedirectOp::Read);
        if let Some(redirect) = inputs.next() {
            let place = self.place(&redirect.target.text);
            if !place.is(Kind::Sink) && (is_telling(&place) || place.path.starts_with('/')) {
                let reason = format!("sends {} through `{name}`", place.path);
                return self.add(Rule::Exfiltration, command.span, reason);
            }
        }
        let upstream = self.script.upstream(id);
        let mut sources = upstream.iter().map(|other| &self.script.commands[*other]);
        if let Some(source) = sources.find(|other| gathers(other)) {
            let what = source.name().unwrap_or_default();
            let reason = format!("sends what `{what}` gathers through `{name}`");
            self.add(Rule::Exfiltration, command.span, reason);
        }
    }

    /// `curl`, `wget` and their kin.
    pub(super) fn fetch(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        let is_address = |word: &&Word| hosts::is_url(&word.text) || word.text.contains('.');
        let urls: Vec<&Word> = operands(args).filter(is_address).collect();
        let local = urls
            .iter()
            .any(|word| hosts::host_of(&word.text).is_some_and(hosts::is_local));
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
        let sent = sent_data(command.args());
        for file in sent.iter().filter_map(|data| data.file.as_deref()) {
            let place = self.place(file);
            if is_telling(&place) || !local && file.starts_with(['/', '~', '$']) {
                self.add(
                    Rule::Exfiltration,
                    command.span,
                    format!("`{name}` uploads {file}"),
                );
                return true;
            }
        }
        if local {
            return false;
        }
        let mut inside = command.words.iter().flat_map(Word::substitutions).flatten();
        if let Some(inner) = inside.find(|other| gathers(&self.script.commands[*other])) {
            let what = self.script.commands[inner].name().unwrap_or_default();
            let reason = format!("`{name}` sends what `{what}` gathers");
            self.add(Rule::Exfiltration, command.span, reason);
            return true;
        }
        let posts = !sent.is_empty() || has(command.args(), "T", &[]);
        let upstream = self.script.upstream(id);
        if posts
            && upstream
                .iter()
                .any(|other| gathers(&self.script.commands[*other]))
        {
            let reason = format!("`{name}` sends what the pipeline gathers");
            self.add(Rule::Exfiltration, command.span, reason);
            return true;
        }
        false
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

    /// Copies into a bucket.
    pub(super) fn bucket(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let verb = |word: &Word| {
            matches!(
                word.text.as_str(),
                "cp" | "mv" | "sync" | "copy" | "put-object" | "upload" | "upload-batch"
            )
        };
        if !args.iter().any(verb) {
            return;
        }
        for word in args {
            let file = word.text.rsplit('=').next().unwrap_or_default();
            let place = self.place(file);
            if is_telling(&place) || place.is_home() && file.len() <= word.text.len() {
                let reason = format!("`{name}` uploads {file}");
                return self.add(Rule::Exfiltration, command.span, reason);
            }
        }
    }

    /// `ssh`, `scp` and other ways to another machine.
    pub(super) fn transfer(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        if name == "ssh" {
            self.sends_file(id, name, command);
            let proxy = value_of(args, 'o', &[]).map(str::to_ascii_lowercase);
            if proxy
                .is_some_and(|option| option.starts_with("proxycommand") && option.contains("sh"))
            {
                let reason = "runs a shell as ssh's proxy command";
                self.add(Rule::ShellEscape, command.span, reason);
            }
        }
        if !args.iter().any(|word| word.text.contains([':', '@'])) {
            return;
        }
        let key = value_of(args, 'i', &[]);
        for word in operands(args).filter(|word| name != "ssh" && key != Some(word.text.as_str())) {
            if is_telling(&self.place(&word.text)) {
                let reason = format!("`{name}` sends {}", word.text);
                return self.add(Rule::Exfiltration, command.span, reason);
            }
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
        if !matches!(name, "rsync" | "rclone") {
            let reason = format!("`{name}` opens a network connection");
            self.warn(Rule::NetworkAccess, command.span, reason);
        }
    }
}

/// Something in an upload.
struct Sent {
    file: Option<String>,
}

/// The data and files that a command's options send.
fn sent_data(args: &[Word]) -> Vec<Sent> {
    let mut out = Vec::new();
    for (at, word) in args.iter().enumerate() {
        let text = word.text.as_str();
        let (flag, value) = match text.split_once('=').filter(|_| text.starts_with("--")) {
            Some((flag, value)) => (flag, value),
            None => (text, args.get(at + 1).map_or("", |word| word.text.as_str())),
        };
        if FILE_OPTIONS.contains(&flag) {
            out.push(Sent {
                file: Some(value.to_owned()),
            });
        } else if DATA_OPTIONS.contains(&flag) {
            let file = value.split_once('@').map(|(_, file)| file);
            let file = file.map(|file| file.split(';').next().unwrap_or(file).to_owned());
            out.push(Sent { file });
        }
    }
    out
}

/// A place whose content tells of secrets or people.
fn is_telling(place: &Place) -> bool {
    place
        .kinds()
        .iter()
        .any(|kind| matches!(kind, Kind::Credential | Kind::Account))
}

/// Commands whose output is about this machine and its people.
fn gathers(command: &Command) -> bool {
    let args = command.args();
    let telling = |text: &str| {
        let place = Place::new(text);
        is_telling(&place) || place.is_home()
    };
    let reads_secret = command.redirects.iter().any(|redirect| {
        redirect.op == RedirectOp::Read && Place::new(&redirect.target.text).is(Kind::Credential)
    });
    if reads_secret || args.iter().any(|word| telling(&word.text)) {
        return true;
    }
    let begins = |starts: &[&str]| {
        args.iter()
            .any(|word| starts.iter().any(|start| word.text.starts_with(start)))
    };
    let names_secret = || {
        let words = ["KEY", "TOKEN", "SECRET", "PASS"];
        args.iter()
            .any(|word| words.iter().any(|part| word.text.contains(part)))
    };
    match command.name().unwrap_or_default() {
        "env" | "printenv" => args.is_empty() || names_secret(),
        "set" | "export" => args.is_empty(),
        "whoami" | "id" | "hostname" | "history" | "ifconfig" | "mysqldump" | "pg_dump"
        | "pg_dumpall" | "mongodump" => true,
        "uname" => has(args, "an", &["all", "nodename"]),
        "tar" => {
            let outside = args.iter().any(|word| {
                word.text.len() > 1
                    && word.text.starts_with(['/', '~'])
                    && !word.text.starts_with("/tmp")
            });
            outside && args.iter().any(|word| word.text.contains('c'))
        }
        "cat" => begins(&["/etc/", "~/.", "$HOME/."]),
        _ => false,
    }
}
