//! What was in a settings file before the hook, kept beside the user's configuration of Stockade,
//! which no sandbox can write.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stockade_engine::Files;

use super::agent_hook::AgentHook;
use crate::exit::Exit;
use crate::failure::Failure;

const ORIGINAL: &str = "original";
const INSTALLED: &str = "installed";

pub(super) struct Record(PathBuf);

impl Record {
    pub(super) fn of(hook: &AgentHook) -> Result<Self, Failure> {
        let around = crate::resolve::Place::enter(None)?.around;
        let user_file = Files::sources(around).user;
        let directory = user_file.and_then(|file| Some(file.as_path().parent()?.to_owned()));
        let directory =
            directory.ok_or_else(|| Failure::text(Exit::NotSetUp, "there is no home directory"))?;
        let below = hook.path();
        let below = below.strip_prefix("/").unwrap_or(&below);
        Ok(Self(directory.join("hooks").join(below)))
    }

    pub(super) fn keep(&self, original: Option<&str>, installed: &str) -> Result<(), Failure> {
        let kept = fs::create_dir_all(&self.0).and_then(|()| {
            match original {
                Some(text) => fs::write(self.0.join(ORIGINAL), text)?,
                None => remove(&self.0.join(ORIGINAL))?,
            }
            fs::write(self.0.join(INSTALLED), installed)
        });
        kept.map_err(|error| {
            let what = format!("can't keep what was there before in `{}`", self.0.display());
            Failure::new(Exit::Negative, anyhow::Error::new(error).context(what))
        })
    }

    /// What was there before, `None` if that is not known or the file was changed since.
    #[expect(clippy::option_option, reason = "not known, no file, or its text")]
    pub(super) fn original(&self, now: Option<&str>) -> Result<Option<Option<String>>, Failure> {
        let read = |name| match fs::read_to_string(self.0.join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        let installed = read(INSTALLED)?;
        if installed.is_none() || installed.as_deref() != now {
            return Ok(None);
        }
        Ok(Some(read(ORIGINAL)?))
    }

    pub(super) fn forget(&self) {
        // What is left is overwritten by the next hook.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
