//! What clients do with the overlay of a session. The owner ends the sandbox and lets go of the
//! overlay, the client works on it as `stockade ws` does, and the owner builds the sandbox again.

use serde::Serialize;
use stockade_linux::Channel;
use stockade_workspace::{Error, SnapshotName, WorkspaceManager, WorkspaceName};

use super::directory::{Directory, check_name};
use super::protocol::{Answer, Request, receive, send};
use super::{Opened, describe, ended, unknown, unreachable};
use crate::args::ws::{CommitArgs, DiffArgs, OverlayArgs, WsCommand, WsLine};
use crate::args::{
    SessionCommitArgs, SessionDiffArgs, SessionForkArgs, SessionNameArgs, SessionRestoreArgs,
    SessionSnapshotArgs,
};
use crate::commands::ws;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

pub(super) fn diff(args: &SessionDiffArgs) -> Result<Exit, Failure> {
    let (_, overlay) = find(&args.name)?;
    let line = DiffArgs {
        name: Some(overlay.to_string()),
        id: None,
        stat: args.stat,
        summary: args.summary,
    };
    ws::diff_in_use(&line, Format::of(args.output.json))
}

pub(super) fn commit(args: &SessionCommitArgs) -> Result<Exit, Failure> {
    let command = |overlay: &WorkspaceName| {
        WsCommand::Commit(CommitArgs {
            name: Some(overlay.to_string()),
            paths: args.paths.clone(),
            ours: args.ours,
            theirs: args.theirs,
            allow_protected: false,
            pause: false,
            after_restart: false,
        })
    };
    LetGo::ask(&args.name)?.run(args.output.json, command)
}

pub(super) fn discard(args: &SessionNameArgs) -> Result<Exit, Failure> {
    let command = |overlay: &WorkspaceName| {
        WsCommand::Discard(OverlayArgs {
            name: Some(overlay.to_string()),
        })
    };
    LetGo::ask(&args.name)?.run(args.output.json, command)
}

pub(super) fn snapshot(args: &SessionSnapshotArgs) -> Result<Exit, Failure> {
    let Some(text) = &args.snapshot else {
        return list_snapshots(args);
    };
    let snapshot = snapshot_name(text)?;
    let free = LetGo::ask(&args.name)?;
    let done = ws::open(None).and_then(|manager| {
        let overlay = free.overlay(&manager)?;
        let done = if args.remove {
            manager.remove_overlay_snapshot(&overlay, &snapshot)
        } else {
            manager.snapshot_overlay(&overlay, &snapshot)
        };
        done.map_err(ws::refused)
    });
    free.rebuild()?;
    done?;
    print_done(args.output.json, &snapshot)
}

fn list_snapshots(args: &SessionSnapshotArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        snapshots: Vec<SnapshotName>,
    }
    let (_, overlay) = find(&args.name)?;
    let overlay = ws::open(None)?.overlay_in_use(&overlay);
    let snapshots = overlay.and_then(|overlay| overlay.snapshots());
    let snapshots = snapshots.map_err(ws::refused)?;
    match Format::of(args.output.json) {
        Format::Json => output::json(Document { snapshots })?,
        Format::Text => output::text(|out| {
            snapshots
                .iter()
                .try_for_each(|name| writeln!(out, "{name}"))
        })?,
    }
    Ok(Exit::Success)
}

pub(super) fn restore(args: &SessionRestoreArgs) -> Result<Exit, Failure> {
    let snapshot = snapshot_name(&args.snapshot)?;
    let free = LetGo::ask(&args.name)?;
    let done = ws::open(None).and_then(|manager| {
        let overlay = free.overlay(&manager)?;
        manager
            .restore_overlay(overlay, &snapshot)
            .map_err(|error| no_snapshot(error, &args.name))
    });
    free.rebuild()?;
    done?;
    print_done(args.output.json, &snapshot)
}

