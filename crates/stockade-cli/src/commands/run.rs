//! `stockade run`: a command, confined by the merged policy.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use serde::Serialize;
use stockade_engine::PolicyVariable;
use stockade_policy::profile::{Backend, BasePolicy, Level, Profile, Sourced};
use stockade_rules::Origin;

use crate::args::RunArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::resolve::Place;

#[cfg(target_os = "linux")]
mod advice;
#[cfg(target_os = "linux")]
pub(crate) mod confined;
#[cfg(target_os = "linux")]
mod inspection;
#[cfg(target_os = "linux")]
mod kept_home;
#[cfg(target_os = "linux")]
pub(crate) mod overlay;
#[cfg(target_os = "linux")]
mod plan_text;
mod redaction;
mod seatbelt;
mod shell;
mod taps;

pub(crate) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    run_in(args, None)
}

/// The same with overlays in this store, instead of the user's own.
pub(crate) fn run_in(args: &RunArgs, store: Option<&Path>) -> Result<Exit, Failure> {
    let args = &*shell::with_command(args)?;
    #[cfg_attr(
        not(target_os = "linux"),
        expect(unused_mut, reason = "no stores there")
    )]
    let mut place = Place::enter(args.policy.cwd.as_deref())?;
    #[cfg(target_os = "linux")]
    if let Some(store) = store {
        place.close_store(store);
    }
    let mut profile = place.profile(&args.policy)?;
    if let Some(image) = &args.image {
        contain(&mut profile, image)?;
    }
    let (program, arguments) = args
        .command
        .split_first()
        .ok_or_else(|| Failure::text(Exit::Usage, "no command was given"))?;
    #[cfg(feature = "verify")]
    if args.verify {
        super::verify::before_run(&args.command)?;
    }
    if profile.base_policy.value == BasePolicy::DangerFullAccess {
        return unconfined(args, program, arguments, &profile);
    }
    if named(&profile) == Some(Backend::Seatbelt) {
        return seatbelt::run(args, &profile);
    }
    #[cfg(target_os = "linux")]
    return confined::run(args, &place, &profile, store);
    #[cfg(not(target_os = "linux"))]
    let _ = store;
    #[cfg(not(target_os = "linux"))]
    Err(Failure::text(
        Exit::NotSetUp,
        format!(
            "the policy `{}` can't be enforced: there is no engine for this system yet",
            profile.base_policy.value
        ),
    )
    .hint("`--danger-full-access` runs the command without any confinement"))
}

fn named(profile: &Profile) -> Option<Backend> {
    profile.backend.as_ref().map(|backend| backend.value)
}

/// An image means a container, unless what was named is one that can have an image.
fn contain(profile: &mut Profile, image: &str) -> Result<(), Failure> {
    let refuse = |what: String| {
        let text = format!("`--image {image}` needs a container, and {what}");
        Err(Failure::text(Exit::Usage, text).hint("--backend docker, or --backend gvisor"))
    };
    if profile.base_policy.value == BasePolicy::DangerFullAccess {
        return refuse("`--danger-full-access` is none".to_owned());
    }
    match named(profile) {
        Some(Backend::Docker | Backend::Gvisor) => {}
        Some(other) => return refuse(format!("the backend `{other}` is none")),
        None if profile.level.value < Level::Container => {
            profile.level = Sourced::new(Level::Container, Origin::flag("--image"));
        }
        None => {}
    }
    Ok(())
}

/// What the user should know before the command speaks.
fn warn(args: &RunArgs, warnings: &[String]) {
    if args.quiet {
        return;
    }
    for warning in warnings {
        output::warn(warning, Format::of(args.output.json));
    }
}

/// This program's own environment, without what handed the policy over.
fn environment(args: &RunArgs) -> impl Iterator<Item = (OsString, OsString)> {
    let variable = args.policy.policy_env.as_ref().map(PolicyVariable::new);
    std::env::vars_os().filter(move |(name, _)| !variable.as_ref().is_some_and(|v| v.owns(name)))
}

