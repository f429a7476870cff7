//! Doors other than fetching and copying: mail, clouds, programs that transfer on command, and any
//! program at all that is given an address and what was gathered.

use stockade_shell::{Command, CommandId, RedirectOp, Stdin, Word};

use super::gather::{Matter, is_named_secret, is_others, is_telling, stem};
use super::programs::{Group, Membership};
use super::staging::{is_far_temporary, is_record, is_temporary};
use super::{Judge, operands, value_of};
use crate::hosts;
use crate::rule::Rule;
use crate::words::Words;

/// Programs whose output people have mailed to themselves by scheduled jobs.
static REPORTERS: Words = Words::new("shell/doors reporters");

/// Programs that publish packages and images.
static PUBLISHERS: Words = Words::new("shell/doors publishers");

/// Verbs of clients of object stores that send a file there.
static BUCKET_VERBS: Words = Words::new("shell/doors bucket-verbs");

impl Judge<'_> {
    /// Copies to what a cloud keeps.
    pub(super) fn bucket(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        let verb = |word: &Word| BUCKET_VERBS.contains(&word.text.as_str());
        if !args.iter().any(verb) {
            return;
        }
        if args
            .windows(2)
            .any(|pair| pair[0].text == "--acl" && pair[1].text.starts_with("public"))
        {
            let reason = format!("`{name}` uploads for everyone to read");
            return self.add(Rule::Exfiltration, command.span, reason);
        }
        for word in args {
            let file = word.text.rsplit('=').next().unwrap_or_default();
            let file = file.trim_start_matches("fileb://");
            let place = self.place(file);
            let remote = file.contains(':') && !file.starts_with(['/', '~', '.', '$']);
            if hosts::is_url(file) {
                continue;
            }
            if remote {
                break;
            }
            let held = self.flow.file(&self.key(word, file));
            let held = held.is_some_and(|held| held.matter > Matter::Dump);
            let telling = is_telling(&place) || is_named_secret(file);
            if telling || is_others(&place) || held {
                let reason = format!("`{name}` uploads {file}");
                return self.add(Rule::Exfiltration, command.span, reason);
            }
        }
        if let Some(found) = self
            .data_on_input(id)
            .filter(|found| found.matter > Matter::Work)
        {
            let reason = format!("`{name}` uploads what `{}` gathers", found.by);
            // Backups of databases go that way.
            let certain = found.matter > Matter::Dump;
            self.findings
                .weigh(certain, Rule::Exfiltration, command.span, reason);
        }
    }

    /// `put FILE` among the commands for a program that transfers files.
    pub(super) fn commanded_upload(&mut self, name: &str, command: &Command) {
        let typed = match &command.stdin {
            Stdin::Text(text) => text.text.as_str(),
            _ => "",
        };
        let given = command.args().iter().map(|word| word.text.as_str());
        let bare = given.clone().any(|text| {
            let host = hosts::host_of(text.trim_start_matches('/'));
            host.is_some_and(hosts::is_public_address)
        });
        let bare = bare || self.is_addressed(command);
        let to_temporary = self.is_brief() && command.args().iter().any(is_far_temporary);
        // `tftp host -c put file`: the command is several words.
        let put = given.clone().skip_while(|text| *text != "put");
        let put: Vec<&str> = put.collect();
        let put = put.join(" ");
        let mut there: Option<crate::paths::Place> = None;
        for line in given
            .chain([typed, put.as_str()])
            .flat_map(|text| text.split(['\n', ';']))
        {
            let mut words = line.split_whitespace();
            let line = line.trim_start();
            if let Some(directory) = line.strip_prefix("lcd ") {
                there = Some(self.place(directory.trim()));
            }
            let sends = match words.next() {
                Some("put" | "mput" | "reput" | "send" | "append") => true,
                Some("mirror") => line.contains(" -R") || line.contains(" --reverse"),
                _ => false,
            };
            let theirs = there.as_ref();
            let theirs = theirs.is_some_and(|place| is_others(place) || is_telling(place));
            let found = words.filter(|_| sends).find(|file| {
                let place = self.place(file);
                let staged = to_temporary && is_temporary(file);
                let held = self.flow.file(&self.key(&Word::default(), file));
                is_telling(&place)
                    || is_others(&place) && file.starts_with(['/', '~', '$'])
                    || held.is_some()
                    || theirs
                    || staged
                    || bare && !file.starts_with('-')
            });
            if let Some(file) = found {
                let reason = format!("`{name}` uploads {file}");
                return self.add(Rule::Exfiltration, command.span, reason);
            }
        }
    }

    /// Programs that give files away: mail, and transfers from person to person.
    pub(super) fn gives_away(&mut self, id: CommandId, name: &str, command: &Command) {
        let mails = Group::Mailers.has(name);
        let input = command
            .redirects
            .iter()
            .filter(|redirect| redirect.op == RedirectOp::Read)
            .map(|redirect| &redirect.target);
        let words: Vec<&Word> = operands(command.args()).chain(input).collect();
        let number = |word: &&&Word| {
            let host = word.text.split_once('@').map(|(_, host)| host);
            host.is_some_and(hosts::is_bare_address)
        };
        if mails && let Some(word) = words.iter().find(number).filter(|_| self.is_brief()) {
            let reason = format!("`{name}` writes to a bare address, {}", word.text);
            return self.add(Rule::Exfiltration, command.span, reason);
        }
        for word in words {
            let place = self.place(word.text.trim_start_matches('@'));
            let others = !mails && is_others(&place) && word.text.starts_with(['/', '~', '$']);
            let held = self.flow.file(&self.key(word, &word.text)).cloned();
            let held = held.filter(|held| !mails || held.matter != Matter::Machine);
            let file = word.text.contains(['.', '/']);
            let named = !mails && file && is_named_secret(&word.text);
            if is_telling(&place) || others || named || held.is_some() {
                let reason = format!("`{name}` sends {}", word.text);
                return self.add(Rule::Exfiltration, command.span, reason);
            }
        }
        // Jobs mail the log that they wrote; who was here is another matter.
        let own_log = |by: &str| by.starts_with("/var/log/") && !is_record(by);
        let report = |by: &str| is_report(by) || own_log(by);
        let found = self
            .data_on_input(id)
            .filter(|what| !report(&what.by) || !mails);
        let inside = self.gathered_inside(&command.words);
        let reports = mails || name == "logger";
        if let Some(found) = found.or(inside.filter(|what| !is_report(&what.by) || !reports)) {
            let reason = format!("`{name}` sends what `{}` gathers", found.by);
            self.leaks(&found, command, reason);
        }
    }

    /// Text for an issue, a message or a queue, where others read it.
    pub(super) fn tells_others(&mut self, id: CommandId, name: &str, command: &Command) {
        let message = |word: &Word| {
            matches!(
                word.text.as_str(),
                "sns" | "sqs" | "ses" | "sesv2" | "pubsub" | "eventgrid" | "servicebus" | "kinesis"
            )
        };
        let least = if command.args().iter().any(message) {
            Matter::Machine
        } else {
            Matter::Theirs
        };
        let inside = self.gathered_inside(command.args());
        let found = inside.or_else(|| self.data_on_input(id));
        if let Some(found) = found.filter(|found| found.matter >= least) {
            let reason = format!("`{name}` tells others what `{}` gathers", found.by);
            self.add(Rule::Exfiltration, command.span, reason);
        }
    }

    /// A container that is given what was gathered, and a program that sends it.
    pub(super) fn through_container(&mut self, id: CommandId, name: &str, command: &Command) {
        let sends = |word: &Word| {
            // The program, or an image named for it.
            let name = word.text.rsplit('/').next().unwrap_or_default();
            let name = name.split(':').next().unwrap_or_default();
            Group::Streams.has(name) || Group::Fetchers.has(name)
        };
        if !command.args().iter().any(sends) {
            return;
        }
        let inside = self.gathered_inside(command.args());
        if let Some(found) = inside.or_else(|| self.data_on_input(id)) {
            let reason = format!("`{name}` sends what `{}` gathers", found.by);
            self.leaks(&found, command, reason);
        }
    }

    /// `docker push host/image`, `npm publish --registry https://host`: to a host of the wrong kind.
    pub(super) fn publishes(&mut self, name: &str, command: &Command) {
        let publisher = PUBLISHERS.contains(&name);
        let mut words = command.args().iter().map(|word| word.text.as_str());
        if !publisher || !words.any(|text| matches!(text, "push" | "publish" | "upload" | "copy")) {
            return;
        }
        let odd = command.args().iter().find_map(|word| {
            let address = word
                .text
                .rsplit_once('=')
                .map_or(&*word.text, |(_, value)| value);
            let host = hosts::host_of(address).filter(|host| host.contains('.'))?;
            hosts::suspicion(host).map(|why| (why, address))
        });
        if let Some((why, address)) = odd {
            let reason = format!("`{name}` publishes to {why}: {address}");
            self.add(Rule::NetworkHost, command.span, reason);
        }
    }

    /// Any program that is given an address and what was gathered.
    pub(super) fn any_door(&mut self, id: CommandId, name: &str, command: &Command) {
        if !self.is_brief() {
            return;
        }
        let member = Membership::of(name);
        let database = matches!(name, "mysql" | "psql" | "redis-cli" | "mongosh" | "mongo");
        let quiet = member.in_group(Group::NotReaders) && !database
            || member.in_group(Group::Showers)
            || member.in_group(Group::NameAShell)
            || member.in_group(Group::PassesOn)
            || member.in_group(Group::Archivers)
            || member.in_group(Group::Tells)
            || stockade_shell::is_shell(name)
            || self.is_own_function(command);
        let code = Group::Interpreters.has(stem(name));
        let talks = if code {
            command.args().iter().any(|word| speaks_network(&word.text))
        } else {
            let host = value_of(command.args(), 'h', &["host", "server", "broker", "url"]);
            let far = |host: &str| host.contains('.') && !hosts::is_local(host);
            command.args().iter().any(is_address) || host.is_some_and(far)
        };
        if quiet && !code || !talks {
            return;
        }
        let found = self
            .gathered_inside(command.args())
            .or_else(|| self.data_on_input(id));
        if let Some(found) = found.filter(|found| found.matter > Matter::Dump) {
            let reason = format!(
                "gives `{name}`, with an address, what `{}` gathers",
                found.by
            );
            self.add(Rule::Exfiltration, command.span, reason);
        }
    }
}

/// Code for an interpreter that opens a connection.
fn speaks_network(code: &str) -> bool {
    let marks = [
        "http",
        "ocket",
        "urlopen",
        "ftplib",
        "smtplib",
        "fetch(",
        "/inet/",
        "fsockopen",
    ];
    code.contains(['(', ';', ' ']) && marks.iter().any(|mark| code.contains(mark))
}

/// A URL or `host:port` that is not of this machine.
fn is_address(word: &Word) -> bool {
    let text = word.text.as_str();
    let port = text.rsplit_once(':').is_some_and(|(host, port)| {
        !port.is_empty()
            && port.bytes().all(|b| b.is_ascii_digit())
            && host.contains('.')
            && !host.contains(['/', ' ', '='])
    });
    let url = text.contains("://") && !text.contains(' ') && !text.starts_with("file:");
    let host = hosts::host_of(text);
    (url || port) && !host.is_some_and(hosts::is_local)
}

/// What people have mailed to themselves by scheduled jobs.
fn is_report(program: &str) -> bool {
    REPORTERS.contains(&program)
}
