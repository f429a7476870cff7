//! A run in a tier: the same plan and the same code as those of `stockade run`, so that what a
//! probe promises is what a run gets.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stockade_linux::probe::access::{self, Access};
use stockade_linux::{Builder, SpawnError, Stage};
use stockade_policy::profile::{HomeMode, Profile, Sourced};
use stockade_policy::{SandboxPolicy, Surroundings};

use super::{Gap, PROBE_TIMEOUT, Tier};
use crate::lower::Mediator;
use crate::plan::{ExecPlan, Spec};

/// Starts a command that makes a file in the sandbox's own `/tmp`, and looks how it went.
pub(super) fn run(helper: &Path, tier: Tier) -> Result<(), Gap> {
    let failed = |reason: String| Gap::new("sandbox", reason, None);
    // Elsewhere there is no `/tmp` of its own.
    let accesses: &[Access] = match tier {
        Tier::Native => &[Access::Write("/tmp".into(), "stockade-probe".into())],
        Tier::Landlock => &[],
    };
    let plan = plan(helper, tier, accesses).map_err(failed)?;
    match start(helper, &plan) {
        Ok((status, output)) => {
            let answers = access::parse(&output, accesses);
            if status == Some(0) && answers.is_some_and(|all| all.iter().all(|errno| *errno == 0)) {
                return Ok(());
            }
            let answer = String::from_utf8_lossy(&output);
            Err(failed(format!(
                "a command could not make a file in it ({})",
                answer.trim()
            )))
        }
        // The sandbox was complete: it only does not show this program, which may lie in /tmp.
        Err(SpawnError::Stage {
            stage: Stage::Find | Stage::Execute,
            ..
        }) => Ok(()),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn plan(helper: &Path, tier: Tier, accesses: &[Access]) -> Result<ExecPlan, String> {
    let around = Surroundings::from_env(Path::new("/")).map_err(|error| error.to_string())?;
    let profile = Profile::from_policy(&SandboxPolicy::read_only(), &around);
    let mut profile = profile.map_err(|error| error.to_string())?;
    // Gaps are the plan's to report.
    profile.best_effort = Sourced::built_in(true);
    // Where the kernel refuses a layer over the home directory, a run does without it.
    profile.home = Sourced::built_in(HomeMode::ReadOnly);
    let mut argv = vec![helper.as_os_str().to_owned()];
    argv.extend(access::arguments(accesses));
    let spec = Spec {
        argv,
        ..Spec::default()
    };
    ExecPlan::in_tier(&profile, &spec, tier, Mediator::Present).map_err(|error| error.to_string())
}

/// The exit status and what was printed.
fn start(helper: &Path, plan: &ExecPlan) -> Result<(Option<i32>, Vec<u8>), SpawnError> {
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null");
    let null = null.map_err(SpawnError::Channels)?;
    let (mut reader, writer) = std::io::pipe().map_err(SpawnError::Channels)?;
    let standard = [null.as_fd(), writer.as_fd(), null.as_fd()];
    let builder = Builder::Program(helper);
    let mut running = stockade_linux::spawn(&plan.linux, builder, standard, &[], &mut |_| Ok(()))?;
    drop(writer);
    let deadline = Instant::now() + PROBE_TIMEOUT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left.max(Duration::from_millis(1))).ok();
        let mut watched = [PollFd::from_borrowed_fd(running.pidfd(), PollFlags::IN)];
        match poll(&mut watched, left.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) | Err(_) => {
                running.kill();
                break;
            }
            Ok(_) => break,
        }
    }
    let outcome = running.wait().map_err(SpawnError::Channels)?;
    let mut output = Vec::new();
    reader
        .read_to_end(&mut output)
        .map_err(SpawnError::Channels)?;
    Ok((outcome.status, output))
}
