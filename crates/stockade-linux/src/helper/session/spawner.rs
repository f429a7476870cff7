//! The thread that makes the processes of commands. It is under everything that confines commands,
//! the filter included, and its children inherit that: a command costs one fork and one exec.
//!
//! Until it executes its program, a child shares the supervisor's memory and is in the pid namespace
//! of the other commands, which may kill or stop it. It therefore neither allocates nor locks. They
//! can't look into it: the memory that it shares is not dumpable (`ptrace(2)`).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope};

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::Pid;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::standard_of;
use crate::commands::Command;
use crate::helper::FAILED;
use crate::helper::command::{Image, install_filter};
use crate::mediator::Waiting;
use crate::plan::LinuxPlan;
use crate::seccomp::Program;
use crate::session::Order;
use crate::stage::{At, Failure, Stage};
use crate::{capabilities, cgroup, landlock, limits, sys};

/// A command to start.
pub(super) struct Job {
    order: Order,
    standard: [OwnedFd; 3],
    command: Arc<Command>,
}

impl Job {
    pub(super) fn new(
        order: Order,
        standard: [OwnedFd; 3],
        command: &Arc<Command>,
    ) -> Result<Self, Failure> {
        let standard = standard_of(&order, standard, command.line.as_fd())?;
        Ok(Self {
            order,
            standard,
            command: Arc::clone(command),
        })
    }
}

/// What became of a command that was to be started.
type Outcome = Result<Pid, Failure>;

/// The thread, as the supervisor's first one sees it.
pub(super) struct Spawner {
    jobs: Sender<Job>,
    outcomes: Receiver<Outcome>,
    /// Readable when there is an outcome.
    finished: Arc<OwnedFd>,
}

impl Spawner {
    /// Starts the thread and waits until it is confined. Answers with a copy of what the mediator
    /// listens on, if there is a mediator.
    pub(super) fn start<'scope, 'env: 'scope>(
        scope: &'scope Scope<'scope, 'env>,
        plan: &'env LinuxPlan,
        filter: Program,
        mediator: Option<Waiting>,
        pid_namespace: OwnedFd,
    ) -> Result<(Self, Option<OwnedFd>), Failure> {
        let (jobs, received_jobs) = channel::<Job>();
        let (sender, outcomes) = channel();
        let (ready, is_ready) = channel();
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let finished = Arc::new(eventfd(0, flags).at(Stage::ForkCommand)?);
        let event = Arc::clone(&finished);
        let work = move || {
            let confined = confine(plan, &filter, mediator, &pid_namespace);
            let is_confined = confined.is_ok();
            let _ = ready.send(confined);
            if !is_confined {
                return;
            }
            for job in received_jobs {
                if sender.send(start_command(plan, &job)).is_err() {
                    return;
                }
                // The supervisor must not see the event before the job's descriptors are closed.
                drop(job);
                let _ = rustix::io::write(&*event, &1u64.to_ne_bytes());
            }
        };
        Builder::new()
            .name("spawner".to_owned())
            .spawn_scoped(scope, work)
            .at(Stage::ForkCommand)?;
        let gone = |_| std::io::Error::from_raw_os_error(libc::ESRCH);
        let listener = is_ready.recv().map_err(gone).at(Stage::ForkCommand)??;
        let spawner = Self {
            jobs,
            outcomes,
            finished,
        };
        Ok((spawner, listener))
    }

    pub(super) fn start_command(&self, job: Job) {
        // The thread lives as long as the process.
        let _ = self.jobs.send(job);
    }

    pub(super) fn take_outcome(&self) -> Option<Outcome> {
        let _ = rustix::io::read(&*self.finished, &mut [0; 8]);
        self.outcomes.try_recv().ok()
    }

    /// Readable when [`Spawner::take_outcome`] has something to take.
    pub(super) fn finished(&self) -> BorrowedFd<'_> {
        self.finished.as_fd()
    }
}

/// Confines the calling thread as a command is confined, in the order in which each step still can.
fn confine(
    plan: &LinuxPlan,
    filter: &Program,
    mediator: Option<Waiting>,
    pid_namespace: &OwnedFd,
) -> Result<Option<OwnedFd>, Failure> {
    move_into_link_name_space(pid_namespace.as_fd(), Some(LinkNameSpaceType::ProcessID))
        .at(Stage::ForkCommand)?;
    capabilities::drop_all().at(Stage::DropCapabilities)?;
    // One domain for all commands: a command may signal what an earlier one left running.
    if let Some(rules) = &plan.landlock {
        landlock::restrict_scopes(rules.abi).at(Stage::Landlock)?;
    }
    let mut listener = None;
    install_filter(plan, filter, &mut listener)?;
    let copy = listener.as_ref().map(OwnedFd::try_clone);
    let copy = copy.transpose().at(Stage::Mediator)?;
    if let (Some(mediator), Some(listener)) = (mediator, listener) {
        mediator.serve(listener).at(Stage::Mediator)?;
    }
    Ok(copy)
}

/// Starts a command and waits until it was executed.
fn start_command(plan: &LinuxPlan, job: &Job) -> Outcome {
    let image = Image::new(&job.order.argv, &job.order.env);
    let mut failure = None;
    let pid = sys::process::run_apart_until_execution(&job.command.pid, || {
        failure = Some(become_command(plan, job, &image));
        FAILED
    })
    .at(Stage::ForkCommand)?;
    match failure {
        None => Ok(pid),
        Some((stage, errno)) => Err(Failure {
            stage,
            errno,
            subject: subject_of(stage, &job.order),
        }),
    }
}

fn subject_of(stage: Stage, order: &Order) -> Vec<u8> {
    let subject = match stage {
        Stage::WorkingDirectory => Some(&order.cwd),
        Stage::Execute | Stage::Find => order.argv.first(),
        _ => None,
    };
    subject.map_or_else(Vec::new, |text| text.as_os_str().as_bytes().to_vec())
}

/// As the child, which allocates nothing; returns only what went wrong.
fn become_command(plan: &LinuxPlan, job: &Job, image: &Image<'_>) -> (Stage, i32) {
    match prepare(plan, job) {
        Ok(()) => image.execute(),
        Err(failure) => (failure.stage, failure.errno),
    }
}

fn prepare(plan: &LinuxPlan, job: &Job) -> Result<(), Failure> {
    if let Some(group) = &job.command.group {
        // The kernel asks for the rights of whoever opened the list (cgroups(7)).
        rustix::io::write(group, cgroup::MYSELF).at(Stage::EnterCgroup)?;
    }
    rustix::process::setsid().at(Stage::NewSession)?;
    let standard = job.standard.each_ref().map(AsFd::as_fd);
    if let Some(at) = job.order.terminal.iter().position(|is| *is) {
        sys::process::take_terminal(standard[at]).at(Stage::Terminal)?;
    }
    sys::process::keep_standard_only(standard).at(Stage::CloseDescriptors)?;
    rustix::process::chdir(job.order.cwd.as_c_str()).at(Stage::WorkingDirectory)?;
    limits::apply_to_command(&plan.rlimits).at(Stage::Rlimit)?;
    sys::signal::restore_defaults().at(Stage::Signals)
}
