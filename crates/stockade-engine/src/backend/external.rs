//! The backend `external`: the caller is inside a sandbox already and vouches for it.
//!
//! The command gets the environment, the limits and the supervision of a run, loses its
//! capabilities, and is confined by nothing else of ours. The report calls every other clause not
//! enforced, so a run refuses unless best effort was asked for, or the policy itself is the one
//! for callers inside a sandbox.

use std::path::Path;

use stockade_linux::seccomp::ProfileOptions;
use stockade_policy::profile::{Backend as Name, BasePolicy, Clause, Profile};

use super::engine::Confined;
use super::{Backend, Launch, RunningSandbox};
use crate::child::RunError;
use crate::lower;
use crate::network::Addresses;
use crate::plan::{ExecPlan, PlanError, Spec};
use crate::probe::Support;
use crate::report::{ClauseReport, Enforcement};

/// The caller's own sandbox.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing in it")]
pub struct External;

impl Backend for External {
    fn name(&self) -> Name {
        Name::External
    }

    fn probe(&self, _: &Path) -> Support {
        // It asks nothing of the machine, and gives nothing.
        Support::Full
    }

    fn plan(&self, profile: &Profile, spec: &Spec) -> Result<ExecPlan, PlanError> {
        let mut plan = ExecPlan::for_backend(profile, spec, Name::External, Addresses::ROUTED)?;
        if plan.network.is_some() {
            return Err(PlanError::Filtered(Name::External));
        }
        let vouched = profile.base_policy.value == BasePolicy::External;
        for report in &mut plan.enforcement {
            if !matches!(
                report.clause,
                Clause::Environment | Clause::Limits | Clause::Privileges | Clause::Seccomp
            ) {
                *report = left_to_caller(report.clause, vouched);
            }
        }
        plan.linux.own_namespaces = false;
        plan.linux.own_network = false;
        plan.linux.mounts = Vec::new();
        plan.linux.landlock = None;
        plan.linux.mediation = None;
        plan.linux.seccomp = lower::filter(profile, ProfileOptions::unmediated(), None)?;
        Ok(plan)
    }

    fn spawn(
        &self,
        plan: &ExecPlan,
        launch: &Launch<'_>,
    ) -> Result<Box<dyn RunningSandbox>, RunError> {
        let running = stockade_linux::spawn(
            &plan.linux,
            launch.builder,
            launch.standard,
            launch.kept,
            &mut |_| Ok(()),
        )?;
        Ok(Box::new(Confined {
            running,
            network: None,
        }))
    }
}

fn left_to_caller(clause: Clause, vouched: bool) -> ClauseReport {
    let mut report = ClauseReport::partial(
        clause,
        "the caller's own sandbox",
        "the caller vouches for it; it was not tried".to_owned(),
    );
    if !vouched {
        report.enforcement = Enforcement::None;
    }
    report
}
