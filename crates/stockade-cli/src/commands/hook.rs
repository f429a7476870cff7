//! `stockade hook`: each command of an agent in a sandbox, while the agent itself stays outside.

mod agent_hook;
mod canary;
mod exec;
mod record;
mod rewrite;
mod settings;
mod settings_file;

use serde::Serialize;

use self::agent_hook::AgentHook;
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
    let hook = AgentHook::of(args)?;
    let file = hook.file(true)?;
    let before = file.read()?;
    let after = hook.with_hook(before.as_deref())?;
    if let Some(after) = &after {
        let record = Record::of(&hook)?;
        record.keep(before.as_deref(), after)?;
        file.write(after)?;
    }
    let done = if after.is_some() {
        "installed"
    } else {
        "was installed already"
    };
    canary::check(&hook)?;
    print(args, &hook, true, Some(true), |hook| {
        format!("{done}; a canary command was confined: {hook}")
    })
}

fn status(args: &HookPlaceArgs) -> Result<Exit, Failure> {
    let hook = AgentHook::of(args)?;
    let is_installed = match hook.file(false) {
        Ok(file) => hook.has_hook(file.read()?.as_deref())?,
        Err(_) if !hook.exists() => false,
        Err(refused) => return Err(refused),
    };
    if !is_installed {
        print(args, &hook, false, None, |hook| {
            format!("not installed: {hook}")
        })?;
        return Ok(Exit::Negative);
    }
    canary::check(&hook)?;
    print(args, &hook, true, Some(true), |hook| {
        format!("installed; a canary command was confined: {hook}")
    })
}

fn uninstall(args: &HookPlaceArgs) -> Result<Exit, Failure> {
    let hook = AgentHook::of(args)?;
    let file = hook.file(false)?;
    let now = file.read()?;
    if !hook.has_hook(now.as_deref())? {
        let text = format!("there is no hook of Stockade in `{}`", hook.shown());
        return Err(Failure::text(Exit::Negative, text));
    }
    let record = Record::of(&hook)?;
    match record.original(now.as_deref())? {
        // As installed: what was there before comes back, byte for byte.
        Some(Some(original)) => file.write(&original)?,
        Some(None) => file.remove()?,
        None => file.write(&hook.without_hook(now.as_deref())?)?,
    }
    record.forget();
    print(args, &hook, false, None, |hook| format!("removed: {hook}"))
}

fn print(
    args: &HookPlaceArgs,
    hook: &AgentHook,
    installed: bool,
    confined: Option<bool>,
    text: impl Fn(&str) -> String,
) -> Result<Exit, Failure> {
    let note = (installed && args.agent == HookedAgent::Codex && !hook.is_trusted())
        .then_some(CODEX_TRUST);
    let document = Document {
        agent: hook.agent(),
        file: hook.shown(),
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
