//! Transfers: what is fetched from where, and what leaves.

use stockade_shell::{Command, CommandId, RedirectOp, Word};

use super::gather::{is_others, is_secret_name, is_telling};
use super::programs::Group;
use super::{Judge, has, operands, value_of};
use crate::files::Writing;
use crate::hosts;
use crate::paths::Kind;
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
        let around = self.script.ancestors(id).take(4);
        let mut inputs = std::iter::once(command)
            .chain(around)
            .flat_map(|command| &command.redirects)
            .filter(|redirect| redirect.op == RedirectOp::Read);
        if let Some(redirect) = inputs.next() {
            let place = self.place(&redirect.target.text);
            let bare = |word: &Word| hosts::is_public_address(&word.text);
            let strange = command.args().iter().any(bare);
            let sent = is_telling(&place) || place.path.starts_with(['/', '~']) || strange;
            if !place.is(Kind::Sink) && sent {
                let reason = format!("sends {} through `{name}`", place.path);
                return self.add(Rule::Exfiltration, command.span, reason);
            }
        }
        let bare = |word: &Word| hosts::is_public_address(&word.text);
        let packed = |other: &CommandId| {
            let program = self.script.commands[*other].name().unwrap_or_default();
            Group::Archivers.has(program) || Group::PassesOn.has(program)
        };
        let strange = command.args().iter().any(bare);
        if let Some(what) = self.gathered_upstream(id) {
            let reason = format!("sends what `{what}` gathers through `{name}`");
            self.add(Rule::Exfiltration, command.span, reason);
        } else if strange && self.script.upstream(id).iter().any(packed) {
            let reason = format!("sends files through `{name}` to a bare address");
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
        if matches!(name, "ftp" | "tftp") {
            self.commanded_upload(name, command);
        }
        if matches!(name, "http" | "https" | "httpie" | "xh") && !local {
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
        let sent = sent_data(command.args());
        for file in sent.iter().filter_map(|data| data.file.as_deref()) {
            let place = self.place(file);
            let outside = file.starts_with(['/', '~', '$']) || self.packed.contains(file);
            if is_telling(&place) || !local && outside {
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
        if let Some(what) = self.gathered_inside(&command.words) {
            let reason = format!("`{name}` sends what `{what}` gathers");
            self.add(Rule::Exfiltration, command.span, reason);
            return true;
        }
        let posts = !sent.is_empty() || has(command.args(), "T", &[]);
        if (posts || self.takes_from_input(id, command)) && self.gathered_upstream(id).is_some() {
            let reason = format!("`{name}` sends what the pipeline gathers");
            self.add(Rule::Exfiltration, command.span, reason);
            return true;
        }
        if let Some(secret) = misplaced_secret(command.args()) {
            let reason = format!("`{name}` sends ${secret} to a host that it is not for");
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
        if args
            .windows(2)
            .any(|pair| pair[0].text == "--acl" && pair[1].text.starts_with("public"))
        {
            let reason = format!("`{name}` uploads for everyone to read");
            return self.add(Rule::Exfiltration, command.span, reason);
        }
        for word in args {
            let file = word.text.rsplit('=').next().unwrap_or_default();
            let place = self.place(file);
            if file.contains("://") {
                break;
            }
            if is_telling(&place) || is_others(&place) || self.packed.contains(file) {
                let reason = format!("`{name}` uploads {file}");
                return self.add(Rule::Exfiltration, command.span, reason);
            }
        }
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
                .is_some_and(|option| option.starts_with("proxycommand") && option.contains("sh"))
            {
                let reason = "runs a shell as ssh's proxy command";
                self.add(Rule::ShellEscape, command.span, reason);
            }
        }
        self.commanded_upload(name, command);
        if !args.iter().any(|word| word.text.contains([':', '@'])) {
            return;
        }
        let key = value_of(args, 'i', &[]);
        for word in operands(args).filter(|word| name != "ssh" && key != Some(word.text.as_str())) {
            if is_remote(&word.text) {
                break;
            }
            let place = self.place(&word.text);
            let others = is_others(&place) && word.text.starts_with(['/', '~', '$'])
                || self.packed.contains(&word.text);
            if is_telling(&place) || others {
                let reason = format!("`{name}` sends {}", word.text);
                let certain = is_telling(&place) || self.is_brief();
                self.findings
                    .weigh(certain, Rule::Exfiltration, command.span, reason);
                return;
            }
        }
        if let Some(what) = self
            .gathered_inside(&command.words)
            .filter(|_| name != "ssh")
        {
            let reason = format!("`{name}` sends what `{what}` gathers");
            return self.add(Rule::Exfiltration, command.span, reason);
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

impl Judge<'_> {
    /// `put FILE` among the commands for a program that transfers files.
    fn commanded_upload(&mut self, name: &str, command: &Command) {
        let typed = match &command.stdin {
            stockade_shell::Stdin::Text(text) => text.text.as_str(),
            _ => "",
        };
        let given = command.args().iter().map(|word| word.text.as_str());
        let bare = given.clone().any(|text| {
            let host = hosts::host_of(text.trim_start_matches('/'));
            host.is_some_and(hosts::is_public_address)
        });
        // `tftp host -c put file`: the command is several words.
        let put = given.clone().skip_while(|text| *text != "put");
        let put: Vec<&str> = put.collect();
        let put = put.join(" ");
        for line in given
            .chain([typed, put.as_str()])
            .flat_map(|text| text.split(['\n', ';']))
        {
            let mut words = line.split_whitespace();
            let sends = match words.next() {
                Some("put" | "mput" | "reput" | "send" | "append") => true,
                Some("mirror") => line.contains(" -R") || line.contains(" --reverse"),
                _ => false,
            };
            let found = words.filter(|_| sends).find(|file| {
                let place = self.place(file);
                is_telling(&place)
                    || is_others(&place) && file.starts_with(['/', '~', '$'])
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
        for word in words {
            let place = self.place(&word.text);
            let others = !mails && is_others(&place) && word.text.starts_with(['/', '~', '$']);
            if is_telling(&place) || others {
                let reason = format!("`{name}` sends {}", word.text);
                return self.add(Rule::Exfiltration, command.span, reason);
            }
        }
        let upstream = self
            .gathered_upstream(id)
            .filter(|what| !is_report(what) || !mails);
        let inside = self
            .gathered_inside(&command.words)
            .filter(|what| !is_report(what));
        if let Some(what) = upstream.or(inside) {
            let reason = format!("`{name}` sends what `{what}` gathers");
            self.add(Rule::Exfiltration, command.span, reason);
        }
    }
}

/// What people have mailed to themselves by scheduled jobs.
fn is_report(program: &str) -> bool {
    Group::Tells.has(program) || matches!(program, "uname" | "tail" | "head" | "sort")
}

/// Variables of well-known services, with a part of the names of the hosts they are for.
const OWNERS: &[(&str, &[&str])] = &[
    ("AWS_", &["amazonaws", "aws."]),
    ("GITHUB_TOKEN", &["github"]),
    ("GH_TOKEN", &["github"]),
    ("GITLAB_TOKEN", &["gitlab"]),
    ("CI_JOB_TOKEN", &["gitlab", "$CI_"]),
    ("NPM_TOKEN", &["npm", "registry"]),
    ("PYPI_TOKEN", &["pypi"]),
    ("OPENAI_API_KEY", &["openai", "azure"]),
    ("ANTHROPIC_API_KEY", &["anthropic"]),
    ("SLACK_", &["slack"]),
    ("STRIPE_", &["stripe"]),
    ("DATABASE_URL", &[]),
    ("DB_PASSWORD", &[]),
    ("SSH_PRIVATE_KEY", &[]),
];

/// A well-known service's secret in the body or address of a request to someone else.
fn misplaced_secret(args: &[Word]) -> Option<&str> {
    let mut header = false;
    for word in args {
        let skipped = std::mem::replace(&mut header, false);
        let text = word.text.as_str();
        if matches!(
            text,
            "-H" | "--header" | "-u" | "--user" | "--oauth2-bearer"
        ) {
            header = true;
        }
        let authorises = skipped || text.to_ascii_lowercase().contains("authorization");
        if authorises {
            continue;
        }
        let owner = |name: &&str| {
            let known = OWNERS.iter().find(|(owned, _)| name.starts_with(owned));
            known.is_some_and(|(owned, hosts)| {
                let secret = !owned.ends_with('_') || is_secret_name(name);
                let meant = |word: &Word| hosts.iter().any(|host| word.text.contains(host));
                secret && !args.iter().any(meant)
            })
        };
        if let Some(name) = word.variables().find(owner) {
            return Some(name);
        }
    }
    None
}

/// `host:path`, `remote:`, a URL.
fn is_remote(text: &str) -> bool {
    text.contains(':') && !text.starts_with(['/', '~', '.', '$'])
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
