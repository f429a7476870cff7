//! Hooks that a repository below the workspace keeps in another directory (`core.hooksPath`).
//!
//! For the workspace's own repository these are path rules, made before the run. Other repositories
//! are found when a name is asked about that can be a hook: nobody walks the tree. Their
//! configuration can be trusted to name the directory, because no sandboxed command can set the key.

use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::io::Errno;
use stockade_rules::AbsPath;
use stockade_rules::protected::git::{config, redirect};
use stockade_rules::protected::{Guard, Judge, PROTECTED, ProtectedName, is_hook};

use super::facts;
use super::place::{is_empty, read_at_once, resolved};
use crate::mediator::Worker;
use crate::mediator::place::Directory;

/// Directories are not nested deeper than this around a repository that somebody works in.
const MAX_DEPTH: usize = 64;

impl Worker<'_, '_> {
    /// The row of hooks, if git takes a file of this path for a hook.
    pub(super) fn hook_elsewhere(&self, path: &Path) -> Option<&'static ProtectedName> {
        if !path.file_name().is_some_and(is_hook) {
            return None;
        }
        let hooks = self.hooks_path_around(path)?;
        path.starts_with(&hooks).then(hooks_row).flatten()
    }

    /// The row of hooks, if a directory that moves to a path brings hooks or a directory of them.
    pub(super) fn hooks_brought(
        &self,
        path: &Path,
        moving: Option<&Directory>,
    ) -> Option<&'static ProtectedName> {
        let hooks = self.hooks_path_around(path)?;
        let brings = match hooks.strip_prefix(path) {
            Ok(way) if way.as_os_str().is_empty() => true,
            Ok(way) => moving.is_none_or(|moving| facts::is_there(moving, way)),
            Err(_) => path.starts_with(&hooks),
        };
        brings.then(hooks_row).flatten()
    }

    /// The directory of hooks that the nearest repository around a path names.
    fn hooks_path_around(&self, path: &Path) -> Option<PathBuf> {
        let above = path.ancestors().skip(1).take(MAX_DEPTH);
        let mut roots = above.take_while(|directory| self.in_reach(directory));
        let (root, git) = roots.find_map(|root| {
            let git = root.join(".git");
            facts::is_there(CWD, &git).then_some((root, git))
        })?;
        let own = self.shared.plan.protection.as_ref()?.own_root.as_ref();
        if own.is_some_and(|own| own.as_path() == root) {
            return None;
        }
        let config = config_of(&git)?;
        let text = match read_at_once(&config, Judge::Config) {
            // It is being changed, and may name any directory.
            Err(Errno::AGAIN) if !is_empty(&config) => return Some(root.to_owned()),
            text => text.ok()?,
        };
        let settings = config::parse(&text)?;
        let mut settings = settings.into_iter().rev();
        let setting = settings.find(|setting| setting.key == b"core.hookspath")?;
        let value = String::from_utf8(setting.value?).ok()?;
        let hooks = AbsPath::new(root.join(value)).ok()?.into_path_buf();
        // The hooks that husky puts into `.husky/_` run those of the same name in `.husky`.
        let holds_husky = hooks.file_name().is_some_and(|name| name == "_");
        let directory = if holds_husky { hooks.parent()? } else { &hooks };
        Some(directory.to_owned())
    }
}

/// The configuration behind a `.git`, which may be a file that leads to the git directory.
fn config_of(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.join("config"));
    }
    let text = read_at_once(git, Judge::Redirect).ok()?;
    let directory = resolved(git, redirect::git_file(&text)?)?;
    let pointer = directory.join("commondir");
    let common = read_at_once(&pointer, Judge::CommonDirectory).ok();
    let common = common.and_then(|text| resolved(&pointer, redirect::path_line(&text)?));
    Some(common.unwrap_or(directory).join("config"))
}

fn hooks_row() -> Option<&'static ProtectedName> {
    PROTECTED.iter().find(|row| row.guard == Guard::GitHooks)
}
