//! What is not part of a workspace.

use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::error::Error;
use crate::files::{self, Stat};

/// Which files are not part of a workspace.
#[derive(Clone, Debug)]
pub(crate) struct Excludes {
    rules: Option<Gitignore>,
    /// Directories by identity: the store itself.
    pub(crate) own: Vec<(u64, u64)>,
}

/// What restores leave in a workspace while they work; never part of a snapshot.
pub(crate) const STAGE_PREFIX: &[u8] = b".stockade-restore-";

impl Excludes {
    /// Rules as in `.gitignore`.
    pub(crate) fn new(rules: &[String], own: Vec<(u64, u64)>) -> Result<Self, Error> {
        if rules.is_empty() {
            return Ok(Self { rules: None, own });
        }
        let mut builder = GitignoreBuilder::new("");
        for rule in rules {
            builder
                .add_line(None, rule)
                .map_err(|error| Error::Exclude {
                    rule: rule.clone(),
                    reason: error.to_string(),
                })?;
        }
        let built = builder.build().map_err(|error| Error::Exclude {
            rule: String::new(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            rules: Some(built),
            own,
        })
    }

    /// Whether this entry is left out.
    pub(crate) fn covers(&self, directory: &[u8], name: &[u8], stat: &Stat) -> bool {
        use std::os::unix::ffi::OsStrExt;
        if directory.is_empty() && name.starts_with(STAGE_PREFIX) && stat.is_dir() {
            return true;
        }
        if stat.is_dir() && self.own.contains(&(stat.dev, stat.ino)) {
            return true;
        }
        self.rules.as_ref().is_some_and(|rules| {
            let path = files::join(directory, name);
            let path = Path::new(std::ffi::OsStr::from_bytes(&path));
            rules.matched(path, stat.is_dir()).is_ignore()
        })
    }
}
