//! Places that look local and are not: mounted shares, and images that others can pull.

use stockade_shell::{Command, Word};

use super::gather::{Matter, is_others, is_telling};
use super::{Judge, operands};
use crate::rule::Rule;

/// Kinds of file systems whose files are on another machine.
const REMOTE: &[&str] = &[
    "cifs",
    "smb3",
    "smbfs",
    "nfs",
    "nfs4",
    "sshfs",
    "fuse.sshfs",
    "davfs",
    "davfs2",
    "9p",
    "glusterfs",
];

impl Judge<'_> {
    /// Remembers where a share of another machine is mounted.
    pub(super) fn mounts_share(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let mounts = match name {
            "mount" => args.iter().any(|word| {
                let kind = word.text.trim_start_matches("-t");
                REMOTE.contains(&kind) || word.text.starts_with("//")
            }),
            "sshfs" | "curlftpfs" | "s3fs" | "gcsfuse" | "goofys" | "mount.cifs" | "mount.nfs" => {
                true
            }
            "rclone" => args.first().is_some_and(|word| word.text == "mount"),
            _ => false,
        };
        if !mounts {
            return;
        }
        let local =
            |word: &&Word| word.text.starts_with(['/', '~', '.']) && !word.text.starts_with("//");
        if let Some(word) = operands(args).filter(local).last() {
            let place = self.place(&word.text).path;
            self.shares.push(place);
        }
    }

    /// A copy of what others keep to such a place.
    pub(super) fn copies_to_share(&mut self, command: &Command, target: &str, sources: &[&Word]) {
        let shared = |text: &str| {
            let path = self.place(text).path;
            let below = |share: &String| {
                let rest = path.strip_prefix(share.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            text.starts_with("//") || path.contains("/gvfs/") || self.shares.iter().any(below)
        };
        if !shared(target) || sources.iter().any(|word| shared(&word.text)) {
            return;
        }
        let theirs = |word: &&&Word| {
            let place = self.place(&word.text);
            let held = self.flow.file(&self.key(word, &word.text));
            is_telling(&place)
                || is_others(&place)
                || held.is_some_and(|held| held.matter > Matter::Work)
        };
        if let Some(word) = sources.iter().find(theirs) {
            let reason = format!("copies {} to another machine's share", word.text);
            self.add(Rule::Exfiltration, command.span, reason);
        }
    }

    /// `docker commit running image && docker push image`: what ran here, for others to pull.
    pub(super) fn publishes_container(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let verb = args.first().map_or("", |word| word.text.as_str());
        if !matches!(name, "docker" | "podman" | "nerdctl") || verb != "push" {
            return;
        }
        let Some(image) = args.last().map(|word| word.text.as_str()) else {
            return;
        };
        let made = self.script.commands.iter().take(64).any(|other| {
            let commits = other
                .args()
                .first()
                .is_some_and(|word| word.text == "commit");
            commits && other.args().last().is_some_and(|word| word.text == image)
        });
        if made {
            let reason = format!("publishes what runs here as {image}");
            self.add(Rule::Exfiltration, command.span, reason);
        }
    }
}
