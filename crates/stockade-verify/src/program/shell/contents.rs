//! What the files hold that a shell script writes.

use std::collections::HashMap;

use crate::paths::UNKNOWN;
use crate::program::value::Taint;

/// Files of one script that are followed, and those of one name in different directories.
const MAX_FILES: usize = 1_000;
const MAX_NAMESAKES: usize = 16;

/// What the files hold that a script writes.
#[derive(Debug, Default)]
pub(in crate::program) struct Contents {
    /// Paths and what they hold, by the last part of the path.
    files: HashMap<String, Vec<(String, Taint)>>,
    /// An archive from another machine was unpacked; with a password.
    pub(super) unpacked: Option<bool>,
}

impl Contents {
    pub(super) fn write(&mut self, path: &str, taint: Taint) {
        let nowhere = matches!(path, "" | "-" | "/" | "/dev/null" | "/dev/stdout");
        if nowhere || last_part(path).ends_with(UNKNOWN) || self.files.len() >= MAX_FILES {
            return;
        }
        let path = plain(path);
        let files = self.files.entry(last_part(path).to_owned()).or_default();
        files.retain(|(known, _)| known != path);
        if files.len() < MAX_NAMESAKES {
            files.push((path.to_owned(), taint));
        }
    }

    /// What a file holds, if the script wrote it, under this path or another that ends the same.
    pub(super) fn of(&self, path: &str) -> Option<Taint> {
        let path = plain(path);
        let files = self.files.get(last_part(path))?;
        let same = |known: &str| known.ends_with(path) || path.ends_with(known);
        let exact = files.iter().find(|(known, _)| known == path);
        let found = exact.or_else(|| files.iter().find(|(known, _)| same(known)));
        found.map(|(_, taint)| *taint)
    }
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A path without `./` before it.
pub(super) fn plain(path: &str) -> &str {
    path.trim_start_matches("./")
}
