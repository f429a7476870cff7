//! Planning, executing and reporting a confined run.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use stockade_engine::network::NetworkService;
use stockade_engine::{Denial, Ending, ExecPlan, Finished, Foreground, Report, RunError, Spec};
use stockade_linux::{SpawnError, Stage};
use stockade_policy::STOCKADE_SANDBOX_ACTIVE;
use stockade_policy::profile::Profile;
use stockade_proxy::SandboxProxy;
use stockade_rules::AbsPath;

use crate::args::{CommitWhen, RunArgs, UpstreamArgs};
use crate::commands::log::{self, LoggedRun};
use crate::commands::{backends, ws};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::resolve::Place;

use super::kept_home::KeptHome;
use super::taps::{Seen, Taps};
use super::{advice, overlay, plan_text};

pub(super) fn run(
    args: &RunArgs,
    place: &Place,
    profile: &Profile,
    store: Option<&Path>,
) -> Result<Exit, Failure> {
    if let Some(number) = args.json_fd {
        output::send_records_to(inherited(number)?.into());
    }
    // Before the plan: the store must exist to be hidden, and the layer may have settings.
    let home = KeptHome::enter(args, profile, store)?;
    let spec = spec(args, &home);
    let backends = backends(args.image.as_deref());
    let mut choice = backends.choose(profile, Path::new(THIS))?;
    if args.dry_run {
        choice = choice.only_planned();
    }
    let mut plan = choice.next(&spec)?;
    let network = network(&args.upstream, &plan)?;
    if args.dry_run {
        if let Some(name) = &args.overlay {
            overlay::pretend(name.as_deref(), place, store, &mut plan)?;
        }
        match Format::of(args.output.json) {
            Format::Json => output::json(&plan)?,
            Format::Text => output::text(|out| plan_text::print(&plan, out))?,
        }
        return Ok(Exit::Success);
    }
    let mut overlay = match &args.overlay {
        Some(name) => Some(overlay::enter(name.as_deref(), place, store, &mut plan)?),
        None => None,
    };
    // Opened before the command runs: a report that can't be written is known in time.
    let mut report_file = args
        .report
        .as_deref()
        .map(|name| create(place, name, &profile.writable_roots))
        .transpose()?;
    super::warn(args, &plan.warnings);
    if let Some(overlay) = overlay.as_ref().filter(|_| !args.quiet) {
        ws::warn_if_restarted(overlay, Format::of(args.output.json));
    }
    home.warn_if_restarted(args);
    let taps = Taps::chosen(args);
    let launch = Foreground {
        keep: passed_descriptors(&args.policy.pass_fd)?,
        tap: taps.as_tap(),
        network,
        backends: &backends,
    };
    // From here on the sandbox's first process shares its pages.
    crate::HEAP.freeze();
    let finished = loop {
        let tried = match stockade_engine::run_in_foreground(plan, &launch) {
            Ok(finished) => break finished,
            // No other backend has overlays.
            Err(error) if overlay.is_some() => choice.without_home_layer(error),
            Err(error) => choice.passed_over(error),
        };
        tried.map_err(|error| run_failure_over(&home, error))?;
        plan = choice.next(&spec)?;
        if let Some(overlay) = &mut overlay {
            overlay::add_layers(overlay, &mut plan)?;
        }
        super::warn(args, &plan.warnings[..1]);
    };
    // The program is about to end: nothing is worth freeing.
    crate::HEAP.freeze();
    let seen = taps.finish();
    let ended = exit_of(&finished);
    let when = args.commit;
    let is_committed = when == Some(CommitWhen::Always) || when.is_some() && ended.code() == 0;
    let left = match &overlay {
        Some(overlay) if !is_committed => overlay::leave(overlay),
        _ => Ok(()),
    };
    let cleared = home.leave();
    let written = report_file
        .as_mut()
        .map_or(Ok(()), |file| Outcome::of(&finished, &seen).write(file));
    let is_logged = log_refusals(args, place, &finished, ended);
    tell(args, &finished, is_logged);
    if !args.quiet {
        seen.tell(Format::of(args.output.json));
    }
    let after = match overlay {
        Some(overlay) if is_committed => overlay::commit(overlay, args, place, profile, store),
        Some(overlay) => left.map(|()| overlay::tell_uncommitted(&overlay, args)),
        None => Ok(()),
    };
    let mut exit = ended;
    for failure in [written, cleared, after]
        .into_iter()
        .filter_map(Result::err)
    {
        output::failure(&failure, Format::of(args.output.json));
        // The command has run: 125 would say that it has not.
        if exit.code() == 0 {
            exit = Exit::Negative;
        }
    }
    if Format::of(args.output.json) == Format::Json {
        let record = Outcome::of(&finished, &seen).to_event(exit)?;
        output::record(record)?;
    }
    Ok(exit)
}

