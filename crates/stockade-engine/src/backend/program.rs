//! Programs that build a sandbox from arguments: what they have in common.
//!
//! Such a program is trusted and started by the helper, which puts it into the run's control
//! group, gives it a session or terminal of its own, and ends it and everything below it when the
//! run or the launcher ends. There is no mediator inside, so names that do not exist yet, patterns
//! and single Unix sockets are not protected; [`clauses`](super::clauses) says so.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Mutex;

use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, kill_process_group};
use stockade_linux::plan::{LinuxPlan, Mount, Resource, Text, View};
use stockade_linux::seccomp::{FilterSpec, compile};
use stockade_linux::{Denial, Outcome, Running};
use stockade_policy::profile::{Backend as Name, Guard, PROTECTED_NAMES, Profile};
use stockade_rules::AbsPath;

use super::foundation::Hosts;
use super::lookup::{Shown, find_command, shown_at};
use super::{Launch, NetworkSetup, RunningSandbox};
use crate::child::RunError;
use crate::host::{Found, Host};
use crate::network::{Addresses, NetworkGuard};
use crate::plan::{Carrier, Content, ExecPlan, Input, PlanError, Program};
use crate::probe;

/// Numbers of descriptors that are not taken, from 3 on.
pub(super) fn free_descriptors(taken: &[i32]) -> impl Iterator<Item = i32> {
    let taken = taken.to_vec();
    (3..).filter(move |number| !taken.contains(number))
}

/// Where the program is: where the caller says, or on the search path.
pub(super) fn located(
    given: Option<&Path>,
    backend: Name,
    program: &str,
    fix: &str,
) -> Result<PathBuf, PlanError> {
    let found = given
        .map(Path::to_owned)
        .or_else(|| probe::find_program(program));
    found.ok_or_else(|| PlanError::Unusable {
        backend,
        reason: format!("`{program}` is not on the search path"),
        fix: Some(fix.to_owned()),
    })
}

/// How the program is started: with the run's limits, its directory and terminal, and nothing of
/// the command's environment, which is the command's alone.
pub(super) fn started_by_helper(
    plan: &LinuxPlan,
    argv: Vec<Text>,
    descriptors: impl IntoIterator<Item = i32>,
) -> LinuxPlan {
    let mut run = plan.clone();
    run.command.argv = argv;
    run.command.env = Text::new("PATH=/usr/sbin:/usr/bin:/sbin:/bin")
        .into_iter()
        .collect();
    run.command.cwd = AbsPath::root();
    run.own_namespaces = false;
    run.own_network = !cuts_network(plan) && plan.network.is_some();
    run.mounts = Vec::new();
    run.landlock = None;
    run.mediation = None;
    run.trusted = true;
    run.keep_descriptors.extend(descriptors);
    for limit in &mut run.rlimits {
        if limit.resource == Resource::Processes {
            // Counted for the whole user until the program has made a user namespace.
            limit.value = limit.value.saturating_add(Host::tasks_of_user());
        }
    }
    run
}

/// Whether the program itself cuts the network off. Where somebody answers in it the helper makes
/// it, and the program is started inside.
pub(super) fn cuts_network(plan: &LinuxPlan) -> bool {
    plan.own_network && plan.network.is_none()
}

/// How hosts are let through where the helper makes the network.
pub(super) const HOSTS: Hosts = Hosts {
    mechanism: "network namespace that leads to the filtering proxy only",
    addresses: Addresses::ROUTED,
    expose: true,
    opens_tls: false,
};

/// Adds what the mediator would hold elsewhere and a mount can hold for what exists: git's
/// configuration. Git itself can't replace it then either, as the report says.
pub(super) fn protect_git_config(plan: &mut LinuxPlan, profile: &Profile) {
    if profile.git_config.value {
        return;
    }
    let names = PROTECTED_NAMES.iter().filter(|protected| {
        protected.guard == Guard::GitConfig
            && protected.name.ends_with("/config")
            && !protected.name.contains('*')
    });
    let paths = names.flat_map(|protected| {
        let roots = profile.writable_roots.iter();
        roots.filter_map(|root| root.join(protected.name).ok())
    });
    for path in paths {
        let shown = shown_at(plan, &path) == Shown::Writable;
        let granted = plan.mediation.as_ref().is_some_and(|mediation| {
            let wish = stockade_rules::Kind::Write;
            let decision = mediation.rules.decide(wish, path.as_path());
            decision.allowed && decision.names(path.as_path())
        });
        if let Found::Present { real, .. } = crate::host::resolve_all(path.as_path())
            && real == path
            && shown
            && !granted
        {
            let after = plan.mounts.partition_point(|mount| mount.path <= path);
            let view = View::ReadOnly;
            plan.mounts.insert(after, Mount { path, view });
        }
    }
}

/// The filter as bytes of BPF.
pub(super) fn compiled(spec: &FilterSpec) -> Result<Vec<u8>, PlanError> {
    let program = compile(spec).map_err(PlanError::Seccomp)?;
    Ok(program.to_bytes())
}

/// What a program that builds a sandbox says about it in its status descriptor.
pub(super) trait Tells: std::fmt::Debug + Send + Sync {
    /// The leader of the command's process group, by its id outside.
    fn leader(&self, said: &str) -> Option<i32>;
    /// Whether the sandbox was built, and so the command was at least tried.
    fn is_built(&self, said: &str) -> bool;
}

