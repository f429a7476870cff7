//! What backends without a mediator have in common, those of other crates included: the view of
//! the backend `native`, the filter without calls that only a mediator answers, and honest words.

use stockade_linux::seccomp::{FilterSpec, ProfileOptions};
use stockade_policy::profile::{Backend as Name, Profile};
use stockade_rules::AbsPath;

use super::{lookup, program};
use crate::host::{self, Found};
use crate::lower;
use crate::network::Addresses;
use crate::plan::{ExecPlan, PlanError, Spec};

pub use super::clauses::{Hosts, Words};

/// A plan for `backend` whose carrier is still to be set: its `linux` has the view, the rules, the
/// limits, the environment, the filter, and the command by its own path.
///
/// # Errors
/// If the profile makes no plan anywhere.
pub fn plan(
    profile: &Profile,
    spec: &Spec,
    backend: Name,
    words: &Words,
) -> Result<ExecPlan, PlanError> {
    let addresses = words
        .hosts
        .map_or(Addresses::ROUTED, |hosts| hosts.addresses);
    let mut plan = ExecPlan::for_backend(profile, spec, backend, addresses)?;
    match (&plan.network, words.hosts) {
        (Some(_), None) => return Err(PlanError::Filtered(backend)),
        (Some(order), Some(hosts)) if !hosts.expose && !order.expose.is_empty() => {
            return Err(PlanError::Expose(backend));
        }
        // Programs inside have to be shown whom to trust.
        (Some(order), Some(hosts)) if !hosts.opens_tls && order.opens_tls() => {
            return Err(PlanError::Opened(backend));
        }
        _ => {}
    }
    program::protect_git_config(&mut plan.linux, profile);
    plan.enforcement = super::clauses::clauses(profile, &plan, words);
    plan.linux.landlock = None;
    plan.linux.seccomp = filter(profile)?;
    plan.linux.command.argv = lookup::command(&plan.linux)?;
    Ok(plan)
}

/// The filter without the calls that only a mediator answers.
fn filter(profile: &Profile) -> Result<FilterSpec, PlanError> {
    lower::filter(profile, ProfileOptions::unmediated(), None)
}

/// What a limit of disk space leaves open, where there is one: the launcher keeps it, whatever
/// the backend.
pub fn disk_gap(profile: &Profile) -> Option<&'static str> {
    lower::limits::disk_gap(profile)
}

/// Refuses a command that is not there or can't be executed, as the helper would inside: the
/// programs that build sandboxes do not tell one that is missing from one that failed.
///
/// # Errors
/// If the view of the plan does not show it, or nobody may execute it.
pub fn find_command(plan: &ExecPlan) -> Result<(), stockade_linux::SpawnError> {
    lookup::find_command(&plan.linux).map(drop)
}

/// The mount points strictly below a path, in order: what makes a mount read-only does not make
/// those below it so.
pub fn mounts_below(path: &AbsPath) -> Vec<AbsPath> {
    lookup::mounts_below(path)
}

/// Whether a file of the host is seen inside, by its real path.
pub fn shows(plan: &ExecPlan, path: &AbsPath) -> bool {
    lookup::shown_at(&plan.linux, path) != lookup::Shown::Nothing
}

/// Where something really is, if it is there; links are followed one by one.
pub fn real_path(path: &AbsPath) -> Option<AbsPath> {
    match host::resolve_all(path.as_path()) {
        Found::Present { real, .. } => Some(real),
        _ => None,
    }
}
