//! Secrets of the project at hand that are shown: printed, put on the clipboard, or laid where
//! everyone on the machine may read them.

use stockade_shell::{Command, CommandId, Place as Position, RedirectOp, Word};

use super::programs::Group;
use super::search::is_telling_pattern;
use super::staging::is_temporary;
use super::{Judge, operands};
use crate::paths::{Kind, Place};
use crate::rule::Rule;

impl Judge<'_> {
    /// `cat .env`, `cat .env | pbcopy`, `cat .env > /tmp/x`.
    pub(super) fn shows_secret(&mut self, id: CommandId, name: &str, command: &Command) {
        let prints = matches!(
            name,
            "cat"
                | "bat"
                | "batcat"
                | "less"
                | "more"
                | "most"
                | "head"
                | "tail"
                | "nl"
                | "tac"
                | "rev"
                | "strings"
                | "xxd"
                | "od"
                | "hexdump"
                | "base64"
        );
        let seeks = matches!(name, "grep" | "egrep" | "rg") && picks_secret(command);
        let here =
            command.place == Position::Statement && self.script.ancestors(id).next().is_none();
        if !(prints || seeks) || !here || !self.is_brief() {
            return;
        }
        let input = command.redirects.iter();
        let input = input.filter(|redirect| redirect.op == RedirectOp::Read);
        let mut files = operands(command.args()).chain(input.map(|redirect| &redirect.target));
        let Some(file) = files.find(|word| is_secret(&self.place(&word.text))) else {
            return;
        };
        if self.reaches_someone(command) {
            let reason = format!("shows {}, which holds secrets", file.text);
            self.add(Rule::CredentialRead, command.span, reason);
        }
    }

    /// `echo $GITHUB_TOKEN`, `printenv API_KEY`, `env | grep SECRET`.
    pub(super) fn shows_variable(&mut self, id: CommandId, name: &str, command: &Command) {
        let here =
            command.place == Position::Statement && self.script.ancestors(id).next().is_none();
        if !here || !self.is_brief() {
            return;
        }
        let args = command.args();
        let whole = match name {
            "echo" | "printf" => {
                let mut words = args.iter().filter(|word| !self.only_asks(word));
                words.any(|word| word.variables().any(is_secret_variable))
            }
            "printenv" => args.iter().any(|word| is_secret_variable(&word.text)),
            _ => false,
        };
        let lists = match name {
            "env" | "printenv" | "set" => args.is_empty(),
            "declare" | "export" | "typeset" => args.iter().all(|word| word.text == "-p"),
            _ => false,
        };
        let picked = || {
            let pipeline = &self.script.pipelines[command.pipeline];
            let stages = self.script.commands[pipeline.commands.clone()].iter();
            let mut greps =
                stages.filter(|stage| matches!(stage.name(), Some("grep" | "egrep" | "rg")));
            greps.any(picks_secret)
        };
        if (whole || lists && picked()) && self.reaches_someone(command) {
            let reason = format!("`{name}` shows secrets of the environment");
            self.add(Rule::CredentialRead, command.span, reason);
        }
    }

    /// `${#TOKEN}`, `${TOKEN:+set}`: whether it is there, not what it is.
    fn only_asks(&self, word: &Word) -> bool {
        let written = self.source.get(word.span.start..word.span.end);
        written
            .is_some_and(|text| text.contains("${#") || text.contains(":+") || text.contains("::"))
    }

    /// Whether what a command prints is seen: on the terminal, the clipboard, in a place for all.
    fn reaches_someone(&self, command: &Command) -> bool {
        let pipeline = &self.script.pipelines[command.pipeline];
        let stages = self.script.commands[pipeline.commands.clone()].iter();
        let later = stages.filter(|other| other.stage > command.stage);
        let mut last = command;
        for stage in later {
            let name = stage.name().unwrap_or_default();
            let passes = Group::PassesOn.has(name) || matches!(name, "tee" | "column" | "uniq");
            let picks_other = matches!(name, "grep" | "egrep" | "rg") && !picks_secret(stage);
            if is_clipboard(name) {
                return true;
            }
            if !passes || picks_other || stage.name().is_none() {
                return false;
            }
            if name == "tee" && operands(stage.args()).any(|word| is_temporary(&word.text)) {
                return true;
            }
            last = stage;
        }
        let mut written = last
            .redirects
            .iter()
            .filter(|redirect| redirect.op.writes() && redirect.fd.is_none_or(|fd| fd == 1));
        let aside = written.next().map(|redirect| redirect.target.text.as_str());
        aside.is_none_or(is_temporary)
    }
}

/// A variable that by its name holds a secret, and not where one lies.
fn is_secret_variable(name: &str) -> bool {
    const PARTS: &[&str] = &[
        "ACCESS_KEY",
        "API_KEY",
        "PASSWORD",
        "PRIVATE_KEY",
        "SECRET",
        "TOKEN",
    ];
    let about = ["FILE", "PATH", "NAME", "URL", "DIR", "_ID", "TTL", "TYPE"];
    PARTS.iter().any(|part| name.contains(part)) && !about.iter().any(|part| name.ends_with(part))
}

fn is_clipboard(name: &str) -> bool {
    matches!(name, "pbcopy" | "xclip" | "xsel" | "wl-copy" | "clip")
}

/// `grep PASSWORD`, or everything; `grep PORT` looks for one setting.
fn picks_secret(command: &Command) -> bool {
    let pattern = operands(command.args()).next();
    let open = |word: &Word| matches!(word.text.as_str(), "" | "." | "=" | "^");
    pattern.is_some_and(|word| is_telling_pattern(&word.text) || open(word))
}

/// A file of the project that holds secrets and little else. Certificates have the same endings
/// as keys, and settings for tests hold nothing that matters.
fn is_secret(place: &Place) -> bool {
    if !place.is(Kind::Private) {
        return false;
    }
    let name = place.path.rsplit('/').next().unwrap_or_default();
    let ending = name.rsplit('.').next().unwrap_or_default();
    let harmless = ["test", "testing", "ci", "defaults", "default", "schema"];
    let container = ["pem", "key", "p12", "pfx", "jks", "keystore"].contains(&ending);
    let key = name.contains("key") || name.contains("priv");
    !harmless.contains(&ending) && (!container || key)
}