fn spec(args: &RunArgs, home: &KeptHome) -> Spec {
    // One is enough: whoever holds the user's terminal can type on it, or leave it in a bad mode.
    let has_terminal = std::io::stdin().is_terminal()
        || std::io::stdout().is_terminal()
        || std::io::stderr().is_terminal();
    Spec {
        argv: args.command.clone(),
        env: super::environment(args).collect(),
        keep_descriptors: args.policy.pass_fd.clone(),
        terminal: has_terminal,
        explain: args.explain,
        overlay: args.overlay.is_some(),
        kept_home: home.path.clone(),
        session: false,
    }
}

/// This program, as the helper of self-tests.
pub(crate) const THIS: &str = "/proc/self/exe";

/// Who answers in the sandbox's network, where somebody must.
pub(crate) fn network(
    upstream: &UpstreamArgs,
    plan: &ExecPlan,
) -> Result<Option<Arc<dyn NetworkService>>, Failure> {
    if plan.network.is_none() {
        if upstream.upstream.is_some() {
            let text = "`--upstream` needs `--allow`: the policy has no list of hosts";
            return Err(Failure::text(Exit::Usage, text).hint("`--allow HOST` makes one"));
        }
        return Ok(None);
    }
    let upstream = upstream.choose()?;
    Ok(Some(Arc::new(SandboxProxy {
        upstream,
        ..SandboxProxy::default()
    })))
}

/// As the name of a file.
const STDOUT: &str = "-";

fn create(place: &Place, name: &Path, roots: &[AbsPath]) -> Result<File, Failure> {
    if name == STDOUT {
        return Ok(std::io::stdout().as_fd().try_clone_to_owned()?.into());
    }
    let path = place.file(name)?;
    let failed = |error: std::io::Error| {
        let what = format!("can't write the report to `{path}`");
        Failure::new(Exit::NotSetUp, anyhow::Error::new(error).context(what))
    };
    let file = stockade_engine::open_output(path.as_path(), roots).map_err(failed)?;
    if file.metadata().is_ok_and(|data| data.is_file()) {
        file.set_len(0).map_err(failed)?;
    }
    Ok(file)
}

/// The report, and what was seen in the output where somebody looked.
#[derive(Serialize)]
struct Outcome<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(flatten)]
    seen: &'a Seen,
}

impl<'a> Outcome<'a> {
    fn of(finished: &'a Finished, seen: &'a Seen) -> Self {
        Self {
            report: &finished.report,
            seen,
        }
    }

    fn write(&self, file: &mut File) -> Result<(), Failure> {
        let written = serde_json::to_vec_pretty(self)
            .map_err(std::io::Error::from)
            .and_then(|text| file.write_all(&text))
            .and_then(|()| file.write_all(b"\n"));
        written.map_err(|error| {
            Failure::new(
                Exit::NotSetUp,
                anyhow::Error::new(error).context("can't write the report"),
            )
        })
    }

