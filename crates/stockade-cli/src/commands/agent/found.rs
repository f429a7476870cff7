//! Definitions of agents, and the programs that they name, on this machine.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use stockade_engine::Files;
use stockade_policy::Agent;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::resolve::Place;

/// The definitions that ship with Stockade and those of the user, which come first.
pub(super) struct Definitions {
    directory: Option<PathBuf>,
}

impl Definitions {
    pub(super) fn of(place: &Place) -> Self {
        let user_file = Files::sources(place.around.clone()).user;
        let directory = user_file.and_then(|file| Agent::directory(&file));
        Self {
            directory: directory.map(|directory| directory.as_path().to_owned()),
        }
    }

    /// All names, sorted.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let built_in = Agent::built_in_names().map(str::to_owned);
        let entries = self
            .directory
            .as_ref()
            .and_then(|path| std::fs::read_dir(path).ok());
        let own = entries.into_iter().flatten().flatten().filter_map(|entry| {
            let name = entry.file_name();
            Agent::name_of_file(name.to_str()?).map(str::to_owned)
        });
        built_in.chain(own).collect()
    }

    /// The user's file about an agent, if there is one.
    pub(super) fn file(&self, name: &str) -> Option<PathBuf> {
        let file = self.directory.as_ref()?.join(Agent::file_of_name(name)?);
        file.is_file().then_some(file)
    }

    pub(super) fn find(&self, name: &str) -> Result<Agent, Failure> {
        if let Some(file) = self.file(name) {
            let what = || format!("can't use `{}`", file.display());
            let text = std::fs::read_to_string(&file).map_err(|error| {
                Failure::new(Exit::NotSetUp, anyhow::Error::new(error).context(what()))
            })?;
            return Agent::parse(&text).map_err(|error| {
                Failure::new(Exit::NotSetUp, anyhow::Error::new(error).context(what()))
            });
        }
        let built_in = Agent::built_in(name).ok_or_else(|| {
            let text = format!("there is no agent `{name}`");
            Failure::text(Exit::Usage, text).hint("stockade agent list")
        })?;
        built_in.map_err(|error| Failure::new(Exit::NotSetUp, error))
    }
}

/// Where a program is in `PATH`.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut files = std::env::split_paths(&path).map(|directory| directory.join(name));
    files.find(|file| {
        let found = std::fs::metadata(file);
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}
