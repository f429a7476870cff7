//! `stockade session`: sandboxes that stay open, each owned by a process of its own.

mod directory;
mod exec;
mod layers;
mod owner;
mod protocol;

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use serde::Serialize;

use self::directory::{Directory, check_name};
use self::protocol::{Answer, Description, Request, receive, send};
use crate::args::{SessionCloseArgs, SessionCommand, SessionListArgs, SessionOpenArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

pub(crate) use self::exec::run as exec;

pub(crate) fn run(command: &SessionCommand) -> Result<Exit, Failure> {
    match command {
        SessionCommand::Open(args) if args.owner => owner::run(args),
        SessionCommand::Open(args) => open(args),
        SessionCommand::List(args) => list(args),
        SessionCommand::Close(args) => close(args),
        SessionCommand::Diff(args) => layers::diff(args),
        SessionCommand::Commit(args) => layers::commit(args),
        SessionCommand::Discard(args) => layers::discard(args),
        SessionCommand::Snapshot(args) => layers::snapshot(args),
        SessionCommand::Restore(args) => layers::restore(args),
        SessionCommand::Fork(args) => layers::fork(args),
    }
}

#[derive(Serialize)]
struct Opened {
    name: String,
}

/// Starts the process that owns the session and waits until it is open.
fn open(args: &SessionOpenArgs) -> Result<Exit, Failure> {
    args.name.as_deref().map_or(Ok(()), check_name)?;
    let failed = |error: std::io::Error| {
        let error = anyhow::Error::new(error).context("can't start the owner of the session");
        Failure::new(Exit::NotSetUp, error)
    };
    // Older kernels can't; then the owner has them, too.
    let _ = stockade_linux::keep_descriptors_to_oneself();
    let mut owner = Command::new("/proc/self/exe")
        .arg0("stockade")
        .args(std::env::args_os().skip(1))
        .arg("--owner")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let mut name = String::new();
    if let Some(stdout) = owner.stdout.take() {
        BufReader::new(stdout)
            .read_line(&mut name)
            .map_err(failed)?;
    }
    let Some(name) = name.strip_suffix('\n').map(str::to_owned) else {
        // The owner has printed why.
        let status = owner.wait().map_err(failed)?;
        return Ok(Exit::of(status));
    };
    match Format::of(args.output.json) {
        Format::Json => output::json(Opened { name })?,
        Format::Text => output::text(|out| writeln!(out, "{name}"))?,
    }
    Ok(Exit::Success)
}

fn list(args: &SessionListArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        sessions: Vec<Description>,
    }
    let directory = Directory::open()?;
    let mut sessions = Vec::new();
    for name in directory.names().map_err(unreachable)? {
        // A session that ends in this moment is not listed.
        sessions.extend(describe(&directory, &name).ok().flatten());
    }
    match Format::of(args.output.json) {
        Format::Json => output::json(Document { sessions })?,
        Format::Text => output::text(|out| {
            for one in &sessions {
                let place = output::printable(&one.directory);
                let count = one.commands;
                writeln!(
                    out,
                    "{:<16} pid {:<8} {count} running  {place}",
                    one.name, one.pid
                )?;
            }
            Ok(())
        })?,
    }
    Ok(Exit::Success)
}

fn describe(directory: &Directory, name: &str) -> std::io::Result<Option<Description>> {
    let Some(channel) = directory.connect(name)? else {
        return Ok(None);
    };
    send(&channel, &Request::Describe, &[])?;
    Ok(match receive(&channel)? {
        Some((Answer::Described(description), _)) => Some(description),
        _ => None,
    })
}

fn close(args: &SessionCloseArgs) -> Result<Exit, Failure> {
    let directory = Directory::open()?;
    let names = if args.all {
        directory.names().map_err(unreachable)?
    } else {
        args.names.clone()
    };
    for name in &names {
        check_name(name)?;
        match directory.connect(name).map_err(unreachable)? {
            Some(channel) => {
                send(&channel, &Request::Close, &[]).map_err(unreachable)?;
                // The owner hangs up when everything is gone.
                while let Ok(Some(_)) = receive::<Answer>(&channel) {}
            }
            None if args.all => {}
            None => return Err(unknown(name)),
        }
    }
    Ok(Exit::Success)
}

/// Whether there is a session of this name.
pub(crate) fn is_open(name: &str) -> Result<bool, Failure> {
    check_name(name)?;
    let channel = Directory::open()?.connect(name);
    Ok(channel.map_err(unreachable)?.is_some())
}

fn unknown(name: &str) -> Failure {
    let text = format!("there is no session `{name}`");
    Failure::text(Exit::NotSetUp, text).hint("stockade session list")
}

fn ended() -> Failure {
    let text = "the session ended before it took the request";
    Failure::text(Exit::NotSetUp, text).hint("stockade session list")
}

fn gone(name: &str) -> Failure {
    let text = format!("the session `{name}` ended, and the command with it");
    Failure::text(Exit::Signal(9), text).hint("stockade session list")
}

fn unreachable(error: std::io::Error) -> Failure {
    // Not to be taken for a pipe behind standard output whose reader has seen enough.
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return ended();
    }
    let error = anyhow::Error::new(error).context("can't reach the session");
    Failure::new(Exit::NotSetUp, error).hint("stockade session list")
}
