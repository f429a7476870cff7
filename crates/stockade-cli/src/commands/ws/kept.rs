//! Changes that were kept back, and how to apply them all the same.

use std::path::Path;

use stockade_rules::AbsPath;
use stockade_workspace::{AllowAll, CommitGuard, KeptBack, WorkspaceName};

use crate::failure::Failure;
use crate::output::{self, Format};

/// Where something was kept back.
pub(crate) struct Kept<'a> {
    pub(crate) name: &'a WorkspaceName,
    /// The store, if it was named by a flag.
    pub(crate) store: Option<&'a Path>,
    pub(crate) dir: &'a Path,
    pub(crate) again: Again<'a>,
}

/// What applies it.
pub(crate) enum Again<'a> {
    Commit,
    Restore { id: &'a str, merge: bool },
}

/// Decides what of a snapshot may reach a directory.
pub(super) fn guard_of(dir: &Path, allow: bool) -> Result<Box<dyn CommitGuard>, Failure> {
    if allow {
        return Ok(Box::new(AllowAll));
    }
    let guard = super::layers::protected_names(dir, vec![dir.to_owned()])?;
    Ok(Box::new(guard))
}

/// The others are counted; `ws diff` shows them.
const SHOWN: usize = 10;

impl Kept<'_> {
    /// Names what was kept back, and the command that applies it.
    pub(crate) fn tell(&self, kept: &[KeptBack], format: Format) {
        if kept.is_empty() {
            return;
        }
        for one in kept.iter().take(SHOWN) {
            let path = one.path.strip_prefix(self.dir).unwrap_or(&one.path);
            let text = format!("kept back: `{}`: {}", path.display(), one.reason);
            output::warn(&text, format);
        }
        if kept.len() > SHOWN {
            let more = kept.len() - SHOWN;
            output::warn(
                &format!(
                    "kept back: {more} more; `stockade ws diff {}` shows all",
                    self.name
                ),
                format,
            );
        }
        output::warn(&format!("apply with: {}", self.apply(kept)), format);
    }

    fn apply(&self, kept: &[KeptBack]) -> String {
        let mut words = vec!["stockade ws".to_owned()];
        if let Some(store) = self.store {
            words.push(format!("--store {}", word(store)));
        }
        match self.again {
            Again::Commit => {
                words.push(format!("commit --allow-protected {}", self.name));
                // Nothing else is left in the overlay, so that no path means all of these.
                if kept.len() <= SHOWN {
                    words.extend(kept.iter().map(|one| self.word_of(&one.path)));
                }
            }
            Again::Restore { id, merge } => {
                let merge = if merge { " --merge" } else { "" };
                words.push(format!(
                    "restore --allow-protected{merge} {} {id}",
                    self.name
                ));
            }
        }
        words.join(" ")
    }

    /// From the workspace's directory, if a shell takes that as it is.
    fn word_of(&self, path: &Path) -> String {
        let is_plain = |text: &&str| {
            let mut bytes = text.bytes();
            !text.is_empty()
                && !text.starts_with('-')
                && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._-/+@".contains(&byte))
        };
        let below = path.strip_prefix(self.dir).ok().and_then(Path::to_str);
        below
            .filter(is_plain)
            .map_or_else(|| word(path), str::to_owned)
    }
}

fn word(path: &Path) -> String {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    AbsPath::new(&whole).map_or_else(|_| whole.display().to_string(), |path| path.as_word())
}
