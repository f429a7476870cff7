//! The git repository that the workspace belongs to.
//!
//! Found as git finds it: the nearest `.git` at or above the workspace. It may be a directory, or
//! a file that leads to the directory of a linked worktree or a submodule, which lies elsewhere.
//!
//! Protects other directories from a `.git` file that somebody prepared: the git directory it
//! leads to must lie outside the working tree, must be one (`HEAD`, `objects`, `refs`), and must
//! name the working tree in turn, which only someone who can write there could have arranged.

mod code;

use serde::Serialize;
use stockade_rules::AbsPath;
use stockade_rules::protected::git::{config, redirect};

use super::base::unfit_workspace;
use super::sources::Loader;

/// The repository that a workspace belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OwnRepository {
    /// The root of the working tree: the workspace, or a directory above it.
    pub root: AbsPath,
    /// How the working tree is tied to the repository.
    pub link: Link,
    /// The git directory; for a linked worktree its own one and then the common one.
    pub git_directories: Vec<AbsPath>,
    /// What the existing configuration runs or reads: directories of hooks, files of
    /// configuration, scripts in the working tree.
    pub code_paths: Vec<AbsPath>,
}

/// How a working tree is tied to its repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Link {
    /// `.git` is the git directory.
    Directory,
    /// The working tree of a submodule, whose git directory is in the repository around it.
    Submodule,
    /// A linked worktree (git-worktree(1)).
    Worktree,
}

impl OwnRepository {
    /// The directory of objects, references, hooks and configuration.
    pub fn common_directory(&self) -> Option<&AbsPath> {
        self.git_directories.last()
    }
}

/// Finds the repository; `None` if there is none, or if its files contradict each other.
pub fn own_repository(
    workspace: &AbsPath,
    home: Option<&AbsPath>,
    loader: &dyn Loader,
) -> Option<OwnRepository> {
    let mut found = discover(workspace, loader)?;
    // A repository of the home directory or the system holds everybody's projects by accident.
    let is_home = home.is_some_and(|home| *home == found.root);
    let holds_others = is_home || unfit_workspace(&found.root, home).is_some();
    if holds_others && found.root != *workspace {
        return None;
    }
    found.code_paths = code::paths(&found, home, loader);
    Some(found)
}

fn discover(workspace: &AbsPath, loader: &dyn Loader) -> Option<OwnRepository> {
    let mut root = workspace.clone();
    loop {
        let pointer = root.join(".git").ok()?;
        if is_git_directory(&pointer, loader) {
            return Some(OwnRepository {
                root,
                link: Link::Directory,
                git_directories: vec![pointer],
                code_paths: Vec::new(),
            });
        }
        if let Ok(text) = loader.read(&pointer) {
            let git_directory = root.join(as_path(redirect::git_file(&text)?)?).ok()?;
            return linked(&root, &pointer, git_directory, loader);
        }
        root = root.parent()?;
    }
}

/// A working tree whose `.git` is the file `pointer`.
fn linked(
    root: &AbsPath,
    pointer: &AbsPath,
    git_directory: AbsPath,
    loader: &dyn Loader,
) -> Option<OwnRepository> {
    // What lies in the working tree may have been prepared together with the pointer.
    if git_directory.is_within(root) {
        return None;
    }
    let line = |name: &str| {
        let text = loader.read(&git_directory.join(name).ok()?).ok()?;
        let path = redirect::path_line(&text)?;
        git_directory.join(as_path(path)?).ok()
    };
    let found = |link, git_directories| OwnRepository {
        root: root.clone(),
        link,
        git_directories,
        code_paths: Vec::new(),
    };
    if let Some(common) = line("commondir") {
        // `COMMON/worktrees/NAME`, as git lays it out; see gitrepository-layout(5).
        let is_worktree = line("gitdir")? == *pointer
            && git_directory.parent()? == common.join("worktrees").ok()?
            && is_git_directory(&common, loader);
        is_worktree.then(|| found(Link::Worktree, vec![git_directory, common]))
    } else {
        let text = loader.read(&git_directory.join("config").ok()?).ok()?;
        let settings = config::parse(&text)?;
        let mut settings = settings.iter().rev();
        let worktree = settings.find(|setting| setting.key == b"core.worktree")?;
        let worktree = as_path(worktree.value.as_deref()?)?;
        let is_submodule =
            git_directory.join(worktree).ok()? == *root && is_git_directory(&git_directory, loader);
        is_submodule.then(|| found(Link::Submodule, vec![git_directory]))
    }
}

/// As git's `is_git_directory`, of a directory that is its own common directory.
fn is_git_directory(path: &AbsPath, loader: &dyn Loader) -> bool {
    ["HEAD", "objects", "refs"]
        .iter()
        .all(|name| path.join(name).is_ok_and(|path| loader.exists(&path)))
}

/// A path in one of git's files. One that is not text gets no grant.
fn as_path(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes)
        .ok()
        .filter(|path| !path.is_empty() && !path.contains(['\n', '\0']))
}

#[cfg(test)]
mod tests;
