//! `stockade hook`: each command of an agent in a sandbox, while the agent itself stays outside.

mod canary;
mod exec;
mod place;
mod record;
mod rewrite;
mod settings;
mod settings_file;

use serde::Serialize;

use self::place::Place;
use self::record::Record;
use crate::args::{HookCommand, HookPlaceArgs, HookedAgent};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

pub(crate) fn run(command: &HookCommand) -> Result<Exit, Failure> {
    match command {
        HookCommand::Install(args) => install(args),
        HookCommand::Status(args) => status(args),
        HookCommand::Uninstall(args) => uninstall(args),
        HookCommand::Rewrite(args) => rewrite::run(args.agent),
        HookCommand::Exec(args) => exec::run(args),
    }
}

#[derive(Serialize)]
struct Document {
    agent: &'static str,
    file: String,
    installed: bool,
    /// Whether a command that was rewritten was confined.
    #[serde(skip_serializing_if = "Option::is_none")]
    confined: Option<bool>,
    /// What the user still has to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

fn install(args: &HookPlaceArgs) -> Result<Exit, Failure> {
    let place = Place::of(args)?;
    let file = place.file(true)?;
    let before = file.read()?;
    let after = place.with_hook(before.as_deref())?;
    if let Some(after) = &after {
        let record = Record::of(&place)?;
        record.keep(before.as_deref(), after)?;
        file.write(after)?;
    }
    let done = if after.is_some() {
        "installed"
    } else {
        "was installed already"
    };
    canary::check(&place)?;
    print(args, &place, true, Some(true), |place| {
        format!("{done}; a canary command was confined: {place}")
    })
}

fn status(args: &HookPlaceArgs) -> Result<Exit, Failure> {
    let place = Place::of(args)?;
    let is_installed = match place.file(false) {
        Ok(file) => place.has_hook(file.read()?.as_deref())?,
        Err(_) if !place.exists() => false,
        Err(refused) => return Err(refused),
    };
    if !is_installed {
        print(args, &place, false, None, |place| {
            format!("not installed: {place}")
        })?;
        return Ok(Exit::Negative);
    }
    canary::check(&place)?;
    print(args, &place, true, Some(true), |place| {
        format!("installed; a canary command was confined: {place}")
    })
}

fn uninstall(args: &HookPlaceArgs) -> Result<Exit, Failure> {
    let place = Place::of(args)?;
    let file = place.file(false)?;
    let now = file.read()?;
    if !place.has_hook(now.as_deref())? {
        let text = format!("there is no hook of Stockade in `{}`", place.shown());
        return Err(Failure::text(Exit::Negative, text));
    }
    let record = Record::of(&place)?;
    match record.original(now.as_deref())? {
        // As installed: what was there before comes back, byte for byte.
        Some(Some(original)) => file.write(&original)?,
        Some(None) => file.remove()?,
        None => file.write(&place.without_hook(now.as_deref())?)?,
    }
    record.forget();
    print(args, &place, false, None, |place| {
        format!("removed: {place}")
    })
}

fn print(
    args: &HookPlaceArgs,
    place: &Place,
    installed: bool,
    confined: Option<bool>,
    text: impl Fn(&str) -> String,
) -> Result<Exit, Failure> {
    let note = (installed && args.agent == HookedAgent::Codex && !place.is_trusted())
        .then_some(CODEX_TRUST);
    let document = Document {
        agent: place.agent(),
        file: place.shown(),
        installed,
        confined,
        note,
    };
    match Format::of(args.output.json) {
        Format::Json => output::json(document)?,
        Format::Text => {
            let line = text(&document.file);
            output::text(|out| writeln!(out, "{}", output::printable(&line)))?;
            if let Some(note) = note {
                output::warn(note, Format::Text);
            }
        }
    }
    Ok(Exit::Success)
}

const CODEX_TRUST: &str = "Codex skips hooks that nobody trusted, and then runs commands UNCONFINED: \
     start `codex`, enter /hooks and trust this one; then run `stockade hook status codex`";
