//! Whether a host refuses what a tier is made of.
//!
//! The strongest is tried first and no probe runs before it: a host that offers namespaces pays
//! nothing for those that do not. Where the helper reports that the host refused them, nothing of
//! the command has run, and the run is planned again for the next ([`choice`](crate::choice)).

use stockade_linux::{SpawnError, Stage};

use crate::plan::ExecPlan;
use crate::report::Enforcement;

/// Why the host refuses what a tier is made of, if that is what the error says. Any other errno is
/// a failure of this run and not the host's answer to all of them.
pub(crate) fn refusal(error: &SpawnError) -> Option<String> {
    let SpawnError::Stage { stage, source, .. } = error else {
        return None;
    };
    if *stage == Stage::Seccomp
        && source.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error())
    {
        return Some("a sandbox around this one listens to system calls already".to_owned());
    }
    if *stage == Stage::OwnProc {
        return Some("/proc shows another pid namespace than this process has".to_owned());
    }
    let is_answer = source.raw_os_error().is_some_and(|errno| {
        REFUSALS
            .iter()
            .any(|refusal| refusal.raw_os_error() == errno)
    });
    (is_answer && FOUNDATION.contains(stage))
        .then(|| format!("this host refuses to {stage} ({source})"))
}

/// Why the host refuses a layer over the home directory, if that is what the error says.
pub(crate) fn home_refusal(error: &SpawnError) -> Option<String> {
    match error {
        SpawnError::Stage {
            stage: Stage::HomeLayer,
            source,
            ..
        } => Some(format!(
            "the home directory is read-only: this kernel refuses a layer over it ({source})"
        )),
        _ => None,
    }
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
    Stage::Landlock,
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
