//! Files that tell git where its directory is: `.git` as a file, and `commondir`.
//!
//! `git worktree add` and submodules make them, so they can't be forbidden; but one that leads to
//! a directory whose configuration the sandbox may write would make git on the host run what that
//! configuration says. So: files that were there before stay as they are, and those that are made
//! inside are judged when everything has ended, before anybody outside is told. A bad one is
//! removed.

use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use rustix::process::{Signal, set_parent_process_death_signal};
use stockade_rules::{AbsPath, Kind, RuleSet};

use super::Mediator;
use super::caller::Caller;
use super::record::Operation;

/// A file that was made inside.
pub(super) struct Made {
    path: PathBuf,
    identity: (u64, u64),
}

/// Longer than any path in them.
const MAX_REDIRECT: usize = 8192;

impl Mediator<'_> {
    /// Remembers a file that redirects git, if this is one.
    pub(super) fn note_made(&mut self, path: &Path, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        if redirects(path) {
            let stat = rustix::fs::fstat(fd)?;
            self.note_made_as(path, &stat);
        }
        Ok(())
    }

    /// As [`Mediator::note_made`], for a name that was given to a file.
    pub(super) fn note_named(&mut self, path: &Path, stat: &Stat) {
        if redirects(path) && FileType::from_raw_mode(stat.st_mode).is_file() {
            self.note_made_as(path, stat);
        }
    }

    fn note_made_as(&mut self, path: &Path, stat: &Stat) {
        let identity = (stat.st_dev, stat.st_ino);
        self.made.push(Made {
            path: path.to_owned(),
            identity,
        });
        // There is something to judge now also when the parent is killed: not at once then.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
    }

    /// What redirected git before this run keeps doing so.
    pub(super) fn refuse_redirect(
        &mut self,
        caller: &Caller,
        operation: Operation,
        path: &Path,
        stat: &Stat,
    ) -> Result<(), Errno> {
        if !redirects(path) || !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Ok(());
        }
        let identity = (stat.st_dev, stat.st_ino);
        let private = self
            .plan
            .private
            .iter()
            .any(|private| path.starts_with(private));
        let in_project = self.rules.decide(Kind::Write, path).allowed;
        if !in_project
            || private && !below_a_root(&self.plan.rules, path)
            || self.made.iter().any(|made| made.identity == identity)
        {
            return Ok(());
        }
        Err(self.records.deny(caller, operation, path, None))
    }

    /// Judges what was made; nothing else may be running any more.
    pub(crate) fn judge_redirects(&mut self) {
        for made in std::mem::take(&mut self.made) {
            let same = fs::symlink_metadata(&made.path)
                .is_ok_and(|now| (now.dev(), now.ino()) == made.identity);
            if same && !leads_to_protected(&self.plan.rules, &made.path) {
                // If it can't be removed it can't be trusted either, but there is nobody left
                // to stop; the record says so.
                let _ = fs::remove_file(&made.path);
                self.records
                    .deny_afterwards(Operation::GitRedirect, &made.path);
            }
        }
    }

    /// Whether anything waits to be judged.
    pub(crate) fn has_redirects(&self) -> bool {
        !self.made.is_empty()
    }
}

/// Whether a file of this name sends git elsewhere.
pub(super) fn redirects(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name == ".git" || name == "commondir")
}

/// Whether the path is the project's and not the private `/tmp`'s: a shorter rule than the
/// project's grants the latter.
fn below_a_root(rules: &RuleSet, path: &Path) -> bool {
    let decision = rules.decide(Kind::Write, path);
    decision
        .rule
        .is_some_and(|rule| rule.pattern.depth_at(path).is_some_and(|depth| depth > 1))
}

/// Whether the configuration and hooks that git would find through this file are beyond the
/// sandbox's reach.
fn leads_to_protected(rules: &RuleSet, file: &Path) -> bool {
    let Some(directory) = file.parent() else {
        return false;
    };
    let Some(text) = read(file) else { return false };
    let target = if file.file_name().is_some_and(|name| name == ".git") {
        match text.strip_prefix(b"gitdir: ") {
            Some(target) => target,
            // Not something that git would follow.
            None => return true,
        }
    } else {
        &text
    };
    let Some(git) = resolve(directory, target) else {
        return false;
    };
    let common = match read(&git.join("commondir")) {
        Some(text) => match resolve(&git, &text) {
            Some(common) => common,
            None => return false,
        },
        None => git.clone(),
    };
    [&git, &common].into_iter().all(|place| {
        ["config", "hooks/pre-commit"]
            .iter()
            .all(|name| !rules.decide(Kind::Write, &place.join(name)).allowed)
    })
}

fn read(file: &Path) -> Option<Vec<u8>> {
    let mut text = fs::read(file)
        .ok()
        .filter(|text| text.len() < MAX_REDIRECT)?;
    while text
        .last()
        .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
    {
        text.pop();
    }
    Some(text)
}

/// Where a path in such a file leads, links resolved; none if that can't be told.
fn resolve(from: &Path, target: &[u8]) -> Option<PathBuf> {
    let path = from.join(std::ffi::OsStr::from_bytes(target));
    let lexical = AbsPath::new(&path).ok()?;
    // A directory that does not exist leads nowhere yet; its name is what counts.
    let fd = rustix::fs::open(
        &path,
        rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    );
    match fd {
        Ok(fd) => {
            let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
            fs::read_link(link).ok()
        }
        Err(_) => Some(lexical.into_path_buf()),
    }
}
