//! `run --backend seatbelt`: the profile on every system, the command on macOS.

use serde::Serialize;
use stockade_engine::seatbelt::{
    SeatbeltError, SeatbeltPolicy, generate_seatbelt_profile, seatbelt_command,
};
use stockade_policy::profile::{Backend, Profile};

use crate::args::RunArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

pub(super) fn run(args: &RunArgs, profile: &Profile) -> Result<Exit, Failure> {
    let policy = SeatbeltPolicy::from_profile(profile, None).map_err(failure)?;
    if args.dry_run {
        let text = generate_seatbelt_profile(&policy).map_err(failure)?;
        match Format::of(args.output.json) {
            Format::Json => output::json(Document {
                backend: Backend::Seatbelt,
                profile: &text,
            })?,
            Format::Text => output::raw(text.as_bytes())?,
        }
        return Ok(Exit::Success);
    }
    // Nobody supervises the command there, so what needs that is refused, not ignored.
    let unmet = [
        ("--timeout", args.policy.timeout.is_some()),
        ("--limit", !args.policy.limit.is_empty()),
        ("--require", !args.policy.require.is_empty()),
        ("--overlay", args.overlay.is_some()),
        ("--report", args.report.is_some()),
        ("--explain", args.explain),
        ("--inspect", args.inspect),
        ("--redact", args.redact),
    ];
    if let Some((flag, _)) = unmet.into_iter().find(|(_, typed)| *typed) {
        let text = format!("the backend `seatbelt` has no `{flag}`");
        return Err(Failure::text(Exit::NotSetUp, text).hint("leave it out"));
    }
    let command = seatbelt_command(&args.command, &policy).map_err(failure)?;
    super::warn(args, &profile.warnings);
    let program = args.command.first().cloned().unwrap_or_default();
    super::exec(command).map_err(|error| super::not_started(&program, error))
}

#[derive(Serialize)]
struct Document<'a> {
    backend: Backend,
    profile: &'a str,
}

fn failure(error: SeatbeltError) -> Failure {
    let hint = match &error {
        SeatbeltError::NoProxy => "--net off, or --net open",
        SeatbeltError::Unavailable(_) => "`--dry-run` prints the profile on every system",
        _ => "rename it, or leave it out",
    };
    let error = anyhow::Error::new(error).context("the backend `seatbelt` can't be used here");
    Failure::new(Exit::NotSetUp, error).hint(hint)
}