    /// The last event of a run.
    fn to_event(&self, exit: Exit) -> std::io::Result<String> {
        #[derive(Serialize)]
        struct Ended<'a> {
            event: &'static str,
            exit_code: u8,
            #[serde(flatten)]
            outcome: &'a Outcome<'a>,
        }
        Ok(serde_json::to_string(&Ended {
            event: "ended",
            exit_code: exit.code(),
            outcome: self,
        })?)
    }
}

/// The descriptors that the user wants the command to have, which this program inherited.
fn passed_descriptors(numbers: &[i32]) -> Result<Vec<(OwnedFd, i32)>, Failure> {
    numbers
        .iter()
        .map(|number| Ok((inherited(*number)?, *number)))
        .collect()
}

fn inherited(number: i32) -> Result<OwnedFd, Failure> {
    // Opening the entry in `/proc` would make a new description.
    stockade_linux::inherited_descriptor(number).map_err(|error| {
        let what = format!("descriptor {number} can't be used");
        Failure::new(Exit::Usage, anyhow::Error::new(error).context(what))
    })
}

/// Notes what was refused for `stockade log`; whether all of it is there. A log that can't be
/// written is no failure of the run.
fn log_refusals(args: &RunArgs, place: &Place, finished: &Finished, exit: Exit) -> bool {
    let denials = &finished.report.denials;
    if denials.is_empty() {
        return false;
    }
    let words = args.command.iter().map(|word| word.to_string_lossy());
    let run = LoggedRun::new(words, place.around.cwd.as_path(), exit, denials);
    log::append(&run).is_ok() && run.is_whole()
}

/// What was refused, in a few lines on standard error.
fn tell(args: &RunArgs, finished: &Finished, is_logged: bool) {
    if args.quiet {
        return;
    }
    let all = if is_logged { "stockade log" } else { SHOWS_ALL };
    for remark in remarks(finished, args.explain || args.verbose, all) {
        output::warn(&remark, Format::of(args.output.json));
    }
    let succeeded = matches!(finished.report.ending, Ending::Exited(0));
    if let Some(program) = args.command.first().filter(|_| !succeeded) {
        for advice in advice::about(program, &finished.report.env_removed) {
            output::warn(&advice, Format::of(args.output.json));
        }
    }
    let removed = finished.report.env_removed.iter();
    let removed: Vec<&str> = removed
        .map(String::as_str)
        .filter(|name| !OF_SHELLS.contains(name))
        .collect();
    if args.verbose && !removed.is_empty() {
        let names = output::printable(&removed.join(" ")).into_owned();
        let text = format!("variables that were not handed on: {names}; --keep-env NAME keeps one");
        output::warn(&text, Format::of(args.output.json));
    }
}

/// Variables that every shell sets anew, whose absence nobody asks about.
const OF_SHELLS: &[&str] = &["OLDPWD", "PWD", "SHLVL", "_"];

/// The flag with which every denial of a run is shown.
pub(crate) const SHOWS_ALL: &str = "--explain";

/// What the user should know about a command that has ended; every denial if the user `asked`,
/// else where they are shown.
pub(crate) fn remarks(finished: &Finished, asked: bool, shows_all: &str) -> Vec<String> {
    let mut remarks: Vec<String> = finished.trouble.iter().cloned().collect();
    let limit = match finished.report.ending {
        Ending::CpuLimit => Some("the CPU time is over; the command was killed"),
        Ending::DiskLimit => Some(
            "too much disk space was taken; all processes were killed, what they wrote is left",
        ),
        Ending::MemoryLimit => Some(
            "out of memory: the kernel killed a process inside; allow more with --limit mem=SIZE",
        ),
        Ending::OutputLimit => Some("too much output; all processes were killed"),
        _ => None,
    };
    remarks.extend(limit.map(str::to_owned));
    if finished.report.ending == Ending::TimedOut {
        let time =
            std::time::Duration::from_micros(finished.report.usage.wall_micros).as_secs_f64();
        remarks.push(format!(
            "timed out after {time:.1} s; all processes were killed"
        ));
    }
    let denials = &finished.report.denials;
    if !asked && matches!(finished.report.ending, Ending::Exited(0)) {
        remarks.extend(in_one_line(denials, shows_all));
        return remarks;
    }
    let shown = if asked { denials.len() } else { SHOWN_DENIALS };
    remarks.extend(denials.iter().take(shown).map(describe));
    if denials.len() > shown {
        let more = denials.len() - shown;
        remarks.push(format!("{more} more were refused; `{shows_all}` shows all"));
    }
    remarks
}

