//! Secrets of the project at hand that are shown: printed, put on the clipboard, or laid where
//! everyone on the machine may read them.

use stockade_shell::{Command, CommandId, Place as Position, RedirectOp, Word};

use super::programs::Group;
use super::search::is_telling_pattern;
use super::staging::is_temporary;
use super::{Judge, operands};
use crate::paths::{Kind, Place};
use crate::rule::Rule;
use crate::words::Words;

/// Programs that print files.
static PRINTERS: Words = Words::new("shell/shows printers");

impl Judge<'_> {
    /// `cat .env`, `cat .env | pbcopy`, `cat .env > /tmp/x`.
    pub(super) fn shows_secret(&mut self, id: CommandId, name: &str, command: &Command) {
        let prints = PRINTERS.contains(&name);
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
