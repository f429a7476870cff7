//! Which tier holds a run, and why.
//!
//! The strongest is tried first and no probe runs before it: a host that offers namespaces pays
//! nothing for those that do not. Where the helper reports that the host refused them, nothing of
//! the command has run, and the run is planned again for the weaker tier, which is said. Never
//! where the profile named the stronger backend, asked for a level above the default, or requires
//! a clause that the weaker tier can't hold.

use stockade_linux::{SpawnError, Stage};
use stockade_policy::profile::{Backend, Level, Profile};

use crate::plan::ExecPlan;
use crate::probe::Tier;
use crate::report::Enforcement;

/// The tier to try first, if the choice is between the two that the helper carries out.
pub(crate) fn first(backend: Option<Backend>) -> Option<Tier> {
    match backend {
        None | Some(Backend::Native) => Some(Tier::Native),
        Some(Backend::Landlock) => Some(Tier::Landlock),
        Some(_) => None,
    }
}

/// Whether the host refused what the first tier is made of, and the profile allows the next.
pub(crate) fn is_refused(profile: &Profile, error: &SpawnError) -> bool {
    let is_free = profile.backend.is_none() && profile.level.value == Level::Default;
    let SpawnError::Stage { stage, source, .. } = error else {
        return false;
    };
    // Any other errno is a failure of this run and not the host's answer to all of them.
    let is_answer = source.raw_os_error().is_some_and(|errno| {
        REFUSALS
            .iter()
            .any(|refusal| refusal.raw_os_error() == errno)
    });
    is_free && is_answer && FOUNDATION.contains(stage)
}

/// What the user should know about a tier that is not the strongest, and why it is this one.
pub(crate) fn notice(plan: &ExecPlan, error: Option<&SpawnError>) -> String {
    let reason = match error {
        Some(SpawnError::Stage { stage, source, .. }) => {
            format!("this host refuses to {stage} ({source})")
        }
        Some(other) => other.to_string(),
        None => "as was asked for".to_owned(),
    };
    format!(
        "running in tier `landlock`: {reason}; not in full: {} (see --report)",
        shortfall(plan)
    )
}

/// The clauses that do not hold in full.
pub(crate) fn shortfall(plan: &ExecPlan) -> String {
    let partly: Vec<String> = plan
        .enforcement
        .iter()
        .filter(|report| report.enforcement != Enforcement::Full)
        .map(|report| report.clause.to_string())
        .collect();
    partly.join(", ")
}

/// Steps that only need what every sandbox of the tier needs, and no path of a policy.
const FOUNDATION: &[Stage] = &[
    Stage::Unshare,
    Stage::MapIds,
    Stage::Network,
    Stage::LockNamespaces,
    Stage::StageMount,
    Stage::CloneRoot,
    Stage::AttachRoot,
    Stage::MountAttributes,
    Stage::TemporaryMount,
    Stage::DeviceMount,
    Stage::ProcMount,
    Stage::PivotRoot,
    Stage::DetachOldRoot,
];

/// How kernels and security modules refuse: `EPERM` and `EACCES` (sysctl, seccomp of a container,
/// `AppArmor`, a `/proc` with masks), `ENOSPC` and `EUSERS` (the limit on namespaces), `EINVAL`,
/// `ENOSYS` and `ENODEV` (not in this kernel), `EROFS` (`/proc/sys` of a container).
const REFUSALS: &[rustix::io::Errno] = &[
    rustix::io::Errno::PERM,
    rustix::io::Errno::ACCESS,
    rustix::io::Errno::NOSPC,
    rustix::io::Errno::USERS,
    rustix::io::Errno::INVAL,
    rustix::io::Errno::NOSYS,
    rustix::io::Errno::NODEV,
    rustix::io::Errno::ROFS,
];