/// What was refused to a command that succeeded all the same: it may have done less than it says.
fn in_one_line(denials: &[Denial], shows_all: &str) -> Option<String> {
    let first = describe(denials.first()?);
    Some(match denials.len() - 1 {
        0 => first,
        more => format!("{first} ({more} more; `{shows_all}` shows all)"),
    })
}

/// Enough to see why a command failed.
const SHOWN_DENIALS: usize = 3;

fn describe(denial: &Denial) -> String {
    format!("refused: {denial}; allow with: {}", denial.grant)
}

pub(crate) fn exit_of(finished: &Finished) -> Exit {
    match (&finished.report.ending, finished.status) {
        (Ending::TimedOut, _) => Exit::TimedOut,
        (_, Some(status)) => Exit::of(status),
        (_, None) => Exit::Command(u8::try_from(finished.status_code()).unwrap_or(u8::MAX)),
    }
}

/// An earlier run may have left something in the layer that no mount can be put over.
fn run_failure_over(home: &KeptHome, error: RunError) -> Failure {
    let is_mount = matches!(
        &error,
        RunError::Spawn(SpawnError::Stage {
            stage: Stage::MountTarget | Stage::AttachMount,
            ..
        })
    );
    if home.path.is_some() && is_mount {
        return Failure::new(Exit::NotSetUp, error).hint(
            "an earlier run may have replaced it in the kept home directory: `stockade home drop` \
             forgets what it wrote, `--home copy` leaves it out",
        );
    }
    run_failure(error)
}

pub(crate) fn run_failure(error: RunError) -> Failure {
    let exit = match &error {
        RunError::Spawn(SpawnError::Stage {
            stage: Stage::Find, ..
        }) => Exit::NotFound,
        RunError::Spawn(SpawnError::Stage {
            stage: Stage::Execute,
            ..
        }) => Exit::NotExecutable,
        _ => Exit::NotSetUp,
    };
    let no_overlay = matches!(
        &error,
        RunError::Spawn(SpawnError::Stage {
            stage: Stage::OverlayMount,
            ..
        })
    );
    // A port that is taken, or root's: the machine offers no other.
    let no_port = matches!(&error, RunError::Spawn(SpawnError::Network(_)));
    let no_sessions = matches!(&error, RunError::NoSessions(_));
    let failure = Failure::new(exit, error);
    match exit {
        Exit::NotSetUp if no_sessions => failure.hint("stockade session open --backend native"),
        Exit::NotSetUp if no_port => failure,
        Exit::NotSetUp if no_overlay => failure.hint(
            "overlayfs takes no file system without extended attributes and no overlay as the \
             place of its layers: choose a store elsewhere with STOCKADE_HOME; `stockade doctor` \
             shows whether this machine has overlays",
        ),
        Exit::NotSetUp if is_confined() => failure.hint(
            "this runs in a sandbox of Stockade already, which lets nothing make another one inside: \
             leave the inner one out, the outer one holds",
        ),
        Exit::NotSetUp => failure.hint("`stockade doctor` shows what this machine offers"),
        _ => failure,
    }
}

/// Whether this program was started by another Stockade, as far as the environment tells.
fn is_confined() -> bool {
    std::env::var_os(STOCKADE_SANDBOX_ACTIVE).is_some()
}
