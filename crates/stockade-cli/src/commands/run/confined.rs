//! Planning, executing and reporting a confined run.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use stockade::network::NetworkService;
use stockade::{
    DenialRecord, Ending, ExecPlan, Finished, Foreground, PlanError, Report, RunError, Spec, Tap,
};
use stockade_linux::{SpawnError, Stage};
use stockade_policy::STOCKADE_SANDBOX_ACTIVE;
use stockade_policy::profile::Profile;
use stockade_proxy::SandboxProxy;

use crate::args::RunArgs;
use crate::commands::{backends, ws};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::resolve::Place;

use super::inspection::{Inspection, Inspector};
use super::{overlay, plan_text};

pub(super) fn run(
    args: &RunArgs,
    place: &Place,
    profile: &Profile,
    store: Option<&Path>,
) -> Result<Exit, Failure> {
    let interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let spec = Spec {
        argv: args.command.clone(),
        env: super::environment(args).collect(),
        keep_descriptors: args.policy.pass_fd.clone(),
        terminal: interactive,
        explain: args.explain,
    };
    let backends = backends(args.image.as_deref());
    let mut choice = backends
        .choose(profile, Path::new(THIS))
        .map_err(plan_failure)?;
    if args.dry_run {
        choice = choice.only_planned();
    }
    let mut plan = choice.next(&spec).map_err(plan_failure)?;
    let network = network(args, &plan)?;
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
    let overlay = match &args.overlay {
        Some(name) => Some(overlay::enter(name.as_deref(), place, store, &mut plan)?),
        None => None,
    };
    // Opened before the command runs: a report that can't be written is known in time.
    let mut report_file = args
        .report
        .as_deref()
        .map(|name| create(place, name))
        .transpose()?;
    super::warn(args, &plan.warnings);
    if let Some(overlay) = overlay.as_ref().filter(|_| !args.quiet) {
        ws::warn_if_restarted(overlay, Format::of(args.output.json));
    }
    let inspector = args.inspect.then(Inspector::new);
    let launch = Foreground {
        keep: passed_descriptors(&args.policy.pass_fd)?,
        tap: inspector.as_ref().map(|inspector| inspector as &dyn Tap),
        network,
        backends: &backends,
    };
    // From here on the sandbox's first process shares its pages.
    crate::HEAP.freeze();
    let finished = loop {
        match stockade::run_in_foreground(plan, &launch) {
            Ok(finished) => break finished,
            // Its layers are in the plan, and no other backend has any.
            Err(error) if overlay.is_some() => return Err(run_failure(error)),
            Err(error) => choice.passed_over(error).map_err(run_failure)?,
        }
        plan = choice.next(&spec).map_err(plan_failure)?;
        super::warn(args, &plan.warnings[..1]);
    };
    // The program is about to end: nothing is worth freeing.
    crate::HEAP.freeze();
    let inspection = inspector.map(Inspector::finish);
    if let Some(overlay) = overlay {
        overlay::leave(&overlay)?;
    }
    if let Some(file) = &mut report_file {
        write_report(file, &finished, inspection.as_ref())?;
    }
    tell(args, &finished);
    if let Some(inspection) = inspection.filter(|_| !args.quiet) {
        inspection.tell(Format::of(args.output.json));
    }
    Ok(exit_of(&finished))
}

/// This program, as the helper of self-tests.
const THIS: &str = "/proc/self/exe";

/// Who answers in the sandbox's network, where somebody must.
fn network(args: &RunArgs, plan: &ExecPlan) -> Result<Option<Arc<dyn NetworkService>>, Failure> {
    if plan.network.is_none() {
        if args.upstream.upstream.is_some() {
            let text = "`--upstream` leads nowhere: the policy has no list of hosts";
            return Err(Failure::text(Exit::Usage, text).hint("`--allow HOST` makes one"));
        }
        return Ok(None);
    }
    let upstream = args.upstream.choose();
    let upstream = upstream.map_err(|error| Failure::new(Exit::NotSetUp, error))?;
    Ok(Some(Arc::new(SandboxProxy {
        upstream,
        ..SandboxProxy::default()
    })))
}

fn create(place: &Place, name: &Path) -> Result<File, Failure> {
    let path = place.file(name)?;
    File::create(&path).map_err(|error| {
        let what = format!("can't write the report to `{path}`");
        Failure::new(Exit::NotSetUp, anyhow::Error::new(error).context(what))
    })
}

fn write_report(
    file: &mut File,
    finished: &Finished,
    inspection: Option<&Inspection>,
) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Document<'a> {
        #[serde(flatten)]
        report: &'a Report,
        #[serde(skip_serializing_if = "Option::is_none")]
        inspection: Option<&'a Inspection>,
    }
    let document = Document {
        report: &finished.report,
        inspection,
    };
    let written = serde_json::to_vec_pretty(&document)
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

/// The descriptors that the user wants the command to have, which this program inherited.
fn passed_descriptors(numbers: &[i32]) -> Result<Vec<(OwnedFd, i32)>, Failure> {
    numbers
        .iter()
        .map(|number| {
            // Opening the entry would make a new description; the same one must be handed on.
            stockade_linux::inherited_descriptor(*number)
                .map(|fd| (fd, *number))
                .map_err(|error| {
                    let what = format!("descriptor {number} can't be passed on");
                    Failure::new(Exit::Usage, anyhow::Error::new(error).context(what))
                })
        })
        .collect()
}

/// What was refused, in a few lines on standard error.
fn tell(args: &RunArgs, finished: &Finished) {
    let format = Format::of(args.output.json);
    if args.quiet {
        return;
    }
    match finished.report.ending {
        Ending::CpuLimit => output::warn("the CPU time is over; the command was ended", format),
        Ending::TimedOut => output::warn("the wall time is over; everything was ended", format),
        Ending::OutputLimit => output::warn("too much output; everything was ended", format),
        _ => {}
    }
    let asked = args.explain || args.verbose;
    if !asked && matches!(finished.report.ending, Ending::Exited(0)) {
        return;
    }
    let denials = &finished.report.denials;
    let shown = if asked { denials.len() } else { SHOWN_DENIALS };
    for denial in denials.iter().take(shown) {
        output::warn(&describe(denial), format);
    }
    if denials.len() > shown {
        let more = denials.len() - shown;
        output::warn(
            &format!("{more} more were refused; `--explain` shows all"),
            format,
        );
    }
}

/// Enough to see why a command failed.
const SHOWN_DENIALS: usize = 3;

fn describe(denial: &DenialRecord) -> String {
    let path = denial.path.display();
    let rule = match &denial.origin {
        Some(origin) => format!("`{}` ({origin})", denial.rule),
        None => denial.rule.clone(),
    };
    format!(
        "refused: {} `{path}`: {rule}; would pass with: {}",
        denial.operation, denial.grant
    )
}

fn exit_of(finished: &Finished) -> Exit {
    match (&finished.report.ending, finished.status) {
        (Ending::TimedOut, _) => Exit::TimedOut,
        (_, Some(status)) => Exit::of(status),
        (_, None) => Exit::Command(u8::try_from(finished.status_code()).unwrap_or(u8::MAX)),
    }
}

fn plan_failure(error: PlanError) -> Failure {
    let hint = error.hint();
    let failure = Failure::new(Exit::NotSetUp, error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn run_failure(error: RunError) -> Failure {
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
    let failure = Failure::new(exit, error);
    match exit {
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
