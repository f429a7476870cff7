//! Which changes of an overlay, a snapshot or an import may reach the host.
//!
//! Judged when nothing runs any more, on the result as it would be: what would make code run on
//! the host that would not have run otherwise is kept back. This is the only place where commits,
//! restores and imports decide. The names are those of the table that the mediator of a direct run
//! uses, and so are the judges of content.
//!
//! A commit may leave parts out: what the user did not choose, what is kept back. So a question
//! about what a directory is asks the host as it is *and* as it would be, and the answer that
//! keeps more counts.

mod git;
mod history;
mod names;

use std::cell::Cell;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use stockade_policy::profile::{Guard, PROTECTED_NAMES, Profile, is_protection};
use stockade_rules::{Kind, Pattern, Rank, RuleSet};
use stockade_workspace::{CommitGuard, FileKind, ProposedChange, ProposedKind, Time, Verdict};

/// Judges by the profile's protected names.
#[derive(Debug)]
pub struct ProtectedNames {
    profile: Profile,
    roots: Vec<PathBuf>,
    /// The roots, the home directory and the root of the workspace's repository.
    anchors: Vec<PathBuf>,
    /// The git directories of the workspace's repository.
    own_git: Vec<PathBuf>,
    /// What protected names lead to that are links on the host.
    behind_links: Vec<(PathBuf, &'static str)>,
    /// The rules about paths, without those about names that are judged by content.
    rules: RuleSet,
    /// Whether one of them denies something below a root.
    denies: bool,
    /// Whether a change brings objects to the workspace's repository.
    brings_objects: Cell<bool>,
}

impl ProtectedNames {
    /// For these roots, by a profile that grants them.
    pub fn new(profile: Profile, home: Option<PathBuf>, roots: Vec<PathBuf>) -> Self {
        let own = profile.own_repository.as_ref();
        let own_root = own.map(|own| own.root.as_path().to_owned());
        let own_git = own.into_iter().flat_map(|own| &own.git_directories);
        let own_git = own_git.map(|git| git.as_path().to_owned());
        let own_git = own_git.chain(roots.iter().map(|root| root.join(".git")));
        let own_git: Vec<PathBuf> = own_git.collect();
        let behind_links = roots.iter().flat_map(|root| links(root));
        let hooks = own_git.iter().flat_map(|git| hook_links(git));
        let behind_links = behind_links.chain(hooks).collect();
        let anchors = roots.iter().cloned().chain(home).chain(own_root);
        let judged_by_path = profile.rules.iter().filter(|rule| !is_protection(rule));
        let rules = RuleSet::new(judged_by_path.cloned().collect());
        let denies = rules.iter().any(|rule| {
            let closes = rule.access.allows(Kind::Write) == Some(false);
            closes
                && match &rule.pattern {
                    Pattern::Glob(_) => rule.rank == Rank::Stated,
                    Pattern::Subtree(path) => {
                        roots.iter().any(|root| path.as_path().starts_with(root))
                    }
                }
        });
        Self {
            own_git,
            anchors: anchors.collect(),
            profile,
            roots,
            behind_links,
            rules,
            denies,
            brings_objects: Cell::new(false),
        }
    }

    fn root_of(&self, path: &Path) -> Option<&Path> {
        let holding = self.roots.iter().filter(|root| path.starts_with(root));
        holding
            .max_by_key(|root| root.as_os_str().len())
            .map(PathBuf::as_path)
    }

    /// Why a change must not reach the host.
    fn objection(&self, change: &ProposedChange<'_>) -> Option<String> {
        if self.is_record(change.path) {
            return Some("it records since when sandboxed commands write objects".to_owned());
        }
        let puts = change.kind != ProposedKind::Remove;
        if puts && let Some(reason) = dangerous_kind(change) {
            return Some(reason.to_owned());
        }
        let mut behind = self.behind_links.iter();
        if puts && let Some((_, reason)) = behind.find(|(path, _)| change.path.starts_with(path)) {
            return Some((*reason).to_owned());
        }
        if self.denies {
            let decision = self.rules.decide(Kind::Write, change.path);
            if let Some(rule) = decision.rule
                && !decision.allowed
                && (rule.rank == Rank::Stated || matches!(rule.pattern, Pattern::Subtree(_)))
            {
                return Some(format!("`{rule}` ({})", rule.origin));
            }
        }
        let root = self.root_of(change.path)?;
        let reason = names::objection(self, change, root)?;
        (!self.is_granted(change.path, root)).then_some(reason)
    }

