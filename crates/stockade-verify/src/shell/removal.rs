//! `rm` and its kin: trees that are named, listed, or everything if a variable is empty.

use stockade_shell::{Command, CommandId, HoleKind, RedirectOp, Word};

use super::{Judge, has, operands};
use crate::files::{Deletion, is_cache};
use crate::paths::{Kind, Root};
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn remove(&mut self, name: &str, command: &Command) {
        let args = command.args();
        self.holds_for_ransom(command);
        let parents = name != "rm" && has(args, "", &["parents"]);
        let recursive = parents || has(args, "rR", &["recursive"]);
        let force = has(args, "f", &["force"]);
        let how = match (recursive, force) {
            (true, true) => Deletion::ForcedTree,
            (true, false) => Deletion::Tree,
            _ => Deletion::File,
        };
        if has(args, "", &["no-preserve-root"]) {
            let reason = "asks for the root itself with --no-preserve-root";
            self.add(Rule::DestroyFiles, command.span, reason);
        }
        for word in operands(args) {
            // `rm -f /`: not a tree, but nobody writes it meaning something harmless.
            let root = force && word.text == "/";
            let how = if root { Deletion::ForcedTree } else { how };
            let climbs = !word.text.starts_with("..") && self.place(&word.text).root == Root::Above;
            if recursive && climbs && !word.text.starts_with('$') {
                let reason = format!("deletes {}, which climbs out of a directory", word.text);
                self.add(Rule::FileDelete, command.span, reason);
            }
            if recursive && let Some(listed) = self.lists_system(word) {
                let reason = format!("deletes whatever is in {listed}");
                self.add(Rule::DestroyFiles, command.span, reason);
            }
            let beside = word.text.starts_with("../");
            if recursive && force && beside && self.is_brief() {
                let reason = format!("deletes {}, beside the working directory", word.text);
                self.add(Rule::FileDelete, command.span, reason);
            }
            if recursive && self.is_root_if_unset(word) {
                let reason = format!("deletes {}: everything, if nobody set it", word.text);
                self.add(Rule::FileDelete, command.span, reason);
            }
            self.delete_at(&word.text, how, command.span);
        }
    }

    /// `rm -rf $(ls -d /*)`
    fn lists_system(&self, word: &Word) -> Option<String> {
        let mut inner = word.substitutions().flatten();
        inner.find_map(|id| {
            let other = self.script.commands.get(id)?;
            let lists = matches!(other.name(), Some("ls" | "find" | "echo" | "printf"));
            let wide = |word: &&Word| {
                let place = self.place(&word.text);
                let written = word.text.starts_with(['/', '~', '$']);
                written && (place.is(Kind::System) || place.is_home())
            };
            let filtered = has(other.args(), "", &["name", "path", "mtime"]);
            let found = operands(other.args()).find(wide);
            found
                .filter(|_| lists && !filtered)
                .map(|word| word.text.clone())
        })
    }

    /// Trees deleted with all rights, or those that a file lists.
    pub(super) fn remove_unseen(&mut self, id: CommandId, command: &Command) {
        let mut trees = operands(command.args());
        let cache = trees.all(|word| is_cache(&self.place(&word.text).path));
        let named = operands(command.args()).next().is_some();
        let recursive = has(command.args(), "rR", &["recursive"]);
        if !recursive || cache && named || !self.is_brief() {
            return;
        }
        let mut reason = None;
        for wrapper in self.script.ancestors(id) {
            match wrapper.name() {
                Some("sudo" | "doas") if has(command.args(), "f", &["force"]) => {
                    reason = Some("deletes a tree with all rights, without a question");
                }
                Some("xargs")
                    if has(wrapper.args(), "a", &["arg-file"])
                        || wrapper
                            .redirects
                            .iter()
                            .any(|one| one.op == RedirectOp::Read) =>
                {
                    reason = Some("deletes the trees that a file lists");
                }
                _ => {}
            }
        }
        if let Some(reason) = reason {
            self.add(Rule::FileDelete, command.span, reason);
        }
    }

    /// `"$NAME"/` or `$NAME/*`, with a variable that the script never sets.
    fn is_root_if_unset(&self, word: &Word) -> bool {
        let [hole, rest @ ..] = word.holes.as_slice() else {
            return false;
        };
        let HoleKind::Variable(name) = &hole.kind else {
            return false;
        };
        let after = &word.text[hole.range.end..];
        let script = self.script;
        hole.range.start == 0
            && rest.iter().all(|hole| hole.kind == HoleKind::Glob)
            && matches!(after, "/" | "/*" | "/.*")
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !matches!(name.as_str(), "PWD" | "OLDPWD" | "TMPDIR" | "TMP" | "TEMP")
            && name.bytes().any(|b| b.is_ascii_alphabetic())
            && self.is_brief()
            && !script.commands.iter().any(|command| {
                let assigned = command.assignments.iter().any(|set| set.name == *name);
                assigned || matches!(command.name(), Some("read" | "getopts" | "mapfile" | "."))
            })
    }

    pub(super) fn shred(&mut self, command: &Command) {
        self.holds_for_ransom(command);
        for word in operands(command.args()) {
            let place = self.place(&word.text);
            // `/dev/$name`: nothing else there is worth overwriting.
            if place.is(Kind::Disk) || place.path.starts_with("/dev/$") {
                let reason = format!("overwrites the device {}", place.path);
                self.add(Rule::DestroyDisk, command.span, reason);
            } else if !place.within(&self.analysis.verifier.allowed_paths) {
                let reason = format!("overwrites {} beyond recovery", word.text);
                self.add(Rule::TraceRemoval, command.span, reason);
            }
        }
    }
}