pub(super) fn fork(args: &SessionForkArgs) -> Result<Exit, Failure> {
    args.new.as_deref().map_or(Ok(()), check_name)?;
    let free = LetGo::ask(&args.name)?;
    let manager = ws::open(None)?;
    let overlay = free.overlay(&manager);
    let forked = overlay.and_then(|overlay| manager.fork_overlay(&overlay).map_err(ws::refused));
    let copy = match forked {
        Ok(copy) => copy,
        Err(failure) => {
            free.rebuild()?;
            return Err(failure);
        }
    };
    let wish = Request::Fork {
        name: args.new.clone(),
        overlay: copy.to_string(),
    };
    match free.tell(&wish) {
        Ok(Answer::Forked(name)) => {
            match Format::of(args.output.json) {
                Format::Json => output::json(Opened { name })?,
                Format::Text => output::text(|out| writeln!(out, "{name}"))?,
            }
            Ok(Exit::Success)
        }
        other => {
            // What was copied is of no use to anybody.
            let _ = manager.remove(&copy);
            Err(other.map_or_else(|failure| failure, |_| ended()))
        }
    }
}

/// A session that let go of its overlay. It builds its sandbox again when this is dropped.
struct LetGo {
    channel: Channel,
    overlay: WorkspaceName,
}

impl LetGo {
    fn ask(session: &str) -> Result<Self, Failure> {
        let (channel, overlay) = find(session)?;
        let free = Self { channel, overlay };
        match free.tell(&Request::LetGo)? {
            Answer::LetGo => Ok(free),
            _ => Err(ended()),
        }
    }

    fn tell(&self, wish: &Request) -> Result<Answer, Failure> {
        send(&self.channel, wish, &[]).map_err(unreachable)?;
        match receive::<Answer>(&self.channel).map_err(unreachable)? {
            Some((answer, _)) => answer.or_refusal(),
            None => Err(ended()),
        }
    }

    fn rebuild(&self) -> Result<(), Failure> {
        self.tell(&Request::Rebuild).map(drop)
    }

    fn overlay(&self, manager: &WorkspaceManager) -> Result<stockade_workspace::Overlay, Failure> {
        let overlay = manager
            .existing_overlay(&self.overlay)
            .map_err(ws::refused)?;
        overlay.ok_or_else(|| ws::refused(Error::NoOverlay(self.overlay.clone())))
    }

    /// Has `stockade ws` do it.
    fn run(
        &self,
        json: bool,
        command: impl FnOnce(&WorkspaceName) -> WsCommand,
    ) -> Result<Exit, Failure> {
        let done = ws::run(WsLine {
            store: None,
            json,
            command: command(&self.overlay),
        });
        self.rebuild()?;
        done
    }
}

/// A connection to a session, and the name of its overlay.
fn find(session: &str) -> Result<(Channel, WorkspaceName), Failure> {
    check_name(session)?;
    let directory = Directory::open()?;
    let found = describe(&directory, session).map_err(unreachable)?;
    let found = found.ok_or_else(|| unknown(session))?;
    let overlay = found.overlay.and_then(|name| name.parse().ok());
    let overlay = overlay.ok_or_else(|| {
        let text = format!("the session `{session}` has no overlay");
        Failure::text(Exit::Negative, text).hint("stockade session open --overlay")
    })?;
    let channel = directory.connect(session).map_err(unreachable)?;
    Ok((channel.ok_or_else(|| unknown(session))?, overlay))
}

fn snapshot_name(text: &str) -> Result<SnapshotName, Failure> {
    text.parse()
        .map_err(|error: stockade_workspace::NameError| Failure::new(Exit::Usage, error))
}

fn no_snapshot(error: Error, session: &str) -> Failure {
    match error {
        Error::NoOverlaySnapshot { .. } => {
            ws::refused(error).hint(format!("stockade session snapshot {session}"))
        }
        other => ws::refused(other),
    }
}

fn print_done(json: bool, snapshot: &SnapshotName) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document<'a> {
        snapshot: &'a SnapshotName,
    }
    if json {
        output::json(Document { snapshot })?;
    }
    Ok(Exit::Success)
}
