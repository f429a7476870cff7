//! The backend `nsjail`: nsjail builds the view and the namespaces, from a configuration of the
//! run's own.
//!
//! For hosts that have it and trust it. The configuration goes through a descriptor: there is no
//! limit on its length, and nothing of it shows in `/proc`. Needs nsjail 3.0 (mounts with their
//! own `nosuid` and `nodev`).
//!
//! Not protected, unlike in the backend `native`: see [`program`](super::program). The command is
//! process 1 inside, so signals that it does not handle do not end it, and nobody collects
//! orphans before it ends. `/proc` is read-only as a whole.

mod config;
mod kafel;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use stockade_policy::profile::{Backend as Name, Profile};

use super::foundation::{self, Words};
use super::program::Tells;
use super::{Backend, Launch, RunningSandbox};
use super::{lookup, program};
use crate::child::RunError;
use crate::lower;
use crate::plan::{Content, ExecPlan, PlanError, Spec};
use crate::probe::{self, Support};

/// nsjail.
#[derive(Clone, Debug, Default)]
pub struct Nsjail {
    path: Option<PathBuf>,
}

impl Nsjail {
    /// The one on the search path, whose relative entries are left out.
    pub fn new() -> Self {
        Self::default()
    }

    /// The one at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
        }
    }

    fn program(&self) -> Result<PathBuf, PlanError> {
        let given = self.path.as_deref();
        program::located(
            given,
            Name::Nsjail,
            "nsjail",
            /*hint*/ "install nsjail, or name another backend",
        )
    }
}

impl Backend for Nsjail {
    fn name(&self) -> Name {
        Name::Nsjail
    }

    fn probe(&self, _: &Path) -> Support {
        probe::nsjail(self.path.as_deref())
    }

    fn plan(&self, profile: &Profile, spec: &Spec) -> Result<ExecPlan, PlanError> {
        let nsjail = self.program()?;
        let mut plan = foundation::plan(profile, spec, Name::Nsjail, &words())?;
        let mut free = program::free_descriptors(&spec.keep_descriptors);
        let [config_fd, log_fd] = [(); 2].map(|()| free.next().unwrap_or(i32::MAX));
        let text = config::text(
            &plan.linux,
            &spec.keep_descriptors,
            &config::Seen {
                is_directory: &lookup::is_directory,
                mounts_below: &lookup::mounts_below,
            },
        );
        let options: [OsString; 6] = [
            nsjail.into(),
            "--config".into(),
            format!("/proc/self/fd/{config_fd}").into(),
            "--log_fd".into(),
            log_fd.to_string().into(),
            "--".into(),
        ];
        let options = options.into_iter().map(lower::text);
        let argv = options.chain(plan.linux.command.argv.iter().cloned().map(Ok));
        let argv = argv.collect::<Result<_, _>>()?;
        let run = program::started_by_helper(&plan.linux, argv, [config_fd, log_fd]);
        let inputs = vec![program::input(config_fd, Content::Text(text))];
        plan.carrier = program::carrier(run, inputs, Some(log_fd));
        Ok(plan)
    }

    fn spawn(
        &self,
        plan: &ExecPlan,
        launch: &Launch<'_>,
    ) -> Result<Box<dyn RunningSandbox>, RunError> {
        program::spawn(plan, launch, &Log)
    }
}

/// Its log. Each line begins with its level; the last tells how the command ended, which it also
/// does for a child that failed before the command, after an error.
#[derive(Debug)]
struct Log;

impl Tells for Log {
    /// nsjail passes on what it gets.
    fn leader(&self, _: &str) -> Option<i32> {
        None
    }

    fn is_built(&self, said: &str) -> bool {
        let ended = ["exited with status", "terminated with signal"];
        let failed = ["[E]", "[F]"];
        said.lines()
            .any(|line| ended.iter().any(|words| line.contains(words)))
            && !said
                .lines()
                .any(|line| failed.iter().any(|level| line.starts_with(level)))
    }
}

fn words() -> Words {
    Words {
        files: "nsjail's mounts",
        devices: "a /dev of its own",
        processes: "pid namespace; the helper ends it with its launcher",
        privileges: "no capabilities, no_new_privs, no set-id modes",
        // Rows about set-id programs run on every other backend.
        privileges_gap: Some("set-id programs were never tried in nsjail by Stockade's own tests"),
        seccomp: "seccomp filter, by Kafel",
        seccomp_gap: None,
        network: "network namespace with a loopback only",
        hosts: Some(program::HOSTS),
        ipc: "ipc namespace, hidden sockets",
        ipc_gap: Some(
            "Unix sockets of the host that lie in a readable directory can be connected to",
        ),
    }
}

#[cfg(test)]
mod tests;
