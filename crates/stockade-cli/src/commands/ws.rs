//! `stockade ws`: workspaces, their snapshots and what runs in them.

mod differences;
mod history;
pub(crate) mod kept;
mod layers;
mod progress;
mod running;
mod show;
mod transfer;
mod watching;

use std::path::PathBuf;

use stockade_workspace::{Error, Overlay, Store, WorkspaceManager, WorkspaceName};

use crate::args::ws::{DiffArgs, WsCommand, WsLine};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

/// The variable that says where workspaces live.
const HOME_VARIABLE: &str = "STOCKADE_HOME";

/// What every command needs.
struct Context {
    manager: WorkspaceManager,
    /// The store, if it was named by a flag.
    named_store: Option<PathBuf>,
    /// Whether an overlay is shown while a run uses it.
    reads_in_use: bool,
    format: Format,
}

pub(crate) fn run(line: WsLine) -> Result<Exit, Failure> {
    let context = Context {
        manager: open(line.store.clone())?,
        named_store: line.store,
        reads_in_use: false,
        format: Format::of(line.json),
    };
    match line.command {
        WsCommand::Create(args) => history::create(&context, args),
        WsCommand::List => show::list(&context),
        WsCommand::Show(args) => show::show(&context, &args),
        WsCommand::Snapshot(args) => history::snapshot(&context, args),
        WsCommand::Snapshots(args) => show::snapshots(&context, &args),
        WsCommand::Restore(args) => history::restore(&context, &args),
        WsCommand::Diff(args) => differences::diff(&context, &args),
        WsCommand::Commit(args) => layers::commit(&context, &args),
        WsCommand::Discard(args) => layers::discard(&context, &args),
        WsCommand::Run(args) => running::run(&context, *args),
        WsCommand::Logs(args) => watching::logs(&context, &args),
        WsCommand::Attach(args) => watching::attach(&context, &args),
        WsCommand::Pause(args) => running::pause(&context, &args),
        WsCommand::Resume(args) => running::resume(&context, &args),
        WsCommand::Export(args) => transfer::export(&context, &args),
        WsCommand::Import(args) => transfer::import(&context, &args),
        WsCommand::Rebind(args) => running::rebind(&context, &args),
        WsCommand::Rm(args) => history::remove(&context, &args),
        WsCommand::Cleanup(args) => history::cleanup(&context, &args),
        WsCommand::Fsck => history::fsck(&context),
        WsCommand::Gc => history::gc(&context),
    }
}

/// Shows what changed in an overlay that a session uses.
pub(crate) fn diff_in_use(args: &DiffArgs, format: Format) -> Result<Exit, Failure> {
    let context = Context {
        manager: open(None)?,
        named_store: None,
        reads_in_use: true,
        format,
    };
    differences::diff(&context, args)
}

/// Opens the store that the user named, or their own.
pub(crate) fn open(named: Option<PathBuf>) -> Result<WorkspaceManager, Failure> {
    let store = Store::open(store_path(named)?).map_err(refused)?;
    Ok(WorkspaceManager::new(store))
}

fn store_path(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let not_empty = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let path = named
        .or_else(|| not_empty(HOME_VARIABLE).map(PathBuf::from))
        .or_else(|| not_empty("XDG_DATA_HOME").map(|data| PathBuf::from(data).join("stockade")))
        .or_else(|| not_empty("HOME").map(|home| PathBuf::from(home).join(".local/share/stockade")))
        .ok_or_else(|| {
            Failure::text(
                Exit::Negative,
                "there is no place for workspaces: HOME is not set",
            )
            .hint("name one with --store or STOCKADE_HOME")
        })?;
    Ok(std::path::absolute(&path).unwrap_or(path))
}

/// The same, but nothing is looked at or made.
pub(crate) fn planned(named: Option<PathBuf>) -> Result<WorkspaceManager, Failure> {
    store_path(named).map(|path| WorkspaceManager::new(Store::planned(path)))
}

/// The workspace that was named, or that of the current directory.
fn name_or_here(typed: Option<&str>) -> Result<WorkspaceName, Failure> {
    match typed {
        Some(text) => name(text),
        None => Ok(WorkspaceName::for_directory(&std::env::current_dir()?)),
    }
}

/// Nobody typed the name that a workspace of this directory would have.
fn no_overlay_here() -> Failure {
    let text = "nothing was run over an overlay in this directory";
    Failure::text(Exit::Negative, text)
        .hint("`stockade run --overlay -- COMMAND` does; `ws list` shows other workspaces")
}

fn name(text: &str) -> Result<WorkspaceName, Failure> {
    text.parse()
        .map_err(|error: stockade_workspace::NameError| Failure::new(Exit::Usage, error))
}

/// Says that an overlay may not be complete.
pub(crate) fn warn_if_restarted(overlay: &Overlay, format: Format) {
    if overlay.was_restarted() {
        let text = "the machine rebooted since the overlay was written; unless it was \
                    shut down in order, files in it may be missing or empty";
        output::warn(text, format);
    }
}

/// What the store says, for a person.
pub(crate) fn refused(error: Error) -> Failure {
    let hint = error.hint();
    let failure = Failure::new(Exit::Negative, error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
