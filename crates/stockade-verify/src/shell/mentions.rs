//! Secrets and start-up files among the arguments of any command.

use stockade_shell::{Command, Stdin, Word};

use super::programs::Group;
use super::{Judge, value_of};
use crate::files::Writing;
use crate::hosts;
use crate::paths::{Kind, Root};
use crate::rule::Rule;

/// Arguments of one command that are looked at.
const MAX_ARGUMENTS: usize = 256;

impl Judge<'_> {
    pub(super) fn mentions(&mut self, name: &str, command: &Command) {
        // What a function of the script does with its arguments is judged where it does it.
        if self.is_own_function(command) {
            return;
        }
        let copies = command.args().first().is_some_and(|word| word.text == "cp");
        let lists = |word: &Word| word.text.starts_with("--files0-from");
        let lists = command.args().iter().any(lists);
        let reader = !Group::NotReaders.has(name) || name == "scp" || copies || lists;
        let first = command.args().first().map_or("", |word| word.text.as_str());
        let takes_away = name == "launchctl" && matches!(first, "unload" | "bootout" | "print");
        let shower = Group::Showers.has(name) || takes_away;
        let sourced = self.is_sourced(command);
        let listed = match &command.stdin {
            Stdin::Text(text)
                if matches!(
                    name,
                    "xargs" | "cpio" | "tar" | "pax" | "ed" | "ex" | "vi" | "vim"
                ) =>
            {
                text.text.as_str()
            }
            _ => "",
        };
        let one_variable = matches!(name, "sed" | "grep" | "awk") && {
            let chosen = |text: &str| text.contains('^') && text.contains('=');
            command.args().iter().any(|word| chosen(&word.text))
        };
        // Keys that are written, or used for their purpose.
        let key = value_of(command.args(), 'i', &[]).filter(|_| name == "scp");
        let [keyout, out] = ["-keyout", "-out"].map(|option| value_after(command, option));
        let written = [keyout, out, key];
        let words = command.args().iter().map(|word| word.text.as_str());
        if reader && self.reads_unquoted(command) {
            return;
        }
        for text in words.chain(listed.split_whitespace()).take(MAX_ARGUMENTS) {
            let speaks = matches!(
                name,
                "echo" | "printf" | "git" | "grep" | "egrep" | "rg" | "man"
            );
            if !speaks && (text.contains("/inet/tcp/") || text.contains("/inet/udp/")) {
                let reason = format!("`{name}` opens a connection through awk's network files");
                return self.add(Rule::ReverseShell, command.span, reason);
            }
            if text.starts_with("stratum+") && !speaks {
                let reason = format!("`{name}` joins a pool that mines for someone");
                return self.add(Rule::NetworkHost, command.span, reason);
            }
            let coded = ["os.system(", "os.execute(", "os.exec", "pty.spawn("];
            let coded = text.contains('(') && coded.iter().any(|call| text.contains(call));
            let shown = speaks || shower || Group::NotReaders.has(name);
            if coded && !shown && !Group::Interpreters.has(super::gather::stem(name)) {
                let reason = format!("`{name}` is given code that runs a command");
                return self.add(Rule::ShellEscape, command.span, reason);
            }
            let packs = ["gzip", "bz2", "zipfile", "tarfile", "lzma", "shutil.copy"];
            if text.contains("/etc/passwd") && packs.iter().any(|how| text.contains(how)) {
                let reason = "makes a copy of the list of accounts";
                self.findings.raise(Rule::AccountRead, command.span, reason);
            }
            let document = text.contains("\\verbatiminput{/") || text.contains("\\write18");
            let network = text.contains("/dev/tcp/") && !speaks;
            let payload = text.contains("<?") || document || network;
            if payload && let Some((rule, what)) = crate::payload::recognise(text) {
                return self.add(rule, command.span, format!("holds {what}"));
            }
            if written.contains(&Some(text)) || one_variable && text.ends_with("/environ") {
                continue;
            }
            self.spelled(text, command);
            if reader && let Some(secret) = super::patterns::secret(text) {
                let reason = format!("reads {secret}, written as a pattern");
                return self.add(Rule::CredentialRead, command.span, reason);
            }
            if reader && self.reads_nearby(name, text, command) {
                return;
            }
            for candidate in candidates(text) {
                if (reader || text.contains("file:///")) && self.read_at(candidate, command.span) {
                    return;
                }
                let mut kinds = self.place(candidate).kinds();
                if let (true, Some(_)) = (kinds.is_empty(), candidate.strip_suffix('/')) {
                    // A directory whose files are what matters.
                    kinds = self.place(&format!("{candidate}x")).kinds();
                    kinds.retain(|kind| kind.persists().is_some());
                }
                if !shower
                    && !sourced
                    && !is_message(text)
                    && kinds.iter().any(|kind| kind.persists().is_some())
                {
                    let file = if candidate.ends_with('/') { "x" } else { "" };
                    let path = format!("{candidate}{file}");
                    return self.write_at(&path, Writing::Append, command.span);
                }
                let looks = matches!(name, "chmod" | "chown" | "ls" | "test" | "[" | "stat");
                if kinds.contains(&Kind::Socket) && !looks {
                    let reason = format!("uses the container runtime's socket {candidate}");
                    self.add(Rule::ContainerEscape, command.span, reason);
                }
            }
        }
    }
}

