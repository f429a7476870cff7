//! Limits of single processes: the floor that every host offers.

use std::io;

use rustix::process::{Resource as Kernel, Rlimit as Pair, setrlimit};

use crate::plan::{Resource, Rlimit};

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
