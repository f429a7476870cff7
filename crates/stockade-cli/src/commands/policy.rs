//! `stockade policy`: the merged policy, a check of a file, the schema of files.

mod exchange;

use std::path::Path;

use serde::Serialize;
use stockade_engine::Files;
use stockade_policy::profile::{
    self, BuiltIn, PROJECT_FILE, Profile, ProfileName, Sources, check_file, profile_directory,
};

use crate::args::{
    PolicyCheckArgs, PolicyCommand, PolicyListArgs, PolicySchemaArgs, PolicyShowArgs,
};
use crate::exit::Exit;
use crate::failure::{Failure, FailureRecord};
use crate::output::{self, Format};
use crate::resolve::{Place, refused};

pub(crate) fn run(command: PolicyCommand) -> Result<Exit, Failure> {
    match command {
        PolicyCommand::Check(args) => check(&args),
        PolicyCommand::Export(args) => exchange::export(&args),
        PolicyCommand::Import(args) => exchange::import(&args),
        PolicyCommand::List(args) => list(&args),
        PolicyCommand::Schema(args) => schema(args),
        PolicyCommand::Show(args) => show(&args),
    }
}

fn show(args: &PolicyShowArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document<'a> {
        profile: &'a Profile,
    }
    let place = Place::enter(args.policy.cwd.as_deref())?;
    let profile = place.profile(&args.policy)?;
    let format = Format::of(args.output.json);
    for warning in &profile.warnings {
        output::warn(warning, format);
    }
    match format {
        Format::Json => output::json(Document { profile: &profile })?,
        Format::Text => output::text(|out| write!(out, "{}", profile.show()))?,
    }
    Ok(Exit::Success)
}

fn list(args: &PolicyListArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Listed {
        name: String,
        /// None of those that ship with Stockade.
        file: Option<String>,
    }
    #[derive(Serialize)]
    struct Document {
        profiles: Vec<Listed>,
    }
    let built_in = BuiltIn::WORDS.iter().map(|name| Listed {
        name: (*name).to_owned(),
        file: None,
    });
    let user_file = Files::sources(Place::enter(None)?.around).user;
    let directory = user_file.as_ref().and_then(profile_directory);
    let entries = directory.and_then(|directory| std::fs::read_dir(directory.as_path()).ok());
    let mut own: Vec<Listed> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = ProfileName::of_file(entry.file_name().to_str()?)?;
            matches!(name, ProfileName::Own(_)).then(|| Listed {
                name: name.to_string(),
                file: Some(entry.path().display().to_string()),
            })
        })
        .collect();
    own.sort_by(|a, b| a.name.cmp(&b.name));
    let profiles: Vec<Listed> = built_in.chain(own).collect();
    match Format::of(args.output.json) {
        Format::Json => output::json(Document { profiles })?,
        Format::Text => output::text(|out| {
            for profile in &profiles {
                let place = profile.file.as_deref().unwrap_or("built in");
                writeln!(out, "{:<20} {}", profile.name, output::printable(place))?;
            }
            Ok(())
        })?,
    }
    Ok(Exit::Success)
}

/// The verdict is the data, so it goes to stdout in JSON; in text a refusal reads like any other.
fn check(args: &PolicyCheckArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document<'a> {
        file: String,
        valid: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<FailureRecord<'a>>,
    }
    let file = args.file.display().to_string();
    let refusal = check_one(&args.file).err();
    match (Format::of(args.output.json), refusal) {
        (Format::Text, Some(refusal)) => return Err(refusal),
        (Format::Text, None) => {
            output::text(|out| writeln!(out, "{}: valid", output::printable(&file)))?;
        }
        (Format::Json, refusal) => {
            output::json(Document {
                file,
                valid: refusal.is_none(),
                error: refusal.as_ref().map(Failure::record),
            })?;
            if refusal.is_some() {
                return Ok(Exit::Negative);
            }
        }
    }
    Ok(Exit::Success)
}

fn check_one(file: &Path) -> Result<(), Failure> {
    let place = Place::enter(None)?;
    let path = place.file(file)?;
    // A project's file may only narrow, which `run` finds out when it lays the file on the others.
    let is_project = path.as_path().file_name() == Some(PROJECT_FILE.as_ref());
    let checked = if is_project {
        let sources = Sources {
            project: Some(path),
            ..Files::sources(place.around.clone())
        };
        Files::load(&sources).map(drop)
    } else {
        check_file(&path, &place.around, &Files::default())
    };
    checked.map_err(|error| {
        let mut failure = refused(error);
        failure.exit = Exit::Negative;
        failure
    })
}

/// The schema is JSON already, with a version of its own; `--json` changes nothing.
fn schema(_: PolicySchemaArgs) -> Result<Exit, Failure> {
    let mut text = profile::schema();
    text.push('\n');
    output::raw(text.as_bytes())?;
    Ok(Exit::Success)
}
