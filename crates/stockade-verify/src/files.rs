//! Judgement of reads, writes and deletions by path. Shared by all languages.

use crate::findings::Findings;
use crate::paths::{Kind, Place, Root};
use crate::result::Span;
use crate::rule::Rule;

/// How a deletion is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// One file, or an empty directory.
    File,
    /// A tree.
    Tree,
    /// A tree, without questions.
    ForcedTree,
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    Append,
    Replace,
}

/// Who asks. Scripts of the shell administer systems more than programs do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    Program,
    Shell,
}

/// The files side of a verification.
pub(crate) struct Files<'a> {
    pub(crate) allowed: &'a [String],
    pub(crate) speaker: Speaker,
}

impl Files<'_> {
    fn permits(&self, place: &Place) -> bool {
        place.within(self.allowed)
    }

    /// Judges a deletion.
    pub(crate) fn delete(&self, place: &Place, how: Deletion, span: Span, findings: &mut Findings) {
        let shown = shown(place);
        let tree = how != Deletion::File;
        if self.permits(place) {
            return;
        }
        let kinds = place.kinds();
        let whole = tree || place.all_inside;
        if kinds.contains(&Kind::Sink) {
            return;
        }
        if whole && (kinds.contains(&Kind::System) || place.is_home()) {
            return findings.add(
                Rule::DestroyFiles,
                span,
                format!("deletes {shown} and everything below"),
            );
        }
        if tree && place.is_git_directory() {
            return findings.add(
                Rule::DestroyFiles,
                span,
                format!("deletes the repository's history in {shown}"),
            );
        }
        if kinds.contains(&Kind::Disk) {
            return findings.add(
                Rule::DestroyDisk,
                span,
                format!("deletes the device {shown}"),
            );
        }
        if kinds.contains(&Kind::Trace) {
            return findings.add(Rule::TraceRemoval, span, format!("deletes {shown}"));
        }
        let administers = self.speaker == Speaker::Shell && how == Deletion::File;
        let precious = kinds.iter().any(|kind| {
            matches!(
                kind,
                Kind::Credential | Kind::Account | Kind::Kernel | Kind::Base
            ) || !administers && kind.persists().is_some()
        });
        let beyond = how == Deletion::ForcedTree || precious || self.speaker == Speaker::Program;
        match place.root {
            Root::Inside if tree && place.path.is_empty() => {
                findings.warn(
                    Rule::DestroyFiles,
                    span,
                    "deletes everything in the working directory",
                );
            }
            Root::Absolute if beyond && !is_cache(&place.path) => {
                findings.add(
                    Rule::FileDelete,
                    span,
                    format!("deletes {shown}, outside the allowed paths"),
                );
            }
            Root::Absolute => {
                findings.warn(
                    Rule::FileDelete,
                    span,
                    format!("deletes {shown}, outside the allowed paths"),
                );
            }
            Root::Home => {
                let reason = format!("deletes {shown}, in someone's home");
                let cache = place.path.starts_with("~/.cache/")
                    || place.path.starts_with("~/.local/share/Trash");
                if (how == Deletion::ForcedTree && !cache) || precious {
                    findings.add(Rule::FileDelete, span, reason);
                } else {
                    findings.warn(Rule::FileDelete, span, reason);
                }
            }
            Root::Above if place.path.starts_with(['$', crate::paths::UNKNOWN]) && tree => {
                findings.add(
                    Rule::FileDelete,
                    span,
                    format!("deletes {shown}, which climbs out of a directory"),
                );
            }
            Root::Above if tree && place.path.split('/').all(|part| part == "..") => {
                let reason = format!("deletes {shown}, the directories around the working one");
                findings.add(Rule::DestroyFiles, span, reason);
            }
            Root::Above if tree => {
                let reason = format!("deletes {shown}, above the working directory");
                findings.weigh(place.all_inside, Rule::FileDelete, span, reason);
            }
            Root::Unknown if place.all_inside && tree && !place.path.starts_with("$TMPDIR") => {
                let reason = format!(
                    "deletes everything in {shown}; if the variable is empty, that is everything"
                );
                findings.warn(Rule::DestroyFiles, span, reason);
            }
            Root::Inside | Root::Above | Root::Unknown => {}
        }
    }

    /// Judges a write.
    pub(crate) fn write(&self, place: &Place, how: Writing, span: Span, findings: &mut Findings) {
        let shown = shown(place);
        let kinds = place.kinds();
        if place.hides() {
            let reason = format!("hides {shown} among temporary files");
            return findings.add(Rule::FileWrite, span, reason);
        }
        if kinds.contains(&Kind::Kernel) {
            return findings.add(Rule::KernelChange, span, format!("writes to {shown}"));
        }
        if kinds.contains(&Kind::Sink) || self.permits(place) {
            return;
        }
        if kinds.contains(&Kind::Disk) {
            return findings.add(
                Rule::DestroyDisk,
                span,
                format!("writes to the device {shown}"),
            );
        }
        for kind in &kinds {
            let Some(what) = kind.persists() else {
                continue;
            };
            let rule = match kind {
                Kind::Cron => Rule::PersistenceCron,
                Kind::GitHook => Rule::PersistenceGitHook,
                Kind::Preload => Rule::PersistencePreload,
                Kind::ShellRc => Rule::PersistenceShellRc,
                Kind::SshKey => Rule::PersistenceSshKey,
                _ => Rule::PersistenceStartup,
            };
            return findings.add(rule, span, format!("writes {shown}: {what}"));
        }
        if kinds.contains(&Kind::Trace) && how == Writing::Replace {
            return findings.add(Rule::TraceRemoval, span, format!("overwrites {shown}"));
        }
        if kinds
            .iter()
            .any(|kind| matches!(kind, Kind::Base | Kind::Credential))
        {
            return findings.add(
                Rule::FileWrite,
                span,
                format!("writes {shown}, part of the system"),
            );
        }
        match place.root {
            Root::Absolute
                if !kinds.contains(&Kind::Trace)
                    && (self.speaker == Speaker::Program || place.path.starts_with("/etc/")) =>
            {
                findings.add(
                    Rule::FileWrite,
                    span,
                    format!("writes {shown}, outside the allowed paths"),
                );
            }
            Root::Absolute => {
                findings.warn(
                    Rule::FileWrite,
                    span,
                    format!("writes {shown}, outside the allowed paths"),
                );
            }
            Root::Home | Root::Above => {
                findings.warn(
                    Rule::FileWrite,
                    span,
                    format!("writes {shown}, outside the working directory"),
                );
            }
            Root::Inside | Root::Unknown => {}
        }
    }

    /// Judges a read; whether it was of a secret.
    pub(crate) fn read(&self, place: &Place, span: Span, findings: &mut Findings) -> bool {
        if is_public_key(&place.path) || self.permits(place) {
            return false;
        }
        let kinds = place.kinds();
        let shown = shown(place);
        if kinds.contains(&Kind::Credential) {
            findings.add(Rule::CredentialRead, span, format!("reads {shown}"));
            return true;
        }
        if kinds.contains(&Kind::Disk) {
            findings.warn(
                Rule::CredentialRead,
                span,
                format!("reads the device {shown}"),
            );
        }
        if kinds.contains(&Kind::Account) {
            findings.warn(Rule::AccountRead, span, format!("reads {shown}"));
        }
        false
    }
}

/// What package managers fetch again, and images do without.
pub(crate) fn is_cache(path: &str) -> bool {
    let caches = ["/var/lib/apt/lists", "/var/cache/"];
    caches.iter().any(|cache| path.starts_with(cache))
}

/// `id_rsa.pub` and the like are made to be given away.
pub(crate) fn is_public_key(path: &str) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, ending)| ending == "pub")
}

fn shown(place: &Place) -> String {
    let all = if place.all_inside { "/*" } else { "" };
    let path = place
        .path
        .trim_end_matches('/')
        .replace(crate::paths::UNKNOWN, "…");
    if path.is_empty() && place.root == Root::Absolute {
        return if place.all_inside {
            "/*".to_owned()
        } else {
            "/".to_owned()
        };
    }
    if path.is_empty() {
        return ".".to_owned();
    }
    format!("{path}{all}")
}
