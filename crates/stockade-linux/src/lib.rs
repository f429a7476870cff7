//! The Linux mechanism: executes a plan with namespaces, mounts, Landlock and seccomp.

pub mod seccomp;
#[cfg(target_os = "linux")]
mod sys;
