//! `rm` and its kin: trees that are named, listed, or everything if a variable is empty.

use stockade_shell::{Command, CommandId, RedirectOp};

use super::{Judge, has, operands};
use crate::files::{Deletion, is_cache};
use crate::paths::{Kind, Root};
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn remove(&mut self, name: &str, command: &Command) {
        let args = command.args();
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
            let beside = word.text.starts_with("../");
            if recursive && force && beside {
                let reason = format!("deletes {}, beside the working directory", word.text);
                self.findings
                    .only_in_excerpt(Rule::FileDelete, command.span, reason);
            }
            self.delete_at(&word.text, how, command.span);
        }
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

    pub(super) fn shred(&mut self, command: &Command) {
        for word in operands(command.args()) {
            let place = self.place(&word.text);
            // `/dev/$name`: nothing else there is worth overwriting.
            if place.is(Kind::Disk) || place.path.starts_with("/dev/$") {
                let reason = format!("overwrites the device {}", place.path);
                self.add(Rule::DestroyDisk, command.span, reason);
            } else if place.root != Root::Inside
                && !place.within(&self.analysis.verifier.allowed_paths)
            {
                let reason = format!("overwrites {} beyond recovery", word.text);
                self.add(Rule::TraceRemoval, command.span, reason);
            }
        }
    }
}
