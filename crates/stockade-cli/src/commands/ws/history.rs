//! Making, keeping and removing history.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use stockade_policy::profile::format_size;
use stockade_workspace::{
    CreateOptions, Error, FsckReport, GcReport, RestoreMode, RestoreReport, SnapshotRecord,
};

use super::kept::{Again, Kept, guard_of};
use super::layers::pause_if_asked;
use super::progress::Bar;
use super::{Context, name, refused, show};
use crate::args::ws::{CleanupArgs, CreateArgs, RestoreArgs, RmArgs, SnapshotArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, BAD, Format, GOOD};

pub(super) fn create(context: &Context, args: CreateArgs) -> Result<Exit, Failure> {
    let mut excludes = args.exclude;
    for file in &args.exclude_from {
        excludes.extend(rules(file)?);
    }
    let mut env = BTreeMap::new();
    for pair in &args.env {
        let (key, value) = pair
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| Failure::text(Exit::Usage, format!("`{pair}` is not NAME=value")))?;
        if stockade_workspace::is_secret_name(key) {
            let text = format!("`{key}` looks like a secret and is not kept");
            output::warn(&text, context.format);
        }
        env.insert(key.to_owned(), value.to_owned());
    }
    let options = CreateOptions {
        env,
        excludes,
        xattrs: args.xattrs,
        no_baseline: args.no_snapshot,
    };
    let bar = Bar::new(context.format);
    let workspace = context
        .manager
        .create(&name(&args.name)?, &args.dir, &options, &bar)
        .map_err(refused)?;
    drop(bar);
    show::made(context, workspace)
}

fn rules(file: &Path) -> Result<Vec<String>, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        let what = format!("can't read `{}`", file.display());
        Failure::new(Exit::Negative, anyhow::Error::new(error).context(what))
    })?;
    Ok(text.lines().map(str::to_owned).collect())
}

pub(super) fn snapshot(context: &Context, args: SnapshotArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        snapshot: SnapshotRecord,
    }
    let bar = Bar::new(context.format);
    let snapshot = context
        .manager
        .snapshot(&name(&args.name)?, args.message, &bar)
        .map_err(refused)?;
    drop(bar);
    for path in &snapshot.unstable {
        let text = format!("`{path}` changed while it was read");
        output::warn(&text, context.format);
    }
    match context.format {
        Format::Json => output::json(Document { snapshot })?,
        Format::Text => output::text(|out| writeln!(out, "{}", snapshot.id))?,
    }
    Ok(Exit::Success)
}

pub(super) fn restore(context: &Context, args: &RestoreArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        restored: RestoreReport,
    }
    let mode = if args.merge {
        RestoreMode::Merge
    } else {
        RestoreMode::Exact
    };
    let name = name(&args.name)?;
    let _paused = pause_if_asked(context, &name, args.pause)?;
    let dir = context.manager.show(&name).map_err(refused)?.dir;
    let guard = guard_of(&dir, args.allow_protected)?;
    let bar = Bar::new(context.format);
    let restored = context
        .manager
        .restore_guarded(&name, &args.id, mode, &*guard, &bar)
        .map_err(refused)?;
    drop(bar);
    let kept = Kept {
        name: &name,
        store: context.named_store.as_deref(),
        dir: &dir,
        again: Again::Restore {
            id: &args.id,
            merge: args.merge,
        },
    };
    kept.tell(&restored.kept_back, context.format);
    for path in &restored.skipped {
        let text = format!("`{path}` is a device, which only root can make");
        output::warn(&text, context.format);
    }
    match context.format {
        Format::Json => output::json(Document { restored })?,
        Format::Text => output::text(|out| {
            let RestoreReport {
                written,
                removed,
                adjusted,
                ..
            } = restored;
            writeln!(
                out,
                "{written} written, {removed} removed, {adjusted} adjusted"
            )
        })?,
    }
    Ok(Exit::Success)
}

pub(super) fn remove(context: &Context, args: &RmArgs) -> Result<Exit, Failure> {
    let name = name(&args.name)?;
    let manager = &context.manager;
    match manager.show(&name) {
        Err(Error::Damaged { .. }) if args.force => {
            manager.remove_damaged(&name).map_err(refused)?;
        }
        Err(error @ Error::Damaged { .. }) => {
            return Err(refused(error).hint("`ws rm --force` removes it nonetheless"));
        }
        state => {
            if args.force && state.map_err(refused)?.is_alive() {
                manager.terminate(&name).map_err(refused)?;
            }
            manager.remove(&name).map_err(refused)?;
        }
    }
    tell_removed(context, vec![name.to_string()])
}

pub(super) fn cleanup(context: &Context, args: &CleanupArgs) -> Result<Exit, Failure> {
    let removed = context.manager.cleanup(args.max_age).map_err(refused)?;
    tell_removed(context, removed.iter().map(ToString::to_string).collect())
}

fn tell_removed(context: &Context, removed: Vec<String>) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        removed: Vec<String>,
    }
    match context.format {
        Format::Json => output::json(Document { removed })?,
        Format::Text => output::text(|out| {
            removed
                .iter()
                .try_for_each(|name| writeln!(out, "{name} removed"))
        })?,
    }
    Ok(Exit::Success)
}

pub(super) fn fsck(context: &Context) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document<'a> {
        clean: bool,
        #[serde(flatten)]
        report: &'a FsckReport,
    }
    let bar = Bar::new(context.format);
    let report = context.manager.fsck(&bar).map_err(refused)?;
    drop(bar);
    let clean = report.is_clean();
    match context.format {
        Format::Json => output::json(Document {
            clean,
            report: &report,
        })?,
        Format::Text => output::text(|out| {
            for problem in &report.problems {
                writeln!(out, "{BAD}damaged{BAD:#} {}", output::printable(problem))?;
            }
            let FsckReport {
                workspaces,
                snapshots,
                objects,
                ..
            } = report;
            let verdict = if clean {
                "all is well"
            } else {
                "something is damaged"
            };
            let style = if clean { GOOD } else { BAD };
            writeln!(
                out,
                "{workspaces} workspaces, {snapshots} snapshots, {objects} objects: {style}{verdict}{style:#}"
            )
        })?,
    }
    Ok(if clean { Exit::Success } else { Exit::Negative })
}

pub(super) fn gc(context: &Context) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document {
        collected: GcReport,
    }
    let collected = context.manager.gc().map_err(refused)?;
    match context.format {
        Format::Json => output::json(Document { collected })?,
        Format::Text => output::text(|out| {
            let GcReport {
                live,
                dead,
                before,
                after,
                ..
            } = collected;
            let (before, after) = (format_size(before), format_size(after));
            writeln!(
                out,
                "{live} objects kept, {dead} freed; {before} before, {after} after"
            )
        })?,
    }
    Ok(Exit::Success)
}
