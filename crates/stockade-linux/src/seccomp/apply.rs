//! A filter for the process one is in, without a sandbox around it.

use std::{fmt, io};

use super::bpf::compile;
use super::error::SpecError;
use super::filter::FilterSpec;
use super::profile::{ProfileOptions, UnixDatagrams};
use super::table::Arch;
use crate::sys::seccomp::{InstallFlags, install};

/// The strict filter for a process on its own: everything dangerous is refused with `EPERM`,
/// sockets of the internet and Unix datagrams are left alone.
pub fn default_seccomp_profile() -> Result<FilterSpec, SpecError> {
    let arch = Arch::native().ok_or(SpecError::UnsupportedArch)?;
    let options = ProfileOptions {
        inet: true,
        unix_datagrams: UnixDatagrams::Allow,
        ..ProfileOptions::shared_namespaces()
    };
    options.filter(arch)
}

/// Puts all threads of the current process, and whatever they start, under a filter. There is no
/// way back. Sets `no_new_privs`, which a filter needs and which is for good too: programs with a
/// set-user-id bit no longer gain privileges.
///
/// All threads or none: a thread that already has a filter of its own is an error.
pub fn apply_seccomp(spec: &FilterSpec) -> Result<(), ApplyError> {
    if Arch::native() != Some(spec.arch) {
        return Err(ApplyError::Spec(SpecError::UnsupportedArch));
    }
    if spec.notifies() {
        return Err(ApplyError::NoListener);
    }
    let program = compile(spec).map_err(ApplyError::Spec)?;
    rustix::thread::set_no_new_privs(true).map_err(|e| ApplyError::NoNewPrivs(e.into()))?;
    install(&program, InstallFlags::ALL_THREADS).map_err(ApplyError::Install)?;
    Ok(())
}

/// Why the current process is not under the filter.
#[derive(Debug)]
#[non_exhaustive]
pub enum ApplyError {
    /// The kernel did not take the filter.
    Install(io::Error),
    /// The filter hands calls to a mediator, and there is none.
    NoListener,
    /// The kernel did not set `no_new_privs`.
    NoNewPrivs(io::Error),
    /// The specification can't be a filter here.
    Spec(SpecError),
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Install(_) => "the kernel did not install the system call filter",
            Self::NoListener => "the filter leaves calls to a mediator, and there is none",
            Self::NoNewPrivs(_) => "the kernel did not set no_new_privs",
            Self::Spec(_) => "the system call filter can't be compiled",
        })
    }
}

impl std::error::Error for ApplyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Install(error) | Self::NoNewPrivs(error) => Some(error),
            Self::NoListener => None,
            Self::Spec(error) => Some(error),
        }
    }
}