/// Words for people rather than code: brackets stand apart from what is before them.
fn is_message(text: &str) -> bool {
    let called = |(at, _)| !text[..at].is_empty() && !text[..at].ends_with(' ');
    text.contains(' ') && !text.contains(['>', '=', ';']) && !text.match_indices('(').any(called)
}

impl Judge<'_> {
    /// A function of another file of the same program: few programs are called like one.
    fn is_sourced(&self, command: &Command) -> bool {
        let called = command.words.first().map_or("", |word| word.text.as_str());
        !self.is_brief() && called.contains(|c: char| c == '_' || c.is_uppercase())
    }

    /// `cat ~/Library/Application Support/…`: a blank that people forget to quote.
    fn reads_unquoted(&mut self, command: &Command) -> bool {
        let cut = |text: &str| text.ends_with("/Application") || text.ends_with("/Group");
        let pair = command.args().windows(2).find(|pair| cut(&pair[0].text));
        let path = pair.map(|pair| format!("{} {}", pair[0].text, pair[1].text));
        path.is_some_and(|path| self.read_at(&path, command.span))
    }

    /// `cd ~/.ssh; cat id_rsa`, `tar c -C ~ .ssh`: a name that is a secret where it stands.
    fn reads_nearby(&mut self, name: &str, text: &str, command: &Command) -> bool {
        let alone = !text.starts_with(['-', '/', '~', '$']) && !text.contains(['/', ' ', '=', ':']);
        if !alone || text.len() > 255 {
            return false;
        }
        let base = match name {
            "tar" | "bsdtar" | "git" | "make" => value_of(command.args(), 'C', &["directory"]),
            _ => None,
        };
        if let Some(base) = base {
            return self.read_at(&format!("{base}/{text}"), command.span);
        }
        let here = self.inside.as_ref().or(self.directory.as_ref());
        let elsewhere = here.is_some_and(|here| matches!(here.root, Root::Absolute | Root::Home));
        elsewhere && self.read_at(text, command.span)
    }

    /// A well-known path put together from pieces: `${HOME:0:1}etc${HOME:0:1}passwd`.
    fn spelled(&mut self, text: &str, command: &Command) {
        if !text.starts_with('/') {
            return;
        }
        let word = command.args().iter().find(|word| word.text == text);
        let written = word.and_then(|word| self.source.get(word.span.start..word.span.end));
        let pieces = written.is_some_and(|written| {
            let cut = written.contains("${") && written.contains(":0:1}");
            let computed = written.contains("$(") || written.contains('`');
            let turned = ["rev", "tr ", "xxd", "base64", "printf", "echo -e"];
            cut || computed && turned.iter().any(|how| written.contains(how))
        });
        let known = |kind: &Kind| matches!(kind, Kind::Account | Kind::Base | Kind::Credential);
        let pieces = pieces && self.place(text).kinds().iter().any(known);
        if pieces {
            let reason = format!("spells {text} in pieces");
            self.add(Rule::ObfuscatedCommand, command.span, reason);
        }
    }
}

/// The word after an option of `openssl` that names what it writes.
pub(super) fn value_after<'c>(command: &'c Command, option: &str) -> Option<&'c str> {
    let args = command.args();
    let at = args.iter().position(|word| word.text == option)?;
    args.get(at + 1).map(|word| word.text.as_str())
}

/// The paths that an argument may hold: itself, and every word in it that begins like one.
fn candidates(text: &str) -> impl Iterator<Item = &str> {
    let url = hosts::is_url(text);
    let option = text.strip_prefix('-').and_then(|rest| rest.get(1..));
    let whole = [Some(text), option].into_iter().flatten();
    let plain =
        |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~' | '*' | '$' | '?');
    let parts = text.split(move |c| !plain(c)).take(64);
    whole
        .chain(parts)
        .filter(move |part| !url && part.len() > 2 && part.len() < 4096)
        .filter(|part| part.starts_with(['/', '~', '$', '.']) || part.contains('/'))
}