/// Nothing watches an unconfined command, so what would need a watcher is refused, not ignored.
fn unconfined(
    args: &RunArgs,
    program: &OsStr,
    arguments: &[OsString],
    profile: &Profile,
) -> Result<Exit, Failure> {
    let ignored = [
        ("--timeout", args.policy.timeout.is_some()),
        ("--limit", !args.policy.limit.is_empty()),
        ("--require", !args.policy.require.is_empty()),
        ("--upstream", args.upstream.upstream.is_some()),
        ("--overlay", args.overlay.is_some()),
        ("--commit", args.commit.is_some()),
        ("--image", args.image.is_some()),
        ("--report", args.report.is_some()),
        ("--explain", args.explain),
        ("--inspect", args.inspect),
        ("--redact", args.redact),
        (
            "--backend",
            args.policy
                .backend
                .is_some_and(|name| name != Backend::None),
        ),
        (
            "--level",
            args.policy.level.is_some_and(|level| level != Level::Off),
        ),
    ];
    if let Some((flag, _)) = ignored.into_iter().find(|(_, typed)| *typed) {
        let text = format!("`{flag}` needs a sandbox, and `--danger-full-access` is none");
        return Err(Failure::text(Exit::NotSetUp, text)
            .hint("`--workspace-write --write DIR --net open` grants much in a sandbox"));
    }
    warn(args, &profile.warnings);
    if args.dry_run {
        return plan_nothing(args);
    }
    execute(args, program, arguments, profile)
}

fn plan_nothing(args: &RunArgs) -> Result<Exit, Failure> {
    #[derive(Serialize)]
    struct Document<'a> {
        backend: Backend,
        argv: Vec<Cow<'a, str>>,
    }
    let words = args.command.iter().map(|word| word.to_string_lossy());
    let document = Document {
        backend: Backend::None,
        argv: words.collect(),
    };
    match Format::of(args.output.json) {
        Format::Json => output::json(document)?,
        Format::Text => output::text(|out| {
            let command = document.argv.join(" ");
            writeln!(out, "command    {}", output::printable(&command))?;
            writeln!(out, "backend    none: nothing is enforced")
        })?,
    }
    Ok(Exit::Success)
}

fn execute(
    args: &RunArgs,
    program: &OsStr,
    arguments: &[OsString],
    profile: &Profile,
) -> Result<Exit, Failure> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(environment(args));
    for variable in &profile.environment.set {
        let variable = &variable.value;
        command.env(variable.name().as_os_str(), variable.value());
    }
    let search_path = value_of("PATH", &command);
    exec(command).map_err(|error| {
        let refused = error.kind() == std::io::ErrorKind::PermissionDenied;
        if refused && is_nowhere(program, &search_path) {
            return not_started(program, std::io::ErrorKind::NotFound.into());
        }
        not_started(program, error)
    })
}

/// Replaces this program: signals, terminal and exit code are then the command's own.
#[cfg(unix)]
fn exec(mut command: Command) -> std::io::Result<Exit> {
    use std::os::unix::process::CommandExt;
    Err(command.exec())
}

#[cfg(not(unix))]
fn exec(mut command: Command) -> std::io::Result<Exit> {
    command.status().map(Exit::of)
}

fn value_of(name: &str, command: &Command) -> OsString {
    let mut variables = command.get_envs();
    let set = variables.find(|(variable, _)| *variable == name);
    set.and_then(|(_, value)| value)
        .unwrap_or_default()
        .to_owned()
}

/// `execvp(3)` speaks of a missing permission also if there was nothing but a directory of the
/// search path that it could not search; shells then say that there is no such command.
fn is_nowhere(program: &OsStr, search_path: &OsStr) -> bool {
    let is_searched = !program.as_encoded_bytes().contains(&b'/');
    is_searched && !std::env::split_paths(search_path).any(|dir| dir.join(program).is_file())
}

fn not_started(program: &OsStr, error: std::io::Error) -> Failure {
    let exit = match error.kind() {
        std::io::ErrorKind::NotFound => Exit::NotFound,
        _ => Exit::NotExecutable,
    };
    let what = format!("can't execute `{}`", program.display());
    Failure::new(exit, anyhow::Error::new(error).context(what))
}
