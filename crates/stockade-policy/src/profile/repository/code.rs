//! What the configuration of a repository already runs: whoever can write these files runs code
//! at the next `git commit` on the host.

use std::collections::BTreeSet;

use stockade_rules::AbsPath;
use stockade_rules::protected::Effect;
use stockade_rules::protected::git::config::{self, Setting};
use stockade_rules::protected::git::{entries_for, split_command_line};

use super::{OwnRepository, as_path};
use crate::profile::sources::Loader;

/// As many files may include one another in git.
const MAX_INCLUDE_DEPTH: usize = 10;

/// No more paths are returned: each becomes a rule.
const MAX_PATHS: usize = 64;

/// Every path that the user's and the repository's configuration runs or includes.
pub(super) fn paths(
    repository: &OwnRepository,
    home: Option<&AbsPath>,
    loader: &dyn Loader,
) -> Vec<AbsPath> {
    let mut search = Search {
        repository,
        home,
        loader,
        found: BTreeSet::new(),
        seen: BTreeSet::new(),
    };
    let of_user = [".config/git/config", ".gitconfig"];
    let of_user = of_user.iter().filter_map(|name| home?.join(name).ok());
    let directories = repository.git_directories.iter().rev();
    let of_repository =
        directories.flat_map(|git| [git.join("config").ok(), git.join("config.worktree").ok()]);
    let files: Vec<AbsPath> = of_user.chain(of_repository.flatten()).collect();
    for file in &files {
        search.read(file, 0);
    }
    search.found.into_iter().collect()
}

struct Search<'a> {
    repository: &'a OwnRepository,
    home: Option<&'a AbsPath>,
    loader: &'a dyn Loader,
    found: BTreeSet<AbsPath>,
    seen: BTreeSet<AbsPath>,
}

impl Search<'_> {
    fn read(&mut self, file: &AbsPath, depth: usize) {
        if depth > MAX_INCLUDE_DEPTH || !self.seen.insert(file.clone()) {
            return;
        }
        let settings = self.loader.read(file).ok();
        let settings = settings.and_then(|text| config::parse(&text));
        for setting in settings.unwrap_or_default() {
            self.follow(&setting, file, depth);
        }
    }

    fn follow(&mut self, setting: &Setting, file: &AbsPath, depth: usize) {
        let Some(value) = setting.value.as_deref().and_then(as_path) else {
            return;
        };
        let key = setting.key.as_slice();
        let is_include =
            key == b"include.path" || key.starts_with(b"includeif.") && key.ends_with(b".path");
        if is_include {
            let directory = file.parent().unwrap_or_else(AbsPath::root);
            if let Some(path) = self.expand(value, &directory) {
                self.add(path.clone());
                self.read(&path, depth + 1);
            }
        } else if key == b"core.hookspath" {
            if let Some(path) = self.expand(value, &self.repository.root) {
                self.add(hooks_directory(path));
            }
        } else if entries_for(key).any(|entry| entry.effect == Effect::RunsProgram) {
            self.follow_command(key, value);
        }
    }

    /// The scripts that a command names: files of the working tree.
    fn follow_command(&mut self, key: &[u8], value: &str) {
        let command = match value.strip_prefix('!') {
            Some(command) => command,
            // Without `!` these are names of git's own commands.
            None if key.starts_with(b"alias.") || key.ends_with(b".update") => return,
            None => value,
        };
        for word in split_command_line(command.as_bytes()).unwrap_or_default() {
            let Some(word) = as_path(&word).filter(|word| names_a_script(word)) else {
                continue;
            };
            if let Some(path) = self.expand(word, &self.repository.root)
                && path.is_within(&self.repository.root)
                // A directory can't be read.
                && self.loader.read(&path).is_ok()
            {
                self.add(path);
            }
        }
    }

    fn add(&mut self, path: AbsPath) {
        if self.found.len() < MAX_PATHS {
            self.found.insert(path);
        }
    }

    /// A path in the configuration: `~/` is the home directory.
    fn expand(&self, path: &str, base: &AbsPath) -> Option<AbsPath> {
        match path.strip_prefix("~/") {
            Some(rest) => self.home?.join(rest).ok(),
            None => base.join(path).ok(),
        }
    }
}

/// The hooks that husky puts into `.husky/_` run those of the same name in `.husky`.
fn hooks_directory(path: AbsPath) -> AbsPath {
    match path.parent() {
        Some(parent) if path.as_path().ends_with("_") => parent,
        _ => path,
    }
}

/// Whether a word of a command line can be a script: the shell looks for words without a slash
/// elsewhere, and an interpreter is usually given a name with an ending.
fn names_a_script(word: &str) -> bool {
    const ENDINGS: &[&str] = &[
        "bash", "cjs", "fish", "js", "lua", "mjs", "php", "pl", "ps1", "py", "rb", "sh", "ts",
        "zsh",
    ];
    let ending = word.rsplit_once('.').map(|(_, ending)| ending);
    word.contains('/') || ending.is_some_and(|ending| ENDINGS.contains(&ending))
}
