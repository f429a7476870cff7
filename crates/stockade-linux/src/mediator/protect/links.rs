//! Files that a protected name leads to: people link their start-up files to a repository of
//! dotfiles, and their hooks to scripts of the project.
//!
//! Links are followed once, before the command runs. Afterwards none can be made under a protected
//! name.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat, readlinkat};
use stockade_rules::protected::{Anchor, Guard, PROTECTED, ProtectedName};

use crate::plan::Protection;

/// No more hooks are looked at: git knows fewer than 30.
const MAX_HOOKS: usize = 256;

/// Paths in writable directories that protected names are links to.
#[derive(Default)]
pub(super) struct LinkTargets(Vec<LinkTarget>);

pub(super) struct LinkTarget {
    pub(super) path: PathBuf,
    pub(super) row: &'static ProtectedName,
}

impl LinkTargets {
    pub(super) fn find(protection: Option<&Protection>) -> Self {
        let mut found = Self::default();
        let Some(protection) = protection else {
            return found;
        };
        for anchor in &protection.anchors {
            found.add_names(anchor.as_path());
        }
        for git in &protection.own_git {
            found.add_hooks(&git.as_path().join("hooks"));
        }
        let roots = &protection.roots;
        // A link to a whole writable directory would leave nothing in it to write.
        let below = |path: &Path| {
            let mut around = roots.iter().map(stockade_rules::AbsPath::as_path);
            around.any(|root| path.starts_with(root) && path != root)
        };
        found.0.retain(|target| below(&target.path));
        found
    }

    /// The target that a path is, or lies below.
    pub(super) fn around(&self, path: &Path) -> Option<&LinkTarget> {
        self.0.iter().find(|target| path.starts_with(&target.path))
    }

    /// The targets that lie below a path, and the way to each.
    pub(super) fn below<'a>(
        &'a self,
        path: &'a Path,
    ) -> impl Iterator<Item = (&'a Path, &'static ProtectedName)> {
        self.0.iter().filter_map(move |target| {
            let way = target.path.strip_prefix(path).ok()?;
            Some((way, target.row))
        })
    }

    /// Names of files of editors, agents and shells.
    fn add_names(&mut self, anchor: &Path) {
        let Some(directory) = open(anchor) else {
            return;
        };
        for row in PROTECTED.iter().filter(|row| row.anchor == Anchor::Root) {
            let ends = row.name.match_indices('/').map(|(end, _)| end);
            for end in ends.chain([row.name.len()]) {
                if readlinkat(&directory, &row.name[..end], Vec::new()).is_ok() {
                    self.add(&anchor.join(row.name), row);
                    break;
                }
            }
        }
    }

    /// A directory of hooks, or the hooks in it.
    fn add_hooks(&mut self, hooks: &Path) {
        let mut rows = PROTECTED.iter();
        let Some(row) = rows.find(|row| row.guard == Guard::GitHooks) else {
            return;
        };
        if readlinkat(CWD, hooks, Vec::new()).is_ok() {
            self.add(hooks, row);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = openat(CWD, hooks, flags, Mode::empty());
        let Ok(entries) = listed.and_then(Dir::read_from) else {
            return;
        };
        for entry in entries.flatten().take(MAX_HOOKS) {
            if entry.file_type() == FileType::Symlink
                && let Ok(name) = entry.file_name().to_str()
            {
                self.add(&hooks.join(name), row);
            }
        }
    }

    fn add(&mut self, link: &Path, row: &'static ProtectedName) {
        if let Some(path) = landing(link) {
            self.0.push(LinkTarget { path, row });
        }
    }
}

/// Where a path leads; the last names of it need not exist yet.
fn landing(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    let target = std::fs::read_link(path).ok();
    let (parent, last) = (path.parent()?, path.file_name()?);
    match target {
        Some(target) => {
            let target = parent.join(target);
            Some(
                target
                    .parent()?
                    .canonicalize()
                    .ok()?
                    .join(target.file_name()?),
            )
        }
        None => Some(landing(parent)?.join(last)),
    }
}

fn open(directory: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD.as_fd(), directory, flags, Mode::empty()).ok()
}