/// Starts the program of a plan.
pub(super) fn spawn(
    plan: &ExecPlan,
    launch: &Launch<'_>,
    tells: &'static dyn Tells,
) -> Result<Box<dyn RunningSandbox>, RunError> {
    let Carrier::Program(program) = &plan.carrier else {
        return Err(RunError::Backend {
            backend: plan.backend,
            reason: "the plan was made for another backend".to_owned(),
        });
    };
    find_command(&plan.linux)?;
    let failed = |source| RunError::Io {
        act: "hand the sandbox's program its input",
        source,
    };
    let inputs = program.inputs.iter().map(|input| {
        let file = in_memory(&input.content)?;
        Ok((file, input.descriptor))
    });
    let inputs: Vec<(File, i32)> = inputs.collect::<io::Result<_>>().map_err(failed)?;
    let status = program.status.map(|number| {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&read, true)?;
        Ok((File::from(read), write, number))
    });
    let status = status.transpose().map_err(failed)?;
    let mut kept = launch.kept.to_vec();
    kept.extend(inputs.iter().map(|(file, number)| (file.as_fd(), *number)));
    kept.extend(
        status
            .iter()
            .map(|(_, write, number)| (write.as_fd(), *number)),
    );
    let mut answering = NetworkSetup::new(plan, launch)?;
    let running = stockade_linux::spawn(
        &program.run,
        launch.builder,
        launch.standard,
        &kept,
        &mut |sockets| answering.attach(sockets),
    )?;
    Ok(Box::new(Supervised {
        running,
        network: answering.guard,
        backend: plan.backend,
        status: status.map(|(read, ..)| Mutex::new((read, Vec::new()))),
        tells,
        ended_by_us: false,
    }))
}

fn in_memory(content: &Content) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create(
        "stockade-input",
        MemfdFlags::CLOEXEC,
    )?);
    match content {
        Content::Arguments(arguments) => {
            for argument in arguments {
                file.write_all(argument.as_c_str().as_bytes_with_nul())?;
            }
        }
        Content::Bytes(bytes) => file.write_all(bytes)?,
        Content::Text(text) => file.write_all(text.as_bytes())?,
    }
    file.rewind()?;
    Ok(file)
}

/// A program that builds a sandbox, and the helper around it.
#[derive(Debug)]
struct Supervised {
    running: Running,
    network: Option<Box<dyn NetworkGuard>>,
    backend: Name,
    /// What it says, and what it said so far.
    status: Option<Mutex<(File, Vec<u8>)>>,
    tells: &'static dyn Tells,
    ended_by_us: bool,
}

impl Supervised {
    /// Everything that the program has said by now.
    fn said(&self) -> Option<String> {
        let mut status = self.status.as_ref()?.lock().ok()?;
        let (file, heard) = &mut *status;
        let mut chunk = [0; 4096];
        while heard.len() < LONGEST_STATUS {
            match file.read(&mut chunk) {
                Ok(0) | Err(_) => break,
                Ok(length) => heard.extend_from_slice(&chunk[..length]),
            }
        }
        Some(String::from_utf8_lossy(heard).into_owned())
    }
}

impl RunningSandbox for Supervised {
    fn kill(&mut self) {
        self.ended_by_us = true;
        self.running.kill();
    }

    fn killer(&self) -> Box<dyn FnOnce() + Send> {
        let life = self.running.lifeline();
        Box::new(move || life.cut())
    }

    fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.running.take_terminal()
    }

    fn take_network(&mut self) -> Option<Box<dyn NetworkGuard>> {
        self.network.take()
    }

    fn hear(&mut self) -> io::Result<bool> {
        self.running.hear()
    }

    fn take_stopped(&mut self) -> bool {
        self.running.take_stopped()
    }

    fn messages(&self) -> BorrowedFd<'_> {
        self.running.messages()
    }

    fn pidfd(&self) -> BorrowedFd<'_> {
        self.running.pidfd()
    }

    fn denials(&self) -> &[Denial] {
        self.running.denials()
    }

    /// To the command's own group where the program told it: the program itself must live on, to
    /// say how the command ended.
    fn signal(&self, signal: i32) -> io::Result<()> {
        let leader = self.said().and_then(|said| self.tells.leader(&said));
        let leader = leader.and_then(Pid::from_raw);
        match (leader, Signal::from_named_raw(signal)) {
            (Some(leader), Some(signal)) => Ok(kill_process_group(leader, signal)?),
            _ => self.running.signal(signal),
        }
    }

    fn wait(&mut self) -> Result<Outcome, RunError> {
        let outcome = super::engine::wait(&mut self.running)?;
        let by_signal = outcome
            .status
            .is_some_and(|status| ExitStatus::from_raw(status).signal().is_some());
        if self.ended_by_us || by_signal {
            return Ok(outcome);
        }
        match self.said() {
            Some(said) if !self.tells.is_built(&said) => Err(RunError::Backend {
                backend: self.backend,
                reason: "it could not build the sandbox; the command was not started".to_owned(),
            }),
            _ => Ok(outcome),
        }
    }
}

/// What such programs say is far shorter.
const LONGEST_STATUS: usize = 64 * 1024;

/// An input for a program.
pub(super) fn input(descriptor: i32, content: Content) -> Input {
    Input {
        descriptor,
        content,
    }
}

/// The carrier of a plan for a program.
pub(super) fn carrier(run: LinuxPlan, inputs: Vec<Input>, status: Option<i32>) -> Carrier {
    Carrier::Program(Box::new(Program {
        run,
        inputs,
        status,
    }))
}