    /// Whether the user granted the very name, and not just a directory around it.
    fn is_granted(&self, path: &Path, root: &Path) -> bool {
        let decision = self.profile.rules.decide(Kind::Write, path);
        decision.allowed
            && decision.rule.is_some_and(|rule| {
                let is_named = match &rule.pattern {
                    Pattern::Subtree(path) => {
                        path.as_path().starts_with(root) && path.as_path() != root
                    }
                    Pattern::Glob(_) => true,
                };
                rule.rank == Rank::Stated && is_named
            })
    }

    /// Whether a path lies in a git directory of the workspace's repository, or is the file that
    /// leads there.
    fn is_own(&self, path: &Path) -> bool {
        let is_redirect = git::is_called_git(path)
            && path
                .parent()
                .is_some_and(|parent| self.anchors.iter().any(|anchor| anchor == parent));
        is_redirect || self.own_git.iter().any(|own| path.starts_with(own))
    }

    fn in_reach(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }
}

impl CommitGuard for ProtectedNames {
    fn judge(&self, change: &ProposedChange<'_>) -> Verdict {
        if let Some(reason) = self.objection(change) {
            return Verdict::KeepBack(reason);
        }
        self.note_objects(change);
        Verdict::Allow
    }

    fn before_commit(&self, since: Option<Time>) -> std::io::Result<()> {
        self.record_objects(since)
    }
}

/// Keeps nothing back, because the user said so; what has to be on record is recorded.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers wrap a guard of their own"
)]
pub struct AllowProtected(pub ProtectedNames);

impl CommitGuard for AllowProtected {
    fn judge(&self, change: &ProposedChange<'_>) -> Verdict {
        self.0.note_objects(change);
        Verdict::Allow
    }

    fn before_commit(&self, since: Option<Time>) -> std::io::Result<()> {
        self.0.record_objects(since)
    }
}

/// What no run can make on the host.
fn dangerous_kind(change: &ProposedChange<'_>) -> Option<&'static str> {
    const SET_USER: u32 = 0o4000;
    const SET_GROUP_AND_EXECUTE: u32 = 0o2010;
    let new = change.new?;
    let set_id =
        new.mode & SET_USER != 0 || new.mode & SET_GROUP_AND_EXECUTE == SET_GROUP_AND_EXECUTE;
    match new.kind {
        FileKind::Device => Some("it is a device"),
        FileKind::File if set_id => Some("it runs as its owner or group (set-id)"),
        _ => None,
    }
}

fn reason(guard: Guard) -> &'static str {
    guard.reason().trim_start_matches("built-in: ")
}

/// Protected names of a root that are links, and where they lead.
fn links(root: &Path) -> Vec<(PathBuf, &'static str)> {
    let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|data| data.is_symlink());
    let mut found = Vec::new();
    for name in PROTECTED_NAMES
        .iter()
        .filter(|name| !name.name.contains('*'))
    {
        let mut path = root.to_owned();
        let leads_away = name.name.split('/').any(|part| {
            path.push(part);
            is_link(&path)
        });
        if leads_away && let Some(target) = target(&root.join(name.name)) {
            found.push((target, reason(name.guard)));
        }
    }
    found
}

/// Where the hooks of a git directory lead that are links.
fn hook_links(git: &Path) -> Vec<(PathBuf, &'static str)> {
    let entries = fs::read_dir(git.join("hooks")).into_iter().flatten();
    let links = entries.flatten().filter(|entry| {
        let kind = entry.file_type();
        kind.is_ok_and(|kind| kind.is_symlink())
    });
    let targets = links.filter_map(|entry| target(&entry.path()));
    targets
        .map(|target| (target, reason(Guard::GitHooks)))
        .collect()
}

/// What a path leads to, all links followed. It is named, not opened for reading: it may be a FIFO.
fn target(path: &Path) -> Option<PathBuf> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}
