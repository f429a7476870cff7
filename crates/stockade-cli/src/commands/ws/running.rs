//! Commands in a workspace: in the foreground, or left running with their output in a file.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Serialize;
use stockade_workspace::{Freezer, Input, Process, WorkspaceName, WorkspaceState};

use super::{Context, name, refused};
use crate::args::ws::{NameArgs, RebindArgs, WsRunArgs};
use crate::commands::run as plain;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

/// This very program, whatever its name has become since it was started.
const SELF: &str = "/proc/self/exe";
/// Says that there is no control group to enter.
const NO_GROUP: &str = "-";

pub(super) fn run(context: &Context, args: WsRunArgs) -> Result<Exit, Failure> {
    let name = name(&args.workspace)?;
    let state = context.manager.show(&name).map_err(refused)?;
    if args.left_running.is_none() {
        state.check_runs().map_err(refused)?;
    }
    if args.detach {
        return leave_running(context, &name, &args);
    }
    if let Some(group) = &args.left_running {
        become_left_running(group)?;
    }
    let input = args.left_input.map(Input::at);
    // Held until the command has ended: nobody else may be there to type.
    let held = input.as_ref().map(Input::writer).transpose();
    let held = held.map_err(refused)?;
    let mut run = args.run;
    // By its descriptor: at its path something else may be by the time that it is entered.
    let dir = context.manager.open_directory(&name).map_err(refused)?;
    let dir_path = format!("/proc/self/fd/{}", dir.as_raw_fd());
    run.policy.cwd.get_or_insert_with(|| dir_path.into());
    run.output.json = context.format == Format::Json;
    let overlay = context.manager.existing_overlay(&name).map_err(refused)?;
    if overlay.is_some() && run.overlay.is_none() {
        run.overlay = Some(Some(OsString::from(name.as_str())));
    }
    drop(overlay);
    let stated = state.env.iter();
    run.policy.env.splice(
        0..0,
        stated.map(|(key, value)| OsString::from(format!("{key}={value}"))),
    );
    // One that was left running is known by its process, and can be paused. Over an overlay it has
    // a lock of its own.
    let is_direct = args.left_running.is_none() && run.overlay.is_none();
    let running = is_direct.then(|| context.manager.enter_run(&name));
    let _running = running.transpose().map_err(refused)?;
    let ended = plain::run_in(&run, Some(context.manager.store().path()));
    drop(held);
    if let Some(input) = input {
        input.remove();
    }
    if let Some(group) = &args.left_running
        && group != Path::new(NO_GROUP)
    {
        let group = Freezer::at(group);
        group.leave();
        group.remove();
    }
    ended
}

/// Away from the terminal, and into the group that freezes it.
fn become_left_running(group: &Path) -> Result<(), Failure> {
    let _ = rustix::process::setsid();
    if group != Path::new(NO_GROUP) {
        Freezer::at(group).enter().map_err(refused)?;
    }
    Ok(())
}

fn leave_running(
    context: &Context,
    name: &WorkspaceName,
    args: &WsRunArgs,
) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        process: u32,
    }
    let log = context.manager.log_file(name);
    let alive = context.manager.show(name).map_err(refused)?.is_alive();
    let open = |error: std::io::Error| {
        let what = format!("can't write `{}`", log.display());
        Failure::new(Exit::NotSetUp, anyhow::Error::new(error).context(what))
    };
    let file = File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&log)
        .map_err(open)?;
    if !alive {
        file.set_len(0).map_err(open)?;
    }
    let freezer = Freezer::make();
    let group = freezer.as_ref().map_or(Path::new(NO_GROUP), Freezer::path);
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // The same line once more, with `--left-running` in place of `-d`.
    let end = words
        .iter()
        .position(|word| word == "--")
        .unwrap_or(words.len());
    let at = words[..end]
        .iter()
        .position(|word| word == "-d" || word == "--detach");
    let Some(at) = at else {
        return Err(Failure::text(Exit::Usage, "`-d` must stand alone"));
    };
    let input = context.manager.make_input(name).map_err(refused)?;
    let handed = [
        "--left-running".into(),
        group.as_os_str().to_owned(),
        "--left-input".into(),
        input.path().as_os_str().to_owned(),
    ];
    words.splice(at..=at, handed);
    let errors = file.try_clone().map_err(open)?;
    let child = Command::new(SELF)
        .args(words)
        .stdin(Stdio::from(input.reader().map_err(refused)?))
        .stdout(file)
        .stderr(errors)
        .spawn()
        .map_err(|error| {
            let error = anyhow::Error::new(error).context("can't start the supervisor");
            Failure::new(Exit::NotSetUp, error)
        })?;
    let command = args
        .run
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    if let Some(mut process) = Process::look(child.id(), command.collect()) {
        process.freezer = freezer.map(|freezer| freezer.path().to_owned());
        process.input = Some(input.path().to_owned());
        let note = |state: &mut WorkspaceState| {
            for ended in state.processes.iter().filter(|process| !process.is_alive()) {
                if let Some(group) = &ended.freezer {
                    Freezer::at(group).remove();
                }
                if let Some(input) = &ended.input {
                    Input::at(input).remove();
                }
            }
            state.processes.retain(Process::is_alive);
            state.processes.push(process);
            Ok(())
        };
        context.manager.update(name, note).map_err(refused)?;
    }
    let process = child.id();
    match context.format {
        Format::Json => output::json(Document { process })?,
        Format::Text => output::text(|out| writeln!(out, "{process}"))?,
    }
    Ok(Exit::Success)
}

pub(super) fn rebind(context: &Context, args: &RebindArgs) -> Result<Exit, Failure> {
    let name = name(&args.name)?;
    let state = context
        .manager
        .rebind(&name, args.dir.as_deref())
        .map_err(refused)?;
    tell(context, state)
}

pub(super) fn pause(context: &Context, args: &NameArgs) -> Result<Exit, Failure> {
    let state = context.manager.pause(&name(&args.name)?).map_err(refused)?;
    tell(context, state)
}

pub(super) fn resume(context: &Context, args: &NameArgs) -> Result<Exit, Failure> {
    let state = context
        .manager
        .resume(&name(&args.name)?)
        .map_err(refused)?;
    tell(context, state)
}

fn tell(context: &Context, workspace: WorkspaceState) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        workspace: WorkspaceState,
    }
    match context.format {
        Format::Json => output::json(Document { workspace })?,
        Format::Text => {
            output::text(|out| writeln!(out, "{} {}", workspace.name, workspace.status))?;
        }
    }
    Ok(Exit::Success)
}
