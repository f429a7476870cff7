//! The profile as a whole: files, layers, the project's limits, laws.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use stockade_rules::{AbsPath, Kind};

use super::*;
use crate::model::Surroundings;

mod documents;
mod explain;
mod file;
mod laws;
mod layers;
mod policy;
mod project;
mod schema;

/// Files that exist in the test only.
#[derive(Default)]
struct Files(BTreeMap<AbsPath, Vec<u8>>);

impl Files {
    fn with(mut self, path: &str, text: impl Into<Vec<u8>>) -> Self {
        self.0.insert(abs(path), text.into());
        self
    }
}

impl Loader for Files {
    fn read(&self, path: &AbsPath) -> io::Result<Vec<u8>> {
        self.0
            .get(path)
            .cloned()
            .ok_or(io::ErrorKind::NotFound.into())
    }

    fn exists(&self, path: &AbsPath) -> bool {
        self.0.contains_key(path)
    }
}

fn abs(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

fn around() -> Surroundings {
    Surroundings::new(abs("/home/u/ws")).with_home(abs("/home/u"))
}

/// The usual places: the user's file, `/p.toml` for `--policy`, the project's file.
fn sources() -> Sources {
    Sources {
        user: Some(abs("/home/u/.config/stockade/config.toml")),
        project: Some(abs("/home/u/ws/stockade.toml")),
        ..Sources::new(around())
    }
}

fn with_flags(flags: Flags) -> Result<Profile, ProfileError> {
    let sources = Sources { flags, ..sources() };
    Profile::resolve(&sources, &Files::default())
}

/// The profile of one file, as if it were the user's.
fn user(text: &str) -> Result<Profile, ProfileError> {
    let text = format!("version = 1\n{text}");
    let files = Files::default().with("/home/u/.config/stockade/config.toml", text);
    Profile::resolve(&sources(), &files)
}

/// The profile of a user's and a project's file.
fn both(user: &str, project: &str) -> Result<Profile, ProfileError> {
    let files = Files::default()
        .with(
            "/home/u/.config/stockade/config.toml",
            format!("version = 1\n{user}"),
        )
        .with(
            "/home/u/ws/stockade.toml",
            format!("version = 1\n{project}"),
        );
    Profile::resolve(&sources(), &files)
}

fn readable(profile: &Profile, path: &str) -> bool {
    profile.rules.decide(Kind::Read, Path::new(path)).allowed
}

fn writable(profile: &Profile, path: &str) -> bool {
    profile.rules.decide(Kind::Write, Path::new(path)).allowed
}

/// An error as the command line prints it.
fn message(error: &ProfileError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}
