//! Limits of single processes: the floor that every host offers.

use std::io;
use std::time::Duration;

use rustix::process::{Resource as Kernel, Rlimit as Pair, setrlimit};

use crate::plan::{Resource, Rlimit};

/// Sets the limits that the supervisor and the mediator have as well: what the mediator writes on
/// a caller's behalf keeps to them.
pub(crate) fn apply_to_all(limits: &[Rlimit]) -> io::Result<()> {
    let mut shared = limits.iter().filter(|limit| !is_of_command(limit));
    shared.try_for_each(|limit| apply(*limit))
}

/// Sets those that are the command's alone.
pub(crate) fn apply_to_command(limits: &[Rlimit]) -> io::Result<()> {
    let mut own = limits.iter().filter(|limit| is_of_command(limit));
    own.try_for_each(|limit| apply(*limit))
}

/// The mediator works on behalf of everybody inside: its time, memory and descriptors are not one
/// process's.
fn is_of_command(limit: &Rlimit) -> bool {
    limit.resource != Resource::FileSize
}

/// Whether so much CPU time is all that the command may use. The kernel sends `SIGKILL` then: soft
/// and hard limit are one (`getrlimit(2)`).
pub(crate) fn is_all_cpu_time(limits: &[Rlimit], used: Duration) -> bool {
    let stated = limits
        .iter()
        .filter(|limit| limit.resource == Resource::Cpu)
        .map(|limit| limit.value);
    let inherited = rustix::process::getrlimit(Kernel::Cpu).maximum;
    let limit = stated.chain(inherited).min();
    limit.is_some_and(|seconds| used >= Duration::from_secs(seconds))
}

/// Sets soft and hard limit alike, so that the command can't raise it.
///
/// A value above the hard limit that the launcher itself has is lowered to it: the stricter of
/// the two holds.
fn apply(limit: Rlimit) -> io::Result<()> {
    let kernel = match limit.resource {
        Resource::Core => Kernel::Core,
        Resource::Cpu => Kernel::Cpu,
        Resource::Data => Kernel::Data,
        Resource::FileSize => Kernel::Fsize,
        Resource::OpenFiles => Kernel::Nofile,
        Resource::Processes => Kernel::Nproc,
    };
    let present = rustix::process::getrlimit(kernel)
        .maximum
        .unwrap_or(u64::MAX);
    let value = limit.value.min(present);
    setrlimit(
        kernel,
        Pair {
            current: Some(value),
            maximum: Some(value),
        },
    )?;
    Ok(())
}
