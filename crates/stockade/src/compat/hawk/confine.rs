//! The system call filter that a process puts on itself.

use stockade_engine::{ApplyError, default_seccomp_profile as default_filter};
use stockade_linux::seccomp::{SpecError, compile};

/// The default filter as the kernel reads it: instructions of eight bytes, little-endian
/// (`struct sock_filter` in seccomp(2)). It checks the architecture first.
///
/// # Errors
/// If there is no table of system calls for this architecture.
pub fn default_seccomp_profile() -> Result<Vec<u8>, SpecError> {
    Ok(compile(&default_filter()?)?.to_bytes())
}

/// Puts all threads of this process under the default filter. There is no way back.
///
/// # Errors
/// If the kernel does not take the filter; then no thread has it.
pub fn apply_seccomp() -> Result<(), ApplyError> {
    stockade_engine::apply_seccomp(&default_filter().map_err(ApplyError::Spec)?)
}
