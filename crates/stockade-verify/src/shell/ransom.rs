//! Files that are encrypted and whose originals go: held for ransom (MITRE ATT&CK T1486).

use stockade_shell::{Command, CommandId, Word};

use super::gather::is_others;
use super::{Judge, has, operands};
use crate::paths::Kind;
use crate::rule::Rule;

/// Programs that encrypt.
const ENCRYPTS: &[&str] = &[
    "7z",
    "7za",
    "age",
    "ccencrypt",
    "ccrypt",
    "gpg",
    "gpg2",
    "openssl",
    "zip",
];

impl Judge<'_> {
    /// Remembers files that are encrypted, with a password or for someone's key.
    pub(super) fn encrypts(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let encrypts = match name {
            "openssl" => {
                let first = args.first().map(|word| word.text.as_str());
                let cipher = first.is_some_and(|first| {
                    matches!(first, "enc" | "rsautl" | "smime" | "pkeyutl")
                        || first.starts_with("aes-")
                });
                cipher
                    && !args
                        .iter()
                        .any(|word| matches!(word.text.as_str(), "-d" | "-decrypt"))
            }
            "gpg" | "gpg2" => has(args, "ce", &["symmetric", "encrypt"]),
            "zip" => has(args, "Pe", &["password", "encrypt"]),
            "7z" | "7za" => args.iter().any(|word| word.text.starts_with("-p")),
            _ => !has(args, "d", &["decrypt"]),
        };
        if encrypts {
            let files = operands(args).map(|word| word.text.clone());
            self.encrypted.extend(files);
        }
    }

    /// The originals of encrypted files are gone after this.
    pub(super) fn holds_for_ransom(&mut self, command: &Command) {
        let deleted = operands(command.args()).find(|word| self.encrypted.contains(&word.text));
        if let Some(word) = deleted {
            let reason = format!("encrypts {} and deletes the original", word.text);
            self.add(Rule::DestroyFiles, command.span, reason);
        }
    }

    /// `zip -P secret -m`, `7z a -psecret -sdel`: the archive is all that is left.
    pub(super) fn locks_away(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let moves = match name {
            "zip" => has(args, "Pe", &["password", "encrypt"]) && has(args, "m", &["move"]),
            "7z" | "7za" => {
                let given = |start: &str| args.iter().any(|word| word.text.starts_with(start));
                given("-p") && given("-sdel")
            }
            _ => false,
        };
        let theirs = |word: &Word| {
            let place = self.place(&word.text);
            is_others(&place) || place.is(Kind::System) || place.is_home()
        };
        if moves && (self.is_brief() || operands(args).any(theirs)) {
            let reason = "puts files away under a password and deletes the originals";
            self.add(Rule::DestroyFiles, command.span, reason);
        }
    }

    /// `find ~ -exec openssl enc … {} \; -delete`
    pub(super) fn encrypts_found(&mut self, id: CommandId, command: &Command, removes: bool) {
        let mut inner = self.script.commands.iter().skip(id + 1).take(8);
        let encrypts = inner.any(|inner| {
            inner.parent == Some(id) && inner.name().is_some_and(|name| ENCRYPTS.contains(&name))
        });
        if encrypts && removes {
            let reason = "encrypts every file that it finds and deletes the originals";
            self.add(Rule::DestroyFiles, command.span, reason);
        }
    }
}
