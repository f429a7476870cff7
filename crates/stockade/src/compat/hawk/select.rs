//! What this machine can confine commands with.

use std::path::Path;

use stockade_engine::SandboxSelection;
use stockade_policy::SandboxPolicy;
use stockade_policy::profile::Level;

use crate::error::Error;
use crate::sandbox::Sandbox;

/// Chooses what would confine a command under `policy` in `dir` at a level, by trying. Containers are
/// among the choices with the feature `container`.
///
/// # Errors
/// If nothing here reaches the level and enforces the policy.
pub fn select_sandbox(
    level: Level,
    policy: &SandboxPolicy,
    dir: &Path,
    helper: &Path,
) -> Result<SandboxSelection, Error> {
    let mut builder = Sandbox::builder();
    builder.policy(policy.clone()).workspace(dir).helper(helper);
    builder.build()?.select(level)
}

/// Whether the kernel has Landlock, by asking it for the version.
pub fn landlock_available() -> bool {
    stockade_linux::probe::landlock_abi().is_ok()
}

/// Whether a container engine answers and confines a command, by running one.
#[cfg(feature = "container")]
pub fn docker_available(helper: &Path) -> bool {
    is_usable(&stockade_container::DockerBackend::docker(), helper)
}

/// The same with gVisor as its runtime.
#[cfg(feature = "container")]
pub fn gvisor_available(helper: &Path) -> bool {
    is_usable(&stockade_container::DockerBackend::gvisor(), helper)
}

#[cfg(feature = "container")]
fn is_usable(backend: &dyn stockade_engine::backend::Backend, helper: &Path) -> bool {
    backend.probe(helper).is_usable()
}
