//! Limits of single processes: the floor that every host offers.

use std::io;
use std::time::Duration;

use rustix::process::{Resource as Kernel, Rlimit as Pair, setrlimit};

use crate::plan::{Resource, Rlimit};

/// Whether so much CPU time is all that this process and those it starts may use each. The kernel
/// sends `SIGKILL` then: soft and hard limit are one (`getrlimit(2)`).
pub(crate) fn is_all_cpu_time(used: Duration) -> bool {
    let limit = rustix::process::getrlimit(Kernel::Cpu).maximum;
    limit.is_some_and(|seconds| used >= Duration::from_secs(seconds))
}

/// Sets soft and hard limit alike, so that the command can't raise it.
///
/// A value above the hard limit that the launcher itself has is lowered to it: the stricter of
/// the two holds.
pub(crate) fn apply(limit: Rlimit) -> io::Result<()> {
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
