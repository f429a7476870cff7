//! Files changed in place by programs that are told how: editors, `patch`, `perl -i`.

use stockade_shell::{Command, Stdin, Word};

use super::{Judge, has, operands};
use crate::files::{Deletion, Writing};
use crate::paths::{Kind, Root};
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn edits(&mut self, name: &str, command: &Command) {
        let args = command.args();
        match name {
            "perl" | "ruby" if in_place(args) => {
                for word in operands(args).filter(|word| is_path(word)) {
                    self.edit_at(&word.text, command);
                }
            }
            "ed" | "ex" | "vi" | "vim" | "nvim" | "emacs" => {
                let told = has(args, "cs", &["cmd", "batch", "eval"])
                    || matches!(command.stdin, Stdin::Text(_));
                for word in operands(args).filter(|word| told && is_path(word)) {
                    self.edit_at(&word.text, command);
                }
            }
            "patch" => {
                if let Some(word) = operands(args).find(|word| is_path(word)) {
                    self.edit_at(&word.text, command);
                }
            }
            "xxd" if has(args, "r", &["revert"]) => {
                if let Some(word) = operands(args).nth(1) {
                    self.edit_at(&word.text, command);
                }
            }
            "tar" | "bsdtar" if has(args, "", &["remove-files"]) => self.remove_all(command),
            "rimraf" | "trash" | "trash-put" | "del-cli" => self.remove_all(command),
            "gio" if args.first().is_some_and(|word| word.text == "trash") => {
                self.remove_all(command);
            }
            _ => {}
        }
    }

    /// An edit of a log is a loss of lines.
    fn edit_at(&mut self, path: &str, command: &Command) {
        let how = if self.place(path).is(Kind::Trace) {
            Writing::Replace
        } else {
            Writing::Append
        };
        self.write_at(path, how, command.span);
    }

    /// A link to a secret, by which it is read under another name.
    pub(super) fn links_secret(&mut self, command: &Command, sources: &[&Word]) {
        for word in sources {
            let place = self.place(&word.text);
            let below = place.path.matches('/').count() > 1;
            // `ln -s ~/.ssh work/x`; from home to home is how people arrange theirs.
            let target = command.args().last().map(|word| self.place(&word.text));
            let away = target.is_some_and(|target| target.root != Root::Home);
            if place.is(Kind::Credential) && (below || away) {
                let reason = format!("gives {} another name", word.text);
                self.add(Rule::CredentialRead, command.span, reason);
            }
        }
    }

    fn remove_all(&mut self, command: &Command) {
        for word in operands(command.args()).filter(|word| is_path(word)) {
            self.delete_at(&word.text, Deletion::ForcedTree, command.span);
        }
    }
}

/// `-i`, `-pi`, `-i.bak` before the code.
fn in_place(args: &[Word]) -> bool {
    args.iter().any(|word| {
        let cluster = word.text.strip_prefix('-').unwrap_or_default();
        let cluster = cluster.split('.').next().unwrap_or_default();
        cluster.len() < 5 && cluster.contains('i') && !cluster.starts_with(['-', 'I', 'M', 'm'])
    })
}

fn is_path(word: &Word) -> bool {
    word.text.starts_with(['/', '~', '$', '.']) && !word.text.contains(' ')
}
