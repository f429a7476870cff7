//! `stockade policy`: the merged policy, a check of a file, the schema of files.

use std::path::Path;

use serde::Serialize;
use stockade::Files;
use stockade_policy::profile::{self, Profile, check_file};

use crate::args::{PolicyCheckArgs, PolicyCommand, PolicySchemaArgs, PolicyShowArgs};
use crate::exit::Exit;
use crate::failure::{Failure, FailureRecord};
use crate::output::{self, Format};
use crate::resolve::{Place, refused};

pub(crate) fn run(command: PolicyCommand) -> Result<Exit, Failure> {
    match command {
        PolicyCommand::Check(args) => check(&args),
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
    check_file(&path, &place.around, &Files::default()).map_err(|error| {
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
